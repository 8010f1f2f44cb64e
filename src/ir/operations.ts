/**
 * @file The one table of operations: what each does to memory and control, and what attributes it carries.
 *
 * Verifier, passes, every code generator and the simulator work from this table. Adding an operation means a line in
 * {@link Attributes}, a line in {@link operations}, and (the compiler insists) an entry in each target's table.
 */
import type { ElementType, StorageType } from "../types/types.ts";
import type { ArrayReference, SharedArray, SwizzleBytes, TensorMapParameter } from "./declarations.ts";

type None = Readonly<Record<never, never>>;

/** Names of the values that hardware provides. All are i32. */
export type BuiltinName =
  | "threadIndexX"
  | "threadIndexY"
  | "threadIndexZ"
  | "blockIndexX"
  | "blockIndexY"
  | "blockIndexZ"
  | "gridSizeX"
  | "gridSizeY"
  | "gridSizeZ"
  | "lane"
  | "subgroupIndex"
  | "clusterRank"
  | "clusterIndexX"
  | "clusterIndexY"
  | "clusterIndexZ";

export type MemoryScope = "block" | "cluster" | "device" | "system";
export type MemoryOrder = "relaxed" | "acquire" | "release" | "acquireRelease";
export type AtomicOperation = "add" | "min" | "max" | "and" | "or" | "xor" | "exchange" | "compareExchange";

/** An access: the operand that is the element index counts from `offset` elements into the array. */
interface Access {
  readonly array: ArrayReference;
  /** Compile-time part of the element index; passes move constants of the index here. */
  readonly offset: number;
}

interface SharedAccess {
  readonly array: SharedArray;
  readonly offset: number;
}

export interface MatrixShape {
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

/** How a warpgroup matrix operand lies in shared memory (PTX ISA, "Shared memory matrix layout"). */
export interface SharedMatrix extends SharedAccess {
  readonly swizzle: SwizzleBytes;
  /** "k": K contiguous; "mn": M (or N) contiguous. */
  readonly major: "k" | "mn";
  /** Byte distances of the descriptor. */
  readonly leadingBytes: number;
  readonly strideBytes: number;
}

export interface Attributes {
  // Pure, elementwise over lanes unless said. -------------------------------------------------------------------
  readonly add: None;
  readonly sub: None;
  readonly mul: None;
  /** High half of the full product (i32, u32). */
  readonly mulHigh: None;
  /** Integers: truncating, x/0 = x, MIN/-1 = MIN. Floats: correctly rounded in f32 and f64. */
  readonly div: None;
  /** Integers: sign of the dividend, x%0 = 0. */
  readonly rem: None;
  /** Integers, rounding toward minus infinity; x/0 = x. */
  readonly floorDiv: None;
  /** Integers, sign of the divisor; x mod 0 = 0. */
  readonly floorMod: None;
  readonly neg: None;
  readonly abs: None;
  /** The number when one side is NaN. */
  readonly min: None;
  readonly max: None;
  /** a*b + c rounded once (floats); a*b + c wrapped (integers). */
  readonly fma: None;
  readonly and: None;
  readonly or: None;
  readonly xor: None;
  readonly not: None;
  /** Shift count (second operand, u32 or i32) modulo the width; shiftRight is arithmetic for signed types. */
  readonly shiftLeft: None;
  readonly shiftRight: None;
  readonly equal: None;
  readonly notEqual: None;
  readonly less: None;
  readonly lessEqual: None;
  readonly greater: None;
  readonly greaterEqual: None;
  readonly isNaN: None;
  /** operands: condition (bool scalar), a, b → condition ? a : b. */
  readonly select: None;
  readonly sqrt: None;
  /** Approximate in f32 (about 2 units in the last place), as are the five below. */
  readonly reciprocalSqrt: None;
  readonly reciprocal: None;
  readonly exp2: None;
  readonly log2: None;
  readonly sin: None;
  readonly cos: None;
  readonly tanh: None;
  readonly floor: None;
  readonly ceil: None;
  readonly trunc: None;
  /** To the nearest integer, ties to even. */
  readonly roundEven: None;
  /** To the result's element type: see types/convert.ts for the rules. `tf32` results are f32 values with 10 bits. */
  readonly convert: None;
  /** Same bits, other type; total width must agree (vec2 of f16 ↔ u32). */
  readonly bitcast: None;
  readonly popcount: None;
  readonly leadingZeros: None;
  readonly reverseBits: None;
  /** Four products of packed bytes plus an i32: operands a, b (u32 words), c (i32). */
  readonly dot4: { readonly signedA: boolean; readonly signedB: boolean };
  /** Bytes of (a, b) chosen by four selector nibbles in c (PTX prmt, default mode); all u32. */
  readonly permuteBytes: None;
  /** Scalars into a vector, lane 0 first. */
  readonly compose: None;
  /** One lane of a vector. */
  readonly extract: { readonly lane: number };
  readonly builtin: { readonly builtin: BuiltinName };
  readonly parameter: { readonly parameter: number };
  /** i32 extent of a buffer's dimension. */
  readonly bufferSize: { readonly parameter: number; readonly dimension: number };
  /** index: distance in elements between neighbours along a dimension. */
  readonly bufferStride: { readonly parameter: number; readonly dimension: number };

