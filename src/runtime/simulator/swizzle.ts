/** @file The swizzle patterns of shared memory: 16-byte chunks exchanged within lines of 128 bytes, by the line's number. */
import type { SwizzleBytes } from "../../ir/nodes.ts";

/** The address where a byte really lies; patterns are anchored at multiples of 1024 bytes (512, 256). */
export function swizzled(address: number, pattern: SwizzleBytes): number {
  if (pattern === 0) return address;
  return address ^ (((address >> 7) & (pattern / 16 - 1)) << 4);
}
