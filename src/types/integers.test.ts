import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type IntegerArithmetic,
  i32Arithmetic,
  i64Arithmetic,
  indexArithmetic,
  u32Arithmetic,
  u64Arithmetic,
} from "./integers.ts";

const seed = 20240613;

interface IntegerType {
  readonly name: string;
  readonly least: bigint;
  readonly greatest: bigint;
  readonly wrap: (x: bigint) => bigint;
  readonly width: bigint;
  /** The arithmetic under test, as functions over bigint. */
  readonly apply: (operation: keyof IntegerArithmetic<number>, ...args: bigint[]) => bigint;
}

function overNumbers(arithmetic: IntegerArithmetic<number>): IntegerType["apply"] {
  return (operation, ...args) => {
    const result = (arithmetic[operation] as (...values: number[]) => number)(...args.map(Number));
    if (Object.is(result, -0)) throw new Error("negative zero");
    return BigInt(result);
  };
}

function overBigints(arithmetic: IntegerArithmetic<bigint>): IntegerType["apply"] {
  return (operation, ...args) => (arithmetic[operation] as (...values: bigint[]) => bigint)(...args);
}

function bounds(width: number, signed: boolean): Pick<IntegerType, "least" | "greatest" | "wrap" | "width"> {
  return signed
    ? {
        least: -(1n << BigInt(width - 1)),
        greatest: (1n << BigInt(width - 1)) - 1n,
        wrap: (x) => BigInt.asIntN(width, x),
        width: BigInt(width),
      }
    : {
        least: 0n,
        greatest: (1n << BigInt(width)) - 1n,
        wrap: (x) => BigInt.asUintN(width, x),
        width: BigInt(width),
      };
}

const integerTypes: readonly IntegerType[] = [
  { name: "i32", ...bounds(32, true), apply: overNumbers(i32Arithmetic) },
  { name: "u32", ...bounds(32, false), apply: overNumbers(u32Arithmetic) },
  { name: "i64", ...bounds(64, true), apply: overBigints(i64Arithmetic) },
  { name: "u64", ...bounds(64, false), apply: overBigints(u64Arithmetic) },
];

function floorQuotient(a: bigint, b: bigint): bigint {
  const quotient = a / b;
  return quotient * b !== a && a < 0n !== b < 0n ? quotient - 1n : quotient;
}

/** Values near zero, near the bounds, and any. */
function values(least: bigint, greatest: bigint): fc.Arbitrary<bigint> {
  const small = fc.bigInt({ min: least < 0n ? -9n : 0n, max: 9n });
  return fc.oneof(
    small,
    fc.bigInt({ min: least, max: least + 3n }),
    fc.bigInt({ min: greatest - 3n, max: greatest }),
    fc.bigInt({ min: least, max: greatest }),
  );
}

describe.each(integerTypes)("$name", ({ least, greatest, wrap, width, apply }) => {
  const value = values(least, greatest);
  const agrees = (
    operation: keyof IntegerArithmetic<number>,
    expected: (a: bigint, b: bigint) => bigint,
  ): void => {
    const property = fc.property(value, value, (a, b) => apply(operation, a, b) === expected(a, b));
    fc.assert(property, { seed, numRuns: 2000 });
  };

  test("add, sub and mul wrap around", () => {
    agrees("add", (a, b) => wrap(a + b));
    agrees("sub", (a, b) => wrap(a - b));
    agrees("mul", (a, b) => wrap(a * b));
    agrees("neg", (a) => wrap(-a));
    agrees("abs", (a) => wrap(a < 0n ? -a : a));
  });

  test("div and rem truncate; a zero divisor gives x and 0", () => {
    agrees("div", (a, b) => (b === 0n ? a : wrap(a / b)));
    agrees("rem", (a, b) => (b === 0n ? 0n : a % b));
  });

  test("floorDiv and floorMod round down; a zero divisor gives x and 0", () => {
    agrees("floorDiv", (a, b) => (b === 0n ? a : wrap(floorQuotient(a, b))));
    agrees("floorMod", (a, b) => (b === 0n ? 0n : a - floorQuotient(a, b) * b));
  });

  test("shift counts are taken modulo the width", () => {
    const count = (b: bigint): bigint => ((b % width) + width) % width;
    agrees("shiftLeft", (a, b) => wrap(a << count(b)));
    agrees("shiftRight", (a, b) => a >> count(b));
  });

  test("bitwise operations, min and max", () => {
    agrees("and", (a, b) => a & b);
    agrees("or", (a, b) => a | b);
    agrees("xor", (a, b) => a ^ b);
    agrees("not", (a) => wrap(~a));
    agrees("min", (a: bigint, b: bigint) => (a < b ? a : b));
    agrees("max", (a: bigint, b: bigint) => (a > b ? a : b));
  });
});

test("the one quotient that overflows wraps", () => {
  expect(i32Arithmetic.div(-(2 ** 31), -1)).toBe(-(2 ** 31));
  expect(i32Arithmetic.floorDiv(-(2 ** 31), -1)).toBe(-(2 ** 31));
  expect(i32Arithmetic.rem(-(2 ** 31), -1)).toBe(0);
  expect(i64Arithmetic.div(-(2n ** 63n), -1n)).toBe(-(2n ** 63n));
  expect(i64Arithmetic.rem(-(2n ** 63n), -1n)).toBe(0n);
});

describe("index", () => {
  const apply = overNumbers(indexArithmetic);
  const safe = values(-(2n ** 53n) + 1n, 2n ** 53n - 1n);
  const exactBelow53 = (
    operation: keyof IntegerArithmetic<number>,
    expected: (a: bigint, b: bigint) => bigint,
  ): void => {
    const property = fc.property(safe, safe, (a, b) => {
      const exact = expected(a, b);
      if (exact <= -(2n ** 53n) || exact >= 2n ** 53n) return true;
      return apply(operation, a, b) === exact;
    });
    fc.assert(property, { seed, numRuns: 3000 });
  };

  test("is exact while results stay below 2^53", () => {
    exactBelow53("add", (a, b) => a + b);
    exactBelow53("sub", (a, b) => a - b);
    exactBelow53("mul", (a, b) => a * b);
    exactBelow53("div", (a, b) => (b === 0n ? a : a / b));
    exactBelow53("rem", (a, b) => (b === 0n ? 0n : a % b));
    exactBelow53("floorDiv", (a, b) => (b === 0n ? a : floorQuotient(a, b)));
    exactBelow53("floorMod", (a, b) => (b === 0n ? 0n : a - floorQuotient(a, b) * b));
    exactBelow53("and", (a, b) => a & b);
    exactBelow53("or", (a, b) => a | b);
    exactBelow53("xor", (a, b) => a ^ b);
    exactBelow53("not", (a) => ~a);
    exactBelow53("neg", (a) => -a);
  });

  test("shifts by multiplying and flooring", () => {
    expect(indexArithmetic.shiftLeft(3, 40)).toBe(3 * 2 ** 40);
    expect(indexArithmetic.shiftLeft(3, 64)).toBe(3);
    expect(indexArithmetic.shiftRight(-3, 1)).toBe(-2);
    expect(indexArithmetic.shiftRight(2 ** 45 + 5, 40)).toBe(32);
  });
});
