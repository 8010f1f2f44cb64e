/**
 * @file Host data: JavaScript values to raw storage and back.
 *
 * *Raw* storage is the bytes that a device or a file holds, as the typed array that fits each type; types that
 * JavaScript does not know are held as their bit patterns (f16, bf16 in Uint16Array, fp8 in Uint8Array). *Values* are
 * numbers, or bigint for i64 and u64. Hosts are little-endian, as are all that JavaScript engines run on today.
 */

import { ArgumentError } from "../errors.ts";
import {
  bf16ToBits,
  e4m3FromBits,
  e4m3ToBits,
  e5m2FromBits,
  e5m2ToBits,
  f16FromBits,
  f16ToBits,
} from "./bits.ts";
import { bigintToFloat } from "./convert.ts";
import { integerRange } from "./integer-range.ts";
import { byteSize, isFloat, type StorageType } from "./types.ts";

/** The typed array that holds raw storage of each type. */
export interface RawArrays {
  readonly f16: Uint16Array;
  readonly bf16: Uint16Array;
  readonly f32: Float32Array;
  readonly f64: Float64Array;
  readonly e4m3: Uint8Array;
  readonly e5m2: Uint8Array;
  readonly i8: Int8Array;
  readonly i16: Int16Array;
  readonly i32: Int32Array;
  readonly i64: BigInt64Array;
  readonly u8: Uint8Array;
  readonly u16: Uint16Array;
  readonly u32: Uint32Array;
  readonly u64: BigUint64Array;
}

/** Raw storage of a type, as bit patterns where JavaScript has no such number. */
export type StorageArray<T extends StorageType = StorageType> = RawArrays[T["name"]];

/** The typed array that {@link decode} gives for each type. */
export interface ValueArrays extends Omit<RawArrays, "f16" | "bf16" | "e4m3" | "e5m2"> {
  readonly f16: Float32Array;
  readonly bf16: Float32Array;
  readonly e4m3: Float32Array;
  readonly e5m2: Float32Array;
}

/** Values of a type: numbers, or bigint for i64 and u64. */
export type ValueArray<T extends StorageType = StorageType> = ValueArrays[T["name"]];

/** What {@link encode} takes: arrays of numbers or bigint, and every typed array, Float16Array where it exists. */
export type HostValues = ArrayLike<number> | ArrayLike<bigint>;

type TypedArrayConstructor = {
  new (length: number): StorageArray;
  new (buffer: ArrayBufferLike, byteOffset?: number, length?: number): StorageArray;
  readonly BYTES_PER_ELEMENT: number;
};

const rawConstructors: { readonly [Name in StorageType["name"]]: TypedArrayConstructor } = {
  f16: Uint16Array,
  bf16: Uint16Array,
  f32: Float32Array,
  f64: Float64Array,
  e4m3: Uint8Array,
  e5m2: Uint8Array,
  i8: Int8Array,
  i16: Int16Array,
  i32: Int32Array,
  i64: BigInt64Array,
  u8: Uint8Array,
  u16: Uint16Array,
  u32: Uint32Array,
  u64: BigUint64Array,
};

/**
 * Raw storage for `length` elements, zeroed, or a view of an existing buffer (from `byteOffset`, which must be a
 * multiple of the element size; `length` elements or as many as there are whole).
 */
export function rawArray<T extends StorageType>(
  type: T,
  lengthOrBuffer: number | ArrayBufferLike,
  byteOffset: number = 0,
  length?: number,
): StorageArray<T> {
  const TypedArray = rawConstructors[type.name];
  if (typeof lengthOrBuffer === "number") return new TypedArray(lengthOrBuffer) as StorageArray<T>;
  const elements = length ?? Math.floor((lengthOrBuffer.byteLength - byteOffset) / byteSize(type));
  return new TypedArray(lengthOrBuffer, byteOffset, elements) as StorageArray<T>;
}

