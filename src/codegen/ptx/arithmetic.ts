/**
 * @file Elementwise arithmetic that is one instruction a register. Every float add, sub and mul carries `.rn`, which
 * forbids the assembler to contract it into a fused multiply-add.
 */
import type { IrConstant, Operand, OperationNode, ValueType } from "../../ir/nodes.ts";
import type { OperationName } from "../../ir/operations.ts";
import type { ElementType } from "../../types/types.ts";
import type { Emission } from "./emission.ts";
import { narrow, widen } from "./halves.ts";
import { lanesOf, pack } from "./lanes.ts";
import { formOf, instructionType, laneClass, type RegisterClass, registerBits } from "./registers.ts";

export type NodeEmitter<Name extends OperationName> = (emission: Emission, node: OperationNode<Name>) => void;

/** Computes one register of the result from the same register of each operand. */
type WordRule = (emission: Emission, type: WordType, operands: readonly string[]) => string;

/** What one register of a value holds. */
interface WordType {
  readonly element: ElementType;
  readonly cls: RegisterClass;
  /** Instruction suffix: s32, f64, f16x2… */
  readonly suffix: string;
}

export function isHalf(element: ElementType): boolean {
  return element.name === "f16" || element.name === "bf16";
}

function wordType(type: ValueType): WordType {
  const { cls, lanesPerWord } = formOf(type);
  const suffix = instructionType(type.element);
  return {
    element: type.element,
    cls,
    suffix: lanesPerWord === 2 && isHalf(type.element) ? `${suffix}x2` : suffix,
  };
}

function wordwise<Name extends OperationName>(rule: WordRule): NodeEmitter<Name> {
  return (emission, node) => {
    const type = node.result!.type;
    const operands = node.operands.map((operand) => emission.typedWords(operand));
    const word = wordType(type);
    const words = Array.from({ length: formOf(type).words }, (_, index) =>
      rule(
        emission,
        word,
        operands.map((registers) => registers[index]!),
      ),
    );
    emission.define(node.result, words);
  };
}

/** Computes lane by lane; halves are widened to f32 and rounded back once, which is exact for what uses it. */
export function lanewise<Name extends OperationName>(
  rule: (emission: Emission, element: ElementType, operands: readonly string[]) => string,
): NodeEmitter<Name> {
  return (emission, node) => {
    const type = node.result!.type;
    const operands = node.operands.map((operand) => lanesOf(emission, operand));
    const lanes = Array.from({ length: type.lanes }, (_, lane) =>
      rule(
        emission,
        type.element,
        operands.map((registers) => registers[lane]!),
      ),
    );
    emission.define(node.result, pack(emission, type, lanes));
  };
}

/** Literals for the constants that bf16 arithmetic multiplies by, per packed or single form. */
const bf16Constants = { one: 0x3f80, minusOne: 0xbf80, minusZero: 0x8000 } as const;

function bf16Constant(emission: Emission, type: WordType, name: keyof typeof bf16Constants): string {
  const bits = bf16Constants[name];
  const packed = type.cls === "b32" ? bits * 0x10001 : bits;
  return emission.constantRegister(
    type.cls === "b32" ? "b32" : "b16",
    `0x${packed.toString(16).toUpperCase()}`,
  );
}

/** bf16 sums and products as one fused operation with an exact partner: `add.bf16` itself needs sm_90. */
function bf16Fused(
  emission: Emission,
  type: WordType,
  name: "add" | "sub" | "mul",
  a: string,
  b: string,
): string {
  emission.needs(70);
  const fma = `fma.rn.${type.suffix}`;
  switch (name) {
    case "add":
      return emission.compute(type.cls, fma, a, bf16Constant(emission, type, "one"), b);
    case "sub":
      return emission.compute(type.cls, fma, b, bf16Constant(emission, type, "minusOne"), a);
    case "mul":
      return emission.compute(type.cls, fma, a, b, bf16Constant(emission, type, "minusZero"));
    default:
      return name satisfies never;
  }
}

function sumLike(name: "add" | "sub" | "mul"): WordRule {
  return (emission, type, [a, b]) => {
    if (type.element.name === "bf16") return bf16Fused(emission, type, name, a!, b!);
    if (type.element.class === "float")
      return emission.compute(type.cls, `${name}.rn.${type.suffix}`, a!, b!);
    return emission.compute(type.cls, `${name}${name === "mul" ? ".lo" : ""}.${type.suffix}`, a!, b!);
  };
}

