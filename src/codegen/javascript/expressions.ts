/**
 * @file Pure operations as JavaScript expressions over one lane's elements. i32 is `x | 0`, u32 `x >>> 0`, index an exact
 * double, i64 and u64 bigint, floats doubles already rounded to their type; what is more than a short expression is a
 * function of the simulator's services.
 */
import type { Attributes, OperationName } from "../../ir/operations.ts";
import { type ElementType, isFloat } from "../../types/types.ts";

/** One lane of an elementwise operation; `type` is that of the first operand (of the second for select). */
type Expression = (type: ElementType, operands: readonly string[], result: ElementType) => string;

/** Text that rounds a double to a float type. */
export function rounded(type: ElementType, text: string): string {
  switch (type.name) {
    case "f16":
      return `roundToF16(${text})`;
    case "bf16":
      return `roundToBF16(${text})`;
    case "f32":
      return `fround(${text})`;
    case "f64":
      return `(${text})`;
    case "tf32":
      return `roundToTF32(${text})`;
    case "e4m3":
      return `roundToE4M3(${text})`;
    case "e5m2":
      return `roundToE5M2(${text})`;
    default:
      throw new RangeError(`${type.name} is no floating-point type`);
  }
}

function arithmetic(type: ElementType): string {
  return `${type.name}Arithmetic`;
}

/** Wraps a text around into a 32-bit or 64-bit integer type. */
function wrapped(type: ElementType, text: string): string {
  switch (type.name) {
    case "i32":
      return `(${text} | 0)`;
    case "u32":
      return `(${text} >>> 0)`;
    case "i64":
      return `asIntN(64, ${text})`;
    case "u64":
      return `asUintN(64, ${text})`;
    default:
      return `(${text})`;
  }
}

function additive(operator: "+" | "-"): Expression {
  return (type, [a, b]) =>
    isFloat(type) ? rounded(type, `${a} ${operator} ${b}`) : wrapped(type, `${a} ${operator} ${b}`);
}

function product(type: ElementType, a: string, b: string): string {
  if (isFloat(type)) return rounded(type, `${a} * ${b}`);
  if (type.name === "i32") return `imul(${a}, ${b})`;
  if (type.name === "u32") return `(imul(${a}, ${b}) >>> 0)`;
  return type.name === "index" ? `(${a} * ${b} + 0)` : wrapped(type, `${a} * ${b}`);
}

function integerCall(name: string): Expression {
  return (type, operands) => `${arithmetic(type)}.${name}(${operands.join(", ")})`;
}

function bitwise(operator: "&" | "|" | "^", logical: string, name: string): Expression {
  return (type, [a, b]) => {
    if (type.class === "bool") return `(${a} ${logical} ${b})`;
    if (type.name === "index") return `${arithmetic(type)}.${name}(${a}, ${b})`;
    return type.name === "u32" ? `((${a} ${operator} ${b}) >>> 0)` : `(${a} ${operator} ${b})`;
  };
}

function shift(name: "shiftLeft" | "shiftRight"): Expression {
  const operator = name === "shiftLeft" ? "<<" : ">>";
  return (type, [a, count]) => {
    if (type.name === "i32") return `(${a} ${operator} Number(${count}))`;
    if (type.name === "u32") return `(${a} ${name === "shiftLeft" ? "<<" : ">>>"} Number(${count}) >>> 0)`;
    const low = type.name === "index" ? `Number(${count})` : `BigInt(${count})`;
    return `${arithmetic(type)}.${name}(${a}, ${low})`;
  };
}

function extreme(name: "min" | "max", operator: "<" | ">"): Expression {
  return (type, [a, b]) =>
    isFloat(type) ? `${name}Float(${a}, ${b})` : `(${a} ${operator} ${b} ? ${a} : ${b})`;
}

function comparison(operator: string): Expression {
  return (_type, [a, b]) => `(${a} ${operator} ${b})`;
}

function float(text: (x: string) => string): Expression {
  return (type, [x]) => rounded(type, text(x!));
}

/** Rounding to integers: exact in every float type. */
function integral(call: string): Expression {
  return (_type, [x]) => `${call}(${x})`;
}

