/**
 * @file Integer arithmetic that every target agrees on bit for bit.
 *
 * Sums and products wrap around. `div` and `rem` truncate, `floorDiv` and `floorMod` round down. Division by zero is
 * defined: x/0 = x and x%0 = 0; so is the one quotient that overflows: MIN/-1 = MIN, MIN%-1 = 0. Shift counts are taken
 * modulo the width; `shiftRight` keeps the sign of signed types.
 *
 * Arguments must be values of the type; results are, without negative zeros.
 */

import { powerOfTwo } from "./power-of-two.ts";

/** The operations of one integer type, over `number` or, for 64-bit types, `bigint`. */
export interface IntegerArithmetic<V extends number | bigint> {
  readonly add: (a: V, b: V) => V;
  readonly sub: (a: V, b: V) => V;
  readonly mul: (a: V, b: V) => V;
  /** Quotient truncated towards zero; a when b is 0. */
  readonly div: (a: V, b: V) => V;
  /** Remainder with the sign of a; 0 when b is 0. */
  readonly rem: (a: V, b: V) => V;
  /** Quotient rounded down; a when b is 0. */
  readonly floorDiv: (a: V, b: V) => V;
  /** Remainder with the sign of b; 0 when b is 0. */
  readonly floorMod: (a: V, b: V) => V;
  /** -a, wrapped: -MIN = MIN. */
  readonly neg: (a: V) => V;
  /** Magnitude, wrapped: |MIN| = MIN. */
  readonly abs: (a: V) => V;
  readonly min: (a: V, b: V) => V;
  readonly max: (a: V, b: V) => V;
  readonly and: (a: V, b: V) => V;
  readonly or: (a: V, b: V) => V;
  readonly xor: (a: V, b: V) => V;
  readonly not: (a: V) => V;
  readonly shiftLeft: (a: V, count: V) => V;
  readonly shiftRight: (a: V, count: V) => V;
}

/** i32 over numbers in [-2^31, 2^31). */
export const i32Arithmetic: IntegerArithmetic<number> = Object.freeze({
  add: (a: number, b: number): number => (a + b) | 0,
  sub: (a: number, b: number): number => (a - b) | 0,
  mul: (a: number, b: number): number => Math.imul(a, b),
  div: (a: number, b: number): number => (b === 0 ? a : (a / b) | 0),
  rem: (a: number, b: number): number => (b === 0 ? 0 : (a % b) | 0),
  floorDiv: (a: number, b: number): number => (b === 0 ? a : Math.floor(a / b) | 0),
  floorMod: (a: number, b: number): number => {
    if (b === 0) return 0;
    const r = (a % b) | 0;
    return r !== 0 && r < 0 !== b < 0 ? r + b : r;
  },
  neg: (a: number): number => -a | 0,
  abs: (a: number): number => Math.abs(a) | 0,
  min: (a: number, b: number): number => Math.min(a, b),
  max: (a: number, b: number): number => Math.max(a, b),
  and: (a: number, b: number): number => a & b,
  or: (a: number, b: number): number => a | b,
  xor: (a: number, b: number): number => a ^ b,
  not: (a: number): number => ~a,
  shiftLeft: (a: number, count: number): number => a << count,
  shiftRight: (a: number, count: number): number => a >> count,
});

/** u32 over numbers in [0, 2^32). */
export const u32Arithmetic: IntegerArithmetic<number> = Object.freeze({
  add: (a: number, b: number): number => (a + b) >>> 0,
  sub: (a: number, b: number): number => (a - b) >>> 0,
  mul: (a: number, b: number): number => Math.imul(a, b) >>> 0,
  div: (a: number, b: number): number => (b === 0 ? a : (a / b) >>> 0),
  rem: (a: number, b: number): number => (b === 0 ? 0 : a % b),
  floorDiv: (a: number, b: number): number => (b === 0 ? a : (a / b) >>> 0),
  floorMod: (a: number, b: number): number => (b === 0 ? 0 : a % b),
  neg: (a: number): number => -a >>> 0,
  abs: (a: number): number => a,
  min: (a: number, b: number): number => Math.min(a, b),
  max: (a: number, b: number): number => Math.max(a, b),
  and: (a: number, b: number): number => (a & b) >>> 0,
  or: (a: number, b: number): number => (a | b) >>> 0,
  xor: (a: number, b: number): number => (a ^ b) >>> 0,
  not: (a: number): number => ~a >>> 0,
  shiftLeft: (a: number, count: number): number => (a << count) >>> 0,
  shiftRight: (a: number, count: number): number => a >>> count,
});

