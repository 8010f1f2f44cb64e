/**
 * @file Addresses: a register that depends on array and index alone, and everything constant as an immediate.
 *
 * Accesses that differ only in their constant offset share the register. All shared arrays lie in one arena, so their
 * index registers are shared among arrays with elements of one size.
 */
import type { ArrayReference, ConstantTable, Operand, SharedArray } from "../../ir/nodes.ts";
import { byteSize } from "../../types/types.ts";
import type { Emission } from "./emission.ts";
import { registerBits } from "./registers.ts";

/** `[base+offset]`; base is a register or a symbol. */
export interface Address {
  readonly base: string;
  readonly offset: number;
}

/** Symbol of the arena of shared memory. `$` cannot occur in kernel names. */
export const arena = "$shared";

/** Name of the native argument in place `slot`. */
export function argumentName(slot: number): string {
  return `$a${slot}`;
}

export function tableName(table: ConstantTable): string {
  return `$table${table.id}`;
}

const largestImmediate = 2 ** 31 - 1;

export function bracketed(address: Address): string {
  if (address.offset === 0) return `[${address.base}]`;
  return `[${address.base}+${address.offset}]`;
}

/** Identity of an operand for memoised computations. */
export function operandKey(operand: Operand): string {
  return operand.kind === "value" ? `v${operand.id}` : `c${String(operand.value)}`;
}

/** Address of an element of a shared array, 32-bit. */
export function sharedAddress(
  emission: Emission,
  array: SharedArray,
  index: Operand,
  offset: number,
): Address {
  const size = byteSize(array.element);
  const constant = array.byteOffset + offset * size;
  if (index.kind === "constant") return { base: arena, offset: constant + Number(index.value) * size };
  const base = emission.onceRegister(`shared:${size}:${index.id}`, () => sharedBase(emission, index, size));
  return { base, offset: constant };
}

function sharedBase(emission: Emission, index: Operand, size: number): string {
  const narrow =
    registerBits(index.type.element) === 64
      ? emission.compute("b32", "cvt.u32.u64", emission.word(index))
      : emission.word(index);
  const start = arenaStart(emission);
  if (size === 1) return emission.compute("b32", "add.s32", narrow, start);
  const scaled = emission.compute("b32", "shl.b32", narrow, Math.log2(size));
  return emission.compute("b32", "add.s32", scaled, start);
}

/** Register with the address at which the arena starts. */
export function arenaStart(emission: Emission): string {
  return emission.atEntry("arena", "b32", (register) => [`mov.u32 ${register}, ${arena}`]);
}

/** An address as a single register. */
export function addressRegister(emission: Emission, address: Address): string {
  if (address.base === arena) {
    if (address.offset === 0) return arenaStart(emission);
    return emission.onceRegister(`at:${address.offset}`, () =>
      emission.compute("b32", "add.s32", arenaStart(emission), address.offset),
    );
  }
  if (address.offset === 0) return address.base;
  return emission.onceRegister(`at:${address.base}:${address.offset}`, () =>
    emission.compute(
      address.base.startsWith("%d") ? "b64" : "b32",
      address.base.startsWith("%d") ? "add.s64" : "add.s32",
      address.base,
      address.offset,
    ),
  );
}

/** Pointer to global memory of a buffer parameter, loaded at entry. */
function pointer(emission: Emission, parameter: number): string {
  const slot = emission.slot("pointer", parameter);
  return emission.atEntry(`pointer:${parameter}`, "b64", (register) => [
    `ld.param.u64 ${register}, [${argumentName(slot)}]`,
    `cvta.to.global.u64 ${register}, ${register}`,
  ]);
}

/** Address of an element of an array in global or constant memory, 64-bit. */
function wideAddress(
  emission: Emission,
  key: string,
  start: () => string,
  size: number,
  index: Operand,
  offset: number,
): Address {
  const constant = offset * size + (index.kind === "constant" ? Number(index.value) * size : 0);
  const base =
    index.kind === "constant"
      ? start()
      : emission.onceRegister(`${key}:${index.id}`, () => indexed(emission, start(), size, index));
  if (constant >= -largestImmediate && constant <= largestImmediate) return { base, offset: constant };
  const far = emission.onceRegister(`${key}:far:${base}:${constant}`, () =>
    emission.compute("b64", "add.s64", base, constant),
  );
  return { base: far, offset: 0 };
}

function indexed(emission: Emission, start: string, size: number, index: Operand): string {
  const word = emission.word(index);
  if (registerBits(index.type.element) === 32) {
    const sign = index.type.element.class === "signed" ? "s32" : "u32";
    return emission.compute("b64", `mad.wide.${sign}`, word, size, start);
  }
  const scaled = size === 1 ? word : emission.compute("b64", "shl.b64", word, Math.log2(size));
  return emission.compute("b64", "add.s64", scaled, start);
}

/** State space and address of an access. */
export interface Place {
  readonly space: "global" | "shared" | "const";
  readonly address: Address;
}

/** Where an access goes. */
export function place(emission: Emission, array: ArrayReference, index: Operand, offset: number): Place {
  switch (array.kind) {
    case "shared":
      return { space: "shared", address: sharedAddress(emission, array.array, index, offset) };
    case "buffer": {
      const { id, element } = array.parameter;
      const start = (): string => pointer(emission, id);
      return {
        space: "global",
        address: wideAddress(emission, `buffer:${id}`, start, byteSize(element), index, offset),
      };
    }
    case "constant": {
      const { table } = array;
      const start = (): string =>
        emission.atEntry(`table:${table.id}`, "b64", (r) => [`mov.u64 ${r}, ${tableName(table)}`]);
      const address = wideAddress(
        emission,
        `table:${table.id}`,
        start,
        byteSize(table.element),
        index,
        offset,
      );
      return { space: constantSpace(emission), address };
    }
    default:
      return array satisfies never;
  }
}

/** Tables that fit the constant cache well go to `.const`; larger ones are read through the ordinary caches. */
const constantBankBytes = 16 * 1024;

export function constantSpace(emission: Emission): "const" | "global" {
  const bytes = emission.kernel.constants.reduce(
    (sum, table) => sum + table.values.length * byteSize(table.element) + 16,
    0,
  );
  return bytes <= constantBankBytes ? "const" : "global";
}
