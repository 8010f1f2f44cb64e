/**
 * @file The one meaning of every pure operation, on host values. Folding uses it, and tests hold every target to it.
 *
 * An element is a number; i64 and u64 elements are bigint, bool elements boolean; a vector is an array of elements.
 * Integers follow the rules in types/integers.ts bit for bit. Float arithmetic is correctly rounded. The approximate
 * functions ({@link isExact} says which) are computed in double and rounded once; targets differ from that in the last
 * places, so nothing may fold them.
 */
import { fromBits, toBits } from "../types/bits.ts";
import { convertValue, type ElementValue, roundingTo } from "../types/convert.ts";
import { maxFloat, minFloat } from "../types/float-arithmetic.ts";
import { fmaBF16, fmaF16, fmaF32, fmaF64 } from "../types/fma.ts";
import {
  type IntegerArithmetic,
  i32Arithmetic,
  i64Arithmetic,
  indexArithmetic,
  u32Arithmetic,
  u64Arithmetic,
} from "../types/integers.ts";
import { type ElementType, isFloat, isStorage, type StorageType } from "../types/types.ts";
import type { ValueType } from "./nodes.ts";
import type { Attributes, OperationName } from "./operations.ts";

export type { ElementValue } from "../types/convert.ts";

/** A value of any type: an element, or for vectors one element per lane. */
export type HostValue = ElementValue | readonly ElementValue[];

/** Operations that are functions of their operands and attributes alone. */
export type EvaluableName =
  | "add"
  | "sub"
  | "mul"
  | "mulHigh"
  | "div"
  | "rem"
  | "floorDiv"
  | "floorMod"
  | "neg"
  | "abs"
  | "min"
  | "max"
  | "fma"
  | "and"
  | "or"
  | "xor"
  | "not"
  | "shiftLeft"
  | "shiftRight"
  | "equal"
  | "notEqual"
  | "less"
  | "lessEqual"
  | "greater"
  | "greaterEqual"
  | "isNaN"
  | "select"
  | "sqrt"
  | "reciprocalSqrt"
  | "reciprocal"
  | "exp2"
  | "log2"
  | "sin"
  | "cos"
  | "tanh"
  | "floor"
  | "ceil"
  | "trunc"
  | "roundEven"
  | "convert"
  | "bitcast"
  | "popcount"
  | "leadingZeros"
  | "reverseBits"
  | "dot4"
  | "permuteBytes"
  | "compose"
  | "extract";

/** One lane of an elementwise operation; `type` is that of the first operand. */
type Elementwise = (
  type: ElementType,
  operands: readonly ElementValue[],
  result: ElementType,
) => ElementValue;

const integers: { readonly [name: string]: IntegerArithmetic<number> | IntegerArithmetic<bigint> } = {
  i32: i32Arithmetic,
  u32: u32Arithmetic,
  i64: i64Arithmetic,
  u64: u64Arithmetic,
  index: indexArithmetic,
};

/** The arithmetic of an integer type, over whichever of number and bigint it has. */
function integerArithmetic(type: ElementType): IntegerArithmetic<bigint> {
  const arithmetic = integers[type.name];
  if (arithmetic === undefined) throw new RangeError(`${type.name} has no integer arithmetic`);
  // Values of the type come in the arithmetic's own form, whichever it is.
  return arithmetic as IntegerArithmetic<bigint>;
}

const fusedMultiplyAdd: { readonly [name: string]: (a: number, b: number, c: number) => number } = {
  f16: fmaF16,
  bf16: fmaBF16,
  f32: fmaF32,
  f64: fmaF64,
};

type IntegerUnary = "neg" | "abs";
type IntegerBinary = "add" | "sub" | "mul" | "div" | "min" | "max";

function unary(name: IntegerUnary, float: (x: number) => number): Elementwise {
  return (type, [x]) => (isFloat(type) ? float(x as number) : integerArithmetic(type)[name](x as bigint));
}

/** Double arithmetic rounded again, which is right for every float type: see types/float-arithmetic.ts. */
function binary(name: IntegerBinary, float: (a: number, b: number) => number): Elementwise {
  return (type, [a, b]) =>
    isFloat(type)
      ? roundingTo(type)(float(a as number, b as number))
      : integerArithmetic(type)[name](a as bigint, b as bigint);
}

function integerBinary(name: "rem" | "floorDiv" | "floorMod"): Elementwise {
  return (type, [a, b]) => integerArithmetic(type)[name](a as bigint, b as bigint);
}

function bitwise(name: "and" | "or" | "xor", logical: (a: boolean, b: boolean) => boolean): Elementwise {
  return (type, [a, b]) =>
    type.class === "bool"
      ? logical(a as boolean, b as boolean)
      : integerArithmetic(type)[name](a as bigint, b as bigint);
}

