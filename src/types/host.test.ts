import { describe, expect, test } from "vitest";
import { ArgumentError } from "../errors.ts";
import {
  bf16FromBits,
  bf16ToBits,
  e4m3FromBits,
  e4m3ToBits,
  e5m2FromBits,
  e5m2ToBits,
  f16FromBits,
  f16ToBits,
  f32FromBits,
  f32ToBits,
  f64FromBits,
  f64FromWords,
  f64HighWord,
  f64LowWord,
  f64ToBits,
  fromBits,
  toBits,
} from "./bits.ts";
import { dyadicToNumber } from "./dyadic.ts";
import { decode, encode, isRawArray, rawArray } from "./host.ts";
import { bfloat16, binary16, fp8e4m3, fp8e5m2, magnitudeOf } from "./rounding-oracle-for-tests.ts";
import {
  bf16,
  e4m3,
  e5m2,
  f16,
  f32,
  f64,
  i8,
  i16,
  i32,
  i64,
  isStorage,
  types,
  u8,
  u16,
  u32,
  u64,
} from "./types.ts";

describe.each([
  { type: f16, format: binary16, bits: 16, infinity: 0x7c00, nan: 0x7fff, to: f16ToBits, from: f16FromBits },
  {
    type: bf16,
    format: bfloat16,
    bits: 16,
    infinity: 0x7f80,
    nan: 0x7fff,
    to: bf16ToBits,
    from: bf16FromBits,
  },
  { type: e4m3, format: fp8e4m3, bits: 8, infinity: 0x7e, nan: 0x7f, to: e4m3ToBits, from: e4m3FromBits },
  { type: e5m2, format: fp8e5m2, bits: 8, infinity: 0x7c, nan: 0x7f, to: e5m2ToBits, from: e5m2FromBits },
])("$type.name, every pattern", ({ type, format, bits, infinity, nan, to, from }) => {
  const signBit = 1 << (bits - 1);
  const patterns = Array.from({ length: 1 << bits }, (_, i) => i);

  test("means what the format says", () => {
    for (const pattern of patterns) {
      const magnitude = pattern & (signBit - 1);
      const sign = pattern & signBit ? -1 : 1;
      const value = from(pattern);
      if (magnitude > infinity) expect(value).toBeNaN();
      else if (magnitude === infinity && type.name !== "e4m3") expect(value).toBe(sign * Infinity);
      else expect(value).toBe(sign * dyadicToNumber(magnitudeOf(format, BigInt(magnitude))));
    }
  });

  test("survives the way there and back, NaN as the one NaN", () => {
    for (const pattern of patterns) {
      const isNotANumber = (pattern & (signBit - 1)) > infinity;
      expect(to(from(pattern))).toBe(isNotANumber ? nan : pattern);
    }
  });

  test("encode and decode agree with the single functions", () => {
    const raw = rawArray(type, patterns.length);
    raw.set(patterns);
    const values = decode(type, raw);
    expect(values).toBeInstanceOf(Float32Array);
    for (const pattern of patterns) expect(Object.is(values[pattern], from(pattern))).toBe(true);
    expect(encode(type, values)).toEqual(raw.map((pattern) => to(from(pattern))));
    expect(encode(type, [...values])).toEqual(encode(type, values));
  });
});

test("every 8- and 16-bit integer survives the way there and back", () => {
  for (const type of [i8, u8, i16, u16]) {
    for (let pattern = 0; pattern < 2 ** type.bits; pattern++) {
      const value = fromBits(type, pattern) as number;
      expect(toBits(type, value)).toBe(pattern);
      expect(decode(type, encode(type, [value]))[0]).toBe(value);
    }
  }
});

test("32- and 64-bit patterns", () => {
  expect(f32ToBits(-1.5)).toBe(0xbfc00000);
  expect(f32FromBits(0xbfc00000)).toBe(-1.5);
  expect(f32ToBits(NaN)).toBe(0x7fffffff);
  expect(f64ToBits(-1.5)).toBe(0xbff8000000000000n);
  expect(f64FromBits(0xbff8000000000000n)).toBe(-1.5);
  expect(f64FromWords(f64HighWord(Math.PI), f64LowWord(Math.PI))).toBe(Math.PI);
  expect(f64ToBits(NaN)).toBe(0x7ff8000000000000n);
  expect([f64HighWord(NaN), f64LowWord(NaN)]).toEqual([0x7ff80000, 0]);
  expect(toBits(i64, -1n)).toBe(2n ** 64n - 1n);
  expect(fromBits(i64, 2n ** 64n - 1n)).toBe(-1n);
  expect(fromBits(u64, 2n ** 64n - 1n)).toBe(2n ** 64n - 1n);
  expect(toBits(i32, -1)).toBe(0xffffffff);
  expect(fromBits(i32, 0xffffffff)).toBe(-1);
  expect(fromBits(u32, 0xffffffff)).toBe(0xffffffff);
  for (const type of Object.values(types)) {
    if (isStorage(type)) expect(Number(fromBits(type, toBits(type, 1)))).toBe(1);
  }
});

