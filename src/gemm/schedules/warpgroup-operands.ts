/**
 * @file A and B of a warpgroup product: their tensor maps, their tiles in the stages of shared memory, and how the
 * instruction finds a K slice of them.
 */
import {
  type BarrierArray,
  byteSize,
  type I32,
  type SharedMatrixOperand,
  type SharedMemory,
  type StorageType,
  shared,
  type TensorMap,
  type TensorMapDescriptor,
  tensorMap,
  tf32,
  type Value,
} from "../../lang/index.ts";
import type { GemmKind } from "../kind.ts";
import { groupRows, kMajor, lineBytes } from "./warpgroup-shape.ts";

/** Extents of a box: lines of 128 bytes, as many as one load brings, and one matrix of a batch. */
function boxOf(kind: GemmKind, operand: "a" | "b"): readonly number[] {
  const { m, n, k } = kind.params.block;
  const line = lineBytes / byteSize(kind[operand].type);
  const box = kMajor(kind, operand) ? [line, operand === "a" ? m : n] : [line, k];
  return kind.batch === "single" ? box : [...box, 1];
}

/** The tensor map of an operand; f32 is rounded to tf32 on its way, because the instructions would cut its low bits off. */
export function operandMap(kind: GemmKind, operand: "a" | "b"): TensorMapDescriptor<StorageType> {
  const rounding = kind.types[operand] === tf32 ? ({ rounding: "tf32" } as const) : {};
  return tensorMap(kind[operand].type, boxOf(kind, operand), lineBytes, rounding);
}

/** Where a tile of an operand is to go. */
export interface StageTarget {
  readonly stage: Value<I32>;
  /** Receives the bytes, at the stage's number. */
  readonly full: BarrierArray;
}

/** One operand's stages. */
export class StagedOperand {
  readonly memory: SharedMemory<StorageType>;
  /** Elements of a stage. */
  readonly elements: number;
  /** Rows of A or columns of B in a tile. */
  readonly #across: number;
  /** Elements of a line of 128 bytes. */
  readonly #line: number;

  constructor(
    private readonly kind: GemmKind,
    private readonly operand: "a" | "b",
    stages: number,
  ) {
    const { m, n, k } = kind.params.block;
    this.#across = operand === "a" ? m : n;
    this.elements = this.#across * k;
    this.#line = lineBytes / byteSize(kind[operand].type);
    // 128-byte swizzle patterns repeat every 1024 bytes, and descriptors count from there.
    this.memory = shared(kind[operand].type, stages * this.elements, 1024);
  }

  /** Bytes that the loads of one stage bring. */
  get bytes(): number {
    return this.elements * byteSize(this.kind[this.operand].type);
  }

  /**
   * Starts loading the tile at (depth, across) of a matrix: lines along K, or groups of 64 lines along M or N. `matrix` is
   * its number among those of the map; undefined where the map holds one.
   */
  load(
    map: TensorMap<StorageType>,
    { stage, full }: StageTarget,
    { depth, across }: { readonly depth: Value<I32>; readonly across: Value<I32> },
    matrix: Value<I32> | undefined,
  ): void {
    const origin = stage.mul(this.elements);
    const barrier = { barriers: full, index: stage };
    const number = matrix === undefined ? [] : [matrix];
    if (kMajor(this.kind, this.operand)) {
      map.load(this.memory, origin, [depth, across, ...number], barrier);
      return;
    }
    const { k } = this.kind.params.block;
    for (let first = 0; first < this.#across; first += this.#line) {
      map.load(this.memory, origin.add(first * k), [across.add(first), depth, ...number], barrier);
    }
  }

  /** Where the K slice from element `inner` on begins, and how it lies; of A, the rows of one warpgroup. */
  slice(stage: Value<I32>, inner: number, group: Value<I32> | undefined): SharedMatrixOperand {
    const { k } = this.kind.params.block;
    const origin = this.rowsOf(stage, group);
    const memory = this.memory;
    if (kMajor(this.kind, this.operand)) {
      return {
        memory,
        position: origin.add(inner),
        swizzle: lineBytes,
        major: "k",
        strideBytes: 8 * lineBytes,
      };
    }
    // Groups of 64 lines along M or N follow each other; within a group, eight K lines make one pattern.
    return {
      memory,
      position: origin.add(inner * this.#line),
      swizzle: lineBytes,
      major: "mn",
      strideBytes: 8 * lineBytes,
      leadingBytes: k * lineBytes,
    };
  }

  /** First element of a stage, or of a warpgroup's 64 rows in it. */
  rowsOf(stage: Value<I32>, group: Value<I32> | undefined): Value<I32> {
    const origin = stage.mul(this.elements);
    return group === undefined ? origin : origin.add(group.mul(groupRows * this.kind.params.block.k));
  }
}
