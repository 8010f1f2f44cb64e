/**
 * @file Vectors of e4m3 and e5m2 to and from f16, bf16 and f32, two lanes an instruction: what dequantisation in registers
 * costs. The instructions know pairs of f16 on the wide side and, narrowing, two f32; f16 holds every fp8 number exactly.
 */
import type { ValueType } from "../../ir/nodes.ts";
import type { ElementType } from "../../types/types.ts";
import type { Emission } from "./emission.ts";
import { needsNativeEight, widen } from "./halves.ts";
import { unpack } from "./lanes.ts";

function isEight({ name }: ElementType): boolean {
  return name === "e4m3" || name === "e5m2";
}

const wideNames: ReadonlySet<string> = new Set(["f16", "bf16", "f32", "tf32"]);

/** Whether one side is fp8, the other a float of 16 or 32 bits, lanes are even, and the target has the instructions. */
export function convertsEightsInPairs(emission: Emission, from: ValueType, to: ValueType): boolean {
  if (!emission.facts.fp8Conversion || from.lanes % 2 !== 0) return false;
  const [a, b] = [from.element, to.element];
  return (isEight(a) && wideNames.has(b.name)) || (wideNames.has(a.name) && isEight(b));
}

/** @see convertsEightsInPairs, which must hold */
export function convertEights(
  emission: Emission,
  from: ValueType,
  to: ValueType,
  words: readonly string[],
): readonly string[] {
  needsNativeEight(emission);
  return isEight(from.element) ? widened(emission, from, to, words) : narrowed(emission, from, to, words);
}

function widened(
  emission: Emission,
  from: ValueType,
  to: ValueType,
  words: readonly string[],
): readonly string[] {
  const bytes = from.lanes === 2 ? words : words.flatMap((word) => split(emission, word));
  const halves = bytes.map((pair) => emission.compute("b32", `cvt.rn.f16x2.${from.element.name}x2`, pair));
  if (to.element.name === "f16") return halves;
  const singles = halves
    .flatMap((pair) => split(emission, pair))
    .map((half) => emission.compute("b32", "cvt.f32.f16", half));
  if (to.element.name !== "bf16") return singles;
  return pairs(singles).map(([low, high]) => emission.compute("b32", "cvt.rn.bf16x2.f32", high, low));
}

function narrowed(
  emission: Emission,
  from: ValueType,
  to: ValueType,
  words: readonly string[],
): readonly string[] {
  const opcode = `cvt.rn.satfinite.${to.element.name}x2`;
  const bytes =
    from.element.name === "f16"
      ? words.map((pair) => emission.compute("b16", `${opcode}.f16x2`, pair))
      : pairs(unpack(emission, from, words).map((lane) => widen(emission, from.element, lane))).map(
          ([low, high]) => emission.compute("b16", `${opcode}.f32`, high, low),
        );
  if (to.lanes === 2) return bytes;
  return pairs(bytes).map(([low, high]) => emission.compute("b32", "mov.b32", `{${low}, ${high}}`));
}

function split(emission: Emission, word: string): readonly [string, string] {
  const low = emission.registers.allocate("b16");
  const high = emission.registers.allocate("b16");
  emission.raw(`mov.b32 {${low}, ${high}}, ${word}`);
  return [low, high];
}

function pairs(items: readonly string[]): readonly (readonly [string, string])[] {
  return Array.from({ length: items.length / 2 }, (_, n) => [items[2 * n]!, items[2 * n + 1]!] as const);
}
