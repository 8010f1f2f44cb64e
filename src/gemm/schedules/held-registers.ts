/**
 * @file What a lane keeps in registers while it multiplies: accumulators, fragments of a slice of K, and elements on their
 * way to shared memory.
 */
import type { TargetFacts } from "../../target/facts.ts";
import type { GemmKind } from "../kind.ts";
import type { Operator } from "../operators/operator.ts";

/** What is kept beside the accumulators. */
export interface KeptBeside {
  /** Buffers of fragments, which take turns. */
  readonly buffers: 1 | 2;
  /** Operands whose elements pass through registers. */
  readonly staged: readonly ("a" | "b")[];
}

/** Registers of a lane for a kind's tile, addresses and the epilogue's values not counted. */
export function heldRegisters(
  kind: Pick<GemmKind, "a" | "b" | "params">,
  operator: Operator,
  { buffers, staged }: KeptBeside,
  facts: TargetFacts,
): number {
  const { block: extents, warps } = kind.params;
  const { shared, shape, types, components = 1 } = operator;
  const { accumulators, left, right } = operator.held ?? { accumulators: 1, left: 1, right: 1 };
  const warp = { m: extents.m / warps.m, n: extents.n / warps.n };
  const slice = shape.k * (warp.m * shared.a.bits * left + warp.n * shared.b.bits * right);
  // Where lanes multiply on their own, all lanes in a row of their grid hold the same elements of A.
  const { width } = facts.subgroup;
  const fragments = shape.k === 1 || operator.byLanes === true ? slice * Math.sqrt(width) : slice;
  const onTheirWay = staged
    .map((operand) => {
      const elements = extents[operand === "a" ? "m" : "n"] * extents.k;
      return (elements * components * kind[operand].type.bits) / (warps.m * warps.n);
    })
    .reduce((sum, bits) => sum + bits, 0);
  const bits = warp.m * warp.n * types.accumulator.bits * accumulators + buffers * fragments + onTheirWay;
  return bits / (32 * width);
}
