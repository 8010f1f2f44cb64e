/** @file Elementwise arithmetic, lane by lane; drivers' compilers put lanes together as their hardware likes. */
import type { Operand, OperationNode } from "../../ir/nodes.ts";
import type { OperationName } from "../../ir/operations.ts";
import type { ElementType } from "../../types/types.ts";
import type { Emission } from "./emission.ts";
import { zeroWord } from "./literals.ts";
import { isNarrow } from "./types.ts";

export type NodeEmitter<Name extends OperationName> = (emission: Emission, node: OperationNode<Name>) => void;

/** What an operation is on single lanes; `element` is that of its first operand. */
export type LaneRule = (emission: Emission, element: ElementType, lanes: readonly string[]) => string;

/**
 * Lanes of the operands. WGSL computes expressions of constants itself and refuses those that overflow, so of operands
 * that are all constant the first one is hidden in a name.
 */
export function operandLanes(
  emission: Emission,
  operands: readonly Operand[],
): readonly (readonly string[])[] {
  const lanes = operands.map((operand) => emission.lanes(operand));
  if (operands.some(({ kind }) => kind === "value")) return lanes;
  const hidden = emission.name();
  emission.line(`var ${hidden} = ${lanes[0]![0]};`);
  return [lanes[0]!.map(() => hidden), ...lanes.slice(1)];
}

export function lanewise<Name extends OperationName>(rule: LaneRule): NodeEmitter<Name> {
  return (emission, node) => {
    const operands = operandLanes(emission, node.operands);
    const { element } = node.operands[0]!.type;
    const lanes = Array.from({ length: node.result!.type.lanes }, (_, lane) =>
      emission.let(
        rule(
          emission,
          element,
          operands.map((atoms) => atoms[lane] ?? atoms[0]!),
        ),
      ),
    );
    emission.define(node.result, { lanes });
  };
}

function infix<Name extends OperationName>(symbol: string): NodeEmitter<Name> {
  return lanewise((_emission, _element, [a, b]) => `${a} ${symbol} ${b}`);
}

function isSigned(element: ElementType): boolean {
  return element.name === "i32";
}

export const emitAdd: NodeEmitter<"add"> = infix("+");
export const emitSub: NodeEmitter<"sub"> = infix("-");
export const emitMul: NodeEmitter<"mul"> = infix("*");

export const emitMulHigh: NodeEmitter<"mulHigh"> = lanewise((emission, element, [a, b]) =>
  emission.call(isSigned(element) ? "mul_high_i32" : "mul_high_u32", a!, b!),
);

/** A constant operand of type index outside what a u32 position can be: below 0, or 2^32 and more. */
function outside(operand: Operand): "below" | "above" | undefined {
  if (operand.kind !== "constant" || operand.type.element.name !== "index") return undefined;
  const value = Number(operand.value);
  return value < 0 ? "below" : value >= 2 ** 32 ? "above" : undefined;
}

/** WGSL's rules for division by zero and of the least integer by -1 are the library's, but constants are refused. */
function division<Name extends "div" | "rem" | "floorDiv" | "floorMod">(
  rule: LaneRule,
  gives: "quotient" | "rest",
): NodeEmitter<Name> {
  const direct = lanewise<Name>(rule);
  return (emission, node) => {
    const [dividend, divisor] = node.operands as [Operand, Operand];
    const { element } = divisor.type;
    const byZero = divisor.kind === "constant" && element.class !== "float" && Number(divisor.value) === 0;
    const byFar = outside(divisor) === "above";
    if (!byZero && !byFar) {
      direct(emission, node);
      return;
    }
    // x/0 is x and x%0 is 0; positions divided by more than they can be are 0, and all of them is left.
    const same = byZero === (gives === "quotient");
    const lanes = emission.lanes(dividend);
    const zero = emission.constant(element, 0);
    emission.define(node.result, { lanes: same ? lanes : lanes.map(() => zero) });
  };
}

/** WGSL leaves f16 quotients open where the divisor is beyond 2^14; f32 has room for all of them. */
export const emitDiv: NodeEmitter<"div"> = division(
  (emission, element, [a, b]) =>
    emission.isNativeHalf(element) ? `f16(f32(${a}) / f32(${b}))` : `${a} / ${b}`,
  "quotient",
);
export const emitRem: NodeEmitter<"rem"> = division((_emission, _element, [a, b]) => `${a} % ${b}`, "rest");
export const emitFloorDiv: NodeEmitter<"floorDiv"> = division(
  (emission, element, [a, b]) => (isSigned(element) ? emission.call("floor_div_i32", a!, b!) : `${a} / ${b}`),
  "quotient",
);
export const emitFloorMod: NodeEmitter<"floorMod"> = division(
  (emission, element, [a, b]) => (isSigned(element) ? emission.call("floor_mod_i32", a!, b!) : `${a} % ${b}`),
  "rest",
);

export const emitNeg: NodeEmitter<"neg"> = lanewise((_emission, element, [a]) =>
  element.class === "float" || isSigned(element) ? `-(${a})` : `0u - ${a}`,
);

/**
 * Magnitudes of integers are written out, from a zero that drivers' compilers do not know: through NVIDIA's for Vulkan
 * (580.159) a maximum of `abs` came out as that of the signed numbers.
 */
export const emitAbs: NodeEmitter<"abs"> = lanewise((_emission, element, [a]) => {
  if (element.class === "float") return `abs(${a})`;
  return isSigned(element) ? `max(${a}, i32(${zeroWord}) - ${a})` : a!;
});

/** The number, when the other side is NaN. */
function extremum<Name extends "min" | "max">(name: Name): NodeEmitter<Name> {
  return lanewise((emission, element, [a, b]) => {
    if (element.class !== "float") return `${name}(${a}, ${b})`;
    return emission.call(emission.isNativeHalf(element) ? `${name}_f16` : `${name}_f32`, a!, b!);
  });
}

