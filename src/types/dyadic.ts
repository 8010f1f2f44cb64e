/** @file Exact binary fractions, significand·2^exponent over BigInt: the slow road that is right where the fast one ends. */

import { f64HighWord, f64LowWord } from "./bits.ts";
import { powerOfTwo } from "./power-of-two.ts";

/** The exact number significand·2^exponent. */
export interface Dyadic {
  readonly significand: bigint;
  readonly exponent: number;
}

/** A finite double, exactly. */
export function dyadicFromNumber(x: number): Dyadic {
  const high = f64HighWord(x);
  const field = (high >>> 20) & 0x7ff;
  const fraction = (BigInt(high & 0xfffff) << 32n) | BigInt(f64LowWord(x));
  const magnitude = field === 0 ? fraction : fraction | (1n << 52n);
  return { significand: x < 0 ? -magnitude : magnitude, exponent: Math.max(field, 1) - 1075 };
}

export function multiplyDyadic(a: Dyadic, b: Dyadic): Dyadic {
  return { significand: a.significand * b.significand, exponent: a.exponent + b.exponent };
}

export function addDyadic(a: Dyadic, b: Dyadic): Dyadic {
  const exponent = Math.min(a.exponent, b.exponent);
  return {
    significand:
      (a.significand << BigInt(a.exponent - exponent)) + (b.significand << BigInt(b.exponent - exponent)),
    exponent,
  };
}

function bitLength(magnitude: bigint): number {
  const hex = magnitude.toString(16);
  return hex.length * 4 - Math.clz32(Number.parseInt(hex[0]!, 16)) + 28;
}

/** The nearest double, ties to even, with subnormals and overflow to infinity; zero comes out as +0. */
export function dyadicToNumber(x: Dyadic): number {
  if (x.significand < 0n) return -dyadicToNumber({ significand: -x.significand, exponent: x.exponent });
  if (x.significand === 0n) return 0;
  const lowest = Math.max(x.exponent + bitLength(x.significand) - 53, -1074);
  if (lowest <= x.exponent) return Number(x.significand) * powerOfTwo(x.exponent);
  const drop = BigInt(lowest - x.exponent);
  const kept = x.significand >> drop;
  const rest = x.significand - (kept << drop);
  const half = 1n << (drop - 1n);
  const up = rest > half || (rest === half && (kept & 1n) === 1n);
  return Number(up ? kept + 1n : kept) * powerOfTwo(lowest);
}
