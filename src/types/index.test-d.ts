import { describe, expectTypeOf, test } from "vitest";
import {
  type ArithmeticType,
  type BF16,
  decode,
  encode,
  type F16,
  type F32,
  f16,
  f32,
  type IntegerArithmetic,
  i64,
  i64Arithmetic,
  indexArithmetic,
  isArithmetic,
  rawArray,
  type StorageArray,
  type StorageType,
  type TypeName,
  types,
  u8,
  type ValueArray,
} from "./index.ts";

describe("type names", () => {
  test("are literal", () => {
    expectTypeOf(f16.name).toEqualTypeOf<"f16">();
    expectTypeOf(types.bf16).toEqualTypeOf<BF16>();
    expectTypeOf<F16>().not.toExtend<F32>();
    expectTypeOf<keyof typeof types>().toEqualTypeOf<TypeName>();
  });

  test("narrow by predicate", () => {
    const type: StorageType = f16;
    if (isArithmetic(type)) expectTypeOf(type).toExtend<ArithmeticType>();
  });
});

test("host data follows the type", () => {
  expectTypeOf(encode(f16, [1])).toEqualTypeOf<Uint16Array>();
  expectTypeOf(encode(i64, [1n])).toEqualTypeOf<BigInt64Array>();
  expectTypeOf(decode(f16, new Uint16Array(1))).toEqualTypeOf<Float32Array>();
  expectTypeOf(decode(u8, new Uint8Array(1))).toEqualTypeOf<Uint8Array>();
  expectTypeOf(rawArray(f32, 4)).toEqualTypeOf<Float32Array>();
  expectTypeOf<StorageArray<F16>>().toEqualTypeOf<Uint16Array>();
  expectTypeOf<ValueArray<F32>>().toEqualTypeOf<Float32Array>();
  // @ts-expect-error raw f16 is held in a Uint16Array
  decode(f16, new Float32Array(1));
});

test("64-bit arithmetic is over bigint, index over numbers", () => {
  expectTypeOf(i64Arithmetic).toEqualTypeOf<IntegerArithmetic<bigint>>();
  expectTypeOf(indexArithmetic.add).returns.toEqualTypeOf<number>();
});