test("encoding rounds floats, once, to nearest even", () => {
  expect([...encode(f16, [1, -2.5, 65519, 65520, 1 + 2 ** -11 + 2 ** -40])]).toEqual([
    0x3c00, 0xc100, 0x7bff, 0x7c00, 0x3c01,
  ]);
  expect(encode(f32, [0.1, 16777217])).toEqual(Float32Array.of(0.1, 16777216));
  expect(encode(f32, Float64Array.of(0.1))).toEqual(Float32Array.of(0.1));
  expect(encode(f64, Float32Array.of(0.5))).toEqual(Float64Array.of(0.5));
  expect(encode(f64, Int8Array.of(-5))).toEqual(Float64Array.of(-5));
  expect([...encode(e4m3, [1000, -1000, Infinity, 1])]).toEqual([0x7e, 0xfe, 0x7e, 0x38]);
  expect([...encode(e5m2, [1e6, -Infinity, 1])]).toEqual([0x7b, 0xfc, 0x3c]);
  expect(encode(f32, [2n ** 62n + 2n ** 38n + 1n])[0]).toBe(2 ** 62 + 2 ** 39);
  expect(encode(f32, BigInt64Array.of(3n))).toEqual(Float32Array.of(3));
});

test("encoding copies, also where there is nothing to convert", () => {
  const values = Float32Array.of(1, 2);
  const raw = encode(f32, values);
  raw[0] = 9;
  expect(values[0]).toBe(1);
  const words = Uint32Array.of(7);
  expect(encode(u32, words)).not.toBe(words);
});

test("integers out of range or none are refused, naming position and value", () => {
  expect(() => encode(u8, [1, 256])).toThrow(ArgumentError);
  expect(() => encode(u8, [1, 256])).toThrow("value 1 is 256; u8 takes integers from 0 to 255");
  expect(() => encode(i32, Float32Array.of(1, 2, 1.5))).toThrow("value 2 is 1.5");
  expect(() => encode(i32, [NaN])).toThrow("value 0 is NaN");
  expect(() => encode(i8, Int16Array.of(-129))).toThrow(
    "value 0 is -129; i8 takes integers from -128 to 127",
  );
  expect(() => encode(u64, [-1n])).toThrow("value 0 is -1n");
  expect(() => encode(i64, [0.5])).toThrow("value 0 is 0.5");
  expect(() => encode(u32, Int32Array.of(-1))).toThrow("value 0 is -1");
  expect(() => encode(i64, BigUint64Array.of(2n ** 63n))).toThrow(/value 0 is 9223372036854775808n/);
  expect(() => encode(i32, [2n ** 31n])).toThrow(/value 0/);
});

test("what is no number is refused, with a hint for nested arrays", () => {
  const nested = [[1, 2]] as unknown as number[];
  expect(() => encode(f32, nested)).toThrow("value 0 is an array; f32 takes numbers in one flat array");
  expect(() => encode(i32, nested)).toThrow(/one flat array/);
  expect(() => encode(f16, [undefined as unknown as number])).toThrow("value 0 is undefined");
  expect(() => encode(f16, ["1" as unknown as number])).toThrow("value 0 is a string");
  expect(() => encode(f64, new Array<number>(1))).toThrow("value 0 is undefined");
});

test("integers of one kind go into types of another where they fit", () => {
  expect(encode(i32, Uint8Array.of(255))).toEqual(Int32Array.of(255));
  expect(encode(u32, Int32Array.of(5))).toEqual(Uint32Array.of(5));
  expect(encode(i64, [1, 2n as unknown as number])).toEqual(BigInt64Array.of(1n, 2n));
  expect(encode(u64, [2 ** 63])).toEqual(BigUint64Array.of(2n ** 63n));
  expect(encode(u8, [5n])).toEqual(Uint8Array.of(5));
  expect(encode(u8, Uint8ClampedArray.of(5))).toEqual(Uint8Array.of(5));
});

test("a Float16Array's bits are taken as they are", () => {
  class Float16Array extends Uint16Array {
    override get [Symbol.toStringTag](): "Uint16Array" {
      return "Float16Array" as "Uint16Array";
    }
  }
  expect(encode(f16, Float16Array.of(0x3c00, 0x4000))).toEqual(Uint16Array.of(0x3c00, 0x4000));
});

test("raw arrays: new ones, views and their kind", () => {
  expect(rawArray(bf16, 3)).toEqual(new Uint16Array(3));
  const buffer = new Uint8Array([0, 0, 0x80, 0x3f, 7]).buffer;
  expect(rawArray(u8, buffer, 4)).toEqual(Uint8Array.of(7));
  expect(rawArray(f32, buffer, 0, 1)).toEqual(Float32Array.of(1));
  expect(rawArray(u16, buffer)).toHaveLength(2);
  expect(isRawArray(f16, new Uint16Array(1))).toBe(true);
  expect(isRawArray(f16, new Float32Array(1))).toBe(false);
  expect(isRawArray(i64, [1n])).toBe(false);
  const halves = encode(f32, [1, 2]);
  expect(decode(f32, halves)).toBe(halves);
});
