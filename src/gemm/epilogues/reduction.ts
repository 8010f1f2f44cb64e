/**
 * @file Reductions: what rows, columns or all of a result are reduced to on their way out.
 *
 * A reduction is a commutative monoid on states of a few numbers: `enter` makes the state of one element, `combine` joins
 * two, `identity` is the state of no elements. Blocks leave states, and a small kernel joins those in a fixed order, so that
 * a repeated product gives the same bits.
 */
import {
  type AnyValue,
  binary,
  constant,
  exp,
  f32,
  f64,
  fusedMultiplyAdd,
  i32,
  i64,
  isFloat,
  type StorageType,
  select,
  u32,
  u64,
} from "../../lang/index.ts";
import { integerRange } from "../../types/integer-range.ts";
import type { ElementCoordinates } from "../transforms.ts";

/** How elements are joined. `State` lists below are of equal length: the number of components. */
export interface Reduction {
  readonly name: string;
  /** The state of no elements, for the type that states are computed in. */
  identity(type: StorageType): readonly (number | bigint)[];
  /** The state of one element of D, already in the type of states. */
  enter(x: AnyValue, at: ElementCoordinates): readonly AnyValue[];
  /** Joins two states; commutative and associative up to rounding. */
  combine(a: readonly AnyValue[], b: readonly AnyValue[]): readonly AnyValue[];
  /** What is stored of a state, one value for each target; the state itself unless given. */
  leave?(state: readonly AnyValue[]): readonly AnyValue[];
  /** Number of targets; that of the components unless given. */
  readonly targets?: number;
  /** The atomic that joins states of one component. */
  readonly atomic?: "add" | "min" | "max";
}

/** What a step of an epilogue reduces, compiled in. */
export interface Collection {
  readonly reduction: Reduction;
  /** "row": along each row, giving one result per row; "column" along each column; "all" everything. */
  readonly axis: ReductionAxis;
  /** Type of states. */
  readonly type: StorageType;
  /** Whether blocks join their states in the target by atomics, in no particular order. */
  readonly atomics: boolean;
}

/** Along what D is reduced. */
export type ReductionAxis = "row" | "column" | "all";

/** Reductions that go by a name. `absMax` is the largest magnitude (amax), 0 for no elements. */
export type ReductionName = "sum" | "max" | "min" | "absMax" | "sumOfSquares";

/** Type in which values for a target are joined: f32 or f64 for floats, 32- or 64-bit integers. */
export function stateType(target: StorageType): StorageType {
  if (isFloat(target)) return target === f64 ? f64 : f32;
  if (target.bits === 64) return target.class === "signed" ? i64 : u64;
  return target.class === "signed" ? i32 : u32;
}

function least(type: StorageType): number | bigint {
  return extreme(type, "least") ?? Number.NEGATIVE_INFINITY;
}

function greatest(type: StorageType): number | bigint {
  return extreme(type, "greatest") ?? Number.POSITIVE_INFINITY;
}

function extreme(type: StorageType, which: "least" | "greatest"): number | bigint | undefined {
  const bound = integerRange(type)?.[which];
  return bound === undefined || type.bits === 64 ? bound : Number(bound);
}

function joining(operator: "add" | "min" | "max"): Reduction["combine"] {
  return ([a], [b]) => [binary(operator, a, b)];
}

/** The reductions with names. `max` and `min` ignore NaN unless all elements are NaN. */
export const namedReductions: Readonly<Record<ReductionName, Reduction>> = {
  sum: { name: "sum", identity: () => [0], enter: (x) => [x], combine: joining("add"), atomic: "add" },
  max: {
    name: "max",
    identity: (type) => [least(type)],
    enter: (x) => [x],
    combine: joining("max"),
    atomic: "max",
  },
  min: {
    name: "min",
    identity: (type) => [greatest(type)],
    enter: (x) => [x],
    combine: joining("min"),
    atomic: "min",
  },
  absMax: {
    name: "absMax",
    identity: () => [0],
    enter: (x) => [x.type.class === "unsigned" ? x : x.abs()],
    combine: joining("max"),
    atomic: "max",
  },
  sumOfSquares: {
    name: "sumOfSquares",
    identity: () => [0],
    enter: (x) => [x.mul(x)],
    combine: joining("add"),
    atomic: "add",
  },
};

/**
 * The largest element m, and Σ e^(x - m): what a softmax needs, in one pass (Milakov and Gimelshein, "Online normalizer
 * calculation for softmax", arXiv 1805.02867). Two targets: m and the sum. Floats only.
 */
export const softmaxStatistics: Reduction = {
  name: "softmax statistics",
  identity: () => [Number.NEGATIVE_INFINITY, 0],
  enter: (x) => [x, constant(x.type, 1)],
  combine([m, sum], [n, other]) {
    const top = binary("max", m, n);
    // The side that holds the maximum keeps its sum; the difference of two infinities never arises.
    const factor = (at: AnyValue): AnyValue => select(at.eq(top), constant(at.type, 1), exp(at.sub(top)));
    return [top, fusedMultiplyAdd(sum, factor(m), other.mul(factor(n)))];
  },
};

/**
 * Mean and variance (of the population), joined as Chan, Golub and LeVeque do: no cancellation where the mean is large. Two
 * targets: mean and variance. Floats only; up to 2^24 elements in f32.
 */
export const moments: Reduction = {
  name: "moments",
  identity: () => [0, 0, 0],
  enter: (x) => [constant(x.type, 1), x, constant(x.type, 0)],
  combine([count, mean, squares], [more, other, others]) {
    const total = count.add(more);
    const part = select(more.eq(0), constant(total.type, 0), more.div(total.max(1)));
    const distance = other.sub(mean);
    const joined = fusedMultiplyAdd(distance, part, mean);
    return [total, joined, fusedMultiplyAdd(distance.mul(distance), count.mul(part), squares.add(others))];
  },
  leave: ([count, mean, squares]) => [mean, squares.div(count.max(1))],
  targets: 2,
};