/** The count comes in another type than the shifted value. Only its low six bits can matter. */
function shift(name: "shiftLeft" | "shiftRight"): Elementwise {
  return (type, [a, count]) => {
    const low = Number(BigInt.asUintN(6, BigInt(count as number | bigint)));
    return integerArithmetic(type)[name](a as bigint, (typeof a === "bigint" ? BigInt(low) : low) as bigint);
  };
}

function float(compute: (x: number) => number): Elementwise {
  return (type, [x]) => roundingTo(type)(compute(x as number));
}

function comparison(compare: (a: ElementValue, b: ElementValue) => boolean): Elementwise {
  return (_type, [a, b]) => compare(a!, b!);
}

function roundEven(x: number): number {
  if (!Number.isFinite(x) || Math.abs(x) >= 2 ** 52) return x;
  const floor = Math.floor(x);
  const rest = x - floor;
  const up = rest > 0.5 || (rest === 0.5 && floor % 2 !== 0);
  const rounded = up ? floor + 1 : floor;
  return rounded === 0 ? x * 0 : rounded;
}

/** Bits of an integer as an unsigned bigint, and how many there are. */
function unsigned(type: ElementType, x: ElementValue): bigint {
  return BigInt.asUintN(type.bits, BigInt(x));
}

function countOnes(bits: bigint): number {
  let count = 0;
  for (let rest = bits; rest !== 0n; rest &= rest - 1n) count++;
  return count;
}

function reverse(bits: bigint, width: number): bigint {
  let reversed = 0n;
  for (let bit = 0; bit < width; bit++) reversed = (reversed << 1n) | ((bits >> BigInt(bit)) & 1n);
  return reversed;
}

/** An integer, wrapped into a type. */
function integerOf(type: ElementType, value: bigint): ElementValue {
  const wrapped =
    type.class === "signed" ? BigInt.asIntN(type.bits, value) : BigInt.asUintN(type.bits, value);
  return type.name === "i64" || type.name === "u64" ? wrapped : Number(wrapped);
}

const elementwise: { readonly [Name in EvaluableName]?: Elementwise } = {
  add: binary("add", (a, b) => a + b),
  sub: binary("sub", (a, b) => a - b),
  mul: binary("mul", (a, b) => a * b),
  mulHigh: (type, [a, b]) =>
    integerOf(type, (BigInt(a as number | bigint) * BigInt(b as number | bigint)) >> BigInt(type.bits)),
  div: binary("div", (a, b) => a / b),
  rem: integerBinary("rem"),
  floorDiv: integerBinary("floorDiv"),
  floorMod: integerBinary("floorMod"),
  neg: unary("neg", (x) => -x),
  abs: unary("abs", Math.abs),
  min: binary("min", minFloat),
  max: binary("max", maxFloat),
  fma: (type, [a, b, c]) => {
    const fused = fusedMultiplyAdd[type.name];
    if (fused !== undefined) return fused(a as number, b as number, c as number);
    const arithmetic = integerArithmetic(type);
    return arithmetic.add(arithmetic.mul(a as bigint, b as bigint), c as bigint);
  },
  and: bitwise("and", (a, b) => a && b),
  or: bitwise("or", (a, b) => a || b),
  xor: bitwise("xor", (a, b) => a !== b),
  not: (type, [x]) => (type.class === "bool" ? !x : integerArithmetic(type).not(x as bigint)),
  shiftLeft: shift("shiftLeft"),
  shiftRight: shift("shiftRight"),
  equal: comparison((a, b) => a === b),
  notEqual: comparison((a, b) => a !== b),
  less: comparison((a, b) => a < b),
  lessEqual: comparison((a, b) => a <= b),
  greater: comparison((a, b) => a > b),
  greaterEqual: comparison((a, b) => a >= b),
  isNaN: (_type, [x]) => Number.isNaN(x),
  sqrt: float(Math.sqrt),
  reciprocalSqrt: float((x) => 1 / Math.sqrt(x)),
  reciprocal: float((x) => 1 / x),
  exp2: float((x) => 2 ** x),
  log2: float(Math.log2),
  sin: float(Math.sin),
  cos: float(Math.cos),
  tanh: float(Math.tanh),
  floor: float(Math.floor),
  ceil: float(Math.ceil),
  trunc: float(Math.trunc),
  roundEven: float(roundEven),
  convert: (type, [x], result) => convertValue(x!, type, result),
  popcount: (type, [x], result) => integerOf(result, BigInt(countOnes(unsigned(type, x!)))),
  leadingZeros: (type, [x], result) => {
    const bits = unsigned(type, x!);
    const length = bits === 0n ? 0 : bits.toString(2).length;
    return integerOf(result, BigInt(type.bits - length));
  },
  reverseBits: (type, [x], result) => integerOf(result, reverse(unsigned(type, x!), type.bits)),
};

