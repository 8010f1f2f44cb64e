/** @file The least and greatest value of each integer type. */

import type { ElementType } from "./types.ts";

/** Inclusive bounds; for i64 and u64 too these are exact, being bigint. */
export interface IntegerRange {
  readonly least: bigint;
  readonly greatest: bigint;
}

function range(least: bigint, greatest: bigint): IntegerRange {
  return Object.freeze({ least, greatest });
}

const ranges: { readonly [name: string]: IntegerRange } = Object.freeze({
  i8: range(-(1n << 7n), (1n << 7n) - 1n),
  i16: range(-(1n << 15n), (1n << 15n) - 1n),
  i32: range(-(1n << 31n), (1n << 31n) - 1n),
  i64: range(-(1n << 63n), (1n << 63n) - 1n),
  u8: range(0n, (1n << 8n) - 1n),
  u16: range(0n, (1n << 16n) - 1n),
  u32: range(0n, (1n << 32n) - 1n),
  u64: range(0n, (1n << 64n) - 1n),
  index: range(BigInt(Number.MIN_SAFE_INTEGER), BigInt(Number.MAX_SAFE_INTEGER)),
  b1: range(0n, 1n),
});

/**
 * Bounds of an integer type, of b1 as 0 and 1, and of index as what a double counts exactly; undefined for floats and
 * bool.
 */
export function integerRange(type: ElementType): IntegerRange | undefined {
  return ranges[type.name];
}
