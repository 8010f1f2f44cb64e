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
  WindowMap,
  type WindowMapDescriptor,
  windowMap,
} from "../../lang/index.ts";
import type { ExtraValue } from "../extras.ts";
import { componentsOf, type GemmKind } from "../kind.ts";
import { groupRows, isWidened, isWindowed, kMajor, lineBytes, tileType } from "./warpgroup-shape.ts";

/** Elements of a line of a tile. */
function lineElements(kind: GemmKind, operand: "a" | "b"): number {
  return lineBytes / byteSize(tileType(kind, operand));
}

/** Bytes of a line as a tensor map brings it, over which units of 16 are exchanged: 64 where they become 128 later. */
export function broughtLineBytes(kind: GemmKind, operand: "a" | "b"): 64 | 128 {
  return (lineElements(kind, operand) * byteSize(kind[operand].type)) as 64 | 128;
}

/** Extents of a box: lines, as many as one load brings, one plane of several components, and one matrix of a batch. */
function boxOf(kind: GemmKind, operand: "a" | "b"): readonly number[] {
  const { m, n, k } = kind.params.block;
  const line = lineElements(kind, operand);
  const box = kMajor(kind, operand) ? [line, operand === "a" ? m : n] : [line, k];
  const single = [componentsOf(kind) > 1, kind.batch !== "single"].flatMap((several) => (several ? [1] : []));
  return [...box, ...single];
}

/** The tensor map of an operand; f32 is rounded to tf32 on its way, because the instructions would cut its low bits off. */
export function operandMap(
  kind: GemmKind,
  operand: "a" | "b",
): TensorMapDescriptor<StorageType> | WindowMapDescriptor<StorageType> {
  const rounding = kind.types[operand] === tf32 ? ({ rounding: "tf32" } as const) : {};
  if (isWindowed(kind, operand)) {
    const shape = { channels: lineElements(kind, operand), pixels: kind.params.block.m };
    return windowMap(kind[operand].type, shape, broughtLineBytes(kind, operand), rounding);
  }
  return tensorMap(kind[operand].type, boxOf(kind, operand), broughtLineBytes(kind, operand), rounding);
}

/** Where a tile of an operand is to go. */
export interface StageTarget {
  readonly stage: Value<I32>;
  /** Receive the bytes, at the stage's number. */
  readonly barriers: BarrierArray;
}

/** One operand's stages. */
export class StagedOperand {
  /** Where instructions find it. */
  readonly memory: SharedMemory<StorageType>;
  /** Where tensor maps bring it: there, too, unless its elements change their type in between. */
  readonly brought: SharedMemory<StorageType>;
  /** Elements of a stage: planes of components, one after another. */
  readonly elements: number;
  readonly #planes: number;
  readonly #planeElements: number;
  /** Rows of A or columns of B in a tile. */
  readonly #across: number;
  /** Elements of a line of 128 bytes. */
  readonly #line: number;

  constructor(
    readonly kind: GemmKind,
    readonly operand: "a" | "b",
    stages: number,
    /** What its layout takes at run time. */
    private readonly extras: readonly ExtraValue[],
  ) {
    const { m, n, k } = kind.params.block;
    this.#across = operand === "a" ? m : n;
    this.#planes = componentsOf(kind);
    this.#planeElements = this.#across * k;
    this.elements = this.#planes * this.#planeElements;
    this.#line = lineElements(kind, operand);
    // 128-byte swizzle patterns repeat every 1024 bytes, and descriptors count from there.
    this.memory = shared(tileType(kind, operand), stages * this.elements, 1024);
    this.brought = isWidened(kind, operand)
      ? shared(kind[operand].type, stages * this.elements, 1024)
      : this.memory;
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
    map: TensorMap<StorageType> | WindowMap<StorageType>,
    { stage, barriers }: StageTarget,
    { depth, across }: { readonly depth: Value<I32>; readonly across: Value<I32> },
    matrix: Value<I32> | undefined,
  ): void {
    const barrier = { barriers, index: stage };
    if (map instanceof WindowMap) {
      const { place, offset } = this.kind[this.operand].layout.window!(across, depth, this.extras);
      map.load(this.brought, stage.mul(this.elements), place, offset, barrier);
      return;
    }
    const { k } = this.kind.params.block;
    for (let plane = 0; plane < this.#planes; plane++) {
      const origin = stage.mul(this.elements).add(plane * this.#planeElements);
      const outer = [...(this.#planes === 1 ? [] : [plane]), ...(matrix === undefined ? [] : [matrix])];
      if (kMajor(this.kind, this.operand)) {
        map.load(this.brought, origin, [depth, across, ...outer], barrier);
        continue;
      }
      for (let first = 0; first < this.#across; first += this.#line)
        map.load(this.brought, origin.add(first * k), [across.add(first), depth, ...outer], barrier);
    }
  }

  /** Where the K slice from element `inner` on begins in a plane, and how it lies; of A, the rows of one warpgroup. */
  slice(stage: Value<I32>, inner: number, group: Value<I32> | undefined, plane = 0): SharedMatrixOperand {
    const { k } = this.kind.params.block;
    const origin = this.rowsOf(stage, group).add(plane * this.#planeElements);
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

  /** First element of a stage, or of a warpgroup's 64 rows in it, in the first plane. */
  rowsOf(stage: Value<I32>, group: Value<I32> | undefined): Value<I32> {
    const origin = stage.mul(this.elements);
    return group === undefined ? origin : origin.add(group.mul(groupRows * this.kind.params.block.k));
  }
}
