/**
 * @file Division of numbers below 2^31 by divisors that the host knows: a multiplication and a shift.
 *
 * Granlund and Montgomery, "Division by Invariant Integers using Multiplication" (PLDI 1994), theorem 4.2 with N = 31:
 * with 2^(s-1) < d <= 2^s and m = ceil(2^(31+s) / d), n div d is n·m div 2^(31+s) for all n below 2^31. m has 32 bits.
 */
import { mulHigh, type U32, u32, type Value } from "../lang/index.ts";
import type { ExtraValue, RuntimeNumber } from "./extras.ts";

/** Multiplier and shift that stand for a divisor, a whole number from 1 to 2^31 - 1. */
export function reciprocalOf(divisor: number): { readonly multiplier: number; readonly shift: number } {
  const shift = 32 - Math.clz32(divisor - 1);
  const d = BigInt(divisor);
  const multiplier = ((1n << BigInt(31 + shift)) + d - 1n) / d;
  return { multiplier: Number(multiplier), shift };
}

/** Arguments from which {@link quotientAndRest} divides. */
export function divisionArguments(divisor: number): readonly RuntimeNumber[] {
  const { multiplier, shift } = reciprocalOf(divisor);
  return [
    { type: u32, value: divisor },
    { type: u32, value: multiplier },
    { type: u32, value: shift },
  ];
}

/** Numbers of {@link divisionArguments}. */
export const divisionLength = 3;

/** n div d and n mod d of n below 2^31; `arguments_` are {@link divisionArguments} of d inside a kernel. */
export function quotientAndRest(
  n: Value<U32>,
  [divisor, multiplier, shift]: readonly ExtraValue[],
): { readonly quotient: Value<U32>; readonly rest: Value<U32> } {
  const quotient = mulHigh(n.shiftLeft(1), multiplier as Value<U32>).shiftRight(shift as Value<U32>);
  return { quotient, rest: n.sub(quotient.mul(divisor as Value<U32>)) };
}
