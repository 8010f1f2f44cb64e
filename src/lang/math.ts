/**
 * @file Functions of values. Where the hardware approximates, the docstring states how well.
 */
import {
  type ArithmeticType,
  type ElementType,
  type FloatType,
  type I32,
  i32,
  type U32,
  u32,
} from "../types/types.ts";
import { tracer } from "./trace.ts";
import {
  binary,
  type Condition,
  conditionValue,
  constant,
  fusedMultiplyAdd,
  type Operand,
  operandValue,
  operation,
  typedOperand,
  Value,
} from "./value.ts";

/** `condition ? a : b`, lane by lane, without a branch. At least one of `a`, `b` must be a value. */
export function select<T extends ElementType>(
  condition: Condition,
  a: Value<T>,
  b: Operand<T> | boolean,
): Value<T>;
export function select<T extends ElementType>(
  condition: Condition,
  a: Operand<T> | boolean,
  b: Value<T>,
): Value<T>;
export function select<T extends ElementType>(
  condition: Condition,
  a: Operand<T> | boolean,
  b: Operand<T> | boolean,
): Value<T> {
  const typed = a instanceof Value ? a : b instanceof Value ? b : undefined;
  if (typed === undefined)
    throw tracer().error("select() of two numbers has no type; make one of them constant(type, number)");
  const first = operandValue(a as Operand<T>, typed as Value<T>);
  const second = operandValue(b as Operand<T>, typed as Value<T>);
  return operation("select", typed.type as T, [conditionValue(condition), first, second], {});
}

/** The smaller; the number when one side is NaN. */
export function min<T extends ArithmeticType>(a: Value<T>, b: Operand<T>): Value<T> {
  return binary("min", a, b);
}

/** The larger; the number when one side is NaN. */
export function max<T extends ArithmeticType>(a: Value<T>, b: Operand<T>): Value<T> {
  return binary("max", a, b);
}

/** `x` held between two bounds. */
export function clamp<T extends ArithmeticType>(x: Value<T>, low: Operand<T>, high: Operand<T>): Value<T> {
  return min(max(x, low), high);
}

function float<T extends FloatType>(
  name:
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
    | "roundEven",
  x: Value<T>,
): Value<T> {
  if (x.type.class !== "float")
    throw tracer().error(`${name} takes a float, not ${x.type.name}; convert with .to(f32)`);
  return operation(name, x.type, [x], {});
}

/** Square root, correctly rounded in f32 and f64. */
export function sqrt<T extends FloatType>(x: Value<T>): Value<T> {
  return float("sqrt", x);
}
/** 1/√x, within 2 units in the last place of f32. */
export function reciprocalSqrt<T extends FloatType>(x: Value<T>): Value<T> {
  return float("reciprocalSqrt", x);
}
/**
 * 1/x, within 1 unit in the last place of f32, where arguments and results below 2^-126 may count as zero;
 * `constant(type, 1).div(x)` rounds correctly.
 */
export function reciprocal<T extends FloatType>(x: Value<T>): Value<T> {
  return float("reciprocal", x);
}
/** 2^x, within 2 units in the last place of f32; results below 2^-126 may be zero. */
export function exp2<T extends FloatType>(x: Value<T>): Value<T> {
  return float("exp2", x);
}
/** Base-2 logarithm, absolute error near 2^-22 around 1. */
export function log2<T extends FloatType>(x: Value<T>): Value<T> {
  return float("log2", x);
}
/** e^x as 2^(x·log2 e); the relative error grows with |x| (about 2^-22 · |x| beyond 1). */
export function exp<T extends FloatType>(x: Value<T>): Value<T> {
  return exp2(scale(x, Math.LOG2E));
}
/** Natural logarithm through {@link log2}. */
export function log<T extends FloatType>(x: Value<T>): Value<T> {
  return scale(log2(x), Math.LN2);
}
/** Sine in radians; absolute error about 2^-21 in [-π, π], growing outside. */
export function sin<T extends FloatType>(x: Value<T>): Value<T> {
  return float("sin", x);
}
/** Cosine; see {@link sin}. */
export function cos<T extends FloatType>(x: Value<T>): Value<T> {
  return float("cos", x);
}
/** Hyperbolic tangent by the hardware's approximation, relative error about 2^-11. {@link tanh} is exact to f32 rounding noise. */
export function tanhApproximate<T extends FloatType>(x: Value<T>): Value<T> {
  return float("tanh", x);
}
/** Hyperbolic tangent as 1 - 2/(e^2x + 1) with an approximate reciprocal: absolute error about 2^-22. */
export function tanh<T extends FloatType>(x: Value<T>): Value<T> {
  const grown = binary("add", exp2(scale(x, 2 * Math.LOG2E)), 1);
  return fusedMultiplyAdd(constant(x.type, -2), reciprocal(grown), constant(x.type, 1));
}
/** 1/(1 + e^-x) with an approximate reciprocal: relative error about 2^-21. */
export function sigmoid<T extends FloatType>(x: Value<T>): Value<T> {
  return reciprocal(binary("add", exp2(scale(x, -Math.LOG2E)), 1));
}
export function floor<T extends FloatType>(x: Value<T>): Value<T> {
  return float("floor", x);
}
export function ceil<T extends FloatType>(x: Value<T>): Value<T> {
  return float("ceil", x);
}
/** Toward zero. */
export function trunc<T extends FloatType>(x: Value<T>): Value<T> {
  return float("trunc", x);
}
/** To the nearest integer, ties to even. */
export function roundEven<T extends FloatType>(x: Value<T>): Value<T> {
  return float("roundEven", x);
}

function scale<T extends FloatType>(x: Value<T>, by: number): Value<T> {
  return binary("mul", x, by);
}

/** Number of one bits. */
export function popcount<T extends I32 | U32>(x: Value<T>): Value<I32> {
  return operation("popcount", i32, [x], {});
}
/** Zero bits above the highest one bit; the width for 0. */
export function leadingZeros<T extends I32 | U32>(x: Value<T>): Value<I32> {
  return operation("leadingZeros", i32, [x], {});
}
export function reverseBits<T extends I32 | U32>(x: Value<T>): Value<T> {
  return operation("reverseBits", x.type, [x], {});
}
/** High half of the full product. */
export function mulHigh<T extends I32 | U32>(a: Value<T>, b: Operand<T>): Value<T> {
  return operation("mulHigh", a.type, [a, operandValue(b, a)], {});
}
/** c + Σ of the four products of the bytes of `a` and `b`. */
export function dot4(
  a: Value<U32>,
  b: Value<U32>,
  c: Operand<I32>,
  signs: { readonly signedA: boolean; readonly signedB: boolean },
): Value<I32> {
  return operation("dot4", i32, [a, b, typedOperand(c, i32)], signs);
}
/** Bytes of (a: 0…3, b: 4…7) chosen by the four low nibbles of `selector`. */
export function permuteBytes(a: Value<U32>, b: Operand<U32>, selector: Operand<U32>): Value<U32> {
  return operation("permuteBytes", u32, [a, typedOperand(b, u32), typedOperand(selector, u32)], {});
}
