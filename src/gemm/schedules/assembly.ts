/**
 * @file Assemblies: what a schedule out of ring, copy engines and a warp's operator is made of.
 */
import type { GemmKind } from "../kind.ts";

/** What tells the schedules of this family apart. */
export interface Assembly {
  readonly name: string;
  /** Stages of the ring in shared memory for params that say nothing. */
  readonly stages: number;
  /** Whether operands come by asynchronous copies where their components permit it. */
  readonly asynchronous: boolean;
  /** Whether shared lines are swizzled where the operator permits it; otherwise they are padded. */
  readonly swizzled: boolean;
}

/** Two stages, everything through registers: serves every kind on every target. */
export const registerStaged: Assembly = {
  name: "register-staged",
  stages: 2,
  asynchronous: false,
  swizzled: false,
};

/** Several stages, filled past the registers. */
export const multistage: Assembly = {
  name: "multistage",
  stages: 3,
  asynchronous: true,
  swizzled: true,
};

/** Stages of a kind's ring. */
export function stagesOf(kind: Pick<GemmKind, "params">, assembly: Assembly): number {
  return kind.params.stages ?? assembly.stages;
}
