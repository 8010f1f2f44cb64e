/**
 * @file Values to raw storage bits and back.
 *
 * `…ToBits` rounds as the type's conversion does when the value is not one of the type's. JavaScript keeps no NaN
 * payload, so every NaN gets the one pattern that PTX arithmetic produces: all ones below the sign for f16, bf16, f32
 * and fp8, the quiet NaN with an empty payload for f64.
 */

import { powerOfTwo } from "./power-of-two.ts";
import { roundToBF16, roundToE4M3, roundToE5M2, roundToF16 } from "./round.ts";
import type { StorageType } from "./types.ts";

const single: Float32Array = new Float32Array(1);
const singleBits: Uint32Array = new Uint32Array(single.buffer);
const double: Float64Array = new Float64Array(1);
const doubleWords: Uint32Array = new Uint32Array(double.buffer);
const doubleBits: BigUint64Array = new BigUint64Array(double.buffer);

/** Moves the f16 exponent range onto the start of the f32 range, so that both have the same exponent field. */
const f16ToF32Field: number = powerOfTwo(-112);
const f32ToF16Field: number = powerOfTwo(112);

/** The binary32 pattern of x rounded to f32, as an unsigned 32-bit number. */
export function f32ToBits(x: number): number {
  if (Number.isNaN(x)) return 0x7fffffff;
  single[0] = x;
  return singleBits[0]!;
}

/** The number that a binary32 pattern stands for. */
export function f32FromBits(bits: number): number {
  singleBits[0] = bits;
  return single[0]!;
}

/** The binary16 pattern of x rounded to f16. */
export function f16ToBits(x: number): number {
  if (Number.isNaN(x)) return 0x7fff;
  single[0] = roundToF16(x) * f16ToF32Field;
  const bits = singleBits[0]!;
  return ((bits >>> 16) & 0x8000) | ((bits >>> 13) & 0x7fff);
}

/** The number that a binary16 pattern stands for. */
export function f16FromBits(bits: number): number {
  if ((bits & 0x7c00) === 0x7c00)
    return (bits & 0x3ff) !== 0 ? NaN : (bits & 0x8000) !== 0 ? -Infinity : Infinity;
  singleBits[0] = ((bits & 0x8000) << 16) | ((bits & 0x7fff) << 13);
  return single[0]! * f32ToF16Field;
}

/** The bfloat16 pattern of x rounded to bf16. */
export function bf16ToBits(x: number): number {
  if (Number.isNaN(x)) return 0x7fff;
  single[0] = roundToBF16(x);
  return singleBits[0]! >>> 16;
}

/** The number that a bfloat16 pattern stands for. */
export function bf16FromBits(bits: number): number {
  singleBits[0] = bits << 16;
  return single[0]!;
}

/** Same trick as for f16: the E4M3 range, bias 7, and the E5M2 range, bias 15, moved onto the start of f32. */
const e4m3ToF32Field: number = powerOfTwo(-120);
const f32ToE4M3Field: number = powerOfTwo(120);

/** The OFP8 E4M3 pattern of x rounded and saturated to e4m3. */
export function e4m3ToBits(x: number): number {
  if (Number.isNaN(x)) return 0x7f;
  single[0] = roundToE4M3(x) * e4m3ToF32Field;
  const bits = singleBits[0]!;
  return ((bits >>> 24) & 0x80) | ((bits >>> 20) & 0x7f);
}

/** The number that an OFP8 E4M3 pattern stands for. */
export function e4m3FromBits(bits: number): number {
  if ((bits & 0x7f) === 0x7f) return NaN;
  singleBits[0] = ((bits & 0x80) << 24) | ((bits & 0x7f) << 20);
  return single[0]! * f32ToE4M3Field;
}

/** The OFP8 E5M2 pattern of x: finite values rounded and saturated, infinities kept (the type has them). */
export function e5m2ToBits(x: number): number {
  if (Number.isNaN(x)) return 0x7f;
  if (x === Infinity) return 0x7c;
  if (x === -Infinity) return 0xfc;
  single[0] = roundToE5M2(x) * f16ToF32Field;
  const bits = singleBits[0]!;
  return ((bits >>> 24) & 0x80) | ((bits >>> 21) & 0x7f);
}

/** The number that an OFP8 E5M2 pattern stands for. */
export function e5m2FromBits(bits: number): number {
  return f16FromBits((bits & 0xff) << 8);
}

/** The binary64 pattern of x, as an unsigned 64-bit integer. */
export function f64ToBits(x: number): bigint {
  if (Number.isNaN(x)) return 0x7ff8000000000000n;
  double[0] = x;
  return doubleBits[0]!;
}

/** The number that a binary64 pattern stands for. */
export function f64FromBits(bits: bigint): number {
  doubleBits[0] = bits;
  return double[0]!;
}

/** Bits 63 to 32 of the binary64 pattern of x: sign, exponent and the high 20 significand bits. */
export function f64HighWord(x: number): number {
  if (Number.isNaN(x)) return 0x7ff80000;
  double[0] = x;
  return doubleWords[1]!;
}

/** Bits 31 to 0 of the binary64 pattern of x. */
export function f64LowWord(x: number): number {
  if (Number.isNaN(x)) return 0;
  double[0] = x;
  return doubleWords[0]!;
}

/** The number whose binary64 pattern has these two 32-bit halves. */
export function f64FromWords(high: number, low: number): number {
  doubleWords[1] = high;
  doubleWords[0] = low;
  return double[0]!;
}

/**
 * The storage bits of a value of `type`, unsigned: a bigint for 64-bit types, otherwise a number. Integers wrap to the
 * type's width; i64 and u64 take a bigint, everything else a number.
 */
export function toBits(type: StorageType, value: number | bigint): number | bigint {
  switch (type.name) {
    case "f16":
      return f16ToBits(Number(value));
    case "bf16":
      return bf16ToBits(Number(value));
    case "f32":
      return f32ToBits(Number(value));
    case "f64":
      return f64ToBits(Number(value));
    case "e4m3":
      return e4m3ToBits(Number(value));
    case "e5m2":
      return e5m2ToBits(Number(value));
    case "i8":
    case "u8":
      return Number(value) & 0xff;
    case "i16":
    case "u16":
      return Number(value) & 0xffff;
    case "i32":
    case "u32":
      return Number(value) >>> 0;
    case "i64":
    case "u64":
      return BigInt.asUintN(64, BigInt(value));
    default:
      return type satisfies never;
  }
}

/** The value of `type` whose storage bits these are: a bigint for i64 and u64, otherwise a number. */
export function fromBits(type: StorageType, bits: number | bigint): number | bigint {
  switch (type.name) {
    case "f16":
      return f16FromBits(Number(bits));
    case "bf16":
      return bf16FromBits(Number(bits));
    case "f32":
      return f32FromBits(Number(bits));
    case "f64":
      return f64FromBits(BigInt(bits));
    case "e4m3":
      return e4m3FromBits(Number(bits));
    case "e5m2":
      return e5m2FromBits(Number(bits));
    case "i8":
      return (Number(bits) << 24) >> 24;
    case "u8":
      return Number(bits) & 0xff;
    case "i16":
      return (Number(bits) << 16) >> 16;
    case "u16":
      return Number(bits) & 0xffff;
    case "i32":
      return Number(bits) | 0;
    case "u32":
      return Number(bits) >>> 0;
    case "i64":
      return BigInt.asIntN(64, BigInt(bits));
    case "u64":
      return BigInt.asUintN(64, BigInt(bits));
    default:
      return type satisfies never;
  }
}
