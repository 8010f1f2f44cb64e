/**
 * @file The passes and their order. Each is a pure function from a kernel to an equivalent one: the same stores, the
 * same collectives and barriers in the same order, the same asynchronous work.
 *
 * What holds for all of them:
 * - nothing moves across an operation that `orders`, or into or out of a convergent region;
 * - convergent operations are neither duplicated nor predicated nor moved;
 * - register variables that other operations than single reads and writes touch (fragments, accumulators) are left
 *   alone: from issue to wait nothing reads, copies or writes them that did not before;
 * - positions stay with their operations, and operations that a pass makes carry the site of the one they came from.
 */
import type { KernelIr } from "../ir/nodes.ts";
import type { TargetFacts } from "../target/facts.ts";
import { splitAddresses } from "./address-offsets.ts";
import { shareCommonSubexpressions } from "./common-subexpressions.ts";
import { dropDeadCode } from "./dead-code.ts";
import { fold } from "./fold.ts";
import { convertIfs } from "./if-conversion.ts";
import { hoistInvariants } from "./loop-invariant.ts";
import { narrowIndices } from "./narrowing.ts";
import { renumber } from "./renumber.ts";
import { reduceStrength } from "./strength-reduction.ts";
import { checkConvergence } from "./uniformity.ts";

export { analyseRanges, type Range, type Ranges } from "./ranges.ts";
export {
  analyseControl,
  analyseUniformity,
  type ConvergenceOptions,
  checkConvergence,
  type Uniformity,
  type UniformityAnalysis,
} from "./uniformity.ts";

/** A pass by name. */
export interface Pass {
  readonly name: PassName;
  readonly run: (kernel: KernelIr, facts: TargetFacts) => KernelIr;
}

export type PassName =
  | "fold"
  | "share"
  | "reduce-strength"
  | "convert-ifs"
  | "split-addresses"
  | "narrow"
  | "hoist"
  | "drop"
  | "renumber";

/** Every pass once. */
export const passes: { readonly [Name in PassName]: Pass["run"] } = {
  fold,
  share: shareCommonSubexpressions,
  "reduce-strength": reduceStrength,
  "convert-ifs": convertIfs,
  "split-addresses": splitAddresses,
  narrow: narrowIndices,
  hoist: hoistInvariants,
  drop: dropDeadCode,
  renumber,
};

/**
 * The order. Folding comes first, so that all others see constants; addresses are split before multiplications become
 * shifts, and sharing afterwards finds the sums that splitting made equal.
 */
export const pipeline: readonly PassName[] = [
  "fold",
  "share",
  "drop",
  "convert-ifs",
  "split-addresses",
  "narrow",
  "fold",
  "share",
  "drop",
  "reduce-strength",
  "fold",
  "hoist",
  "share",
  "drop",
  "renumber",
];

/** Choices of {@link optimise}. */
export interface OptimiseOptions {
  /** Stop after this pass's first turn (for tests and dumps). */
  readonly stopAfter?: PassName | undefined;
  /** Called after each pass, with what it made. */
  readonly inspect?: ((pass: PassName, kernel: KernelIr) => void) | undefined;
  /** Demand that every block barrier is provably reached by all threads (WGSL). Default false. */
  readonly strictUniformity?: boolean | undefined;
}

/**
 * A verified kernel made fast.
 *
 * @throws CompileError if a block barrier is under control flow that splits the block
 */
export function optimise(kernel: KernelIr, facts: TargetFacts, options: OptimiseOptions = {}): KernelIr {
  let current = kernel;
  for (const name of pipeline) {
    current = passes[name](current, facts);
    options.inspect?.(name, current);
    if (name === options.stopAfter) return current;
  }
  checkConvergence(current, { strict: options.strictUniformity });
  return current;
}
