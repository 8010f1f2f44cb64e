/** @file Conversions, by the rules of types/convert.ts, and values put together and taken apart. */
import type { Operand } from "../../ir/nodes.ts";
import type { ElementType } from "../../types/types.ts";
import { type NodeEmitter, operandLanes } from "./arithmetic.ts";
import type { Emission } from "./emission.ts";
import { isNarrow } from "./types.ts";

export const emitConvert: NodeEmitter<"convert"> = (emission, node) => {
  const [operand] = node.operands as [Operand];
  const [from, to] = [operand.type.element, node.result!.type.element];
  if (from.name === to.name) {
    emission.define(node.result, emission.held(operand));
    return;
  }
  const [lanes] = operandLanes(emission, node.operands) as [readonly string[]];
  emission.define(node.result, {
    lanes: lanes.map((lane) => {
      const converted = convertLane(emission, from, to, lane);
      return converted === lane ? lane : emission.let(converted);
    }),
  });
};

/** The lane as f32, or as i32 or u32 for integers: what arithmetic has. */
function widened(emission: Emission, element: ElementType, lane: string): string {
  switch (element.name) {
    case "f16":
      return emission.isNativeHalf(element) ? `f32(${lane})` : emission.call("widen_f16", lane);
    case "bf16":
      return `bitcast<f32>(${lane} << 16u)`;
    case "e4m3":
      return emission.call("widen_e4m3", lane);
    case "e5m2":
      return emission.call("widen_e5m2", lane);
    case "i8":
    case "i16":
      return `extractBits(i32(${lane}), 0u, ${element.bits}u)`;
    default:
      return lane;
  }
}

/** An f32 as a lane of a float type. */
function narrowed(emission: Emission, element: ElementType, single: string): string {
  switch (element.name) {
    case "f16":
      return emission.isNativeHalf(element) ? `f16(${single})` : emission.call("round_f16", single);
    case "bf16":
      return emission.call("round_bf16", single);
    case "e4m3":
      return emission.call("round_e4m3", single);
    case "e5m2":
      return emission.call("round_e5m2", single);
    case "tf32":
      return emission.call("round_tf32", single);
    default:
      return single;
  }
}

function convertLane(emission: Emission, from: ElementType, to: ElementType, lane: string): string {
  if (from.class === "bool")
    return `select(${emission.constant(to, 0)}, ${emission.constant(to, 1)}, ${lane})`;
  if (to.class === "bool") return isNonZero(emission, from, lane);
  const wide = widened(emission, from, lane);
  if (from.class === "float") {
    return to.class === "float" ? narrowed(emission, to, wide) : fromFloat(emission, to, wide);
  }
  if (to.class === "float") return integerToFloat(emission, from, to, wide);
  return betweenIntegers(from, to, wide);
}

/** Rounded once: to the narrow types through an f32 that remembers what it lost. */
function integerToFloat(emission: Emission, from: ElementType, to: ElementType, wide: string): string {
  if (to.bits === 32 || from.bits === 8 || from.bits === 16) return narrowed(emission, to, `f32(${wide})`);
  return narrowed(emission, to, emission.call(from.name === "i32" ? "odd_i32" : "odd_u32", wide));
}

function isNonZero(emission: Emission, from: ElementType, lane: string): string {
  if (from.class === "float" && from.bits < 32)
    return `(${bitsOfLane(emission, from, lane)} & ${halfMask(from)}) != 0u`;
  return `${lane} != ${emission.constant(from, 0)}`;
}

function bitsOfLane(emission: Emission, element: ElementType, lane: string): string {
  return emission.isNativeHalf(element) ? `bitcast<u32>(vec2<f16>(${lane}, 0.0h))` : lane;
}

function halfMask(element: ElementType): string {
  return `0x${(2 ** (element.bits - 1) - 1).toString(16)}u`;
}

/** Truncated and saturated, NaN to 0. */
function fromFloat(emission: Emission, to: ElementType, single: string): string {
  if (to.class === "signed" && to.name !== "index") {
    const word = emission.call("to_i32", single);
    if (to.name === "i32") return word;
    const [low, high] = [-(2 ** (to.bits - 1)), 2 ** (to.bits - 1) - 1];
    return `u32(clamp(${word}, ${low}i, ${high}i)) & ${2 ** to.bits - 1}u`;
  }
  if (to.name === "index") return `u32(${emission.call("to_i32", single)})`;
  const word = emission.call("to_u32", single);
  return to.bits === 32 ? word : `min(${word}, ${2 ** to.bits - 1}u)`;
}

function betweenIntegers(from: ElementType, to: ElementType, wide: string): string {
  const signed = from.name === "i32" || from.name === "i8" || from.name === "i16";
  if (to.name === "i32") return signed ? wide : `i32(${wide})`;
  const word = signed ? `u32(${wide})` : wide;
  return isNarrow(to) ? `(${word}) & ${2 ** to.bits - 1}u` : word;
}

export const emitBitcast: NodeEmitter<"bitcast"> = (emission, node) => {
  const [operand] = node.operands as [Operand];
  const [from, to] = [operand.type, node.result!.type];
  if (isNarrow(to.element)) {
    emission.define(node.result, { words: named(emission, emission.words(operand)) });
    return;
  }
  if (!isNarrow(from.element) && emission.laneType(from.element) === emission.laneType(to.element)) {
    emission.define(node.result, emission.held(operand));
    return;
  }
  const words = emission.words(operand);
  emission.define(node.result, {
    lanes: words.map((word) => emission.let(emission.fromBits(word, to.element))),
  });
};

/** Expressions get a name: words are used several times. */
function named(emission: Emission, words: readonly string[]): readonly string[] {
  return words.map((word) => (word.includes("(") ? emission.let(word) : word));
}

export const emitCompose: NodeEmitter<"compose"> = (emission, node) => {
  emission.define(node.result, { lanes: node.operands.map((operand) => emission.lane(operand)) });
};

export const emitExtract: NodeEmitter<"extract"> = (emission, node) => {
  const lanes = emission.lanes(node.operands[0]!);
  emission.define(node.result, { lanes: [lanes[node.attributes.lane]!] });
};
