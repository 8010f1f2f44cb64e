/** @file Operands of subgroup operations: slots of a warp's banks. */
import type { Warp } from "./state.ts";

/** Where an index operand lies. */
export interface IndexSource {
  readonly bank: "f" | "i" | "b";
  readonly slot: number;
  readonly unsigned: boolean;
}

/** An index operand of one lane. */
export function readIndex(warp: Warp, { bank, slot, unsigned }: IndexSource, lane: number): number {
  if (bank === "i") return unsigned ? warp.i[slot + lane]! >>> 0 : warp.i[slot + lane]!;
  return bank === "f" ? warp.f[slot + lane]! : Number(warp.b[slot + lane]);
}
