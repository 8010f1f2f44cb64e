/** @file Bit casts: the source as 32-bit words, and the words as the result. */
import type { ValueType } from "../../ir/nodes.ts";
import type { ElementType } from "../../types/types.ts";

/** Bits of an element in a register; bool and index have none that can be cast. */
function bitsOf(element: ElementType): number {
  return element.name === "tf32" ? 32 : element.bits;
}

/** The bits of a narrow element as an unsigned number. */
function narrowBits(element: ElementType, text: string): string {
  switch (element.name) {
    case "f16":
      return `f16ToBits(${text})`;
    case "bf16":
      return `bf16ToBits(${text})`;
    case "e4m3":
      return `e4m3ToBits(${text})`;
    case "e5m2":
      return `e5m2ToBits(${text})`;
    default:
      return bitsOf(element) === 8 ? `(${text} & 255)` : `(${text} & 65535)`;
  }
}

function fromNarrowBits(element: ElementType, text: string): string {
  switch (element.name) {
    case "f16":
      return `f16Values[${text}]`;
    case "bf16":
      return `bf16Values[${text}]`;
    case "e4m3":
      return `e4m3Values[${text}]`;
    case "e5m2":
      return `e5m2Values[${text}]`;
    case "i8":
      return `(${text} << 24 >> 24)`;
    case "i16":
      return `(${text} << 16 >> 16)`;
    default:
      return text;
  }
}

function wordOf(element: ElementType, text: string): string {
  switch (element.name) {
    case "f32":
    case "tf32":
      return `f32ToBits(${text})`;
    default:
      return text;
  }
}

function fromWord(element: ElementType, text: string): string {
  switch (element.name) {
    case "f32":
    case "tf32":
      return `f32FromBits(${text})`;
    case "i32":
      return `(${text} | 0)`;
    default:
      return `(${text} >>> 0)`;
  }
}

/** Low and high word of a 64-bit element. */
function wordsOf64(element: ElementType, text: string): readonly string[] {
  if (element.name === "f64") return [`f64LowWord(${text})`, `f64HighWord(${text})`];
  return [`lowWord(${text})`, `highWord(${text})`];
}

function fromWords64(element: ElementType, low: string, high: string): string {
  if (element.name === "f64") return `f64FromWords(${high}, ${low})`;
  return element.name === "i64" ? `signedFromWords(${low}, ${high})` : `unsignedFromWords(${low}, ${high})`;
}

/** Texts of the result's lanes. `save` names an intermediate text. */
export function bitcastTexts(
  from: ValueType,
  lanes: readonly string[],
  to: ValueType,
  save: (text: string) => string,
): readonly string[] {
  if (from.element.name === to.element.name) return lanes;
  const words = toWords(from.element, lanes).map(save);
  return Array.from({ length: to.lanes }, (_, lane) => fromWords(to.element, words, lane));
}

function toWords(element: ElementType, lanes: readonly string[]): readonly string[] {
  const bits = bitsOf(element);
  if (bits === 64) return lanes.flatMap((text) => wordsOf64(element, text));
  if (bits === 32) return lanes.map((text) => wordOf(element, text));
  const perWord = 32 / bits;
  return Array.from({ length: Math.ceil(lanes.length / perWord) }, (_, word) =>
    lanes
      .slice(word * perWord, (word + 1) * perWord)
      .map((text, part) =>
        part === 0 ? narrowBits(element, text) : `${narrowBits(element, text)} << ${part * bits}`,
      )
      .join(" | "),
  );
}

function fromWords(element: ElementType, words: readonly string[], lane: number): string {
  const bits = bitsOf(element);
  if (bits === 64) return fromWords64(element, words[2 * lane]!, words[2 * lane + 1]!);
  if (bits === 32) return fromWord(element, words[lane]!);
  const perWord = 32 / bits;
  const shift = (lane % perWord) * bits;
  return fromNarrowBits(
    element,
    `(${words[Math.floor(lane / perWord)]!} >>> ${shift} & ${bits === 8 ? 255 : 65535})`,
  );
}