  // Register variables. -----------------------------------------------------------------------------------------
  /** registers: [one element, read]. */
  readonly readRegister: None;
  /** registers: [one element, write]; operands: value. */
  readonly writeRegister: None;

  // Memory. Operand 0 is the element index (i32, u32 or index). --------------------------------------------------
  /** Result lanes is the vector width; the address must be a multiple of the whole vector's bytes. */
  readonly load: Access & { readonly cache: "default" | "streaming" | "volatile" };
  /** operands: index, value. */
  readonly store: Access & { readonly cache: "default" | "streaming" | "volatile" };
  /** operands: index, value (compareExchange: index, expected, replacement). Result: the old value. */
  readonly atomic: Access & {
    readonly operation: AtomicOperation;
    readonly order: MemoryOrder;
    readonly scope: MemoryScope;
  };

  // Collectives over a subgroup; all its lanes must arrive together. ----------------------------------------------
  /** operands: value, lane|delta|mask (i32). Out-of-range sources give the lane's own value. `width`: power of two. */
  readonly shuffle: { readonly mode: "index" | "up" | "down" | "xor"; readonly width: number };
  /** operands: bool. Result: bool. */
  readonly vote: { readonly mode: "any" | "all" };
  /** operands: bool. Result: u32 mask of the lanes for which it holds (subgroups up to 32 lanes). */
  readonly ballot: None;
  /** Same result in every lane. */
  readonly subgroupReduce: { readonly operation: "add" | "min" | "max" | "and" | "or" | "xor" };
  /** bool: true in exactly one lane of the subgroup. */
  readonly electOne: None;

  // Synchronisation. -------------------------------------------------------------------------------------------
  readonly blockBarrier: None;
  /** operands: barrier id (i32, 1…15). `threads` is a multiple of the subgroup size. */
  readonly namedBarrier: { readonly action: "sync" | "arrive"; readonly threads: number };
  readonly subgroupBarrier: None;
  readonly fence: { readonly scope: MemoryScope };
  /** Makes this thread's generic writes to shared memory visible to asynchronous reads (TMA stores, wgmma). */
  readonly proxyFence: None;
  /** Makes mbarrier initialisation visible to the cluster and the asynchronous engines. */
  readonly barrierInitFence: None;
  readonly clusterBarrier: { readonly action: "arrive" | "wait" };
  /** operands: barrier index. */
  readonly barrierInit: SharedAccess & { readonly count: number };
  /** operands: barrier index [, rank of the block in the cluster (i32)]. */
  readonly barrierArrive: SharedAccess;
  /** Arrive and announce bytes that asynchronous copies will deliver. operands: barrier index, bytes (i32). */
  readonly barrierArriveExpect: SharedAccess;
  /** Blocks until the phase with this parity has completed. operands: barrier index, parity (i32, 0 or 1). */
  readonly barrierWait: SharedAccess;

  // Asynchronous copies. -----------------------------------------------------------------------------------------
  /**
   * Global to shared, per thread (cp.async). operands: shared index, global index [, valid bytes (i32; the rest becomes
   * zero)]. `bytes` 4, 8 or 16.
   */
  readonly copyAsync: {
    readonly target: SharedArray;
    readonly targetOffset: number;
    readonly source: ArrayReference;
    readonly sourceOffset: number;
    readonly bytes: 4 | 8 | 16;
    /** "second": past the first-level cache (16 bytes alone); the default for those. */
    readonly cache?: "first" | "second";
    /** Bytes around the source that the second-level cache is to fetch. */
    readonly prefetchBytes?: 64 | 128 | 256;
  };
  readonly copyAsyncCommit: None;
  readonly copyAsyncWait: { readonly pending: number };
  /** The barrier's pending count falls when this thread's earlier copyAsync are done. operands: barrier index. */
  readonly copyAsyncArrive: SharedAccess;
  /**
   * A box of a tensor into shared memory (TMA). operands: target index, barrier index, coordinates innermost first (i32),
   * then with a map of windows the offsets of x and y (i32) [, u32 cluster mask].
   */
  readonly tensorLoad: {
    readonly map: TensorMapParameter;
    readonly target: SharedArray;
    readonly targetOffset: number;
    readonly barrier: SharedArray;
    readonly barrierOffset: number;
    readonly multicast: boolean;
  };
  /** Shared memory into a box of a tensor. operands: source index, coordinates innermost first (i32). */
  readonly tensorStore: {
    readonly map: TensorMapParameter;
    readonly source: SharedArray;
    readonly sourceOffset: number;
  };
  readonly tensorStoreCommit: None;
  /** `read`: only that the sources may be rewritten. */
  readonly tensorStoreWait: { readonly pending: number; readonly read: boolean };
  readonly prefetchTensorMap: { readonly map: TensorMapParameter };

