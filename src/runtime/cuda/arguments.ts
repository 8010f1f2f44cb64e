/**
 * @file A kernel's native arguments in memory, as cuLaunchKernel takes them: values, and an array of their addresses.
 *
 * One block per prepared launch: tensor maps first (128 bytes each, so all are aligned to 64), then the addresses, then
 * 8 bytes for each number or pointer, of which the driver copies as many as the kernel's parameter has. Integers are
 * sign-extended over the 8 bytes.
 */
import { ArgumentError } from "../../errors.ts";
import type { ArgumentSlot } from "../../ir/parameters.ts";
import { toBits } from "../../types/bits.ts";
import { integerRange } from "../../types/integer-range.ts";
import { type ElementType, f32, i32, i64, isStorage } from "../../types/types.ts";
import type { HostBlock } from "./driver-library.ts";
import { tensorMapBytes } from "./tensor-map.ts";

/** One native argument. */
export type NativeParameter =
  | { readonly kind: "pointer" }
  | { readonly kind: "number"; readonly element: ElementType }
  | { readonly kind: "tensorMap" };

/** Where each argument's value is in a block, and where the array of addresses. */
export interface ArgumentLayout {
  readonly parameters: readonly NativeParameter[];
  readonly offsets: readonly number[];
  readonly addressesOffset: number;
  readonly bytes: number;
}

const word = 8;

/** The native argument of a slot. */
export function nativeParameter(slot: ArgumentSlot): NativeParameter {
  switch (slot.kind) {
    case "pointer":
      return { kind: "pointer" };
    case "size":
      return { kind: "number", element: i32 };
    case "stride":
      return { kind: "number", element: i64 };
    case "scalar":
      return { kind: "number", element: slot.element };
    case "tensorMap":
      return { kind: "tensorMap" };
    default:
      return slot satisfies never;
  }
}

/** Lays out a block. */
export function layOut(parameters: readonly NativeParameter[]): ArgumentLayout {
  const maps = parameters.filter((parameter) => parameter.kind === "tensorMap").length;
  const addressesOffset = maps * tensorMapBytes;
  let nextMap = 0;
  let nextWord = addressesOffset + parameters.length * word;
  const offsets = parameters.map((parameter) => {
    if (parameter.kind === "tensorMap") return nextMap++ * tensorMapBytes;
    nextWord += word;
    return nextWord - word;
  });
  return { parameters, offsets, addressesOffset, bytes: Math.max(nextWord, word) };
}

/** Fills the array of addresses of a block. */
export function writeAddresses(layout: ArgumentLayout, block: HostBlock): void {
  const view = viewOf(block);
  for (const [argument, offset] of layout.offsets.entries()) {
    writeWord(view, layout.addressesOffset + argument * word, block.address + offset);
  }
}

/** A DataView of a block. */
export function viewOf(block: HostBlock): DataView {
  return new DataView(block.bytes.buffer, block.bytes.byteOffset, block.bytes.byteLength);
}

/** An exact integer as 8 little-endian bytes, sign-extended. */
export function writeWord(view: DataView, offset: number, value: number): void {
  view.setUint32(offset, value >>> 0, true);
  view.setInt32(offset + 4, Math.floor(value / 2 ** 32), true);
}

/** A number of the parameter's type. `what` names the argument. @throws ArgumentError for one that the type cannot hold */
export function writeNumber(
  view: DataView,
  offset: number,
  element: ElementType,
  value: number | bigint,
  what: string,
): void {
  if (element.class === "float") {
    writeFloat(view, offset, element, value);
    return;
  }
  if (!isWhole(element, value)) {
    throw new ArgumentError(`${what} is ${value}, which ${element.name} cannot hold.`);
  }
  if (typeof value === "bigint") view.setBigInt64(offset, BigInt.asIntN(64, value), true);
  else writeWord(view, offset, value);
}

function writeFloat(view: DataView, offset: number, element: ElementType, value: number | bigint): void {
  if (element.name === "f64") {
    view.setFloat64(offset, Number(value), true);
    return;
  }
  // tf32 is how a tensor core reads an f32.
  const bits = toBits(isStorage(element) ? element : f32, value);
  writeWord(view, offset, Number(bits));
}

function isWhole(element: ElementType, value: number | bigint): boolean {
  if (element.name === "i32") return (Number(value) | 0) === Number(value);
  if (element.name === "bool") return Number(value) === 0 || Number(value) === 1;
  if (typeof value === "number" && !Number.isSafeInteger(value)) return false;
  const range = integerRange(element);
  return range !== undefined && value >= range.least && value <= range.greatest;
}