/** Whether an array is of the kind that holds raw storage of `type`. */
export function isRawArray<T extends StorageType>(type: T, array: unknown): array is StorageArray<T> {
  return array instanceof (rawConstructors[type.name] as unknown as new () => unknown);
}

/**
 * Values as raw storage of `type`, always in a new array. Floats round to nearest even; f16, bf16 and f32 overflow to
 * infinity, e4m3 and e5m2 saturate finite values to the largest one (e5m2 keeps infinities, e4m3 has none).
 *
 * @throws ArgumentError naming position and value, for what is no number and for integers that are none or out of range
 */
export function encode<T extends StorageType>(type: T, values: HostValues): StorageArray<T> {
  return (encodeFast(type, values) ??
    (isFloat(type) ? encodeFloats(type, values) : encodeIntegers(type, values))) as StorageArray<T>;
}

/**
 * Values of raw storage: f16, bf16 and fp8 as a new Float32Array; other types are values already and the same array
 * comes back.
 */
export function decode<T extends StorageType>(type: T, raw: StorageArray<T>): ValueArray<T> {
  return decodeAny(type, raw) as ValueArray<T>;
}

function decodeAny(type: StorageType, raw: StorageArray): ValueArray {
  switch (type.name) {
    case "f16":
      return throughTable(raw as Uint16Array, f16Values());
    case "bf16":
      return decodeBF16(raw as Uint16Array);
    case "e4m3":
      return throughTable(raw as Uint8Array, e4m3Values());
    case "e5m2":
      return throughTable(raw as Uint8Array, e5m2Values());
    default:
      return raw as ValueArray;
  }
}

function throughTable(raw: Uint16Array | Uint8Array, table: Float32Array): Float32Array {
  const values = new Float32Array(raw.length);
  for (let i = 0; i < values.length; i++) values[i] = table[raw[i]!]!;
  return values;
}

function decodeBF16(raw: Uint16Array): Float32Array {
  const values = new Float32Array(raw.length);
  const bits = new Uint32Array(values.buffer);
  for (let i = 0; i < bits.length; i++) bits[i] = raw[i]! << 16;
  return values;
}

/** A table over all bit patterns, made when first asked for. */
function lazyTable(patterns: number, fromBits: (bits: number) => number): () => Float32Array {
  let table: Float32Array | undefined;
  return () => {
    table ??= Float32Array.from({ length: patterns }, (_, bits) => fromBits(bits));
    return table;
  };
}

const f16Values: () => Float32Array = lazyTable(1 << 16, f16FromBits);
const e4m3Values: () => Float32Array = lazyTable(1 << 8, e4m3FromBits);
const e5m2Values: () => Float32Array = lazyTable(1 << 8, e5m2FromBits);

/** The name of a typed array's kind, "Float16Array" included; undefined for other arrays. */
function typedArrayKind(values: HostValues): string | undefined {
  if (!ArrayBuffer.isView(values)) return undefined;
  return (values as unknown as { readonly [Symbol.toStringTag]?: string })[Symbol.toStringTag];
}

const floatKinds: ReadonlySet<string> = new Set(["Float16Array", "Float32Array", "Float64Array"]);
/** For integer types, the kinds of typed array whose every value is in range. */
const narrowerKinds: { readonly [name: string]: ReadonlySet<string> } = {
  i8: new Set(["Int8Array"]),
  u8: new Set(["Uint8Array", "Uint8ClampedArray"]),
  i16: new Set(["Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array"]),
  u16: new Set(["Uint8Array", "Uint8ClampedArray", "Uint16Array"]),
  i32: new Set(["Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array"]),
  u32: new Set(["Uint8Array", "Uint8ClampedArray", "Uint16Array", "Uint32Array"]),
  i64: new Set(["BigInt64Array"]),
  u64: new Set(["BigUint64Array"]),
};