  // Matrix instructions; fragments are register variables, touched in place. -----------------------------------------
  /** ldmatrix: `count` 8x8 matrices of 16-bit elements, one b32 register each. operands: row index. registers: [destination]. */
  readonly loadMatrix: SharedAccess & { readonly count: 1 | 2 | 4; readonly transpose: boolean };
  /** stmatrix. operands: row index. registers: [source]. */
  readonly storeMatrix: SharedAccess & { readonly count: 1 | 2 | 4; readonly transpose: boolean };
  /** mma.sync, A row-major, B column-major: registers: [D = C readwrite, A read, B read]. */
  readonly mma: {
    readonly shape: MatrixShape;
    readonly a: ElementType;
    readonly b: ElementType;
    readonly accumulator: ElementType;
  };
  /** operands: index, leading dimension in elements (i32). registers: [destination]. */
  readonly wmmaLoad: Access & {
    readonly use: "a" | "b" | "accumulator";
    readonly shape: MatrixShape;
    readonly element: ElementType;
    readonly major: "row" | "column";
  };
  /** operands: index, leading dimension. registers: [source]. */
  readonly wmmaStore: Access & {
    readonly shape: MatrixShape;
    readonly element: ElementType;
    readonly major: "row" | "column";
  };
  /** registers: [D = C readwrite, A read, B read]. */
  readonly wmmaMma: {
    readonly shape: MatrixShape;
    readonly a: ElementType;
    readonly b: ElementType;
    readonly accumulator: ElementType;
    readonly majorA: "row" | "column";
    readonly majorB: "row" | "column";
  };
  readonly warpgroupFence: None;
  /**
   * wgmma. operands: [A index (shared A only),] B index, accumulate (bool: false gives D = A·B).
   * registers: [D readwrite] or [D readwrite, A read].
   */
  readonly warpgroupMma: {
    readonly shape: MatrixShape;
    readonly a: ElementType;
    readonly b: ElementType;
    readonly accumulator: ElementType;
    readonly sharedA: SharedMatrix | undefined;
    readonly sharedB: SharedMatrix;
    readonly negateA: boolean;
    readonly negateB: boolean;
  };
  readonly warpgroupCommit: None;
  readonly warpgroupWait: { readonly pending: number };

