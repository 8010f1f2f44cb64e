/** @file Narrow floats (f16, bf16, e4m3, e5m2) to and from f32, natively or with integer instructions. */
import type { ElementType } from "../../types/types.ts";
import type { Emission } from "./emission.ts";

/** A lane of a narrow float as f32, exactly. */
export function widen(emission: Emission, element: ElementType, lane: string): string {
  switch (element.name) {
    case "f16":
      return emission.compute("b32", "cvt.f32.f16", lane);
    case "bf16":
      return emission.compute("b32", "mov.b32", `{0, ${lane}}`);
    case "e4m3":
    case "e5m2":
      return widenEight(emission, element.name, lane);
    default:
      return lane;
  }
}

/** An f32 rounded to a narrow float; fp8 saturates. */
export function narrow(emission: Emission, element: ElementType, word: string): string {
  switch (element.name) {
    case "f16":
      return emission.compute("b16", "cvt.rn.f16.f32", word);
    case "bf16":
      return narrowToBF16(emission, word);
    case "e4m3":
    case "e5m2":
      return emission.facts.fp8Conversion
        ? narrowToEight(emission, element.name, word)
        : roundToEight(emission, eightFormats[element.name], word);
    default:
      return word;
  }
}

function narrowToBF16(emission: Emission, word: string): string {
  if (emission.capability >= 80) {
    emission.needs(70);
    return emission.compute("b16", "cvt.rn.bf16.f32", word);
  }
  const odd = emission.compute("b32", "bfe.u32", word, 16, 1);
  const biased = emission.compute("b32", "add.u32", word, odd);
  const rounded = emission.compute("b32", "add.u32", biased, 0x7fff);
  const nan = emission.compute("pred", "setp.nan.f32", word, word);
  const chosen = emission.compute("b32", "selp.b32", "0x7FFF0000", rounded, nan);
  return highHalf(emission, chosen);
}

function highHalf(emission: Emission, word: string): string {
  const high = emission.compute("b32", "shr.u32", word, 16);
  return emission.compute("b16", "cvt.u16.u32", high);
}

/** States the version of the fp8 conversions. */
export function needsNativeEight(emission: Emission): void {
  emission.needs(emission.capability >= 90 ? 78 : 81);
}

/** Lanes come zero-extended, so that the second conversion of a pair is of zero. */
function widenEight(emission: Emission, name: "e4m3" | "e5m2", lane: string): string {
  if (emission.facts.fp8Conversion) {
    needsNativeEight(emission);
    const pair = emission.compute("b32", `cvt.rn.f16x2.${name}x2`, lane);
    const half = emission.compute("b16", "cvt.u16.u32", pair);
    return emission.compute("b32", "cvt.f32.f16", half);
  }
  const half = emission.compute("b16", "shl.b16", lane, 8);
  if (name === "e5m2") return emission.compute("b32", "cvt.f32.f16", half);
  return widenE4M3(emission, lane);
}

/** Exponent and significand in f32's place, scaled by the difference of the biases; 0x7F is NaN. */
function widenE4M3(emission: Emission, lane: string): string {
  const wide = emission.compute("b32", "cvt.u32.u16", lane);
  const magnitude = emission.compute("b32", "and.b32", wide, 0x7f);
  const placed = emission.compute("b32", "shl.b32", magnitude, 20);
  const scaled = emission.compute("b32", "mul.rn.f32", placed, "0f7B800000");
  const unordered = emission.compute("pred", "setp.eq.u32", magnitude, 0x7f);
  const value = emission.compute("b32", "selp.b32", "0x7FFFFFFF", scaled, unordered);
  const sign = emission.compute("b32", "shl.b32", wide, 24);
  const signOnly = emission.compute("b32", "and.b32", sign, "0x80000000");
  return emission.compute("b32", "or.b32", value, signOnly);
}

function narrowToEight(emission: Emission, name: "e4m3" | "e5m2", word: string): string {
  needsNativeEight(emission);
  return emission.compute("b16", `cvt.rn.satfinite.${name}x2.f32`, "0f00000000", word);
}

interface EightFormat {
  /** Significand bits to drop from an f32. */
  readonly drop: number;
  /** f32 bits of the largest finite and of the smallest normal number. */
  readonly largest: string;
  readonly smallestNormal: string;
  /** f32 exponent bias less the format's, in units of f32's exponent field. */
  readonly rebias: number;
  /** A power of two whose unit in the last place is the format's smallest subnormal. */
  readonly anchor: string;
  readonly nan: string;
}

const eightFormats: Readonly<Record<"e4m3" | "e5m2", EightFormat>> = {
  e4m3: {
    drop: 20,
    largest: "0f43E00000",
    smallestNormal: "0f3C800000",
    rebias: 120 << 23,
    anchor: "0f46800000",
    nan: "0x7F",
  },
  e5m2: {
    drop: 21,
    largest: "0f47600000",
    smallestNormal: "0f38800000",
    rebias: 112 << 23,
    anchor: "0f43000000",
    nan: "0x7F",
  },
};

/** Rounding to fp8 in integer arithmetic: to nearest even, saturating, for targets without the conversion. */
function roundToEight(emission: Emission, format: EightFormat, word: string): string {
  const magnitude = emission.compute("b32", "abs.f32", word);
  const capped = emission.compute("b32", "min.f32", magnitude, format.largest);
  const odd = emission.compute("b32", "bfe.u32", capped, format.drop, 1);
  const biased = emission.compute("b32", "add.u32", capped, odd);
  const rounded = emission.compute("b32", "add.u32", biased, 2 ** (format.drop - 1) - 1 - format.rebias);
  const normal = emission.compute("b32", "shr.u32", rounded, format.drop);
  const anchored = emission.compute("b32", "add.rn.f32", capped, format.anchor);
  const subnormal = emission.compute("b32", "sub.u32", anchored, format.anchor.replace("0f", "0x"));
  const isSmall = emission.compute("pred", "setp.lt.f32", capped, format.smallestNormal);
  const finite = emission.compute("b32", "selp.b32", subnormal, normal, isSmall);
  const unordered = emission.compute("pred", "setp.nan.f32", word, word);
  const value = emission.compute("b32", "selp.b32", format.nan, finite, unordered);
  const sign = emission.compute("b32", "shr.u32", word, 24);
  const signOnly = emission.compute("b32", "and.b32", sign, 0x80);
  const whole = emission.compute("b32", "or.b32", value, signOnly);
  return emission.compute("b16", "cvt.u16.u32", whole);
}
