import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bf16ToBits, f16ToBits, f32ToBits } from "./bits.ts";
import { bigintToFloat, convertValue, fits, roundingTo } from "./convert.ts";
import { maxFloat, minFloat } from "./float-arithmetic.ts";
import { bfloat16, binary16, binary32, isCorrectlyRounded } from "./rounding-oracle-for-tests.ts";
import {
  b1,
  bf16,
  bool,
  e4m3,
  e5m2,
  f16,
  f32,
  f64,
  i8,
  i16,
  i32,
  i64,
  index,
  tf32,
  types,
  u8,
  u16,
  u32,
  u64,
} from "./types.ts";

const seed = 20240614;

describe("integer to float", () => {
  const wide = fc.oneof(
    fc.bigInt({ min: -(1n << 63n), max: (1n << 64n) - 1n }),
    // Near ties of f32 that a double in between would move onto the tie.
    fc
      .tuple(fc.bigInt({ min: 1n << 23n, max: (1n << 24n) - 1n }), fc.bigInt({ min: -2n, max: 2n }))
      .map(([kept, off]) => (((kept << 1n) | 1n) << 39n) + off),
    fc.bigInt({ min: -70000n, max: 70000n }),
  );

  test.each([
    [f32, binary32, f32ToBits],
    [bf16, bfloat16, bf16ToBits],
    [f16, binary16, f16ToBits],
  ] as const)("64-bit integers to %o are rounded once", (type, format, toBits) => {
    const property = fc.property(wide, (value) =>
      isCorrectlyRounded(
        format,
        { significand: value, exponent: 0 },
        BigInt(toBits(bigintToFloat(value, type))),
      ),
    );
    fc.assert(property, { seed, numRuns: 3000 });
  });

  test("the double in between would be wrong", () => {
    const value = (1n << 62n) + (1n << 38n) + 1n;
    expect(Math.fround(Number(value))).toBe(2 ** 62);
    expect(convertValue(value, i64, f32)).toBe(2 ** 62 + 2 ** 39);
    expect(convertValue(-value, i64, f32)).toBe(-(2 ** 62) - 2 ** 39);
    expect(convertValue(2n ** 64n - 1n, u64, f64)).toBe(2 ** 64);
    expect(convertValue(16777217, i32, f32)).toBe(16777216);
    expect(convertValue(2049, i32, f16)).toBe(2048);
    expect(convertValue(70000, u32, f16)).toBe(Infinity);
  });
});

test("float to integer truncates, saturates and takes NaN to 0, for every integer type", () => {
  for (const to of [i8, i16, i32, u8, u16, u32]) {
    const least = to.class === "signed" ? -(2 ** (to.bits - 1)) : 0;
    const greatest = 2 ** to.precision - 1;
    expect(convertValue(NaN, f32, to)).toBe(0);
    expect(convertValue(Infinity, f32, to)).toBe(greatest);
    expect(convertValue(-1e30, f32, to)).toBe(least);
    expect(convertValue(greatest + 0.5, f64, to)).toBe(greatest);
    expect(convertValue(3.99, f32, to)).toBe(3);
    expect(convertValue(-0.5, f32, to)).toBe(0);
    expect(convertValue(-3.99, f32, to)).toBe(to.class === "signed" ? -3 : 0);
  }
  expect(convertValue(NaN, f32, i64)).toBe(0n);
  expect(convertValue(1e30, f32, i64)).toBe(2n ** 63n - 1n);
  expect(convertValue(-1e30, f32, i64)).toBe(-(2n ** 63n));
  expect(convertValue(-7.9, f64, i64)).toBe(-7n);
  expect(convertValue(-7.9, f64, u64)).toBe(0n);
  expect(convertValue(2 ** 63, f64, u64)).toBe(2n ** 63n);
  expect(convertValue(Infinity, f64, u64)).toBe(2n ** 64n - 1n);
  expect(convertValue(-2.5, f64, index)).toBe(-2);
  expect(convertValue(1e300, f64, index)).toBe(Number.MAX_SAFE_INTEGER);
});

