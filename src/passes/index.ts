/**
 * @file The passes and their order. Each takes a kernel to an equivalent one.
 */
import type { KernelIr } from "../ir/nodes.ts";
import type { TargetFacts } from "../target/facts.ts";

export type PassName = string;
export interface OptimiseOptions {
  readonly stopAfter?: PassName | undefined;
  readonly strictUniformity?: boolean | undefined;
}
/** Applies the passes in order. */
export function optimise(kernel: KernelIr, _facts: TargetFacts, _options: OptimiseOptions = {}): KernelIr {
  return kernel;
}
