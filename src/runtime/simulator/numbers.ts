/** @file Arithmetic that generated text calls: what is more than an expression, and tables of narrow floats. */
import {
  bf16FromBits,
  bf16ToBits,
  e4m3FromBits,
  e4m3ToBits,
  e5m2FromBits,
  e5m2ToBits,
  f16FromBits,
  f16ToBits,
} from "../../types/bits.ts";
import { type Conversion, conversion } from "../../types/convert.ts";
import { types } from "../../types/types.ts";

function table(size: number, fromBits: (bits: number) => number): Float64Array {
  return Float64Array.from({ length: size }, (_, bits) => fromBits(bits));
}

/** Values by bit pattern. */
export const f16Values: Float64Array = table(65536, f16FromBits);
export const bf16Values: Float64Array = table(65536, bf16FromBits);
export const e4m3Values: Float64Array = table(256, e4m3FromBits);
export const e5m2Values: Float64Array = table(256, e5m2FromBits);

const valuesByType: { readonly [name: string]: Float64Array | undefined } = {
  f16: f16Values,
  bf16: bf16Values,
  e4m3: e4m3Values,
  e5m2: e5m2Values,
};
const bitsByType: { readonly [name: string]: ((x: number) => number) | undefined } = {
  f16: f16ToBits,
  bf16: bf16ToBits,
  e4m3: e4m3ToBits,
  e5m2: e5m2ToBits,
};

/** Values of a type of 16 bits by pattern, undefined for others. */
export function halfTable(element: string): Float64Array | undefined {
  return element === "f16" || element === "bf16" ? valuesByType[element] : undefined;
}

/** An element from what its typed array holds. */
export function decode(element: string, raw: number | bigint): number {
  const values = valuesByType[element];
  return values === undefined ? Number(raw) : values[Number(raw)]!;
}

export function encode(element: string, value: number): number | bigint {
  if (element === "i64" || element === "u64") return BigInt(value);
  return bitsByType[element]?.(value) ?? value;
}

/** Conversions by "from_to". */
export const conversions: { readonly [name: string]: Conversion } = Object.fromEntries(
  Object.values(types).flatMap((from) =>
    Object.values(types).map((to) => [`${from.name}_${to.name}`, conversion(from, to)]),
  ),
);

export function roundEven(x: number): number {
  if (!Number.isFinite(x) || Math.abs(x) >= 2 ** 52) return x;
  const floor = Math.floor(x);
  const rest = x - floor;
  const rounded = rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor;
  return rounded === 0 ? x * 0 : rounded;
}

export function mulHigh_i32(a: number, b: number): number {
  return Number(BigInt.asIntN(32, (BigInt(a) * BigInt(b)) >> 32n));
}
export function mulHigh_u32(a: number, b: number): number {
  return Number((BigInt(a) * BigInt(b)) >> 32n);
}
export function mulHigh_i64(a: bigint, b: bigint): bigint {
  return BigInt.asIntN(64, (a * b) >> 64n);
}
export function mulHigh_u64(a: bigint, b: bigint): bigint {
  return BigInt.asUintN(64, (a * b) >> 64n);
}

export function popcount32(x: number): number {
  const pairs = x - ((x >>> 1) & 0x55555555);
  const nibbles = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  return Math.imul((nibbles + (nibbles >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
export function popcount64(x: bigint): number {
  return popcount32(lowWord(x)) + popcount32(highWord(x));
}
export function leadingZeros32(x: number): number {
  return Math.clz32(x);
}
export function leadingZeros64(x: bigint): number {
  const high = highWord(x);
  return high !== 0 ? Math.clz32(high) : 32 + Math.clz32(lowWord(x));
}

function reverse32(x: number): number {
  let bits = x;
  bits = ((bits >>> 1) & 0x55555555) | ((bits & 0x55555555) << 1);
  bits = ((bits >>> 2) & 0x33333333) | ((bits & 0x33333333) << 2);
  bits = ((bits >>> 4) & 0x0f0f0f0f) | ((bits & 0x0f0f0f0f) << 4);
  bits = ((bits >>> 8) & 0x00ff00ff) | ((bits & 0x00ff00ff) << 8);
  return (bits >>> 16) | (bits << 16);
}
export function reverseBits_i32(x: number): number {
  return reverse32(x) | 0;
}
export function reverseBits_u32(x: number): number {
  return reverse32(x) >>> 0;
}
export function reverseBits_i64(x: bigint): bigint {
  return signedFromWords(reverse32(highWord(x)), reverse32(lowWord(x)));
}
export function reverseBits_u64(x: bigint): bigint {
  return unsignedFromWords(reverse32(highWord(x)), reverse32(lowWord(x)));
}

/** 32-bit halves of a 64-bit integer, unsigned. */
export function lowWord(x: bigint): number {
  return Number(x & 0xffffffffn);
}
export function highWord(x: bigint): number {
  return Number((x >> 32n) & 0xffffffffn);
}
export function unsignedFromWords(low: number, high: number): bigint {
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
}
export function signedFromWords(low: number, high: number): bigint {
  return BigInt.asIntN(64, unsignedFromWords(low, high));
}

function byteOf(word: number, position: number, signed: boolean): number {
  const byte = (word >>> (8 * position)) & 0xff;
  return signed ? (byte << 24) >> 24 : byte;
}

/** Four products of packed bytes plus c. */
export function dot4(a: number, signedA: boolean, b: number, signedB: boolean, c: number): number {
  let sum = c;
  for (let position = 0; position < 4; position++)
    sum = (sum + byteOf(a, position, signedA) * byteOf(b, position, signedB)) | 0;
  return sum;
}

/** PTX prmt in its default mode. */
export function permuteBytes(a: number, b: number, selector: number): number {
  let word = 0;
  for (let position = 0; position < 4; position++) {
    const nibble = (selector >>> (4 * position)) & 0xf;
    const byte = byteOf((nibble & 4) === 0 ? a : b, nibble & 3, false);
    word |= ((nibble & 8) === 0 ? byte : (byte & 0x80) !== 0 ? 0xff : 0) << (8 * position);
  }
  return word >>> 0;
}
