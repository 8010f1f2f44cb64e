/**
 * @file Matrix instructions on fragments: `mma` (mma.sync with ldmatrix), `wmma`, and `warpgroupMma` (wgmma). They name
 * their accumulator as destination and return nothing.
 */
import type { SharedArray, SwizzleBytes } from "../ir/nodes.ts";
import type { SharedMatrix } from "../ir/operations.ts";
import type { MatrixInstruction, TargetFacts } from "../target/facts.ts";
import {
  type ElementType,
  f32,
  type I32,
  i32,
  type StorageType,
  type TypeName,
  types,
} from "../types/types.ts";
import {
  type AnyFragment,
  Fragment,
  type FragmentUse,
  mmaLayout,
  packedLanes,
  sideBySide,
  warpgroupLayout,
} from "./fragment.ts";
import { type GlobalArray, type IndexOperand, indexOperand, type SharedMemory } from "./memory.ts";
import { tracer } from "./trace.ts";
import { type Condition, conditionValue, type Operand, typedOperand, use } from "./value.ts";

/** The register type of a compute type: tf32 numbers live in f32 registers. */
function held(name: TypeName): ElementType {
  return name === "tf32" ? f32 : types[name];
}

/** A name like "m16n8k16 f16·f16→f32" for messages. */
export function describeInstruction(i: MatrixInstruction): string {
  return `m${i.m}n${i.n}k${i.k} ${i.a}·${i.b}→${i.accumulator}`;
}

/** Finds an instruction among facts; the first that agrees with everything given. */
export function findInstruction(
  list: TargetFacts["mma"],
  wanted: Partial<MatrixInstruction>,
): MatrixInstruction | undefined {
  return list.find((instruction) =>
    Object.entries(wanted).every(
      ([key, value]) => value === undefined || instruction[key as keyof MatrixInstruction] === value,
    ),
  );
}

/** Registers of one operand of an `mma` instruction. */
function mmaRegisters(instruction: MatrixInstruction, operand: FragmentUse): number {
  const { m, n, k } = instruction;
  const elements = { a: m * k, b: k * n, accumulator: m * n }[operand] / 32;
  return elements / packedLanes(held(instruction[operand]));
}

/**
 * A fresh fragment for one operand of an `mma` instruction; for B, `count` operands side by side along N, which one
 * ldmatrix can fill together.
 */
export function mmaFragment(instruction: MatrixInstruction, operand: FragmentUse, count = 1): AnyFragment {
  const type = held(instruction[operand]);
  const registers = mmaRegisters(instruction, operand);
  const single = mmaLayout(instruction, operand, type);
  const packed = packedLanes(type);
  const layout = count === 1 ? single : sideBySide(single, count, registers * packed);
  return new Fragment(type, packed, registers * count, layout, operand);
}

/** d += a · b by one warp (mma.sync); of a B with several operands side by side, the one numbered `whichB`. */
export function mma(
  instruction: MatrixInstruction,
  d: AnyFragment,
  a: AnyFragment,
  b: AnyFragment,
  whichB = 0,
): void {
  const registers = mmaRegisters(instruction, "b");
  tracer().emit("mma", undefined, [], matrixAttributes(instruction), [
    d.range("readwrite"),
    a.range("read"),
    b.range("read", whichB * registers, registers),
  ]);
}

function matrixAttributes(instruction: MatrixInstruction): {
  readonly shape: { readonly m: number; readonly n: number; readonly k: number };
  readonly a: ElementType;
  readonly b: ElementType;
  readonly accumulator: ElementType;
} {
  const { m, n, k, a, b, accumulator } = instruction;
  return { shape: { m, n, k }, a: types[a], b: types[b], accumulator: types[accumulator] };
}

/** Where {@link loadMatrix} puts its registers. */
export interface LoadMatrixOptions {
  readonly transpose?: boolean;
  readonly firstRegister?: number;
}

/**
 * ldmatrix: loads `count` 8x8 matrices of 16-bit elements into consecutive registers. Lane l gives the position of row
 * l % 8 of matrix l / 8; each row is 16 bytes, 16-byte aligned.
 */
export function loadMatrix<T extends StorageType>(
  target: AnyFragment,
  count: 1 | 2 | 4,
  source: SharedMemory<T>,
  position: IndexOperand,
  options: LoadMatrixOptions = {},
): void {
  tracer().emit(
    "loadMatrix",
    undefined,
    [indexOperand(position)],
    { array: source.array, offset: 0, count, transpose: options.transpose ?? false },
    [target.range("write", options.firstRegister ?? 0, count)],
  );
}

/** stmatrix: the inverse of {@link loadMatrix}. */
export function storeMatrix<T extends StorageType>(
  source: AnyFragment,
  count: 1 | 2 | 4,
  target: SharedMemory<T>,
  position: IndexOperand,
  options: LoadMatrixOptions = {},
): void {
  tracer().emit(
    "storeMatrix",
    undefined,
    [indexOperand(position)],
    { array: target.array, offset: 0, count, transpose: options.transpose ?? false },
    [source.range("read", options.firstRegister ?? 0, count)],
  );
}

/** Registers of each wmma operand (PTX ISA, "Matrix fragments for wmma"). */
function wmmaRegisters(instruction: MatrixInstruction, operand: FragmentUse): number {
  const { m, n, k } = instruction;
  const type = held(instruction[operand]);
  const packed = packedLanes(type);
  // f16 operands hold every element twice; all others exactly once.
  if (operand !== "accumulator" && type.name === "f16") return 8;
  const elements = { a: m * k, b: k * n, accumulator: m * n }[operand] / 32;
  return elements / packed;
}

/** Order of a matrix in memory. */
export type Major = "row" | "column";