  // Diagnostics. -------------------------------------------------------------------------------------------------
  /** `parts` are the literal texts around the operands (parts.length = operands.length + 1). */
  readonly print: { readonly parts: readonly string[] };
  /** operands: bool. */
  readonly assert: { readonly message: string };
}

export type OperationName = keyof Attributes;

/** Threads that must execute an operation together. */
export type Convergence = "none" | "subgroup" | "warpgroup" | "block" | "cluster";
/** Memory an operation may touch. */
export type Space = "global" | "shared" | "registers" | "host";

export interface OperationInfo {
  /** No effect beyond its result: may be shared, moved within what dominates, dropped. */
  readonly pure: boolean;
  /** Spaces read and written. A "memory" access's space is that of its array: see {@link accessSpace}. */
  readonly reads: readonly (Space | "array")[];
  readonly writes: readonly (Space | "array")[];
  /** Never predicated, duplicated or moved across divergent control flow unless "none". */
  readonly convergence: Convergence;
  /** Starts work that goes on after the operation, until the wait named here. */
  readonly asynchronousUntil: OperationName | undefined;
  /** Orders memory accesses around it: no memory operation moves across. */
  readonly orders: boolean;
}

function pure(): OperationInfo {
  return {
    pure: true,
    reads: [],
    writes: [],
    convergence: "none",
    asynchronousUntil: undefined,
    orders: false,
  };
}

function effect(info: Partial<OperationInfo>): OperationInfo {
  return {
    pure: false,
    reads: [],
    writes: [],
    convergence: "none",
    asynchronousUntil: undefined,
    orders: false,
    ...info,
  };
}

/** The table. */
export const operations: { readonly [Name in OperationName]: OperationInfo } = {
  add: pure(),
  sub: pure(),
  mul: pure(),
  mulHigh: pure(),
  div: pure(),
  rem: pure(),
  floorDiv: pure(),
  floorMod: pure(),
  neg: pure(),
  abs: pure(),
  min: pure(),
  max: pure(),
  fma: pure(),
  and: pure(),
  or: pure(),
  xor: pure(),
  not: pure(),
  shiftLeft: pure(),
  shiftRight: pure(),
  equal: pure(),
  notEqual: pure(),
  less: pure(),
  lessEqual: pure(),
  greater: pure(),
  greaterEqual: pure(),
  isNaN: pure(),
  select: pure(),
  sqrt: pure(),
  reciprocalSqrt: pure(),
  reciprocal: pure(),
  exp2: pure(),
  log2: pure(),
  sin: pure(),
  cos: pure(),
  tanh: pure(),
  floor: pure(),
  ceil: pure(),
  trunc: pure(),
  roundEven: pure(),
  convert: pure(),
  bitcast: pure(),
  popcount: pure(),
  leadingZeros: pure(),
  reverseBits: pure(),
  dot4: pure(),
  permuteBytes: pure(),
  compose: pure(),
  extract: pure(),
  builtin: pure(),
  parameter: pure(),
  bufferSize: pure(),
  bufferStride: pure(),

  readRegister: effect({ reads: ["registers"] }),
  writeRegister: effect({ writes: ["registers"] }),

  load: effect({ reads: ["array"] }),
  store: effect({ writes: ["array"] }),
  atomic: effect({ reads: ["array"], writes: ["array"], orders: true }),

  shuffle: effect({ convergence: "subgroup" }),
  vote: effect({ convergence: "subgroup" }),
  ballot: effect({ convergence: "subgroup" }),
  subgroupReduce: effect({ convergence: "subgroup" }),
  electOne: effect({ convergence: "subgroup" }),

  blockBarrier: effect({ convergence: "block", orders: true }),
  namedBarrier: effect({ convergence: "subgroup", orders: true }),
  subgroupBarrier: effect({ convergence: "subgroup", orders: true }),
  fence: effect({ orders: true }),
  proxyFence: effect({ orders: true }),
  barrierInitFence: effect({ orders: true }),
  clusterBarrier: effect({ convergence: "cluster", orders: true }),
  barrierInit: effect({ writes: ["shared"], orders: true }),
  barrierArrive: effect({ reads: ["shared"], writes: ["shared"], orders: true }),
  barrierArriveExpect: effect({ reads: ["shared"], writes: ["shared"], orders: true }),
  barrierWait: effect({ reads: ["shared"], orders: true }),

  copyAsync: effect({ reads: ["global"], writes: ["shared"], asynchronousUntil: "copyAsyncWait" }),
  copyAsyncCommit: effect({ orders: true }),
  copyAsyncWait: effect({ orders: true }),
  copyAsyncArrive: effect({ reads: ["shared"], writes: ["shared"], orders: true }),
  tensorLoad: effect({
    reads: ["global"],
    writes: ["shared"],
    asynchronousUntil: "barrierWait",
    orders: true,
  }),
  tensorStore: effect({
    reads: ["shared"],
    writes: ["global"],
    asynchronousUntil: "tensorStoreWait",
    orders: true,
  }),
  tensorStoreCommit: effect({ orders: true }),
  tensorStoreWait: effect({ orders: true }),
  prefetchTensorMap: effect({}),

  loadMatrix: effect({ reads: ["shared"], writes: ["registers"], convergence: "subgroup" }),
  storeMatrix: effect({ reads: ["registers"], writes: ["shared"], convergence: "subgroup" }),
  mma: effect({ reads: ["registers"], writes: ["registers"], convergence: "subgroup" }),
  wmmaLoad: effect({ reads: ["array"], writes: ["registers"], convergence: "subgroup" }),
  wmmaStore: effect({ reads: ["registers"], writes: ["array"], convergence: "subgroup" }),
  wmmaMma: effect({ reads: ["registers"], writes: ["registers"], convergence: "subgroup" }),
  warpgroupFence: effect({ convergence: "warpgroup", orders: true }),
  warpgroupMma: effect({
    reads: ["registers", "shared"],
    writes: ["registers"],
    convergence: "warpgroup",
    asynchronousUntil: "warpgroupWait",
    orders: true,
  }),
  warpgroupCommit: effect({ convergence: "warpgroup", orders: true }),
  warpgroupWait: effect({ convergence: "warpgroup", orders: true, writes: ["registers"] }),

  print: effect({ writes: ["host"] }),
  assert: effect({ writes: ["host"] }),
};

/** The space that an array reference lies in; constant tables count as global and are never written. */
export function accessSpace(reference: ArrayReference): "global" | "shared" | "constant" {
  return reference.kind === "buffer" ? "global" : reference.kind;
}

/** Re-exported for attribute users. */
export type { StorageType };