export const emitAdd: NodeEmitter<"add"> = wordwise(sumLike("add"));
export const emitSub: NodeEmitter<"sub"> = wordwise(sumLike("sub"));
export const emitMul: NodeEmitter<"mul"> = wordwise(sumLike("mul"));

export const emitMulHigh: NodeEmitter<"mulHigh"> = wordwise((emission, type, [a, b]) =>
  emission.compute(type.cls, `mul.hi.${type.suffix}`, a!, b!),
);

export const emitFma: NodeEmitter<"fma"> = wordwise((emission, type, [a, b, c]) => {
  if (type.element.name === "bf16") emission.needs(70);
  const opcode = type.element.class === "float" ? `fma.rn.${type.suffix}` : `mad.lo.${type.suffix}`;
  return emission.compute(type.cls, opcode, a!, b!, c!);
});

const signBits = { b16: "0x8000", b32: "0x80008000" } as const;
const magnitudeBits = { b16: "0x7FFF", b32: "0x7FFF7FFF" } as const;

export const emitNeg: NodeEmitter<"neg"> = wordwise((emission, type, [a]) => {
  const cls = type.cls === "b16" ? "b16" : "b32";
  if (isHalf(type.element)) return emission.compute(cls, `xor.${cls}`, a!, signBits[cls]);
  return emission.compute(type.cls, `neg.${type.suffix.replace("u", "s")}`, a!);
});

export const emitAbs: NodeEmitter<"abs"> = wordwise((emission, type, [a]) => {
  const cls = type.cls === "b16" ? "b16" : "b32";
  if (isHalf(type.element)) return emission.compute(cls, `and.${cls}`, a!, magnitudeBits[cls]);
  if (type.element.class === "unsigned") return emission.compute(type.cls, `mov.${type.cls}`, a!);
  return emission.compute(type.cls, `abs.${type.suffix}`, a!);
});

function extremum(name: "min" | "max"): NodeEmitter<"min" | "max"> {
  const direct = wordwise<"min" | "max">((emission, type, [a, b]) =>
    emission.compute(type.cls, `${name}.${type.suffix}`, a!, b!),
  );
  const widened = lanewise<"min" | "max">((emission, element, [a, b]) => {
    const wide = emission.compute(
      "b32",
      `${name}.f32`,
      widen(emission, element, a!),
      widen(emission, element, b!),
    );
    return narrow(emission, element, wide);
  });
  return (emission, node) => {
    if (!isHalf(node.result!.type.element)) return direct(emission, node);
    if (emission.capability < 80) return widened(emission, node);
    emission.needs(70);
    direct(emission, node);
  };
}

export const emitMin: NodeEmitter<"min"> = extremum("min") as NodeEmitter<"min">;
export const emitMax: NodeEmitter<"max"> = extremum("max") as NodeEmitter<"max">;

/** and, or, xor, not on integers and truth values. */
function bitwise<Name extends "and" | "or" | "xor" | "not">(name: Name): NodeEmitter<Name> {
  return (emission, node) => {
    const { cls, words } = formOf(node.result!.type);
    const operands = node.operands.map((operand) => emission.words(operand));
    const result = Array.from({ length: words }, (_, index) =>
      emission.compute(cls, `${name}.${cls}`, ...operands.map((registers) => registers[index]!)),
    );
    emission.define(node.result, result);
  };
}

export const emitAnd: NodeEmitter<"and"> = bitwise("and");
export const emitOr: NodeEmitter<"or"> = bitwise("or");
export const emitXor: NodeEmitter<"xor"> = bitwise("xor");
export const emitNot: NodeEmitter<"not"> = bitwise("not");

function shift<Name extends "shiftLeft" | "shiftRight">(name: Name): NodeEmitter<Name> {
  return (emission, node) => {
    const { element, lanes } = node.result!.type;
    const cls = laneClass(element);
    const opcode = name === "shiftLeft" ? `shl.${cls}` : `shr.${instructionType(element)}`;
    const [value, count] = [
      emission.words(node.operands[0]!),
      shiftCounts(emission, node.operands[1]!, element),
    ];
    const words = Array.from({ length: lanes }, (_, lane) =>
      emission.compute(cls, opcode, value[lane]!, count[lane] ?? count[0]!),
    );
    emission.define(node.result, words);
  };
}

