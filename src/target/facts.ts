/**
 * @file What a target can do, as plain data. Kernels, layouts, operators and heuristics ask facts, never a target's name.
 */
import type { TypeName } from "../types/types.ts";

/** One matrix instruction: types of A, B and the accumulator, and its shape. */
export interface MatrixInstruction {
  readonly a: TypeName;
  readonly b: TypeName;
  readonly accumulator: TypeName;
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

/** Facts of one target. Sizes in bytes, counts in units. */
export interface TargetFacts {
  /** For messages and file names: "sm_90a", "wgsl", "simulator". */
  readonly name: string;
  /** Language of generated text. */
  readonly language: "ptx" | "wgsl" | "javascript";
  /** Lanes of a subgroup (warp). Kernels are traced for `subgroup.width`. */
  readonly subgroup: { readonly width: number };
  /** Types with native arithmetic in registers. */
  readonly arithmetic: ReadonlySet<TypeName>;
  /** Types that arrays can have. */
  readonly storage: ReadonlySet<TypeName>;
  readonly limits: {
    readonly threadsPerBlock: number;
    /** Shared memory that one block can have, opt-in included. */
    readonly sharedBytes: number;
    readonly registersPerThread: number;
    readonly namedBarriers: number;
    readonly gridX: number;
    readonly gridY: number;
    readonly gridZ: number;
    readonly blocksPerCluster: number;
  };
  /** mma.sync. */
  readonly mma: readonly MatrixInstruction[];
  readonly wmma: readonly MatrixInstruction[];
  /** wgmma, with n the largest width; every multiple of 8 (16 from 32 on for integers) up to it exists. */
  readonly warpgroupMma: readonly MatrixInstruction[];
  readonly loadMatrix: boolean;
  readonly storeMatrix: boolean;
  /** cp.async. */
  readonly asyncCopy: boolean;
  /** mbarrier with expected bytes, tensor maps, clusters, elect. */
  readonly bulkCopy: boolean;
  /** Plain mbarrier. */
  readonly barriers: boolean;
  /** setmaxnreg. */
  readonly registerReallocation: boolean;
  readonly namedBarriers: boolean;
  readonly subgroupOperations: boolean;
  /** Pairs of 8-bit types that one instruction multiplies and adds in fours (dp4a, WGSL's packed dot products). */
  readonly packedDot: readonly (readonly [a: TypeName, b: TypeName])[];
  /** Native conversions to and from fp8. */
  readonly fp8Conversion: boolean;
  /** Memory takes 8- and 16-bit elements by themselves; else they are parts of words, taken apart and put together. */
  readonly byteAddressable: boolean;
  /** Atomic types by operation name: e.g. atomics.get("add") has "f32". */
  readonly atomics: ReadonlyMap<string, ReadonlySet<TypeName>>;
  /** What heuristics need to know about the machine; conservative guesses where a target does not tell. */
  readonly machine: {
    readonly multiprocessors: number;
    readonly sharedBytesPerMultiprocessor: number;
    readonly registersPerMultiprocessor: number;
    readonly l2Bytes: number;
    readonly memoryBytes: number;
  };
}