/** Where the engine's own conversion between typed arrays is the right one, or there is nothing to convert. */
function encodeFast(type: StorageType, values: HostValues): StorageArray | undefined {
  const kind = typedArrayKind(values);
  if (kind === undefined) return undefined;
  if (type.name === "f16" && kind === "Float16Array") {
    const halves = values as unknown as ArrayBufferView;
    return new Uint16Array(halves.buffer, halves.byteOffset, halves.byteLength / 2).slice();
  }
  const asIs =
    type.name === "f32" || type.name === "f64"
      ? !kind.startsWith("Big")
      : narrowerKinds[type.name]?.has(kind);
  if (asIs !== true) return undefined;
  const TypedArray = rawConstructors[type.name] as unknown as new (values: HostValues) => StorageArray;
  return new TypedArray(values);
}

function encodeFloats(type: StorageType, values: HostValues): StorageArray {
  const raw = rawArray(type, values.length) as Exclude<StorageArray, BigInt64Array | BigUint64Array>;
  const toRaw = floatToRaw(type);
  const checked = floatKinds.has(typedArrayKind(values) ?? "");
  for (let i = 0; i < raw.length; i++) {
    const value = values[i]!;
    raw[i] = checked || typeof value === "number" ? toRaw(value as number) : toRaw(floatFrom(type, value, i));
  }
  return raw;
}

function floatToRaw(type: StorageType): (x: number) => number {
  switch (type.name) {
    case "f16":
      return f16ToBits;
    case "bf16":
      return bf16ToBits;
    case "e4m3":
      return e4m3ToBits;
    case "e5m2":
      return e5m2ToBits;
    default:
      return (x) => x;
  }
}

function floatFrom(type: StorageType, value: unknown, position: number): number {
  if (typeof value === "bigint") return bigintToFloat(value, type);
  throw new ArgumentError(
    `value ${position} is ${described(value)}; ${type.name} takes numbers${nestingHint(value)}`,
  );
}

function encodeIntegers(type: StorageType, values: HostValues): StorageArray {
  const raw = rawArray(type, values.length);
  if (type.name === "i64" || type.name === "u64")
    encodeWide(type, values, raw as BigInt64Array | BigUint64Array);
  else encodeNarrow(type, values, raw as Int32Array);
  return raw;
}

function encodeNarrow(type: StorageType, values: HostValues, raw: Int32Array): void {
  const range = integerRange(type)!;
  const [least, greatest] = [Number(range.least), Number(range.greatest)];
  for (let i = 0; i < raw.length; i++) {
    const value = values[i]!;
    if (typeof value === "number" && value >= least && value <= greatest && Number.isInteger(value))
      raw[i] = value;
    else if (typeof value === "bigint" && value >= least && value <= greatest) raw[i] = Number(value);
    else throw integerError(type, value, i);
  }
}

function encodeWide(type: StorageType, values: HostValues, raw: BigInt64Array | BigUint64Array): void {
  const { least, greatest } = integerRange(type)!;
  for (let i = 0; i < raw.length; i++) {
    const value = values[i]!;
    const integral = typeof value === "bigint" || (typeof value === "number" && Number.isInteger(value));
    if (!integral || value < least || value > greatest) throw integerError(type, value, i);
    raw[i] = BigInt(value);
  }
}

function integerError(type: StorageType, value: unknown, position: number): ArgumentError {
  const { least, greatest } = integerRange(type)!;
  return new ArgumentError(
    `value ${position} is ${described(value)}; ${type.name} takes integers from ${least} to ${greatest}${nestingHint(value)}`,
  );
}

/** A value for an error message, short whatever it is. */
function described(value: unknown): string {
  if (typeof value === "number" || typeof value === "boolean" || value === undefined || value === null)
    return String(value);
  if (typeof value === "bigint") return value.toString().length > 40 ? "a huge bigint" : `${value}n`;
  return Array.isArray(value) || ArrayBuffer.isView(value) ? "an array" : `a ${typeof value}`;
}

function nestingHint(value: unknown): string {
  return Array.isArray(value) || ArrayBuffer.isView(value)
    ? " in one flat array (the shape is given apart)"
    : "";
}
