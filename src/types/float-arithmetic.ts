/**
 * @file Correctly rounded arithmetic of the narrow floating-point types over JavaScript numbers.
 *
 * Each is the double operation rounded again. That double rounding is harmless:
 * - f16 and bf16 products (22 and 16 bits) and f16 sums (multiples of 2^-24 below 2^17) are exact in a double.
 * - A bf16 sum that a double cannot hold has addends more than 2^37 apart, so it lies next to the larger one and far
 *   from any tie, which would be 2^-8 of it away.
 * - Otherwise 53 ≥ 2p + 2 holds for p = 24, 11 and 8, and then rounding twice equals rounding once for sum, difference,
 *   product, quotient and square root (Figueroa, "When is double rounding innocuous?", 1995). Subnormal results: sums
 *   and differences there are exact, products have at most 48 bits, and a quotient that is not itself a tie differs
 *   from every tie by more than 2^-49 of it.
 */

import { roundToBF16, roundToF16 } from "./round.ts";

export function addF32(a: number, b: number): number {
  return Math.fround(a + b);
}
export function subF32(a: number, b: number): number {
  return Math.fround(a - b);
}
export function mulF32(a: number, b: number): number {
  return Math.fround(a * b);
}
export function divF32(a: number, b: number): number {
  return Math.fround(a / b);
}
export function sqrtF32(a: number): number {
  return Math.fround(Math.sqrt(a));
}

export function addF16(a: number, b: number): number {
  return roundToF16(a + b);
}
export function subF16(a: number, b: number): number {
  return roundToF16(a - b);
}
export function mulF16(a: number, b: number): number {
  return roundToF16(a * b);
}
export function divF16(a: number, b: number): number {
  return roundToF16(a / b);
}
export function sqrtF16(a: number): number {
  return roundToF16(Math.sqrt(a));
}

export function addBF16(a: number, b: number): number {
  return roundToBF16(a + b);
}
export function subBF16(a: number, b: number): number {
  return roundToBF16(a - b);
}
export function mulBF16(a: number, b: number): number {
  return roundToBF16(a * b);
}
export function divBF16(a: number, b: number): number {
  return roundToBF16(a / b);
}
export function sqrtBF16(a: number): number {
  return roundToBF16(Math.sqrt(a));
}

/** The smaller number; when one side is NaN, the other. -0 counts as below +0. For every float type. */
export function minFloat(a: number, b: number): number {
  return Number.isNaN(a) ? b : Number.isNaN(b) ? a : Math.min(a, b);
}

/** The larger number; when one side is NaN, the other. -0 counts as below +0. For every float type. */
export function maxFloat(a: number, b: number): number {
  return Number.isNaN(a) ? b : Number.isNaN(b) ? a : Math.max(a, b);
}
