/**
 * @file How a matrix-vector product ends: each lane takes a line, adds what the warps have of it and runs the epilogue.
 */
import {
  type AnyValue,
  constant,
  type I32,
  i32,
  type SharedMemory,
  type StorageType,
  select,
  subgroup,
  type Value,
  when,
} from "../../lang/index.ts";
import type { TargetFacts } from "../../target/facts.ts";
import { tile, translate } from "../../tile/index.ts";
import {
  type CollectorPlace,
  Collectors,
  type LaneGrid,
  type LaneOffsets,
  type PartExtents,
} from "../epilogues/collector.ts";
import { combine } from "../epilogues/combination.ts";
import type { StepOperand } from "../epilogues/step-operand.ts";
import { type GemmKind, scaleTypeOf } from "../kind.ts";
import type { MatrixTile } from "../layouts/layout.ts";
import type { Semiring } from "../operators/semiring.ts";
import { joined, separate } from "../transforms.ts";
import { type MatrixVectorShape, type Streamed, shapeOf } from "./matrix-vector-shape.ts";
import { arithmeticOf, linesOf, type MatrixVectorContext } from "./matrix-vector-stream.ts";

/** Extents of the parts of D that one subgroup finishes at a time. */
export function matrixVectorParts(kind: GemmKind, facts: TargetFacts): PartExtents {
  const { streamed, lines, vectors } = shapeOf(kind, facts);
  const along = Math.min(lines, facts.subgroup.width);
  return streamed === "a" ? { rows: along, columns: vectors } : { rows: vectors, columns: along };
}

/** From the warps' sums to D: a line a lane. */
export class MatrixVectorFinish {
  constructor(
    private readonly context: MatrixVectorContext,
    private readonly operands: readonly (readonly StepOperand[])[],
    private readonly sums: SharedMemory<StorageType>,
  ) {}

  run(): void {
    const { lines, warps } = this.context.shape;
    const count = warps.lines * warps.depth;
    const rounds = Math.ceil(lines / (subgroup.size * count));
    for (let round = 0; round < rounds; round++) {
      this.#part(subgroup.index.add(round * count).mul(subgroup.size));
    }
  }

  /** The lines from `start` of the block on, one a lane. */
  #part(start: Value<I32>): void {
    const { context } = this;
    const { kind, shape, args, firstLine } = context;
    const { streamed, lines, vectors } = shape;
    const beyond = linesOf(context);
    const local = start.add(subgroup.lane);
    // Lanes without a line take one outside of D, which nobody has.
    const line = select(local.lt(lines), firstLine.add(local), beyond) as Value<I32>;
    const first = select(start.lt(lines), firstLine.add(start), beyond) as Value<I32>;
    const zero = constant(i32, 0);
    const at = (along: Value<I32>): CollectorPlace["part"] =>
      streamed === "a" ? { row: along, column: zero } : { row: zero, column: along };
    const collectors = kind.steps.some(({ behaviour }) => behaviour.collects !== undefined)
      ? new Collectors({
          steps: kind.steps,
          args: args as unknown as Readonly<Record<string, unknown>>,
          rows: args.m,
          columns: args.n,
          parts: partsOf(shape),
          grid: gridOf(streamed),
        })
      : undefined;
    const numbers = Array.from({ length: vectors }, (_, v) => v);
    const offsets: LaneOffsets =
      streamed === "a" ? { rows: [0], columns: numbers } : { rows: numbers, columns: [0] };
    const place = { part: at(first), lane: at(line) };
    collectors?.open(["row", "column", "all"], place, offsets);
    when(line.lt(beyond), () => {
      for (const v of numbers) this.#element(collectors, line, v, this.#sum(local, v));
    });
    collectors?.close(["row", "column", "all"]);
  }

  /** The warps' sums of an element, in their order. */
  #sum(local: Value<I32>, vector: number): AnyValue {
    const { kind, shape } = this.context;
    const { lines, vectors, warps } = shape;
    const add = arithmeticOf(kind).add as NonNullable<Semiring["add"]>;
    const sums = Array.from({ length: warps.depth }, (_, warp) =>
      this.sums.loadAt(local.add((warp * vectors + vector) * lines)),
    ) as readonly AnyValue[];
    return sums.reduce(add);
  }

  #element(collectors: Collectors | undefined, line: Value<I32>, vector: number, sum: AnyValue): void {
    const { kind, shape, args, extras, transforms } = this.context;
    const a = shape.streamed === "a";
    const number = constant(i32, vector);
    const where = a ? { row: line, column: number } : { row: number, column: line };
    const at = translate(tile({ R: 1, C: 1 }), { R: where.row, C: where.column }) as MatrixTile;
    const values = combine(
      {
        scaleType: scaleTypeOf(kind.types.accumulator),
        alpha: args.alpha,
        beta: args.beta,
        transforms,
        steps: kind.steps,
        stepOperands: this.operands,
        collectors,
        target: kind.d.type,
        source:
          kind.c === undefined
            ? undefined
            : () =>
                separate(
                  (kind.c as typeof kind.d).layout.load(
                    args.c,
                    { origin: 0, leading: args.leadingC, extras: extras.c ?? [] },
                    at,
                  ),
                ),
      },
      [sum],
      {
        count: 1,
        along: "C",
        aligned: true,
        offset: a ? { row: 0, column: vector } : { row: vector, column: 0 },
        at: () => where,
      },
    );
    const d = { origin: 0, leading: args.leadingD, extras: extras.d ?? [] };
    kind.d.layout.store(args.d, d, at, joined(values));
  }
}

function gridOf(streamed: Streamed): LaneGrid {
  return streamed === "a"
    ? { fastest: "R", R: subgroup.size, C: 1 }
    : { fastest: "C", R: 1, C: subgroup.size };
}

function partsOf({ streamed, lines, vectors }: MatrixVectorShape): PartExtents {
  const along = Math.min(lines, subgroup.size);
  return streamed === "a" ? { rows: along, columns: vectors } : { rows: vectors, columns: along };
}
