/**
 * @file Conversion between element types, by the rules of types/convert.ts: to floats rounded once to nearest even,
 * from floats truncated and saturated with NaN to 0, between integers wrapped.
 */
import type { ValueType } from "../../ir/nodes.ts";
import type { ElementType } from "../../types/types.ts";
import type { NodeEmitter } from "./arithmetic.ts";
import { convertEights, convertsEightsInPairs } from "./eights.ts";
import type { Emission } from "./emission.ts";
import { narrow, widen } from "./halves.ts";
import { extendByte, lanesOf, pack } from "./lanes.ts";
import { formOf, instructionType, laneClass, registerBits } from "./registers.ts";

export const emitConvert: NodeEmitter<"convert"> = (emission, node) => {
  const operand = node.operands[0]!;
  const [from, to] = [operand.type, node.result!.type];
  if (from.element.name === to.element.name) {
    emission.define(node.result, emission.registerWords(operand));
    return;
  }
  if (packsPairs(emission, from, to)) {
    emission.define(node.result, packPairs(emission, to.element, emission.typedWords(operand)));
    return;
  }
  if (convertsEightsInPairs(emission, from, to)) {
    emission.define(node.result, convertEights(emission, from, to, emission.registerWords(operand)));
    return;
  }
  const lanes = lanesOf(emission, operand).map((lane) =>
    convertLane(emission, from.element, to.element, lane),
  );
  emission.define(node.result, pack(emission, to, lanes));
};

/** Whether two f32 become one register of halves in a single instruction. */
function packsPairs(emission: Emission, from: ValueType, to: ValueType): boolean {
  const half = to.element.name === "f16" || to.element.name === "bf16";
  return half && from.element.name === "f32" && to.lanes > 1 && emission.capability >= 80;
}

function packPairs(emission: Emission, element: ElementType, words: readonly string[]): readonly string[] {
  emission.needs(70);
  return Array.from({ length: words.length / 2 }, (_, pair) =>
    emission.compute("b32", `cvt.rn.${element.name}x2.f32`, words[2 * pair + 1]!, words[2 * pair]!),
  );
}

function convertLane(emission: Emission, from: ElementType, to: ElementType, lane: string): string {
  if (from.class === "bool") return fromBool(emission, to, lane);
  if (to.class === "bool") return toBool(emission, from, lane);
  if (from.class === "float") {
    return to.class === "float"
      ? floatToFloat(emission, from, to, lane)
      : floatToInteger(emission, from, to, lane);
  }
  return to.class === "float"
    ? integerToFloat(emission, from, to, lane)
    : integerToInteger(emission, from, to, lane);
}

function fromBool(emission: Emission, to: ElementType, lane: string): string {
  const cls = laneClass(to);
  if (to.class !== "float") return emission.compute(cls, `selp.${cls}`, 1, 0, lane);
  const ones = {
    f16: "0x3C00",
    bf16: "0x3F80",
    f32: "0x3F800000",
    tf32: "0x3F800000",
    f64: "0x3FF0000000000000",
    e4m3: "0x38",
    e5m2: "0x3C",
  };
  return emission.compute(cls, `selp.${cls}`, ones[to.name as keyof typeof ones], 0, lane);
}

function toBool(emission: Emission, from: ElementType, lane: string): string {
  if (from.class !== "float") return emission.compute("pred", `setp.ne.${instructionType(from)}`, lane, 0);
  if (from.name === "f64") return emission.compute("pred", "setp.neu.f64", lane, "0d0000000000000000");
  return emission.compute("pred", "setp.neu.f32", widen(emission, from, lane), "0f00000000");
}

function isSingle(element: ElementType): boolean {
  return element.name === "f32" || element.name === "tf32";
}

function floatToFloat(emission: Emission, from: ElementType, to: ElementType, lane: string): string {
  if (from.name === "f64") return doubleToFloat(emission, to, lane);
  if (to.name === "f64") {
    if (from.name === "f16") return emission.compute("b64", "cvt.f64.f16", lane);
    return emission.compute("b64", "cvt.f64.f32", widen(emission, from, lane));
  }
  const single = widen(emission, from, lane);
  if (to.name === "tf32") return toTF32(emission, single);
  return isSingle(to) ? single : narrow(emission, to, single);
}

function toTF32(emission: Emission, single: string): string {
  emission.needs(70);
  return emission.compute("b32", "cvt.rna.tf32.f32", single);
}

function doubleToFloat(emission: Emission, to: ElementType, lane: string): string {
  if (to.name === "f32") return emission.compute("b32", "cvt.rn.f32.f64", lane);
  if (to.name === "f16") return emission.compute("b16", "cvt.rn.f16.f64", lane);
  const back = (single: string): string => {
    const wide = emission.compute("b64", "cvt.f64.f32", single);
    return emission.compute("pred", "setp.ne.f64", wide, lane);
  };
  const odd = roundToOdd(emission, emission.compute("b32", "cvt.rz.f32.f64", lane), back);
  return to.name === "tf32" ? toTF32(emission, odd) : narrow(emission, to, odd);
}

