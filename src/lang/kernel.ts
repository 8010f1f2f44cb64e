/**
 * @file `kernel()`: a TypeScript function that is traced into a {@link KernelIr} once per specialisation.
 */
import { ArgumentError, type SourcePosition } from "../errors.ts";
import type { KernelIr } from "../ir/nodes.ts";
import type { TargetFacts } from "../target/facts.ts";
import { declareParameters, type KernelArguments, type ParameterDescriptors } from "./parameters.ts";
import { capturePosition } from "./position.ts";
import { Tracer, traceError, withTracer } from "./trace.ts";

/** Threads per block: a number, up to three extents, or a function of the target's facts. */
export type BlockSize = number | readonly number[];

/** What {@link kernel} takes. */
export interface KernelDefinition<P extends ParameterDescriptors> {
  readonly params: P;
  readonly block: BlockSize | ((facts: TargetFacts) => BlockSize);
  /** Blocks per cluster. */
  readonly cluster?: BlockSize;
  /** Resident blocks per multiprocessor to leave registers for. */
  readonly blocksPerMultiprocessor?: number;
  /** Traced once per specialisation, with the target's facts. */
  readonly body: (args: KernelArguments<P>, facts: TargetFacts) => void;
}

/** A kernel: its definition and how to trace it. */
export interface Kernel<P extends ParameterDescriptors = ParameterDescriptors> {
  readonly name: string;
  readonly params: P;
  /** Runs the body with symbolic values. */
  trace(facts: TargetFacts): KernelIr;
}

const namePattern = /^[A-Za-z][A-Za-z0-9_]{0,62}$/;

/**
 * Defines a kernel. `name` and parameter names match `/^[A-Za-z][A-Za-z0-9_]{0,62}$/`.
 * @throws ArgumentError for a name that is no identifier.
 */
export function kernel<const P extends ParameterDescriptors>(
  name: string,
  definition: KernelDefinition<P>,
): Kernel<P> {
  for (const identifier of [name, ...Object.keys(definition.params)]) {
    if (!namePattern.test(identifier)) {
      throw new ArgumentError(
        `${JSON.stringify(identifier)} is no name for a kernel or parameter: a letter, then letters, digits or _, at most 63 in all`,
      );
    }
  }
  const defined = capturePosition();
  return { name, params: definition.params, trace: (facts) => traceKernel(name, definition, defined, facts) };
}

function extents(size: BlockSize, what: string, name: string): readonly [number, number, number] {
  const list = typeof size === "number" ? [size] : size;
  const valid =
    list.length >= 1 && list.length <= 3 && list.every((extent) => Number.isInteger(extent) && extent >= 1);
  if (!valid)
    throw new ArgumentError(`kernel ${name}: ${what} is 1 to 3 positive integers, not [${list.join(", ")}]`);
  return [list[0], list[1] ?? 1, list[2] ?? 1];
}

function traceKernel<P extends ParameterDescriptors>(
  name: string,
  definition: KernelDefinition<P>,
  defined: SourcePosition | undefined,
  facts: TargetFacts,
): KernelIr {
  const size = typeof definition.block === "function" ? definition.block(facts) : definition.block;
  const block = extents(size, "block", name);
  const threads = block[0] * block[1] * block[2];
  if (threads > facts.limits.threadsPerBlock) {
    throw new ArgumentError(
      `kernel ${name}: a block of ${threads} threads; ${facts.name} takes at most ${facts.limits.threadsPerBlock}`,
    );
  }
  const trace = new Tracer(name, facts, block);
  const { parameters, bind } = declareParameters(definition.params);
  trace.parameters.push(...parameters);
  withTracer(trace, defined, () => definition.body(bind() as KernelArguments<P>, facts));
  checkComparisons(trace);
  if (trace.sharedBytes > facts.limits.sharedBytes) {
    const message = `${trace.sharedBytes} bytes of shared memory; ${facts.name} has ${facts.limits.sharedBytes} a block`;
    throw traceError(name, message, [defined]);
  }
  return {
    name,
    parameters: trace.parameters,
    shared: trace.shared,
    sharedBytes: trace.sharedBytes,
    sharedAlignment: trace.sharedAlignment,
    constants: trace.constants,
    variables: trace.variables,
    block,
    cluster: definition.cluster === undefined ? undefined : extents(definition.cluster, "cluster", name),
    subgroupSize: facts.subgroup.width,
    blocksPerMultiprocessor: definition.blocksPerMultiprocessor,
    body: { statements: trace.root.statements },
    valueCount: trace.valueCount,
    positions: trace.positions,
  };
}

function checkComparisons(trace: Tracer): void {
  const [site] = trace.idleComparisons.values();
  if (site === undefined) return;
  throw traceError(
    trace.kernelName,
    "nothing uses this comparison; a JavaScript `if`, `?:`, `&&` or `!` cannot test it, write when(), select(), .and(), .not()",
    [trace.positions[site]],
  );
}