/** Counts modulo the width: PTX itself clamps them. */
function shiftCounts(emission: Emission, count: Operand, element: ElementType): readonly string[] {
  const mask = registerBits(element) - 1;
  if (count.kind === "constant") return [String(BigInt(count.value) & BigInt(mask))];
  const wide = registerBits(count.type.element) === 64;
  return emission.words(count).map((word) => {
    const narrowed = wide ? emission.compute("b32", "cvt.u32.u64", word) : word;
    return emission.compute("b32", "and.b32", narrowed, mask);
  });
}

export const emitShiftLeft: NodeEmitter<"shiftLeft"> = shift("shiftLeft");
export const emitShiftRight: NodeEmitter<"shiftRight"> = shift("shiftRight");

type ComparisonName = "equal" | "notEqual" | "less" | "lessEqual" | "greater" | "greaterEqual";

const relations: Readonly<Record<ComparisonName, string>> = {
  equal: "eq",
  notEqual: "ne",
  less: "lt",
  lessEqual: "le",
  greater: "gt",
  greaterEqual: "ge",
};

export function comparison<Name extends ComparisonName>(name: Name): NodeEmitter<Name> {
  return (emission, node) => {
    const { element } = node.operands[0]!.type;
    const [a, b] = node.operands.map((operand) => lanesOf(emission, operand)) as [
      readonly string[],
      readonly string[],
    ];
    emission.define(
      node.result,
      a.map((lane, index) => compare(emission, name, element, lane, b[index]!)),
    );
  };
}

function compare(
  emission: Emission,
  name: ComparisonName,
  element: ElementType,
  a: string,
  b: string,
): string {
  if (element.class === "bool") {
    const differs = emission.compute("pred", "xor.pred", a, b);
    return name === "notEqual" ? differs : emission.compute("pred", "not.pred", differs);
  }
  const relation = element.class === "float" && name === "notEqual" ? "neu" : relations[name];
  if (element.name === "bf16" || (registerBits(element) === 8 && element.class === "float")) {
    return emission.compute(
      "pred",
      `setp.${relation}.f32`,
      widen(emission, element, a),
      widen(emission, element, b),
    );
  }
  return emission.compute("pred", `setp.${relation}.${instructionType(element)}`, a, b);
}

export const emitIsNaN: NodeEmitter<"isNaN"> = (emission, node) => {
  const { element } = node.operands[0]!.type;
  const tests = lanesOf(emission, node.operands[0]!).map((lane) => {
    const wide = registerBits(element) < 32 ? widen(emission, element, lane) : lane;
    return emission.compute("pred", `setp.nan.${element.name === "f64" ? "f64" : "f32"}`, wide, wide);
  });
  emission.define(node.result, tests);
};

export const emitSelect: NodeEmitter<"select"> = (emission, node) => {
  const [condition, a, b] = node.operands as [Operand, Operand, Operand];
  if (condition.kind === "constant") {
    emission.define(node.result, emission.registerWords(condition.value === true ? a : b));
    return;
  }
  const { cls } = formOf(node.result!.type);
  const [p, yes, no] = [emission.word(condition), emission.words(a), emission.words(b)];
  const words = yes.map((word, index) =>
    cls === "pred"
      ? selectBool(emission, p, word, no[index]!)
      : emission.compute(cls, `selp.${cls}`, word, no[index]!, p),
  );
  emission.define(node.result, words);
};

function selectBool(emission: Emission, condition: string, a: string, b: string): string {
  const yes = emission.compute("pred", "and.pred", condition, a);
  const not = emission.compute("pred", "not.pred", condition);
  const no = emission.compute("pred", "and.pred", not, b);
  return emission.compute("pred", "or.pred", yes, no);
}

/** Whether a constant operand is certainly none of the given values in any lane. */
export function isConstantOtherThan(operand: Operand, ...values: readonly number[]): operand is IrConstant {
  return operand.kind === "constant" && !values.some((value) => BigInt(value) === BigInt(operand.value));
}
