/**
 * @file For tests: is a result the correctly rounded one? Decided over exact integers from the definition of the formats
 * alone, by comparing the result's distance with those of its two neighbours.
 */

import { addDyadic, type Dyadic } from "./dyadic.ts";

/** A binary interchange format with a sign bit. */
export interface BinaryFormat {
  readonly exponentBits: number;
  readonly fractionBits: number;
}

export const binary16: BinaryFormat = { exponentBits: 5, fractionBits: 10 };
export const bfloat16: BinaryFormat = { exponentBits: 8, fractionBits: 7 };
export const tensorFloat32: BinaryFormat = { exponentBits: 8, fractionBits: 10 };
export const binary32: BinaryFormat = { exponentBits: 8, fractionBits: 23 };
export const binary64: BinaryFormat = { exponentBits: 11, fractionBits: 52 };
export const fp8e4m3: BinaryFormat = { exponentBits: 4, fractionBits: 3 };
export const fp8e5m2: BinaryFormat = { exponentBits: 5, fractionBits: 2 };

/** What a pattern without its sign would stand for if the format went on: infinity is the next power of two. */
export function magnitudeOf(format: BinaryFormat, pattern: bigint): Dyadic {
  const fractionBits = BigInt(format.fractionBits);
  const field = Number(pattern >> fractionBits);
  const fraction = pattern & ((1n << fractionBits) - 1n);
  const bias = 2 ** (format.exponentBits - 1) - 1;
  const exponent = Math.max(field, 1) - bias - format.fractionBits;
  return { significand: field === 0 ? fraction : fraction | (1n << fractionBits), exponent };
}

function distance(a: Dyadic, b: Dyadic): Dyadic {
  const d = addDyadic(a, { significand: -b.significand, exponent: b.exponent });
  return d.significand < 0n ? { significand: -d.significand, exponent: d.exponent } : d;
}

function isLess(a: Dyadic, b: Dyadic): boolean {
  return addDyadic(a, { significand: -b.significand, exponent: b.exponent }).significand < 0n;
}

/**
 * Whether the pattern (sign bit on top) is what `exact` rounds to. `last` is the greatest pattern without sign that can
 * result: infinity, or what stands for overflow.
 */
export function isCorrectlyRounded(
  format: BinaryFormat,
  exact: Dyadic,
  pattern: bigint,
  ties: "even" | "away" = "even",
  last: bigint = ((1n << BigInt(format.exponentBits)) - 1n) << BigInt(format.fractionBits),
): boolean {
  const signBit = 1n << BigInt(format.exponentBits + format.fractionBits);
  const magnitude = pattern & (signBit - 1n);
  if (magnitude > last) return false;
  if (exact.significand !== 0n && ((pattern & signBit) !== 0n) !== exact.significand < 0n) return false;
  const target = exact.significand < 0n ? { ...exact, significand: -exact.significand } : exact;
  const own = distance(target, magnitudeOf(format, magnitude));
  const beats = (neighbour: bigint): boolean => {
    const other = distance(target, magnitudeOf(format, neighbour));
    if (isLess(own, other)) return true;
    if (isLess(other, own)) return false;
    return ties === "away" ? magnitude > neighbour : (magnitude & 1n) === 0n;
  };
  return (magnitude === 0n || beats(magnitude - 1n)) && (magnitude === last || beats(magnitude + 1n));
}
