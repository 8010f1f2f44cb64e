/**
 * @file How the matrix of a matrix-vector product streams by: what each lane reads of it, and the sums that it makes.
 */
import {
  type AnyValue,
  type AnyVariable,
  type Condition,
  constant,
  type GlobalArray,
  type I32,
  i32,
  loop,
  type SharedMemory,
  type StorageType,
  shared,
  subgroup,
  type Value,
  variables,
  when,
} from "../../lang/index.ts";
import { tile, translate } from "../../tile/index.ts";
import { acrossLanes } from "../epilogues/across-lanes.ts";
import type { ExtrasOf, ExtraValue } from "../extras.ts";
import { accessWidth, type GemmKind } from "../kind.ts";
import { type Elements, elementOf, firstElement, type MatrixTile } from "../layouts/layout.ts";
import { plusTimes, type Semiring } from "../operators/semiring.ts";
import { sharedType } from "../operators/shared-tile.ts";
import { separate, type Transforms } from "../transforms.ts";
import type { GemmArguments } from "./kernel-interface.ts";
import type { MatrixVectorShape, Streamed } from "./matrix-vector-shape.ts";
import { counting, maskOutside } from "./staged-copy.ts";

/** Sums of products, one for each line and vector. */
export function arithmeticOf(kind: Pick<GemmKind, "operator">): Semiring {
  return kind.operator.semiring ?? plusTimes;
}

/** What the parts of the kernel work with. */
export interface MatrixVectorContext {
  readonly kind: GemmKind;
  readonly shape: MatrixVectorShape;
  readonly args: GemmArguments;
  readonly extras: ExtrasOf<ExtraValue>;
  readonly transforms: Transforms;
  /** First line of the block. */
  readonly firstLine: Value<I32>;
}

/** Extent of the matrix's lines. */
function linesOf({ shape, args }: MatrixVectorContext): Value<I32> {
  return shape.streamed === "a" ? args.m : args.n;
}

/** One lane's part of the matrix. */
export class MatrixStream {
  readonly #sums: readonly (readonly AnyVariable[])[];
  /** Number of the lane's first line in its block, and place among the lanes along K. */
  readonly #line: Value<I32>;
  readonly #depth: Value<I32>;
  /** Lines of the lane in the matrix; those beyond its edge are its last once more. */
  readonly #rows: readonly Value<I32>[];
  /** Whether a run of lines lies inside the matrix. */
  readonly #inside: Condition;
  readonly #zero: number;

