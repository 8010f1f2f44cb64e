import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  bf16FromBits,
  bf16ToBits,
  f16FromBits,
  f16ToBits,
  f32FromBits,
  f32ToBits,
  f64FromBits,
  f64ToBits,
} from "./bits.ts";
import { addDyadic, dyadicFromNumber, multiplyDyadic } from "./dyadic.ts";
import {
  addBF16,
  addF16,
  addF32,
  divBF16,
  divF16,
  divF32,
  mulBF16,
  mulF16,
  mulF32,
} from "./float-arithmetic.ts";
import { fmaBF16, fmaF16, fmaF32, fmaF64 } from "./fma.ts";
import {
  type BinaryFormat,
  bfloat16,
  binary16,
  binary32,
  binary64,
  isCorrectlyRounded,
} from "./rounding-oracle-for-tests.ts";

const seed = 20240612;

interface FmaType {
  readonly name: string;
  readonly format: BinaryFormat;
  readonly fma: (a: number, b: number, c: number) => number;
  readonly toBits: (x: number) => bigint;
  readonly fromBits: (bits: bigint) => number;
}

const fmaTypes: readonly FmaType[] = [
  {
    name: "f16",
    format: binary16,
    fma: fmaF16,
    toBits: (x) => BigInt(f16ToBits(x)),
    fromBits: (b) => f16FromBits(Number(b)),
  },
  {
    name: "bf16",
    format: bfloat16,
    fma: fmaBF16,
    toBits: (x) => BigInt(bf16ToBits(x)),
    fromBits: (b) => bf16FromBits(Number(b)),
  },
  {
    name: "f32",
    format: binary32,
    fma: fmaF32,
    toBits: (x) => BigInt(f32ToBits(x)),
    fromBits: (b) => f32FromBits(Number(b)),
  },
  { name: "f64", format: binary64, fma: fmaF64, toBits: f64ToBits, fromBits: f64FromBits },
];

describe.each(fmaTypes)("fma of $name", ({ format, fma, toBits, fromBits }) => {
  const precision = format.fractionBits + 1;
  const bias = 2 ** (format.exponentBits - 1) - 1;
  const width = BigInt(format.exponentBits + format.fractionBits + 1);
  const anyValue = fc
    .bigInt({ min: 0n, max: (1n << width) - 1n })
    .map(fromBits)
    .filter(Number.isFinite);

  const isRight = (a: number, b: number, c: number): boolean => {
    const exact = addDyadic(multiplyDyadic(dyadicFromNumber(a), dyadicFromNumber(b)), dyadicFromNumber(c));
    const result = fma(a, b, c);
    if (exact.significand === 0n) return Object.is(result, a * b + c === 0 ? a * b + c : 0);
    return !Number.isNaN(result) && isCorrectlyRounded(format, exact, toBits(result));
  };
  /** The value nearest to significand·2^exponent, as a value of the type; the tests keep it representable. */
  const value = (significand: number, exponent: number): number => {
    const [half, rest] = [Math.trunc(exponent / 2), exponent - Math.trunc(exponent / 2)];
    return fromBits(toBits(significand * 2 ** half * 2 ** rest));
  };
  const sign = fc.constantFrom(-1, 1);
  const few = fc.integer({ min: -3, max: 3 });

  test("is right for any three values", () => {
    fc.assert(fc.property(anyValue, anyValue, anyValue, isRight), { seed, numRuns: 6000 });
  });

  test("is right where the product is about half a step of the addend", () => {
    const exponents = fc.integer({ min: 1 - bias, max: bias });
    const property = fc.property(
      fc.tuple(exponents, fc.double({ min: 1, max: 2, maxExcluded: true, noNaN: true }), sign),
      fc.tuple(few, few, fc.integer({ min: -20, max: 20 }), fc.integer({ min: -2, max: 1 }), sign),
      ([exponent, fraction, cSign], [i, j, split, offset, pSign]) => {
        const c = cSign * value(fraction, exponent);
        const step = exponent - precision + offset;
        const one = 2 ** (precision - 1);
        const a = pSign * value(one + i, Math.trunc(step / 2) + split - precision + 1);
        const b = value(one + j, step - Math.trunc(step / 2) - split - precision + 1);
        return !Number.isFinite(a * b) || !Number.isFinite(a) || !Number.isFinite(b) || isRight(a, b, c);
      },
    );
    fc.assert(property, { seed, numRuns: 6000 });
  });

  test("is right where the product is a tie and the addend is tiny", () => {
    const half = 2 ** Math.floor(precision / 2);
    const odd = fc.integer({ min: half / 2, max: 2 * half - 1 }).map((n) => 2 * n + 1);
    const property = fc.property(
      fc.tuple(odd, odd, fc.integer({ min: -bias, max: bias }), sign),
      fc.tuple(few, fc.integer({ min: -2 * precision, max: -1 }), sign),
      ([m, n, exponent, pSign], [low, below, cSign]) => {
        const [first, second] = [Math.trunc(exponent / 2), exponent - Math.trunc(exponent / 2)];
        const shift = -Math.floor(precision / 2) - 1;
        const a = pSign * value(m, first + shift);
        const b = value(n, second + shift);
        const c = cSign * value(1 + low / 8, exponent - precision + below);
        return !Number.isFinite(a) || !Number.isFinite(b) || isRight(a, b, c);
      },
    );
    fc.assert(property, { seed, numRuns: 6000 });
  });

  test("is right under cancellation", () => {
    const property = fc.property(anyValue, anyValue, fc.integer({ min: -2, max: 2 }), (a, b, off) => {
      const product = fromBits(toBits(a * b));
      if (!Number.isFinite(product) || product === 0) return true;
      const c = -fromBits(toBits(product) + BigInt(off));
      return !Number.isFinite(c) || isRight(a, b, c);
    });
    fc.assert(property, { seed, numRuns: 3000 });
  });

  test("is right around overflow", () => {
    const largest = fromBits(
      (((1n << BigInt(format.exponentBits)) - 1n) << BigInt(format.fractionBits)) - 1n,
    );
    const property = fc.property(
      fc.tuple(few, few, fc.integer({ min: -3, max: 3 }), fc.integer({ min: -4, max: 1 }), sign),
      ([i, j, split, offset, side]) => {
        const one = 2 ** (precision - 1);
        const exponent = bias - precision + offset;
        const a = value(one + i, Math.trunc(exponent / 2) + split - precision + 1);
        const b = value(one + j, exponent - Math.trunc(exponent / 2) - split - precision + 1);
        return isRight(a, side * b, side * largest) && isRight(a, side * b, -side * largest);
      },
    );
    fc.assert(property, { seed, numRuns: 2000 });
    expect(fma(largest, 1, largest)).toBe(Infinity);
    expect(fma(largest, 2, -largest)).toBe(largest);
  });

  test("follows IEEE 754 for infinities, NaN and signed zeros", () => {
    expect(fma(Infinity, 1, 1)).toBe(Infinity);
    expect(fma(Infinity, 1, -Infinity)).toBeNaN();
    expect(fma(Infinity, 0, 1)).toBeNaN();
    expect(fma(2, 3, -Infinity)).toBe(-Infinity);
    expect(fma(NaN, 1, 1)).toBeNaN();
    expect(fma(1, 1, NaN)).toBeNaN();
    expect(Object.is(fma(0, -1, -0), -0)).toBe(true);
    expect(Object.is(fma(0, 1, -0), 0)).toBe(true);
    expect(Object.is(fma(1, 1, -1), 0)).toBe(true);
  });
});

