/**
 * @file Semirings: the pair of operations that a matrix product is made of.
 */
import { type AnyValue, binary, type ElementType, fusedMultiplyAdd } from "../../lang/index.ts";

/**
 * `accumulate(a, b, sum)` is sum ⊕ (a ⊗ b). `zero` is the neutral element of ⊕ and must swallow under ⊗: elements beyond
 * the matrices have that value, and a product without terms is it.
 */
export interface Semiring {
  readonly name: string;
  zero(type: ElementType): number;
  accumulate(a: AnyValue, b: AnyValue, sum: AnyValue): AnyValue;
  /** x ⊕ y, for schedules that join sums made apart; one without it is summed in one piece. */
  add?(x: AnyValue, y: AnyValue): AnyValue;
}

/** The ordinary product of matrices. */
export const plusTimes: Semiring = {
  name: "plus-times",
  zero: () => 0,
  accumulate: (a, b, sum) => fusedMultiplyAdd(a, b, sum),
  add: (x, y) => binary("add", x, y),
};

/**
 * Infinity of a type as far as sums of two do not leave it: floats have one, of integers a quarter of the range is taken.
 */
function unreachable(type: ElementType): number {
  if (type.class === "float") return Number.POSITIVE_INFINITY;
  return 2 ** (Math.min(type.bits, 54) - 2) - 1;
}

/** Longest paths: sums under max. Integers count ±(2^30 - 1) as unreachable and do not saturate. */
export const maxPlus: Semiring = {
  name: "max-plus",
  zero: (type) => -unreachable(type),
  accumulate: (a, b, sum) => binary("max", binary("add", a, b), sum),
  add: (x, y) => binary("max", x, y),
};

/** Shortest paths: sums under min. */
export const minPlus: Semiring = {
  name: "min-plus",
  zero: unreachable,
  accumulate: (a, b, sum) => binary("min", binary("add", a, b), sum),
  add: (x, y) => binary("min", x, y),
};

/** Reachability, bit by bit of integers. */
export const orAnd: Semiring = {
  name: "or-and",
  zero: () => 0,
  accumulate: (a, b, sum) => binary("or", binary("and", a, b), sum),
  add: (x, y) => binary("or", x, y),
};
