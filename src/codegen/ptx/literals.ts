/** @file Constants as PTX literals: floats by their exact bits, integers in decimal. */
import type { IrConstant } from "../../ir/nodes.ts";
import { bf16ToBits, e4m3ToBits, e5m2ToBits, f16ToBits, f32ToBits, f64ToBits } from "../../types/bits.ts";
import type { ElementType } from "../../types/types.ts";
import { formOf, registerBits } from "./registers.ts";

type ConstantValue = IrConstant["value"];

function hex(bits: number | bigint, digits: number): string {
  return bits.toString(16).toUpperCase().padStart(digits, "0");
}

/** Bits of one element as registers hold it, unsigned and without extension. */
export function elementPattern(element: ElementType, value: ConstantValue): bigint {
  const integer = (): bigint => BigInt.asUintN(registerBits(element), BigInt(value));
  switch (element.name) {
    case "f16":
      return BigInt(f16ToBits(Number(value)));
    case "bf16":
      return BigInt(bf16ToBits(Number(value)));
    case "f32":
    case "tf32":
      return BigInt(f32ToBits(Number(value)) >>> 0);
    case "f64":
      return f64ToBits(Number(value));
    case "e4m3":
      return BigInt(e4m3ToBits(Number(value)));
    case "e5m2":
      return BigInt(e5m2ToBits(Number(value)));
    default:
      return integer();
  }
}

/** Literal of an f32, f64 or integer of 32 or 64 bits, for an instruction of that type. */
export function typedLiteral(element: ElementType, value: ConstantValue): string {
  switch (element.name) {
    case "f32":
    case "tf32":
      return f32Literal(Number(value));
    case "f64":
      return `0d${hex(f64ToBits(Number(value)), 16)}`;
    default:
      return bitsLiteral(element, value);
  }
}

export function f32Literal(value: number): string {
  return `0f${hex(f32ToBits(value) >>> 0, 8)}`;
}

/** Literal of one lane for untyped (`.b16`, `.b32`, `.b64`) and integer instructions. */
export function bitsLiteral(element: ElementType, value: ConstantValue): string {
  if (element.class !== "float") return integerLiteral(element, BigInt(value));
  return `0x${hex(elementPattern(element, value), registerBits(element) / 4)}`;
}

function integerLiteral(element: ElementType, value: bigint): string {
  const bits = registerBits(element);
  const wrapped = element.class === "signed" ? BigInt.asIntN(bits, value) : BigInt.asUintN(bits, value);
  return wrapped < 1n << 63n ? String(wrapped) : `0x${hex(wrapped, 16)}`;
}

/** Literals of the registers of a constant, vector constants with every lane alike. */
export function wordLiterals(constant: IrConstant): readonly string[] {
  const { element, lanes } = constant.type;
  const form = formOf(constant.type);
  const one =
    form.lanesPerWord === 1
      ? bitsLiteral(element, constant.value)
      : packedLiteral(constant, form.lanesPerWord);
  return Array.from({ length: form.lanesPerWord === 1 ? lanes : form.words }, () => one);
}

function packedLiteral(constant: IrConstant, lanes: number): string {
  const bits = registerBits(constant.type.element);
  const lane = elementPattern(constant.type.element, constant.value);
  let word = 0n;
  for (let index = 0; index < lanes; index++) word |= lane << BigInt(bits * index);
  return `0x${hex(word, (bits * lanes) / 4)}`;
}