/** Arithmetic over bigint, where `wrap` brings any integer back into the type. */
function wrappedArithmetic(wrap: (a: bigint) => bigint): IntegerArithmetic<bigint> {
  return Object.freeze({
    add: (a: bigint, b: bigint): bigint => wrap(a + b),
    sub: (a: bigint, b: bigint): bigint => wrap(a - b),
    mul: (a: bigint, b: bigint): bigint => wrap(a * b),
    div: (a: bigint, b: bigint): bigint => (b === 0n ? a : wrap(a / b)),
    rem: (a: bigint, b: bigint): bigint => (b === 0n ? 0n : a % b),
    floorDiv: (a: bigint, b: bigint): bigint => {
      if (b === 0n) return a;
      const quotient = a / b;
      return wrap(a % b !== 0n && a < 0n !== b < 0n ? quotient - 1n : quotient);
    },
    floorMod: (a: bigint, b: bigint): bigint => {
      if (b === 0n) return 0n;
      const r = a % b;
      return r !== 0n && r < 0n !== b < 0n ? r + b : r;
    },
    neg: (a: bigint): bigint => wrap(-a),
    abs: (a: bigint): bigint => (a < 0n ? wrap(-a) : a),
    min: (a: bigint, b: bigint): bigint => (a < b ? a : b),
    max: (a: bigint, b: bigint): bigint => (a > b ? a : b),
    and: (a: bigint, b: bigint): bigint => a & b,
    or: (a: bigint, b: bigint): bigint => a | b,
    xor: (a: bigint, b: bigint): bigint => a ^ b,
    not: (a: bigint): bigint => wrap(~a),
    shiftLeft: (a: bigint, count: bigint): bigint => wrap(a << (count & 63n)),
    shiftRight: (a: bigint, count: bigint): bigint => a >> (count & 63n),
  });
}

/** i64 over bigints in [-2^63, 2^63). */
export const i64Arithmetic: IntegerArithmetic<bigint> = wrappedArithmetic((a) => BigInt.asIntN(64, a));

/** u64 over bigints in [0, 2^64). */
export const u64Arithmetic: IntegerArithmetic<bigint> = wrappedArithmetic((a) => BigInt.asUintN(64, a));

function indexBitwise(a: number, b: number, operation: (a: bigint, b: bigint) => bigint): number {
  return Number(BigInt.asIntN(64, operation(BigInt(a), BigInt(b))));
}

/** The width that shift counts of `index` are taken modulo; it is a 64-bit integer on a GPU. */
function indexShift(count: number): number {
  return ((count % 64) + 64) % 64;
}

/**
 * index over integral doubles. Exact while every result stays below 2^53 in magnitude, as positions in memory do;
 * beyond that nothing is promised (use {@link i64Arithmetic} for numbers that large).
 */
export const indexArithmetic: IntegerArithmetic<number> = Object.freeze({
  add: (a: number, b: number): number => a + b,
  sub: (a: number, b: number): number => a - b,
  mul: (a: number, b: number): number => a * b + 0,
  // Below 2^53 a quotient cannot round up to the next integer: it stays at least 1/b away from it.
  div: (a: number, b: number): number => (b === 0 ? a : Math.trunc(a / b) + 0),
  rem: (a: number, b: number): number => (b === 0 ? 0 : (a % b) + 0),
  floorDiv: (a: number, b: number): number => (b === 0 ? a : Math.floor(a / b) + 0),
  floorMod: (a: number, b: number): number => {
    if (b === 0) return 0;
    const r = a % b;
    return r !== 0 && r < 0 !== b < 0 ? r + b : r + 0;
  },
  neg: (a: number): number => 0 - a,
  abs: (a: number): number => Math.abs(a),
  min: (a: number, b: number): number => Math.min(a, b),
  max: (a: number, b: number): number => Math.max(a, b),
  and: (a: number, b: number): number => indexBitwise(a, b, (x, y) => x & y),
  or: (a: number, b: number): number => indexBitwise(a, b, (x, y) => x | y),
  xor: (a: number, b: number): number => indexBitwise(a, b, (x, y) => x ^ y),
  not: (a: number): number => -1 - a,
  shiftLeft: (a: number, count: number): number => a * powerOfTwo(indexShift(count)) + 0,
  shiftRight: (a: number, count: number): number => Math.floor(a / powerOfTwo(indexShift(count))),
});