/** One byte of a word, sign-extended where asked for. */
function byteOf(word: number, position: number, signed: boolean): number {
  const byte = (word >>> (8 * position)) & 0xff;
  return signed ? (byte << 24) >> 24 : byte;
}

function dot4(a: number, b: number, c: number, { signedA, signedB }: Attributes["dot4"]): number {
  let sum = c;
  for (let position = 0; position < 4; position++) {
    sum = (sum + byteOf(a, position, signedA) * byteOf(b, position, signedB)) | 0;
  }
  return sum;
}

/** PTX prmt, default mode: selector nibbles 0…7 choose a byte of (a, b); bit 3 spreads that byte's sign instead. */
function permuteBytes(a: number, b: number, selector: number): number {
  let word = 0;
  for (let position = 0; position < 4; position++) {
    const nibble = (selector >>> (4 * position)) & 0xf;
    const source = nibble & 7;
    const byte = byteOf(source < 4 ? a : b, source & 3, false);
    const chosen = (nibble & 8) === 0 ? byte : (byte & 0x80) !== 0 ? 0xff : 0;
    word |= chosen << (8 * position);
  }
  return word >>> 0;
}

/** The type that holds a register value's bits. */
function bitsType(type: ElementType): StorageType {
  if (!isStorage(type)) throw new RangeError(`${type.name} has no bits that a bitcast could keep`);
  return type;
}

function bitcast(
  values: readonly ElementValue[],
  from: ElementType,
  to: ElementType,
  lanes: number,
): readonly ElementValue[] {
  const source = bitsType(from);
  const target = bitsType(to);
  const sourceBits = BigInt(source.bits);
  let all = 0n;
  for (const [lane, value] of values.entries()) {
    all |= BigInt(toBits(source, value as number | bigint)) << (BigInt(lane) * sourceBits);
  }
  return Array.from({ length: lanes }, (_, lane) => {
    const bits = BigInt.asUintN(target.bits, all >> BigInt(lane * target.bits));
    return fromBits(target, target.bits === 64 ? bits : Number(bits));
  });
}

/** The lanes of a value; a scalar has one. */
export function lanesOf(value: HostValue): readonly ElementValue[] {
  return typeof value === "object" ? value : [value];
}

function hostValueOf(lanes: readonly ElementValue[]): HostValue {
  return lanes.length === 1 ? lanes[0]! : lanes;
}

/** Whether {@link evaluateOperation} knows the operation: it is pure and asks nothing of the launch. */
export function isEvaluable(name: OperationName): name is EvaluableName {
  return name in elementwise || structural.has(name);
}

const structural: ReadonlySet<OperationName> = new Set([
  "select",
  "bitcast",
  "dot4",
  "permuteBytes",
  "compose",
  "extract",
]);

const approximate: ReadonlySet<OperationName> = new Set([
  "reciprocalSqrt",
  "reciprocal",
  "exp2",
  "log2",
  "sin",
  "cos",
  "tanh",
]);

/** Whether every target must give exactly what {@link evaluateOperation} gives, so that folding cannot be noticed. */
export function isExact(name: OperationName): boolean {
  return isEvaluable(name) && !approximate.has(name);
}

/**
 * The result of a pure operation on given operands.
 *
 * @param operandValues one value per operand: an element, or an array of them for vectors
 * @throws RangeError for types that the operation does not have (the verifier refuses those kernels)
 */
export function evaluateOperation<Name extends EvaluableName>(
  name: Name,
  operandValues: readonly HostValue[],
  operandTypes: readonly ValueType[],
  resultType: ValueType,
  attributes: Attributes[Name],
): HostValue {
  const first = operandValues[0]!;
  const firstType = operandTypes[0]!.element;
  switch (name as EvaluableName) {
    case "select":
      return first === true ? operandValues[1]! : operandValues[2]!;
    case "compose":
      return hostValueOf(operandValues as readonly ElementValue[]);
    case "extract":
      return lanesOf(first)[(attributes as Attributes["extract"]).lane]!;
    case "bitcast":
      return hostValueOf(bitcast(lanesOf(first), firstType, resultType.element, resultType.lanes));
    case "dot4": {
      const words = operandValues as readonly number[];
      return dot4(words[0]!, words[1]!, words[2]!, attributes as Attributes["dot4"]);
    }
    case "permuteBytes": {
      const words = operandValues as readonly number[];
      return permuteBytes(words[0]!, words[1]!, words[2]!);
    }
    default: {
      const compute = elementwise[name];
      if (compute === undefined) throw new RangeError(`${name} cannot be evaluated from its operands`);
      const operands = operandValues.map(lanesOf);
      const lanes = operands[0]!.map((_, lane) =>
        compute(
          firstType,
          operands.map((values) => values[lane] ?? values[0]!),
          resultType.element,
        ),
      );
      return hostValueOf(lanes);
    }
  }
}
