/**
 * @file Conversion between element types: one meaning, on every target, folded or run.
 *
 * In JavaScript a value of i64 or u64 is a bigint, a bool is a boolean, everything else is a number (b1: 0 or 1).
 */

import { integerRange } from "./integer-range.ts";
import { powerOfTwo } from "./power-of-two.ts";
import {
  roundToBF16,
  roundToE4M3,
  roundToE4M3OrNaN,
  roundToE5M2,
  roundToE5M2OrInfinity,
  roundToF16,
  roundToTF32,
} from "./round.ts";
import { type ElementType, isFloat } from "./types.ts";

/** What an element is in JavaScript. */
export type ElementValue = number | bigint | boolean;

/** Choices in a conversion. */
export interface ConversionOptions {
  /**
   * For e4m3 and e5m2: overflow and infinities become the largest finite value, as in hardware (`satfinite`). When
   * false they become NaN (e4m3) or infinity (e5m2). Default true.
   */
  readonly saturate?: boolean;
}

const identity = (x: number): number => x;

/** The function that rounds a double to a float type, once. @throws RangeError for types that are no float */
export function roundingTo(type: ElementType, options: ConversionOptions = {}): (x: number) => number {
  const saturate = options.saturate ?? true;
  switch (type.name) {
    case "f16":
      return roundToF16;
    case "bf16":
      return roundToBF16;
    case "f32":
      return Math.fround;
    case "f64":
      return identity;
    case "tf32":
      return roundToTF32;
    case "e4m3":
      return saturate ? roundToE4M3 : roundToE4M3OrNaN;
    case "e5m2":
      return saturate ? roundToE5M2 : roundToE5M2OrInfinity;
    default:
      throw new RangeError(`${type.name} is no floating-point type; nothing rounds to it`);
  }
}

/**
 * An integer as a double that any float type of at most 42 significand bits can be rounded from as if from the integer:
 * bits beyond 53 are cut off and remembered in the last one (rounding to odd).
 */
function bigintToOdd(value: bigint): number {
  if (value < 0n) return -bigintToOdd(-value);
  let drop = 0n;
  while (value >> drop >= 1n << 53n) drop += 11n;
  const kept = value >> drop;
  const exact = kept << drop === value;
  return Number(exact ? kept : kept | 1n) * powerOfTwo(Number(drop));
}

/** An integer of any size rounded to a float type, once. */
export function bigintToFloat(value: bigint, type: ElementType, options?: ConversionOptions): number {
  return type.name === "f64" ? Number(value) : roundingTo(type, options)(bigintToOdd(value));
}

/** Truncates towards zero and saturates to [least, greatest]; NaN gives 0. */
function truncateInto(x: number, least: number, greatest: number): number {
  if (x <= least) return least;
  if (x >= greatest) return greatest;
  return !Number.isNaN(x) ? Math.trunc(x) + 0 : 0;
}

function truncateIntoBigint(x: number, least: bigint, greatest: bigint): bigint {
  if (x <= Number(least)) return least;
  if (x >= Number(greatest)) return greatest;
  return !Number.isNaN(x) ? BigInt(Math.trunc(x)) : 0n;
}

/** A float to an integer type: truncated towards zero, saturated, NaN gives 0. */
function floatToInteger(to: ElementType): (x: number) => number | bigint {
  const { least, greatest } = integerRange(to)!;
  if (to.name === "i64" || to.name === "u64") return (x) => truncateIntoBigint(x, least, greatest);
  const [from, upTo] = [Number(least), Number(greatest)];
  return (x) => truncateInto(x, from, upTo);
}

/** An integral number to an integer type: wrapped to its width. */
function wrapNumber(to: ElementType): (x: number) => number | bigint {
  switch (to.name) {
    case "i8":
      return (x) => (x << 24) >> 24;
    case "i16":
      return (x) => (x << 16) >> 16;
    case "i32":
      return (x) => x | 0;
    case "u8":
      return (x) => x & 0xff;
    case "u16":
      return (x) => x & 0xffff;
    case "u32":
      return (x) => x >>> 0;
    case "i64":
      return (x) => BigInt(x);
    case "u64":
      return (x) => BigInt.asUintN(64, BigInt(x));
    default:
      return identity;
  }
}

