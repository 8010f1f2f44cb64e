/** @file Constants as WGSL expressions. WGSL has no literal for infinities and NaN: those come out of the uniform block. */
import { bf16ToBits, e4m3ToBits, e5m2ToBits, f16ToBits, f32ToBits } from "../../types/bits.ts";
import type { ElementType } from "../../types/types.ts";

type ConstantValue = number | bigint | boolean;

/** Word of the uniform block that is always 0. */
export const zeroWord = "args.zero";

export function hex(bits: number): string {
  return `0x${(bits >>> 0).toString(16)}u`;
}

/** Least positive normal f32 and f16: smaller literals may be flushed. */
const leastNormal = { f32: 2 ** -126, f16: 2 ** -14 } as const;

function isPlain(value: number, type: "f32" | "f16"): boolean {
  return Number.isFinite(value) && (Math.abs(value) >= leastNormal[type] || Object.is(value, 0));
}

function decimal(value: number, suffix: string): string {
  const text = String(value);
  const literal = /[.e]/.test(text) ? `${text}${suffix}` : `${text}.0${suffix}`;
  return value < 0 ? `(${literal})` : literal;
}

function f32Literal(value: number): string {
  if (isPlain(value, "f32")) return decimal(Math.fround(value), "f");
  const bits = hex(f32ToBits(value));
  return Number.isFinite(value) ? `bitcast<f32>(${bits})` : `bitcast<f32>(${bits} | ${zeroWord})`;
}

function f16Literal(value: number): string {
  if (isPlain(value, "f16")) return decimal(value, "h");
  const bits = hex(f16ToBits(value));
  return Number.isFinite(value)
    ? `bitcast<vec2<f16>>(${bits}).x`
    : `bitcast<vec2<f16>>(${bits} | ${zeroWord}).x`;
}

function i32Literal(value: number): string {
  if (value === -(2 ** 31)) return "(-2147483647i - 1i)";
  return value < 0 ? `(${value}i)` : `${value}i`;
}

/** Bits of a narrow element. */
export function narrowBits(element: ElementType, value: ConstantValue): number {
  switch (element.name) {
    case "f16":
      return f16ToBits(Number(value));
    case "bf16":
      return bf16ToBits(Number(value));
    case "e4m3":
      return e4m3ToBits(Number(value));
    case "e5m2":
      return e5m2ToBits(Number(value));
    default:
      return (Number(value) & (2 ** element.bits - 1)) >>> 0;
  }
}

/** A lane of a constant. */
export function literal(element: ElementType, value: ConstantValue, nativeHalf: boolean): string {
  switch (element.name) {
    case "bool":
      return value === true ? "true" : "false";
    case "f32":
    case "tf32":
      return f32Literal(Number(value));
    case "i32":
      return i32Literal(Number(value));
    case "u32":
    case "b1":
      return `${Number(value) >>> 0}u`;
    case "index":
      return `${BigInt.asUintN(32, BigInt(value))}u`;
    case "f16":
      return nativeHalf ? f16Literal(Number(value)) : hex(narrowBits(element, value));
    default:
      return hex(narrowBits(element, value));
  }
}