/**
 * Sets the last bit of a truncated f32 where it is inexact, so that a second rounding to fewer bits is as if there had
 * been one (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums").
 */
function roundToOdd(emission: Emission, truncated: string, differs: (single: string) => string): string {
  const inexact = differs(truncated);
  const odd = emission.compute("b32", "or.b32", truncated, 1);
  return emission.compute("b32", "selp.b32", odd, truncated, inexact);
}

function integerToFloat(emission: Emission, from: ElementType, to: ElementType, lane: string): string {
  const source = instructionType(from);
  if (to.name === "f64" || to.name === "f32" || to.name === "f16") {
    return emission.compute(laneClass(to), `cvt.rn.${to.name}.${source}`, lane);
  }
  if (registerBits(from) <= 16) {
    const exact = emission.compute("b32", `cvt.rn.f32.${source}`, lane);
    return to.name === "tf32" ? toTF32(emission, exact) : narrow(emission, to, exact);
  }
  const cls = laneClass(from);
  const back = (single: string): string => {
    const whole = emission.compute(cls, `cvt.rzi.${source}.f32`, single);
    return emission.compute("pred", `setp.ne.${source}`, whole, lane);
  };
  const odd = roundToOdd(emission, emission.compute("b32", `cvt.rz.f32.${source}`, lane), back);
  return to.name === "tf32" ? toTF32(emission, odd) : narrow(emission, to, odd);
}

const safeIntegers = { least: "-9007199254740991", greatest: "9007199254740991" } as const;

function floatToInteger(emission: Emission, from: ElementType, to: ElementType, lane: string): string {
  const double = from.name === "f64";
  const value = double ? lane : widen(emission, from, lane);
  const source = double ? "f64" : "f32";
  if (registerBits(to) < 32) return narrowInteger(emission, to, source, value);
  const cls = laneClass(to);
  const whole = emission.compute(cls, `cvt.rzi.${instructionType(to)}.${source}`, value);
  const ranged = to.name === "index" ? clampIndex(emission, whole) : whole;
  return double || cls === "b64" ? zeroForNaN(emission, cls, ranged, source, value) : ranged;
}

/** f64 sources and 64-bit results do not give 0 for NaN by themselves. */
function zeroForNaN(emission: Emission, cls: string, whole: string, source: string, value: string): string {
  const nan = emission.compute("pred", `setp.nan.${source}`, value, value);
  return emission.compute(cls as "b32" | "b64", `selp.${cls}`, 0, whole, nan);
}

function clampIndex(emission: Emission, whole: string): string {
  const above = emission.compute("b64", "max.s64", whole, safeIntegers.least);
  return emission.compute("b64", "min.s64", above, safeIntegers.greatest);
}

function narrowInteger(emission: Emission, to: ElementType, source: "f32" | "f64", value: string): string {
  const whole = emission.compute("b32", `cvt.rzi.s32.${source}`, value);
  const [least, greatest] =
    to.class === "signed" ? [-(2 ** (to.bits - 1)), 2 ** (to.bits - 1) - 1] : [0, 2 ** to.bits - 1];
  const above = emission.compute("b32", "max.s32", whole, least);
  const clamped = emission.compute("b32", "min.s32", above, greatest);
  const number = source === "f64" ? zeroForNaN(emission, "b32", clamped, source, value) : clamped;
  return emission.compute("b16", "cvt.u16.u32", number);
}

function integerToInteger(emission: Emission, from: ElementType, to: ElementType, lane: string): string {
  const [source, target] = [formOf({ element: from, lanes: 1 }).cls, laneClass(to)];
  if (registerBits(to) === 8) return extendByte(emission, to, toSixteen(emission, source, lane));
  if (source === target) return lane.startsWith("%") ? lane : emission.compute(target, `mov.${target}`, lane);
  if (target === "b16") return toSixteen(emission, source, lane);
  return emission.compute(target, `cvt.${instructionType(to)}.${instructionType(from)}`, lane);
}

function toSixteen(emission: Emission, source: string, lane: string): string {
  if (source === "b16") return lane;
  return emission.compute("b16", source === "b64" ? "cvt.u16.u64" : "cvt.u16.u32", lane);
}

/** An 8- or 16-bit integer lane as a 32-bit register. */
export function narrowIntegerToWord(emission: Emission, element: ElementType, lane: string): string {
  return emission.compute(
    "b32",
    `cvt.${element.class === "signed" ? "s32" : "u32"}.${instructionType(element)}`,
    lane,
  );
}