/** A bigint to an integer type: wrapped to its width. */
function wrapBigint(to: ElementType): (x: bigint) => number | bigint {
  switch (to.name) {
    case "i64":
      return (x) => BigInt.asIntN(64, x);
    case "u64":
      return (x) => BigInt.asUintN(64, x);
    case "index":
      return (x) => Number(BigInt.asIntN(64, x));
    default: {
      const wrap = to.class === "signed" ? BigInt.asIntN : BigInt.asUintN;
      return (x) => Number(wrap(to.bits, x));
    }
  }
}

function isBigint(type: ElementType): boolean {
  return type.name === "i64" || type.name === "u64";
}

function conversionToFloat(from: ElementType, to: ElementType, options?: ConversionOptions): Conversion {
  if (isBigint(from)) return ((x: bigint) => bigintToFloat(x, to, options)) as Conversion;
  const round = roundingTo(to, options);
  return ((x: number | boolean) => round(Number(x))) as Conversion;
}

function conversionToInteger(from: ElementType, to: ElementType): Conversion {
  if (from.class === "bool") return isBigint(to) ? (x) => (x ? 1n : 0n) : (x) => (x ? 1 : 0);
  if (isFloat(from)) return floatToInteger(to) as Conversion;
  return (isBigint(from) ? wrapBigint(to) : wrapNumber(to)) as Conversion;
}

/** Takes a value of one type to a value of another. */
export type Conversion = (value: ElementValue) => ElementValue;

/**
 * The function that {@link convertValue} applies for these types; find it once, call it often.
 */
export function conversion(from: ElementType, to: ElementType, options?: ConversionOptions): Conversion {
  switch (to.class) {
    case "float":
      return conversionToFloat(from, to, options);
    case "signed":
    case "unsigned":
      return conversionToInteger(from, to);
    // Not Boolean(x): NaN is not zero.
    case "bool":
      return (x) => x !== false && x !== 0 && x !== 0n;
    case "bits":
      return (x) => (x !== false && x !== 0 && x !== 0n ? 1 : 0);
    default:
      return to satisfies never;
  }
}

/**
 * A value of type `from` as a value of type `to`.
 *
 * - Float or integer to float: rounded once, to nearest even (tf32: ties away, as `cvt.rna`). To e4m3 and e5m2 with
 *   saturation to the largest finite value unless `saturate` is false.
 * - Float to integer: truncated towards zero, saturated to the type's range, NaN gives 0. For index the range is that of
 *   safe integers.
 * - Integer to integer: wrapped to the width. To index: exact up to 2^53.
 * - Bool to number: 0 or 1. Number to bool or b1: whether it differs from zero (NaN does).
 */
export function convertValue(
  value: ElementValue,
  from: ElementType,
  to: ElementType,
  options?: ConversionOptions,
): ElementValue {
  return conversion(from, to, options)(value);
}

/**
 * Whether a literal can stand for a value of `type`. Floats take any number that does not overflow when rounded (NaN
 * too, and infinities where the type has them); integers take integers in range; bool takes booleans; b1 takes 0 and 1.
 */
export function fits(value: ElementValue, type: ElementType): boolean {
  if (typeof value === "boolean" || type.class === "bool")
    return typeof value === "boolean" && type.class === "bool";
  if (isFloat(type)) return fitsFloat(value, type);
  if (typeof value === "number" && !Number.isInteger(value)) return false;
  const { least, greatest } = integerRange(type)!;
  return value >= least && value <= greatest;
}

function fitsFloat(value: number | bigint, type: ElementType): boolean {
  if (typeof value === "bigint") return Number.isFinite(bigintToFloat(value, type, { saturate: false }));
  if (Number.isFinite(value)) return Number.isFinite(roundingTo(type, { saturate: false })(value));
  return Number.isNaN(value) || type.name !== "e4m3";
}