/** A fresh fragment for one operand of a `wmma` instruction; its layout is opaque. */
export function wmmaFragment(instruction: MatrixInstruction, operand: FragmentUse): AnyFragment {
  const type = held(instruction[operand]);
  return new Fragment(type, packedLanes(type), wmmaRegisters(instruction, operand), undefined, operand);
}

/** Loads a whole operand tile; `leading` is the distance between rows (row-major) or columns, in elements. */
export function wmmaLoad<T extends StorageType>(
  instruction: MatrixInstruction,
  operand: FragmentUse,
  target: AnyFragment,
  source: SharedMemory<T> | GlobalArray<T>,
  position: IndexOperand,
  leading: Operand<I32>,
  major: Major,
): void {
  const { m, n, k } = instruction;
  tracer().emit(
    "wmmaLoad",
    undefined,
    [indexOperand(position), use(typedOperand(leading, i32))],
    {
      array: source.reference,
      offset: 0,
      use: operand,
      shape: { m, n, k },
      element: types[instruction[operand]],
      major,
    },
    [target.range("write")],
  );
}

/** Stores an accumulator tile. */
export function wmmaStore<T extends StorageType>(
  instruction: MatrixInstruction,
  source: AnyFragment,
  target: SharedMemory<T> | GlobalArray<T>,
  position: IndexOperand,
  leading: Operand<I32>,
  major: Major,
): void {
  const { m, n, k } = instruction;
  tracer().emit(
    "wmmaStore",
    undefined,
    [indexOperand(position), use(typedOperand(leading, i32))],
    {
      array: target.reference,
      offset: 0,
      shape: { m, n, k },
      element: types[instruction.accumulator],
      major,
    },
    [source.range("read")],
  );
}

/** d += a · b by one warp (wmma.mma). */
export function wmma(
  instruction: MatrixInstruction,
  d: AnyFragment,
  a: AnyFragment,
  b: AnyFragment,
  majorA: Major,
  majorB: Major,
): void {
  tracer().emit("wmmaMma", undefined, [], { ...matrixAttributes(instruction), majorA, majorB }, [
    d.range("readwrite"),
    a.range("read"),
    b.range("read"),
  ]);
}

/** A fresh fragment of a warpgroup instruction: the accumulator, or A held in registers. */
export function warpgroupFragment(instruction: MatrixInstruction, operand: "a" | "accumulator"): AnyFragment {
  const type = held(instruction[operand]);
  const elements = (64 * (operand === "a" ? instruction.k : instruction.n)) / 128;
  const packed = packedLanes(type);
  return new Fragment(type, packed, elements / packed, warpgroupLayout(instruction, operand, type), operand);
}

/** A matrix operand in shared memory. */
export interface SharedMatrixOperand {
  readonly memory: { readonly array: SharedArray };
  readonly position: IndexOperand;
  readonly swizzle: SwizzleBytes;
  /** "k": K is contiguous; "mn": M (or N) is. */
  readonly major: "k" | "mn";
  /** Byte distances as the PTX ISA's matrix descriptor defines them; the defaults suit tiles that a tensor map wrote. */
  readonly leadingBytes?: number;
  readonly strideBytes?: number;
}

/** Options of {@link warpgroupMma}. */
export interface WarpgroupMmaOptions {
  /** false gives D = A·B instead of D += A·B. */
  readonly accumulate?: Condition;
  readonly negateA?: boolean;
  readonly negateB?: boolean;
}

/**
 * Starts d (+)= a · b by the four warps of a warpgroup (wgmma). B, and A unless it is a fragment, come from shared memory.
 * Between the start and {@link warpgroupWait} nothing may touch the accumulator, a register A, or the shared tiles.
 */
export function warpgroupMma(
  instruction: MatrixInstruction,
  d: AnyFragment,
  a: SharedMatrixOperand | AnyFragment,
  b: SharedMatrixOperand,
  options: WarpgroupMmaOptions = {},
): void {
  const accumulate = use(conditionValue(options.accumulate ?? true));
  const fromRegisters = a instanceof Fragment;
  const operands = fromRegisters ? [] : [indexOperand(a.position)];
  operands.push(indexOperand(b.position), accumulate);
  tracer().emit(
    "warpgroupMma",
    undefined,
    operands,
    {
      ...matrixAttributes(instruction),
      sharedA: fromRegisters ? undefined : sharedMatrix(a),
      sharedB: sharedMatrix(b),
      negateA: options.negateA ?? false,
      negateB: options.negateB ?? false,
    },
    fromRegisters ? [d.range("readwrite"), a.range("read")] : [d.range("readwrite")],
  );
}

function sharedMatrix(operand: SharedMatrixOperand): SharedMatrix {
  const { memory, swizzle, major } = operand;
  // Eight rows of the swizzle span form one atom; the next atom follows directly where a tensor map wrote the tile.
  const strideBytes = operand.strideBytes ?? 8 * Math.max(swizzle, 16);
  return {
    array: memory.array,
    offset: 0,
    swizzle,
    major,
    leadingBytes: operand.leadingBytes ?? 16,
    strideBytes,
  };
}

/** Orders register accesses before the warpgroup products that follow; needed before the first of a sequence. */
export function warpgroupFence(): void {
  tracer().emit("warpgroupFence", undefined, [], {});
}
/** Closes the group of the warpgroup products since the last commit. */
export function warpgroupCommit(): void {
  tracer().emit("warpgroupCommit", undefined, [], {});
}
/** Waits until at most `pending` of the newest groups are unfinished. */
export function warpgroupWait(pending: number): void {
  tracer().emit("warpgroupWait", undefined, [], { pending });
}
