/**
 * @file Schedules: how data moves. The first schedule that all components permit is taken.
 */
import type { Kernel } from "../../lang/index.ts";
import type { TargetFacts } from "../../target/facts.ts";
import type { Batch } from "../batch.ts";
import type { PartExtents } from "../epilogues/collector.ts";
import type { EpilogueStep } from "../epilogues/step.ts";
import type { ExtraArgument, ExtrasOf } from "../extras.ts";
import { componentsOf, type GemmKind } from "../kind.ts";
import type { OperatorFactory, OperatorTypes } from "../operators/operator.ts";
import type { GemmParams } from "../params.ts";
import type { MatrixOperand, Problem } from "../problem.ts";
import type { PlanSurroundings } from "../stages.ts";

/** A kind before its schedule and params are chosen. */
export type UnscheduledKind = Omit<GemmKind, "params" | "schedule">;

/** What a launch needs beside the kind. */
export interface GemmLaunch {
  readonly problem: Problem;
  readonly batch: Batch;
  /** Columns of D: those of the product, or half as many or fewer where it is gated. */
  readonly columns: number;
  /** K steps are made of this many elements of K: 0 where alpha is 0. */
  readonly k: number;
  readonly c: MatrixOperand | undefined;
  readonly d: MatrixOperand;
  readonly alpha: number | bigint;
  readonly beta: number | bigint;
  readonly steps: readonly EpilogueStep[];
  /** What layouts, transforms and the predicate take at run time. */
  readonly extras: ExtrasOf<ExtraArgument>;
}

/** A way of moving data through a block. */
export interface Schedule {
  readonly name: string;
  /** Whether it multiplies in a way of its own, so that asking for this operator asks for another schedule. */
  forgoes?(operator: OperatorFactory): boolean;
  /**
   * Types in which it multiplies a kind better than in the kind's own, which every schedule can; undefined where it does
   * not. `fast`: sums may stay in an instruction's narrow accumulator.
   */
  typesOf?(kind: UnscheduledKind, facts: TargetFacts, fast: boolean): OperatorTypes | undefined;
  /** Why this schedule cannot serve; undefined when it can. */
  refusal(kind: UnscheduledKind, launch: GemmLaunch, facts: TargetFacts): string | undefined;
  /** Why a schedule further on is faster although this one can serve; asked only where none is named. */
  yields?(kind: UnscheduledKind, facts: TargetFacts): string | undefined;
  /** Params for those who give none. */
  params(kind: UnscheduledKind, launch: GemmLaunch, facts: TargetFacts): GemmParams;
  /**
   * Params that tuning tries beside those of `params`, the promising first by a rough model of their time; `check` may still
   * refuse some. Left out by schedules whose params follow from the shape.
   */
  candidates?(kind: UnscheduledKind, launch: GemmLaunch, facts: TargetFacts): readonly GemmParams[];
  /** @throws ArgumentError for params that do not fit this schedule or the launch's sizes */
  check(kind: GemmKind, facts: TargetFacts, launch: GemmLaunch): void;
  kernel(kind: GemmKind): Kernel;
  /** Host arguments of the kernel by parameter name. */
  arguments(kind: GemmKind, launch: GemmLaunch): Readonly<Record<string, unknown>>;
  blocks(kind: GemmKind, launch: GemmLaunch, facts: TargetFacts): number;
  /** Workspaces and kernels around the product, for kinds whose blocks leave partial results. */
  surroundings?(kind: GemmKind, launch: GemmLaunch, facts: TargetFacts): PlanSurroundings;
  /** The parts of D for each of which one subgroup leaves partial states of what steps reduce. */
  parts(kind: GemmKind, facts: TargetFacts): PartExtents;
  /** What multiplies, as `explain()` names it. */
  operatorName(kind: GemmKind, facts: TargetFacts): string;
  /** Lines for `explain()`, beside the operator's. */
  describe(kind: GemmKind, facts: TargetFacts): readonly string[];
}

/** Why a schedule whose way is for single numbers cannot serve elements with several components. */
export function componentsRefusal(kind: UnscheduledKind): string | undefined {
  const components = componentsOf(kind);
  return components === 1
    ? undefined
    : `elements have ${components} components (${kind.operator.name}), which go to planes of their own through registers`;
}

/** Tiles of all matrices of D, each as often as K has parts. */
export function tilesOf({ problem, batch }: GemmLaunch, params: GemmParams): number {
  const { m, n } = problem;
  const tiles = Math.ceil(m / params.block.m) * Math.ceil(n / params.block.n);
  return tiles * batch.count * (params.splitK ?? 1);
}
