/**
 * @file What a caller gets for a compiled kernel, and gives to launch it.
 */
import type { KernelIr } from "../ir/nodes.ts";
import type { HostArguments, Kernel, ParameterDescriptors } from "../lang/index.ts";
import type { Executable } from "./backend.ts";

/** Blocks to launch: along x, or along up to three axes. Any of them 0 launches nothing. */
export type GridSize = number | readonly number[];

/** What to launch a kernel on. */
export interface LaunchOptions<P extends ParameterDescriptors> {
  readonly blocks: GridSize;
  readonly args: HostArguments<P>;
}

/** Options of compiling. */
export interface CompileOptions {
  readonly signal?: AbortSignal | undefined;
}

/** Arguments checked and made ready once, for many launches. */
export interface BoundLaunch {
  /**
   * Enqueues a launch.
   * @throws ArgumentError for a grid that the device does not take, DisposedError when an array is gone
   */
  launch(blocks: GridSize): void;
  /** Gives back what was made ready; launches already enqueued run. */
  dispose(): void;
  [Symbol.dispose](): void;
}

/** A kernel compiled for one device. */
export interface CompiledKernel<P extends ParameterDescriptors = ParameterDescriptors> {
  readonly name: string;
  readonly kernel: Kernel<P>;
  /** The optimised representation. */
  readonly ir: KernelIr;
  /** PTX, WGSL or JavaScript. */
  readonly text: string;
  /** What the driver tells after compiling, where it does. */
  readonly registersPerThread: number | undefined;
  readonly spilledBytes: number | undefined;
  readonly blocksPerMultiprocessor: number | undefined;
  /** @internal */
  readonly executable: Executable;
  /**
   * Checks arguments and makes them ready.
   * @throws ArgumentError, ShapeError, TypeMismatchError, DisposedError naming kernel and argument
   */
  bind(args: HostArguments<P>): BoundLaunch;
}
