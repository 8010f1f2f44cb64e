/**
 * @file What a concrete device must provide; `device.ts` builds everything else on it. A backend knows memory, modules
 * and launches; it knows nothing of tracing.
 */
import type { KernelIr, TensorMapParameter } from "../ir/nodes.ts";
import type { ArgumentSlot } from "../ir/parameters.ts";
import type { TargetFacts } from "../target/facts.ts";
import type { ShaderInterface } from "../target/webgpu.ts";

/** An allocation on the device. */
export interface BackendBuffer {
  readonly bytes: number;
}

/** A strided box over a buffer, for tensor maps: extents and strides innermost first, in elements. */
export interface TensorView {
  readonly buffer: BackendBuffer;
  readonly byteOffset: number;
  readonly sizes: readonly number[];
  readonly strides: readonly number[];
  /** Of images that are walked through by windows: where places begin and end, and how far they are apart. */
  readonly windows?: WindowPlaces;
}

/** Places of a filter's first weight on images, along x and y. */
export interface WindowPlaces {
  /** The first place, seen from an image's first pixel: minus the padding. */
  readonly lower: readonly [x: number, y: number];
  /** The end of places, seen from an image's end. */
  readonly upper: readonly [x: number, y: number];
  readonly strides: readonly [x: number, y: number];
}

/** Value of one {@link ArgumentSlot}, in the same order. */
export type ArgumentValue =
  | {
      readonly kind: "pointer";
      readonly buffer: BackendBuffer;
      readonly byteOffset: number;
      readonly byteLength: number;
    }
  | { readonly kind: "number"; readonly value: number | bigint }
  | { readonly kind: "tensorMap"; readonly map: TensorMapParameter; readonly view: TensorView };

/** Text and facts that a launch needs. */
export interface Module {
  readonly name: string;
  /** PTX, WGSL or JavaScript; what code generation made. */
  readonly text: string;
  /** Content hash of text and slots: one executable per hash and device. */
  readonly hash: string;
  /** The optimised kernel; simulators read positions from it. */
  readonly ir: KernelIr;
  readonly slots: readonly ArgumentSlot[];
  /** How WGSL is launched; other languages go by the slots alone. */
  readonly shader?: ShaderInterface | undefined;
}

/** A loaded module. */
export interface Executable {
  readonly module: Module;
  /** Facts the driver tells after compiling, where it does. */
  readonly registersPerThread: number | undefined;
  readonly spilledBytes: number | undefined;
  /** Blocks resident per multiprocessor, where the driver tells. */
  readonly blocksPerMultiprocessor: number | undefined;
  /** What the driver's or browser's compiler said, where it said something. */
  readonly log?: string | undefined;
}

/** Prepared native arguments of one launch; reused by plans. Owns the memory the driver reads. */
export interface PreparedLaunch {
  dispose(): void;
}

/** Launches, copies and fills that one call enqueues again, in their order. */
export interface CapturedWork {
  /** Enqueues. @throws DisposedError when this or memory that the work uses was disposed */
  launch(): void;
  dispose(): void;
}

/** Options of `Backend.load`. */
export interface LoadOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface Backend {
  readonly kind: "cuda" | "webgpu" | "simulator";
  readonly name: string;
  readonly facts: TargetFacts;
  allocate(bytes: number): BackendBuffer;
  /** Takes effect after work already enqueued. */
  free(buffer: BackendBuffer): void;
  /** Enqueued in order with launches; `data` may be reused when this returns. */
  write(buffer: BackendBuffer, byteOffset: number, data: Uint8Array): void;
  /** Resolves when earlier work is done. Rejects with the first device fault. */
  read(buffer: BackendBuffer, byteOffset: number, target: Uint8Array): Promise<void>;
  /** Device to device, in order. */
  copy(
    source: BackendBuffer,
    sourceOffset: number,
    target: BackendBuffer,
    targetOffset: number,
    bytes: number,
  ): void;
  /** Repeats a 32-bit word over a range, lowest byte first, from `byteOffset` on; narrower patterns fill the word. */
  fill(buffer: BackendBuffer, byteOffset: number, bytes: number, pattern: number): void;
  load(module: Module, options?: LoadOptions): Promise<Executable>;
  prepare(executable: Executable, values: readonly ArgumentValue[]): PreparedLaunch;
  /** Enqueues; throws at once for a bad grid, faults reject the next sync or read. */
  launch(executable: Executable, grid: readonly [number, number, number], prepared: PreparedLaunch): void;
  /**
   * What `enqueue` would enqueue, without doing it. Grids and arguments are kept as they are now. Writes, reads,
   * allocations and disposals are refused inside.
   */
  capture(enqueue: () => void): CapturedWork;
  sync(): Promise<void>;
  /** Seconds that enqueued work takes on the device's own clock. */
  time(enqueue: () => void): Promise<number>;
  /** Where an allocation begins in the address space of kernels, on devices where they have one. */
  addressOf?(buffer: BackendBuffer): number;
  memory(): { readonly free: number; readonly total: number };
  dispose(): void;
}