function convert(from: ElementType, [x]: readonly string[], to: ElementType): string {
  if (from.name === to.name) return x!;
  if (to.class === "float" && from.name !== "i64" && from.name !== "u64") {
    if (from.class === "bool") return `(${x} ? 1 : 0)`;
    return to.name === "f64" || widens(from, to) ? x! : rounded(to, x!);
  }
  if (from.class === "bool" && (to.name === "i32" || to.name === "u32" || to.name === "index"))
    return `(${x} ? 1 : 0)`;
  const smallInteger = from.name === "i32" || from.name === "u32";
  if (smallInteger && to.name === "index") return x!;
  if ((smallInteger || from.name === "index") && (to.name === "i32" || to.name === "u32"))
    return wrapped(to, x!);
  return `conversions.${from.name}_${to.name}(${x})`;
}

/** Whether every value of a float type is one of another. */
function widens(from: ElementType, to: ElementType): boolean {
  return isFloat(from) && to.name === "f32" && from.name !== "f64";
}

function perWidth(name: string): Expression {
  return (type, [x], result) => {
    const wide = type.name === "i64" || type.name === "u64";
    const text = `${name}${wide ? "64" : "32"}(${x})`;
    return result.name === "i64" || result.name === "u64" ? `BigInt(${text})` : text;
  };
}

function word(value: string, { signed }: { signed: boolean }): string {
  return `${value}, ${signed}`;
}

/** Operations that work lane by lane. */
const expressions: { readonly [Name in OperationName]?: Expression } = {
  add: additive("+"),
  sub: additive("-"),
  mul: (type, [a, b]) => product(type, a!, b!),
  mulHigh: (type, [a, b]) => `mulHigh_${type.name}(${a}, ${b})`,
  div: (type, [a, b]) =>
    isFloat(type) ? rounded(type, `${a} / ${b}`) : `${arithmetic(type)}.div(${a}, ${b})`,
  rem: integerCall("rem"),
  floorDiv: integerCall("floorDiv"),
  floorMod: integerCall("floorMod"),
  neg: (type, [x]) =>
    isFloat(type) ? `(-${x})` : type.name === "index" ? `(0 - ${x})` : wrapped(type, `-${x}`),
  abs: (type, [x]) => (isFloat(type) ? `abs(${x})` : `${arithmetic(type)}.abs(${x})`),
  min: extreme("min", "<"),
  max: extreme("max", ">"),
  fma: (type, [a, b, c]) => {
    if (isFloat(type)) return `fma_${type.name}(${a}, ${b}, ${c})`;
    return type.name === "index" ? `(${a} * ${b} + ${c})` : wrapped(type, `${product(type, a!, b!)} + ${c}`);
  },
  and: bitwise("&", "&&", "and"),
  or: bitwise("|", "||", "or"),
  xor: bitwise("^", "!==", "xor"),
  not: (type, [x]) => {
    if (type.class === "bool") return `(!${x})`;
    return type.name === "index" ? `(-1 - ${x})` : wrapped(type, `~${x}`);
  },
  shiftLeft: shift("shiftLeft"),
  shiftRight: shift("shiftRight"),
  equal: comparison("==="),
  notEqual: comparison("!=="),
  less: comparison("<"),
  lessEqual: comparison("<="),
  greater: comparison(">"),
  greaterEqual: comparison(">="),
  isNaN: (_type, [x]) => `(${x} !== ${x})`,
  sqrt: float((x) => `sqrt(${x})`),
  reciprocalSqrt: float((x) => `1 / sqrt(${x})`),
  reciprocal: float((x) => `1 / ${x}`),
  exp2: float((x) => `pow(2, ${x})`),
  log2: float((x) => `log2(${x})`),
  sin: float((x) => `sin(${x})`),
  cos: float((x) => `cos(${x})`),
  tanh: float((x) => `tanh(${x})`),
  floor: integral("floor"),
  ceil: integral("ceil"),
  trunc: integral("trunc"),
  roundEven: integral("roundEven"),
  convert,
  popcount: perWidth("popcount"),
  leadingZeros: perWidth("leadingZeros"),
  reverseBits: (type, [x]) => `reverseBits_${type.name}(${x})`,
};

/** The expression of one lane of an elementwise operation, or undefined for operations that are not elementwise. */
export function elementwiseText(
  name: OperationName,
  type: ElementType,
  operands: readonly string[],
  result: ElementType,
): string | undefined {
  return expressions[name]?.(type, operands, result);
}

/** Four products of packed bytes plus an i32. */
export function dot4Text({ signedA, signedB }: Attributes["dot4"], [a, b, c]: readonly string[]): string {
  return `dot4(${word(a!, { signed: signedA })}, ${word(b!, { signed: signedB })}, ${c})`;
}
