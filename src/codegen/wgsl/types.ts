/**
 * @file How values live in WGSL.
 *
 * 32-bit numbers and truth values are WGSL scalars, one for each lane; `index` is u32. Narrower elements exist in two
 * forms, each made from the other when asked for: *words*, packed u32 with lane 0 lowest, as memory has them; and
 * *lanes*, a native f16 where the target has f16, otherwise the element's bits in the low part of a u32.
 */
import type { ValueType } from "../../ir/nodes.ts";
import type { WgslFeatures } from "../../target/webgpu.ts";
import type { ElementType } from "../../types/types.ts";

/** Scalar types of WGSL that memory can hold. */
export type ScalarType = "f32" | "i32" | "u32" | "f16";

/** Whether values are packed several to a word. */
export function isNarrow(element: ElementType): boolean {
  return element.bits === 8 || element.bits === 16;
}

/** Whether lanes are native f16. */
export function isNativeHalf(element: ElementType, features: WgslFeatures): boolean {
  return element.name === "f16" && features.f16;
}

/** WGSL type of one lane. */
export function laneType(element: ElementType, features: WgslFeatures): ScalarType | "bool" {
  switch (element.name) {
    case "bool":
      return "bool";
    case "f32":
    case "tf32":
      return "f32";
    case "i32":
      return "i32";
    case "f16":
      return features.f16 ? "f16" : "u32";
    default:
      return "u32";
  }
}

/** Words that hold a narrow value; a value of less than 32 bits takes one. */
export function wordCount(type: ValueType): number {
  return Math.max(1, (type.element.bits * type.lanes) / 32);
}

/** `vec4<f32>`, or the scalar itself. */
export function vectorOf(scalar: string, count: number): string {
  return count === 1 ? scalar : `vec${count}<${scalar}>`;
}

export const components = ["x", "y", "z", "w"] as const;
