/**
 * @file Fused multiply-add, a·b + c rounded once, over JavaScript numbers.
 *
 * For f32, f16 and bf16 the product is exact in a double and the sum s is rounded to 53 bits. Rounding s again is right
 * unless s lies exactly on a tie of the narrow type: then the sign of what the first rounding dropped (Knuth's TwoSum)
 * decides. For f64: Dekker's product, and rounding to odd after Boldo and Melquiond, "Emulation of FMA and correctly
 * rounded sums: proved algorithms using rounding to odd" (2008); exact integers where exponents are extreme.
 */

import { f64FromWords, f64HighWord, f64LowWord } from "./bits.ts";
import { addDyadic, dyadicFromNumber, dyadicToNumber, multiplyDyadic } from "./dyadic.ts";
import { powerOfTwo } from "./power-of-two.ts";
import { roundToBF16, roundToF16 } from "./round.ts";

/** a + b - sum, exactly, where `sum` is a + b rounded. */
function sumError(a: number, b: number, sum: number): number {
  const bRounded = sum - a;
  return a - (sum - bRounded) + (b - bRounded);
}

/** Of the two neighbours of a tie, the one that the exact sum tie + error is nearer to. */
function settleTie(error: number, toEven: number, other: number): number {
  if (error === 0) return toEven;
  return error > 0 === other > toEven ? other : toEven;
}

/** Where rounding to even turns to infinity; the largest finite value lies half a step below. */
const overflowF32: number = 33554431 * powerOfTwo(103);
const largestF32: number = 16777215 * powerOfTwo(104);

/** a·b + c rounded once to f32. @param a,b,c f32 values */
export function fmaF32(a: number, b: number, c: number): number {
  const p = a * b;
  const s = p + c;
  const r = Math.fround(s);
  if (r === s) return r;
  const other = r + 2 * (s - r);
  if (Math.fround(other) === other) return settleTie(sumError(p, c, s), r, other);
  if (s === overflowF32) return settleTie(sumError(p, c, s), r, largestF32);
  if (s === -overflowF32) return settleTie(sumError(p, c, s), r, -largestF32);
  return r;
}

/** a·b + c rounded once to f16. @param a,b,c f16 values */
export function fmaF16(a: number, b: number, c: number): number {
  const p = a * b;
  const s = p + c;
  const r = roundToF16(s);
  if (r === s) return r;
  const error = sumError(p, c, s);
  if (error === 0) return r;
  const other = r + 2 * (s - r);
  if (roundToF16(other) === other) return settleTie(error, r, other);
  if (s === 65520) return settleTie(error, r, 65504);
  if (s === -65520) return settleTie(error, r, -65504);
  return r;
}

const overflowBF16: number = 511 * powerOfTwo(119);
const largestBF16: number = 255 * powerOfTwo(120);

/** a·b + c rounded once to bf16. @param a,b,c bf16 values */
export function fmaBF16(a: number, b: number, c: number): number {
  const p = a * b;
  const s = p + c;
  const r = roundToBF16(s);
  if (r === s) return r;
  const error = sumError(p, c, s);
  if (error === 0) return r;
  const other = r + 2 * (s - r);
  if (roundToBF16(other) === other) return settleTie(error, r, other);
  if (s === overflowBF16) return settleTie(error, r, largestBF16);
  if (s === -overflowBF16) return settleTie(error, r, -largestBF16);
  return r;
}

/** Factors and addends within these bounds keep every intermediate of the fast road normal and finite. */
const largestFactor: number = powerOfTwo(400);
const smallestFactor: number = powerOfTwo(-400);
const largestAddend: number = powerOfTwo(900);
const smallestAddend: number = powerOfTwo(-800);

function within(x: number, smallest: number, largest: number): boolean {
  const magnitude = Math.abs(x);
  return magnitude >= smallest && magnitude <= largest;
}

/** a·b + c rounded once to f64. */
export function fmaF64(a: number, b: number, c: number): number {
  if (
    within(a, smallestFactor, largestFactor) &&
    within(b, smallestFactor, largestFactor) &&
    within(c, smallestAddend, largestAddend)
  ) {
    return fmaModerate(a, b, c);
  }
  if (a === 0 || b === 0 || !Number.isFinite(a) || !Number.isFinite(b)) return a * b + c;
  if (!Number.isFinite(c)) return c;
  // Not a * b + c: a negative product that underflows to -0 stays -0.
  if (c === 0) return a * b;
  return fmaExact(a, b, c);
}

/** 2^27 + 1: splits a double into two halves of at most 26 bits (Veltkamp). */
const splitter = 134217729;

/** a·b - product, exactly (Dekker). */
function productError(a: number, b: number, product: number): number {
  const aScaled = a * splitter;
  const aHigh = aScaled - (aScaled - a);
  const aLow = a - aHigh;
  const bScaled = b * splitter;
  const bHigh = bScaled - (bScaled - b);
  const bLow = b - bHigh;
  return aLow * bLow - (product - aHigh * bHigh - aLow * bHigh - aHigh * bLow);
}

function fmaModerate(a: number, b: number, c: number): number {
  const product = a * b;
  const productLow = productError(a, b, product);
  const tail = productLow + c;
  const tailLow = sumError(productLow, c, tail);
  const high = product + tail;
  const low = sumError(product, tail, high);
  return high + addToOdd(low, tailLow);
}

/** a + b rounded to odd: cut off, and where that loses something the last significand bit is set. */
function addToOdd(a: number, b: number): number {
  const sum = a + b;
  const error = sumError(a, b, sum);
  if (error === 0) return sum;
  const low = f64LowWord(sum);
  if ((low & 1) === 1) return sum;
  const high = f64HighWord(sum);
  if (error > 0 === sum > 0) return f64FromWords(high, low | 1);
  return low === 0 ? f64FromWords(high - 1, 0xffffffff) : f64FromWords(high, low - 1);
}

function fmaExact(a: number, b: number, c: number): number {
  const sum = addDyadic(multiplyDyadic(dyadicFromNumber(a), dyadicFromNumber(b)), dyadicFromNumber(c));
  return dyadicToNumber(sum);
}
