import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bf16ToBits, e4m3ToBits, e5m2ToBits, f16ToBits, f32ToBits, f64FromBits, f64ToBits } from "./bits.ts";
import { dyadicFromNumber, dyadicToNumber } from "./dyadic.ts";
import {
  roundToBF16,
  roundToE4M3,
  roundToE4M3OrNaN,
  roundToE5M2,
  roundToE5M2OrInfinity,
  roundToF16,
  roundToTF32,
  roundToTF32Even,
  truncateToTF32,
} from "./round.ts";
import {
  type BinaryFormat,
  bfloat16,
  binary16,
  binary32,
  fp8e4m3,
  fp8e5m2,
  isCorrectlyRounded,
  magnitudeOf,
  tensorFloat32,
} from "./rounding-oracle-for-tests.ts";

const seed = 20240611;

interface Rounding {
  readonly name: string;
  readonly format: BinaryFormat;
  readonly round: (x: number) => number;
  /** Pattern of a representable value, overflow included. */
  readonly pattern: (rounded: number) => number;
  readonly ties?: "away";
  /** Greatest pattern that can result, where it is not infinity. */
  readonly last?: bigint;
}

const roundings: readonly Rounding[] = [
  { name: "f16", format: binary16, round: roundToF16, pattern: f16ToBits },
  { name: "bf16", format: bfloat16, round: roundToBF16, pattern: bf16ToBits },
  { name: "f32", format: binary32, round: Math.fround, pattern: f32ToBits },
  {
    name: "tf32",
    format: tensorFloat32,
    round: roundToTF32,
    pattern: (x) => f32ToBits(x) >>> 13,
    ties: "away",
  },
  {
    name: "tf32, to even",
    format: tensorFloat32,
    round: roundToTF32Even,
    pattern: (x) => f32ToBits(x) >>> 13,
  },
  { name: "e4m3 saturating", format: fp8e4m3, round: roundToE4M3, pattern: e4m3ToBits, last: 0x7en },
  { name: "e5m2", format: fp8e5m2, round: roundToE5M2OrInfinity, pattern: e5m2ToBits },
  { name: "e5m2 saturating", format: fp8e5m2, round: roundToE5M2, pattern: e5m2ToBits, last: 0x7bn },
];

/** Doubles on a tie between two neighbours of the format or one double off it, overflow and subnormals included. */
function nearTies(format: BinaryFormat): fc.Arbitrary<number> {
  const infinity = ((1n << BigInt(format.exponentBits)) - 1n) << BigInt(format.fractionBits);
  return fc
    .tuple(fc.bigInt({ min: 0n, max: infinity }), fc.constantFrom(-1n, 0n, 0n, 1n), fc.boolean())
    .map(([pattern, nudge, negative]) => {
      const low = magnitudeOf(format, pattern);
      const high = magnitudeOf(format, pattern + 1n);
      const tie = (dyadicToNumber(low) + dyadicToNumber(high)) / 2;
      const nudged = f64FromBits(f64ToBits(tie) + nudge);
      return negative ? -nudged : nudged;
    });
}

const allPatterns = fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }).map(f64FromBits);

describe.each(roundings)("rounding to $name", ({ format, round, pattern, ties, last }) => {
  const isRight = (x: number): boolean =>
    isCorrectlyRounded(format, dyadicFromNumber(x), BigInt(pattern(round(x))), ties, last);

  test("is right near ties", () => {
    fc.assert(
      fc.property(nearTies(format), (x) => isRight(x)),
      { seed, numRuns: 4000 },
    );
  });

  test("is right for doubles of moderate size and of any size", () => {
    const moderate = fc.double({ min: -1e6, max: 1e6, noNaN: true });
    const any = allPatterns.filter(Number.isFinite);
    fc.assert(
      fc.property(fc.oneof(moderate, any, fc.double({ noNaN: true, noDefaultInfinity: true })), isRight),
      {
        seed,
        numRuns: 4000,
      },
    );
  });

  test("gives a value that it leaves alone", () => {
    fc.assert(
      fc.property(nearTies(format), (x) => Object.is(round(round(x)), round(x))),
      { seed, numRuns: 1000 },
    );
  });

  test("keeps NaN and the sign of zero", () => {
    expect(round(NaN)).toBeNaN();
    expect(Object.is(round(0), 0)).toBe(true);
    expect(Object.is(round(-0), -0)).toBe(true);
    expect(Object.is(round(-5e-324), -0)).toBe(true);
    expect(Object.is(round(5e-324), 0)).toBe(true);
  });
});

test.each([
  ["f16", roundToF16, 65504, 65520, Infinity],
  ["bf16", roundToBF16, 255 * 2 ** 120, 511 * 2 ** 119, Infinity],
  ["tf32, to even", roundToTF32Even, 2047 * 2 ** 117, 4095 * 2 ** 116, Infinity],
  ["tf32", roundToTF32, 2047 * 2 ** 117, 4095 * 2 ** 116, Infinity],
  ["e5m2", roundToE5M2OrInfinity, 57344, 61440, Infinity],
  ["e5m2 saturating", roundToE5M2, 57344, 61440, 57344],
] as const)("%s overflows where the next value would be as near", (_, round, largest, tie, beyond) => {
  const below = f64FromBits(f64ToBits(tie) - 1n);
  expect(round(largest)).toBe(largest);
  expect(round(below)).toBe(largest);
  expect(round(tie)).toBe(beyond);
  expect(round(-tie)).toBe(-beyond);
  expect(round(-Infinity)).toBe(-beyond);
  expect(round(1e300)).toBe(beyond);
});

test("e4m3 gives the tie above 448 to 448 and what lies beyond to NaN, or saturates", () => {
  expect(roundToE4M3OrNaN(464)).toBe(448);
  expect(roundToE4M3OrNaN(-464)).toBe(-448);
  expect(roundToE4M3OrNaN(464.0000001)).toBeNaN();
  expect(roundToE4M3OrNaN(Infinity)).toBeNaN();
  expect(roundToE4M3OrNaN(NaN)).toBeNaN();
  expect(roundToE4M3(464.0000001)).toBe(448);
  expect(roundToE4M3(-Infinity)).toBe(-448);
});

test("rounds once: a double just above an f16 tie that an f32 in between would lose", () => {
  const aboveTie = 1 + 2 ** -11 + 2 ** -40;
  expect(Math.fround(aboveTie)).toBe(1 + 2 ** -11);
  expect(roundToF16(aboveTie)).toBe(1 + 2 ** -10);
});

test("tf32 truncation clears the low 13 bits of every f32", () => {
  fc.assert(
    fc.property(fc.nat({ max: 0xffffffff }), (bits) => {
      const words = new Uint32Array([bits]);
      const x = new Float32Array(words.buffer)[0]!;
      if (Number.isNaN(x)) return Number.isNaN(truncateToTF32(x));
      const cut = new Float32Array(new Uint32Array([(bits & 0xffffe000) >>> 0]).buffer)[0]!;
      return Object.is(truncateToTF32(x), cut);
    }),
    { seed, numRuns: 4000 },
  );
  expect(truncateToTF32(1e300)).toBe(2047 * 2 ** 117);
  expect(truncateToTF32(-Infinity)).toBe(-Infinity);
});
