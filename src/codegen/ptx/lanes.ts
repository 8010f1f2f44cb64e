/** @file Between whole values and their single lanes: unpack, pack, compose, extract, bitcast. */
import type { Operand, OperationNode, ValueType } from "../../ir/nodes.ts";
import type { ElementType } from "../../types/types.ts";
import type { Emission } from "./emission.ts";
import { bitsLiteral, typedLiteral } from "./literals.ts";
import { formOf, laneClass, registerBits } from "./registers.ts";

/** One register or typed literal per lane. */
export function lanesOf(emission: Emission, operand: Operand): readonly string[] {
  if (operand.kind === "constant") return constantLanes(emission, operand.type, operand.value);
  const words = emission.words(operand);
  if (formOf(operand.type).lanesPerWord === 1) return words;
  return emission.once(`lanes:${operand.id}`, () => unpack(emission, operand.type, words));
}

function constantLanes(
  emission: Emission,
  type: ValueType,
  value: number | bigint | boolean,
): readonly string[] {
  const { element, lanes } = type;
  const lane = (): string => {
    if (element.class === "bool") return emission.truth(value === true);
    if (laneClass(element) === "b16") return emission.constantRegister("b16", bitsLiteral(element, value));
    return typedLiteral(element, value);
  };
  const one = lane();
  return Array.from({ length: lanes }, () => one);
}

/** Single lanes of packed words, 8-bit integers extended to 16 bits. */
export function unpack(emission: Emission, type: ValueType, words: readonly string[]): readonly string[] {
  const form = formOf(type);
  if (form.lanesPerWord === 1) return words;
  return words.flatMap((word) => {
    if (registerBits(type.element) === 8) return unpackBytes(emission, type.element, word, form.lanesPerWord);
    const pair = [emission.registers.allocate("b16"), emission.registers.allocate("b16")];
    emission.raw(`mov.b32 {${pair.join(", ")}}, ${word}`);
    return pair;
  });
}

function unpackBytes(
  emission: Emission,
  element: ElementType,
  word: string,
  count: number,
): readonly string[] {
  const wide = count === 2 ? emission.compute("b32", "cvt.u32.u16", word) : word;
  const sign = element.class === "signed" ? "s32" : "u32";
  return Array.from({ length: count }, (_, lane) => {
    const byte = emission.compute("b32", `bfe.${sign}`, wide, lane * 8, 8);
    return emission.compute("b16", "cvt.u16.u32", byte);
  });
}

/** Packs single lanes into the registers of a value. */
export function pack(emission: Emission, type: ValueType, lanes: readonly string[]): readonly string[] {
  const form = formOf(type);
  if (form.lanesPerWord === 1) return lanes;
  return Array.from({ length: form.words }, (_, word) => {
    const own = lanes.slice(word * form.lanesPerWord, (word + 1) * form.lanesPerWord);
    if (registerBits(type.element) === 16) return emission.compute("b32", "mov.b32", `{${own.join(", ")}}`);
    return form.lanesPerWord === 2 ? packTwoBytes(emission, own) : packFourBytes(emission, own);
  });
}

function packTwoBytes(emission: Emission, lanes: readonly string[]): string {
  const high = emission.compute("b16", "shl.b16", lanes[1]!, 8);
  const low = emission.compute("b16", "and.b16", lanes[0]!, "0xFF");
  return emission.compute("b16", "or.b16", low, high);
}

function packFourBytes(emission: Emission, lanes: readonly string[]): string {
  const low = emission.compute("b32", "mov.b32", `{${lanes[0]}, ${lanes[1]}}`);
  const high = emission.compute("b32", "mov.b32", `{${lanes[2]}, ${lanes[3]}}`);
  return emission.compute("b32", "prmt.b32", low, high, "0x6420");
}

export function emitCompose(emission: Emission, node: OperationNode<"compose">): void {
  const type = node.result!.type;
  const lanes = node.operands.map((operand) =>
    laneClass(operand.type.element) === "b16"
      ? emission.registerWords(operand)[0]!
      : emission.words(operand)[0]!,
  );
  emission.define(node.result, pack(emission, type, moved(emission, type, lanes)));
}

/** Untyped literals among the lanes of an unpacked vector as registers, so that a value is registers throughout. */
function moved(emission: Emission, type: ValueType, lanes: readonly string[]): readonly string[] {
  const cls = laneClass(type.element);
  return lanes.map((lane) =>
    cls === "pred" || lane.startsWith("%") ? lane : emission.constantRegister(cls, lane),
  );
}

export function emitExtract(emission: Emission, node: OperationNode<"extract">): void {
  const operand = node.operands[0]!;
  if (operand.kind === "constant") {
    emission.define(node.result, emission.registerWords({ ...operand, type: node.result!.type }));
    return;
  }
  emission.define(node.result, [lanesOf(emission, operand)[node.attributes.lane]!]);
}

export function emitBitcast(emission: Emission, node: OperationNode<"bitcast">): void {
  const operand = node.operands[0]!;
  const result = node.result!.type;
  emission.define(node.result, recast(emission, operand.type, result, emission.registerWords(operand)));
}

function recast(
  emission: Emission,
  from: ValueType,
  to: ValueType,
  words: readonly string[],
): readonly string[] {
  const [source, target] = [formOf(from), formOf(to)];
  const bits = registerBits(from.element) * from.lanes;
  if (bits === 8) return [extendByte(emission, to.element, words[0]!)];
  if (source.cls === target.cls) return words;
  if (target.cls === "b64") {
    return Array.from({ length: target.words }, (_, word) =>
      emission.compute("b64", "mov.b64", `{${words[word * 2]}, ${words[word * 2 + 1]}}`),
    );
  }
  return words.flatMap((word) => {
    const pair = [emission.registers.allocate("b32"), emission.registers.allocate("b32")];
    emission.raw(`mov.b64 {${pair.join(", ")}}, ${word}`);
    return pair;
  });
}

/** The low byte of a 16-bit register, extended as the element wants it. */
export function extendByte(emission: Emission, element: ElementType, word: string): string {
  if (element.class !== "signed") return emission.compute("b16", "and.b16", word, "0xFF");
  const wide = emission.compute("b32", "cvt.u32.u16", word);
  const byte = emission.compute("b32", "bfe.s32", wide, 0, 8);
  return emission.compute("b16", "cvt.u16.u32", byte);
}
