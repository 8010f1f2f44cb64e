/**
 * @file How values live in PTX registers.
 *
 * Four untyped register classes hold everything: `.pred` for bool, `.b16`, `.b32`, `.b64`. Elements of 32 and 64 bits
 * take one register a lane. Narrower elements are packed, lane 0 lowest, into `.b32` words, or into one `.b16` when the
 * whole value is narrower than 32 bits; a single 8-bit integer is sign- or zero-extended to 16 bits.
 */
import type { ValueType } from "../../ir/nodes.ts";
import type { ElementType } from "../../types/types.ts";

export type RegisterClass = "pred" | "b16" | "b32" | "b64";

const prefixes: Readonly<Record<RegisterClass, string>> = { pred: "%p", b16: "%h", b32: "%r", b64: "%d" };

/** Hands out virtual registers by class. */
export class RegisterFile {
  readonly #used = new Map<RegisterClass, number>();

  allocate(cls: RegisterClass): string {
    const number = (this.#used.get(cls) ?? 0) + 1;
    this.#used.set(cls, number);
    return `${prefixes[cls]}${number}`;
  }

  /** The `.reg` directives of everything handed out. */
  declarations(): readonly string[] {
    return (Object.keys(prefixes) as RegisterClass[])
      .filter((cls) => this.#used.has(cls))
      .map((cls) => `.reg .${cls} ${prefixes[cls]}<${this.#used.get(cls)! + 1}>;`);
  }
}

/** Registers that one value of a type takes. */
export interface ValueForm {
  readonly cls: RegisterClass;
  readonly words: number;
  readonly lanesPerWord: number;
}

/** Width of an element in registers: memory width, except for types without a memory form. */
export function registerBits(element: ElementType): number {
  switch (element.name) {
    case "index":
      return 64;
    case "tf32":
    case "b1":
      return 32;
    case "bool":
      return 1;
    default:
      return element.bits;
  }
}

export function formOf(type: ValueType): ValueForm {
  const bits = registerBits(type.element);
  if (bits === 1) return { cls: "pred", words: type.lanes, lanesPerWord: 1 };
  if (bits >= 32) return { cls: bits === 64 ? "b64" : "b32", words: type.lanes, lanesPerWord: 1 };
  if (bits * type.lanes < 32) return { cls: "b16", words: 1, lanesPerWord: type.lanes };
  return { cls: "b32", words: (bits * type.lanes) / 32, lanesPerWord: 32 / bits };
}

/** Class of a single lane of an element type. */
export function laneClass(element: ElementType): RegisterClass {
  return formOf({ element, lanes: 1 }).cls;
}

/** Type suffix of instructions that compute on one lane: s32, f16, … 8-bit integers compute as 16-bit ones. */
export function instructionType(element: ElementType): string {
  switch (element.name) {
    case "f16":
    case "bf16":
    case "f32":
    case "f64":
      return element.name;
    case "tf32":
      return "f32";
    case "i8":
    case "i16":
      return "s16";
    case "u8":
    case "u16":
      return "u16";
    case "i32":
      return "s32";
    case "i64":
    case "index":
      return "s64";
    case "u32":
    case "u64":
      return element.name;
    case "e4m3":
    case "e5m2":
      return "b16";
    case "bool":
      return "pred";
    case "b1":
      return "b32";
    default:
      return element satisfies never;
  }
}