export const emitMin: NodeEmitter<"min"> = extremum("min");
export const emitMax: NodeEmitter<"max"> = extremum("max");

export const emitFma: NodeEmitter<"fma"> = lanewise((_emission, element, [a, b, c]) =>
  element.class === "float" ? `fma(${a}, ${b}, ${c})` : `${a} * ${b} + ${c}`,
);

export const emitAnd: NodeEmitter<"and"> = infix("&");
export const emitOr: NodeEmitter<"or"> = infix("|");
export const emitXor: NodeEmitter<"xor"> = lanewise((_emission, element, [a, b]) =>
  element.class === "bool" ? `${a} != ${b}` : `${a} ^ ${b}`,
);
export const emitNot: NodeEmitter<"not"> = lanewise((_emission, element, [a]) =>
  element.class === "bool" ? `!${a}` : `~${a}`,
);

function shift<Name extends "shiftLeft" | "shiftRight">(symbol: "<<" | ">>"): NodeEmitter<Name> {
  return (emission, node) => {
    const count = node.operands[1]!;
    const counts =
      count.kind === "constant"
        ? [`${BigInt.asUintN(5, BigInt(count.value))}u`]
        : emission
            .lanes(count)
            .map((lane) => `(${count.type.element.name === "i32" ? `u32(${lane})` : lane} & 31u)`);
    const [values] = operandLanes(emission, node.operands) as [readonly string[]];
    emission.define(node.result, {
      lanes: values.map((lane, i) => emission.let(`${lane} ${symbol} ${counts[i] ?? counts[0]}`)),
    });
  };
}

export const emitShiftLeft: NodeEmitter<"shiftLeft"> = shift("<<");
export const emitShiftRight: NodeEmitter<"shiftRight"> = shift(">>");

/** `far`: what holds of any position and a constant below or above all of them. */
export function comparison<
  Name extends "equal" | "notEqual" | "less" | "lessEqual" | "greater" | "greaterEqual",
>(symbol: string, far: { readonly below: boolean; readonly above: boolean }): NodeEmitter<Name> {
  const direct = infix<Name>(symbol);
  return (emission, node) => {
    const [a, b] = node.operands as [Operand, Operand];
    const side = outside(b);
    if (side === undefined || a.kind === "constant") direct(emission, node);
    else emission.define(node.result, { lanes: emission.lanes(a).map(() => String(far[side])) });
  };
}

export const emitIsNaN: NodeEmitter<"isNaN"> = lanewise((emission, element, [a]) =>
  emission.call(emission.isNativeHalf(element) ? "is_nan_f16" : "is_nan_f32", a!),
);

export const emitSelect: NodeEmitter<"select"> = (emission, node) => {
  const [condition, a, b] = node.operands as [Operand, Operand, Operand];
  if (condition.kind === "constant") {
    emission.define(node.result, emission.held(condition.value === true ? a : b));
    return;
  }
  const test = emission.lane(condition);
  const packed = isNarrow(a.type.element) && !emission.isNativeHalf(a.type.element);
  const [yes, no] = packed ? [emission.words(a), emission.words(b)] : [emission.lanes(a), emission.lanes(b)];
  const atoms = yes.map((atom, i) => emission.let(`select(${no[i]}, ${atom}, ${test})`));
  emission.define(node.result, packed ? { words: atoms } : { lanes: atoms });
};

/** A function that WGSL has under the same meaning. */
export function named<Name extends OperationName>(name: string): NodeEmitter<Name> {
  return lanewise((_emission, _element, [a]) => `${name}(${a})`);
}

export const emitReciprocal: NodeEmitter<"reciprocal"> = lanewise(
  (emission, element, [a]) => `${emission.constant(element, 1)} / ${a}`,
);

export const emitTanh: NodeEmitter<"tanh"> = lanewise((emission, element, [a]) =>
  emission.isNativeHalf(element)
    ? `f16(${emission.call("tanh_f32", `f32(${a})`)})`
    : emission.call("tanh_f32", a!),
);

/** Bit counts may be asked for in the other 32-bit type. */
function counted<Name extends "popcount" | "leadingZeros">(name: string): NodeEmitter<Name> {
  return (emission, node) => {
    const [lanes] = operandLanes(emission, node.operands) as [readonly string[]];
    const to = emission.laneType(node.result!.type.element);
    emission.define(node.result, { lanes: lanes.map((lane) => emission.let(`${to}(${name}(${lane}))`)) });
  };
}

export const emitPopcount: NodeEmitter<"popcount"> = counted("countOneBits");
export const emitLeadingZeros: NodeEmitter<"leadingZeros"> = counted("countLeadingZeros");

export const emitDot4: NodeEmitter<"dot4"> = (emission, node) => {
  const { signedA, signedB } = node.attributes;
  const [[a], [b], [c]] = operandLanes(emission, node.operands) as [string[], string[], string[]];
  const product =
    signedA && signedB
      ? `dot4I8Packed(${a}, ${b})`
      : !signedA && !signedB
        ? `i32(dot4U8Packed(${a}, ${b}))`
        : `dot(${unpacked(a!, signedA)}, ${unpacked(b!, signedB)})`;
  emission.define(node.result, { lanes: [emission.let(`${product} + ${c}`)] });
};

function unpacked(word: string, signed: boolean): string {
  return signed ? `unpack4xI8(${word})` : `vec4<i32>(unpack4xU8(${word}))`;
}

export const emitPermuteBytes: NodeEmitter<"permuteBytes"> = lanewise(
  (emission, _element, [a, b, selector]) => emission.call("permute_bytes", a!, b!, selector!),
);