  constructor(private readonly context: MatrixVectorContext) {
    const { kind, shape, firstLine } = context;
    const { lanes, warps, held, vectors, alongK, width } = shape;
    const { accumulator } = kind.types;
    this.#zero = arithmeticOf(kind).zero(accumulator);
    this.#sums = Array.from({ length: held }, () => variables(accumulator, vectors, this.#zero));
    const warp = subgroup.index.div(warps.depth);
    const { lane } = subgroup;
    this.#depth = alongK ? lane.rem(lanes.depth) : lane.div(lanes.lines);
    const across = alongK ? lane.div(lanes.depth) : lane.rem(lanes.lines);
    this.#line = alongK
      ? warp.mul(held * lanes.lines).add(across)
      : warp.mul(lanes.lines).add(across).mul(width);
    const last = linesOf(context).sub(1);
    const line = firstLine.add(this.#line);
    this.#inside = alongK || width === 1 ? true : line.add(width - 1).le(last);
    this.#rows = Array.from({ length: held }, (_, i) => line.add(alongK ? i * lanes.lines : i).min(last));
  }

  /** A step all of which lies inside the matrix. */
  whole(first: Value<I32>): void {
    const { alongK, turns, width, lanes } = this.context.shape;
    const numbers = Array.from({ length: turns }, (_, turn) => turn);
    // All accesses of a step are under way before the first is waited for.
    if (alongK) {
      const at = first.add(this.#depth.mul(width));
      const apart = lanes.depth * width;
      const fetched = numbers.map((turn) =>
        this.#rows.map((line) => this.#fetch("streamed", line, at, turn * apart, width)),
      );
      for (const turn of numbers) this.#addAlongK(fetched[turn], at, turn * apart, width);
      return;
    }
    const at = first.add(this.#depth.mul(turns));
    when(this.#inside, () => {
      const fetched = numbers.map((turn) => this.#fetch("streamed", this.#rows[0], at, turn, width));
      const vectors = this.#thin(at, 0, turns);
      for (const turn of numbers) {
        const elements = this.#elements(fetched[turn]);
        this.#addLines(
          elements,
          vectors.map((vector) => vector[turn]),
        );
      }
    }).otherwise(() => loop({ from: at, to: at.add(turns) }, (k) => this.#single(k)));
  }

  /** The last step, which the matrix's edge cuts off. */
  rest(first: Value<I32>): void {
    const { alongK, width, lanes } = this.context.shape;
    const { k } = this.context.args;
    if (!alongK) {
      loop({ from: first.add(this.#depth), to: k, step: lanes.depth }, (at) => {
        when(this.#inside, () => {
          const elements = this.#elements(this.#fetch("streamed", this.#rows[0], at, 0, width));
          this.#addLines(
            elements,
            this.#thin(at, 0, 1).map(([value]) => value),
          );
        }).otherwise(() => this.#single(at));
      });
      return;
    }
    const along = (from: Value<I32>, to: Value<I32>, count: number): void =>
      loop({ from: from.add(this.#depth.mul(count)), to, step: lanes.depth * count }, (at) => {
        const lines = this.#rows.map((line) => this.#fetch("streamed", line, at, 0, count));
        this.#addAlongK(lines, at, 0, count);
      });
    const whole = k.sub(k.rem(width));
    along(first, whole, width);
    if (width > 1) along(whole, k, 1);
  }

  /** Joins the lanes' sums; what a warp has of each line goes to shared memory. */
  join(): SharedMemory<StorageType> {
    const { kind, shape } = this.context;
    const { lanes, warps, lines, vectors, alongK } = shape;
    const type = kind.types.accumulator as StorageType;
    const memory = shared(type, warps.depth * vectors * lines);
    const add = arithmeticOf(kind).add as NonNullable<Semiring["add"]>;
    const apart = alongK ? lanes.lines : 1;
    const held = this.#sums.flatMap((line, i) =>
      line.map(({ value }, v) => ({ offset: v * lines + i * apart, state: [value] })),
    );
    const joining = { combine: ([x]: readonly AnyValue[], [y]: readonly AnyValue[]) => [add(x, y)] };
    const stride = alongK ? 1 : lanes.lines;
    const { lines: left, shift, owner } = acrossLanes(joining, held, lanes.depth, stride);
    const base = subgroup.index
      .rem(warps.depth)
      .mul(vectors * lines)
      .add(this.#line);
    const start = shift === undefined ? base : base.add(shift);
    when(owner, () => {
      for (const { offset, state } of left) memory.storeAt(start.add(offset), state[0].to(type));
    });
    return memory;
  }

  #addAlongK(lines: readonly Fetched[], at: Value<I32>, offset: number, count: number): void {
    const vectors = this.#thin(at, offset, count);
    for (const [i, fetched] of lines.entries()) {
      for (const [e, x] of this.#elements(fetched).entries()) {
        this.#add(
          i,
          x,
          vectors.map((vector) => vector[e]),
        );
      }
    }
  }

  #addLines(elements: readonly AnyValue[], vectors: readonly AnyValue[]): void {
    for (const [i, x] of elements.entries()) this.#add(i, x, vectors);
  }

  /** One position of K for lines that the edge cuts off. */
  #single(k: Value<I32>): void {
    const vectors = this.#thin(k, 0, 1).map(([value]) => value);
    for (const [i, line] of this.#rows.entries()) {
      const [x] = this.#elements(this.#fetch("streamed", line, k, 0, 1));
      this.#add(i, x, vectors);
    }
  }

  #add(line: number, x: AnyValue, vectors: readonly AnyValue[]): void {
    const { kind, shape } = this.context;
    const { accumulate } = arithmeticOf(kind);
    this.#sums[line].forEach((sum, v) => {
      const y = vectors[v];
      sum.value = shape.streamed === "a" ? accumulate(x, y, sum.value) : accumulate(y, x, sum.value);
    });
  }

  /** The vectors' elements from a position of K on: by vector, then along K. */
  #thin(at: Value<I32>, offset: number, count: number): readonly (readonly AnyValue[])[] {
    const { kind, shape } = this.context;
    const { thin, vectors } = shape;
    const operand = kind[thin];
    const along = operand.layout.major === (thin === "a" ? "row" : "column");
    const width = accessWidth(operand, along ? count : vectors, kind.params.copies?.[thin]);
    const load = (vector: number, depth: number): readonly AnyValue[] =>
      this.#elements(this.#fetch("thin", constant(i32, vector), at, offset + depth, width));
    const parts = (extent: number): number[] => Array.from({ length: extent / width }, (_, i) => i * width);
    const numbers = Array.from({ length: vectors }, (_, v) => v);
    if (along) return numbers.map((v) => parts(count).flatMap((depth) => load(v, depth)));
    const byDepth = Array.from({ length: count }, (_, depth) =>
      parts(vectors).flatMap((v) => load(v, depth)),
    );
    return numbers.map((v) => byDepth.map((elements) => elements[v]));
  }

  /** Loads neighbouring elements of an operand. */
  #fetch(
    which: "streamed" | "thin",
    line: Value<I32>,
    depth: Value<I32>,
    offset: number,
    count: number,
  ): Fetched {
    const { kind, shape, args, extras } = this.context;
    const name = shape[which];
    const { layout } = kind[name];
    const size = layout.major === "row" ? { R: 1, C: count } : { R: count, C: 1 };
    const along = name === "a" ? { R: line, C: depth } : { R: depth, C: line };
    const moved = name === "a" ? { C: offset } : { R: offset };
    const at = translate(translate(tile(size), along), moved) as MatrixTile;
    const memory = args[name] as GlobalArray<StorageType>;
    const leading = name === "a" ? args.leadingA : args.leadingB;
    const place = { origin: 0, leading, extras: extras[name] ?? [], zero: this.#zero };
    return { name, at, held: layout.load(memory, place, at) };
  }

  /** What was loaded, as it is multiplied: through the transforms, rounded to the operand's type, in that of the sums. */
  #elements({ name, at, held }: Fetched): readonly AnyValue[] {
    const { kind, args, extras, transforms } = this.context;
    const { layout } = kind[name];
    const type = kind.types[name];
    const stages = transforms[name];
    const rounded = (x: AnyValue): AnyValue => x.to(type).to(kind.types.accumulator) as AnyValue;
    const stored = (x: AnyValue): AnyValue => x.to(sharedType(type)) as AnyValue;
    if (stages === undefined) return separate(held).map((x) => rounded(stored(x)));
    const [rows, columns] = name === "a" ? [args.m, args.k] : [args.k, args.n];
    return separate(held).map((x, e) => {
      const element = elementOf(at, e);
      const where = firstElement(element);
      const first = stored(stages.globalToShared?.(x, where) ?? x);
      const second = rounded(stages.sharedToRegister?.(first, where) ?? first);
      if (layout.counts === undefined) return second;
      return maskOutside(second, counting(where, rows, columns, layout, extras[name] ?? []), this.#zero);
    });
  }
}

/** Neighbouring elements of an operand in registers. */
interface Fetched {
  readonly name: Streamed;
  readonly at: MatrixTile;
  readonly held: Elements;
}
