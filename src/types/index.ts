/** @file Element types, their values, bits, arithmetic and conversions, and host data. */

export * from "./bits.ts";
export * from "./convert.ts";
export * from "./float-arithmetic.ts";
export * from "./fma.ts";
export * from "./host.ts";
export * from "./integer-range.ts";
export * from "./integers.ts";
export * from "./round.ts";
export * from "./types.ts";
