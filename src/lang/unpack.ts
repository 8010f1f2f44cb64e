/**
 * @file Four-bit integers, packed eight to a word, as 16-bit floats in registers. A nibble put into the low bits of the
 * significand of a power of two is that power plus the nibble; one subtraction, exact, leaves the number. The mask and the
 * exponent are one three-input logic instruction (lop3) for two numbers. After Kim, Henry, Fahim and Awadalla, "Who Says
 * Elephants Can't Run" (EMNLP industry track, 2022).
 */
import type { BF16, F16, U32 } from "../types/types.ts";
import { tracer } from "./trace.ts";
import type { Value } from "./value.ts";
import { unpack, type Vector } from "./vector.ts";

/** What a nibble means: 0 to 15, two's complement from -8 to 7, or from -8 to 7 as the number plus 8. */
export type NibbleEncoding = "unsigned" | "signed" | "offset";

/** By type: bits of the power of two whose last place is 1, for both halves of a word, and the power. */
const anchors = {
  f16: { bits: 0x64006400, value: 1024 },
  bf16: { bits: 0x43004300, value: 128 },
} as const;

const lowNibbles = 0x000f000f;
const signBits = 0x00080008;

/**
 * The eight nibbles of a word as four pairs of exact f16 or bf16 numbers: pair p holds nibble p (bits 4p to 4p+3) in lane
 * 0 and nibble p + 4 in lane 1. Three instructions a pair: shift, mask and exponent, subtraction.
 */
export function unpack4<T extends F16 | BF16>(
  word: Value<U32>,
  type: T,
  encoding: NibbleEncoding = "signed",
): readonly Vector<T, 2>[] {
  const anchor = anchors[type.name as keyof typeof anchors] as (typeof anchors)["f16" | "bf16"] | undefined;
  if (anchor === undefined)
    throw tracer().error(`unpack4 gives f16 or bf16, not ${(type as { name: string }).name}`);
  // Flipping the sign bit turns two's complement into the number plus 8.
  const flip = encoding === "signed" ? signBits : 0;
  const excess = anchor.value + (encoding === "unsigned" ? 0 : 8);
  return [0, 1, 2, 3].map((pair) => {
    const placed = pair === 0 ? word : word.shiftRight(4 * pair);
    const raised = unpack(placed.and(lowNibbles).xor(anchor.bits | flip), type, 2);
    return raised.sub(excess as never) as Vector<T, 2>;
  });
}
