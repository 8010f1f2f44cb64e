/**
 * @file Arithmetic on coordinates that are either known while tracing (numbers) or on the device alone (values). What
 * is known is computed at once and costs no instruction.
 */
import type { I32, Value } from "../lang/index.ts";

/** A position along one dimension, in elements. */
export type Coordinate = Value<I32> | number;

/** a + b. */
export function plus(a: Coordinate, b: Coordinate): Coordinate {
  if (a === 0) return b;
  if (b === 0) return a;
  if (typeof a === "number") return typeof b === "number" ? a + b : b.add(a);
  return a.add(b);
}

/** a · factor. */
export function times(a: Coordinate, factor: number): Coordinate {
  if (typeof a === "number") return a * factor;
  return factor === 1 ? a : a.mul(factor);
}

/** a divided by `divisor`, rounded down; `a` is not negative. */
export function quotient(a: Coordinate, divisor: number): Coordinate {
  if (typeof a === "number") return Math.floor(a / divisor);
  return divisor === 1 ? a : a.floorDiv(divisor);
}

/** Remainder of {@link quotient}. */
export function remainder(a: Coordinate, divisor: number): Coordinate {
  if (typeof a === "number") return a % divisor;
  return divisor === 1 ? 0 : a.floorMod(divisor);
}