test("integer to integer wraps", () => {
  expect(convertValue(-1, i32, u32)).toBe(4294967295);
  expect(convertValue(300, i32, u8)).toBe(44);
  expect(convertValue(200, u8, i8)).toBe(-56);
  expect(convertValue(40000, u16, i16)).toBe(-25536);
  expect(convertValue(2 ** 32 + 5, index, i32)).toBe(5);
  expect(convertValue(-1, i32, u64)).toBe(2n ** 64n - 1n);
  expect(convertValue(2n ** 63n, u64, i64)).toBe(-(2n ** 63n));
  expect(convertValue(2n ** 32n + 7n, i64, u32)).toBe(7);
  expect(convertValue(-1n, i64, u8)).toBe(255);
  expect(convertValue(-5n, i64, index)).toBe(-5);
  expect(convertValue(5, u32, i64)).toBe(5n);
});

test("truth values are 0 and 1, and whatever differs from zero is true", () => {
  expect(convertValue(true, bool, f16)).toBe(1);
  expect(convertValue(false, bool, i64)).toBe(0n);
  expect(convertValue(true, bool, u8)).toBe(1);
  expect(convertValue(NaN, f32, bool)).toBe(true);
  expect(convertValue(-0, f32, bool)).toBe(false);
  expect(convertValue(0n, u64, bool)).toBe(false);
  expect(convertValue(5, i32, b1)).toBe(1);
  expect(convertValue(1, b1, f32)).toBe(1);
});

test("fp8 saturates unless told not to", () => {
  expect(convertValue(1e9, f32, e4m3)).toBe(448);
  expect(convertValue(-Infinity, f32, e5m2)).toBe(-57344);
  expect(convertValue(1e9, f32, e4m3, { saturate: false })).toBeNaN();
  expect(convertValue(-Infinity, f32, e5m2, { saturate: false })).toBe(-Infinity);
  expect(convertValue(1 + 2 ** -11, f32, tf32)).toBe(1 + 2 ** -10);
});

test("every conversion between two types gives what the other type holds", () => {
  const samples = [0, 1, -1, 3.7, -129.5, 2 ** 31, -(2 ** 63), 1e20, NaN, Infinity];
  for (const from of Object.values(types)) {
    for (const to of Object.values(types)) {
      for (const sample of samples) {
        const value = convertValue(sample, f64, from);
        const result = convertValue(value, from, to);
        if (to.name === "bool") expect(typeof result).toBe("boolean");
        else if (to.name === "i64" || to.name === "u64") expect(typeof result).toBe("bigint");
        else expect(typeof result).toBe("number");
        expect(convertValue(result, to, to)).toBe(result);
      }
    }
  }
});

test("literals fit when they are in range", () => {
  expect(fits(0.1, f16)).toBe(true);
  expect(fits(65519, f16)).toBe(true);
  expect(fits(65520, f16)).toBe(false);
  expect(fits(Infinity, f16)).toBe(true);
  expect(fits(NaN, e4m3)).toBe(true);
  expect(fits(464, e4m3)).toBe(true);
  expect(fits(465, e4m3)).toBe(false);
  expect(fits(Infinity, e4m3)).toBe(false);
  expect(fits(Infinity, e5m2)).toBe(true);
  expect(fits(1e39, f32)).toBe(false);
  expect(fits(1e308, f64)).toBe(true);
  expect(fits(2n ** 200n, f32)).toBe(false);
  expect(fits(255, u8)).toBe(true);
  expect(fits(256, u8)).toBe(false);
  expect(fits(-1, u32)).toBe(false);
  expect(fits(1.5, i32)).toBe(false);
  expect(fits(NaN, i32)).toBe(false);
  expect(fits(2n ** 63n, i64)).toBe(false);
  expect(fits(2 ** 63, u64)).toBe(true);
  expect(fits(2 ** 53, index)).toBe(false);
  expect(fits(true, bool)).toBe(true);
  expect(fits(1, bool)).toBe(false);
  expect(fits(true, i32)).toBe(false);
  expect(fits(2, b1)).toBe(false);
});

test("min and max give the number when one side is NaN, and order the zeros", () => {
  expect(minFloat(NaN, 2)).toBe(2);
  expect(maxFloat(2, NaN)).toBe(2);
  expect(minFloat(NaN, NaN)).toBeNaN();
  expect(minFloat(0, -0)).toBe(-0);
  expect(maxFloat(-0, 0)).toBe(0);
  expect(maxFloat(1, Infinity)).toBe(Infinity);
});

test("nothing rounds to an integer type", () => {
  expect(() => roundingTo(i32)).toThrow(/no floating-point type/);
});
