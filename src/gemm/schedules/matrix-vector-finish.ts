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
import { columnsPerResult, gateColumn, gateGroup } from "../gate-columns.ts";
import { type GemmKind, scaleTypeOf } from "../kind.ts";
import type { MatrixTile } from "../layouts/layout.ts";
import type { Semiring } from "../operators/semiring.ts";
import { joined, separate } from "../transforms.ts";
import { columnsOf } from "./kernel-interface.ts";
import { type MatrixVectorShape, type Streamed, shapeOf } from "./matrix-vector-shape.ts";
import { arithmeticOf, type MatrixVectorContext } from "./matrix-vector-stream.ts";

/** Extents of the parts of D that one subgroup finishes at a time. */
export function matrixVectorParts(kind: GemmKind, facts: TargetFacts): PartExtents {
  return partsOf(kind, shapeOf(kind, facts), facts.subgroup.width);
}

/** From the warps' sums to D: a line a lane. */
export class MatrixVectorFinish {
  constructor(
    private readonly context: MatrixVectorContext,
    private readonly operands: readonly (readonly StepOperand[])[],
    private readonly sums: SharedMemory<StorageType>,
  ) {}

  run(): void {
    const { kind, shape } = this.context;
    const { warps } = shape;
    const lines = shape.lines / columnsPerResult(kind);
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
    const { streamed, vectors } = shape;
    const perResult = columnsPerResult(kind);
    const lines = shape.lines / perResult;
    const columns = columnsOf(kind, args);
    const beyond = streamed === "a" ? args.m : columns;
    const local = start.add(subgroup.lane);
    // Lanes without a line take one outside of D, which nobody has.
    const own = perResult === 1 ? firstLine : firstLine.div(perResult);
    const line = select(local.lt(lines), own.add(local), beyond) as Value<I32>;
    const first = select(start.lt(lines), own.add(start), beyond) as Value<I32>;
    const zero = constant(i32, 0);
    const at = (along: Value<I32>): CollectorPlace["part"] =>
      streamed === "a" ? { row: along, column: zero } : { row: zero, column: along };
    const collectors = kind.steps.some(({ behaviour }) => behaviour.collects !== undefined)
      ? new Collectors({
          steps: kind.steps,
          args: args as unknown as Readonly<Record<string, unknown>>,
          rows: args.m,
          columns,
          parts: partsOf(kind, shape, subgroup.size),
          grid: gridOf(streamed),
        })
      : undefined;
    const numbers = Array.from({ length: vectors }, (_, v) => v);
    const offsets: LaneOffsets =
      streamed === "a" ? { rows: [0], columns: numbers } : { rows: numbers, columns: [0] };
    const place = { part: at(first), lane: at(line) };
    collectors?.open(["row", "column", "all"], place, offsets);
    when(line.lt(beyond), () => {
      for (const v of numbers) this.#element(collectors, line, local, v);
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

  #element(collectors: Collectors | undefined, line: Value<I32>, local: Value<I32>, vector: number): void {
    const { kind, shape, args, extras, transforms } = this.context;
    const { gate } = kind;
    const staged = gate === undefined ? local : (gateColumn(local) as Value<I32>);
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
        gate:
          gate === undefined
            ? undefined
            : { apply: gate, products: [this.#sum(staged.add(gateGroup), vector)] },
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
      [this.#sum(staged, vector)],
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

function partsOf(
  kind: Pick<GemmKind, "gate">,
  { streamed, lines, vectors }: MatrixVectorShape,
  width: number,
): PartExtents {
  const along = Math.min(lines / columnsPerResult(kind), width);
  return streamed === "a" ? { rows: along, columns: vectors } : { rows: vectors, columns: along };
}