test("an f64 product that overflows can still be brought back by the addend", () => {
  expect(fmaF64(2 ** 1000, 2 ** 24, -Number.MAX_VALUE)).toBe(2 ** 971);
  expect(fmaF64(2 ** 1000, 2 ** 1000, -Infinity)).toBe(-Infinity);
  expect(fmaF64(2 ** -1000, 2 ** -1000, 5e-324)).toBe(5e-324);
});

describe.each([
  { ...fmaTypes[0]!, add: addF16, mul: mulF16, div: divF16 },
  { ...fmaTypes[1]!, add: addBF16, mul: mulBF16, div: divBF16 },
  { ...fmaTypes[2]!, add: addF32, mul: mulF32, div: divF32 },
])("arithmetic of $name", ({ format, fma, toBits, fromBits, add, mul, div }) => {
  const width = BigInt(format.exponentBits + format.fractionBits + 1);
  const anyValue = fc
    .bigInt({ min: 0n, max: (1n << width) - 1n })
    .map(fromBits)
    .filter(Number.isFinite);

  test("sum and product are what an fma gives", () => {
    const property = fc.property(anyValue, anyValue, (a, b) => {
      const product = mul(a, b);
      return Object.is(add(a, b), fma(a, 1, b)) && (product === 0 || Object.is(product, fma(a, b, 0)));
    });
    fc.assert(property, { seed, numRuns: 5000 });
  });

  test("a quotient is rounded once", () => {
    // q is right when a/b lies nearer to q than to its neighbours; a/b to 200 more bits than needed decides.
    const property = fc.property(anyValue, anyValue, (a, b) => {
      if (a === 0 || b === 0) return true;
      const [x, y] = [dyadicFromNumber(a), dyadicFromNumber(b)];
      const scaled = (x.significand << 200n) / y.significand;
      const exact = scaled * y.significand === x.significand << 200n;
      const negative = a < 0 !== b < 0;
      const magnitude = scaled < 0n ? -scaled : scaled;
      const sticky = (magnitude << 1n) | (exact ? 0n : 1n);
      const significand = negative ? -sticky : sticky;
      return isCorrectlyRounded(
        format,
        { significand, exponent: x.exponent - y.exponent - 201 },
        toBits(div(a, b)),
      );
    });
    fc.assert(property, { seed, numRuns: 5000 });
  });
});
