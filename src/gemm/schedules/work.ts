/**
 * @file What a block computes: which matrices of a batch, which part of K, which tile.
 *
 * Blocks are numbered part by part, in it matrix by matrix, in it tile by tile. All of it is arguments of the kernel; what
 * is compiled in is that there is a batch, or that K is divided.
 */
import { type I32, type Index, index, type Value } from "../../lang/index.ts";
import type { GemmKind } from "../kind.ts";

/** Arguments that say which matrices there are. */
export interface WorkArguments {
  readonly m: Value<I32>;
  readonly n: Value<I32>;
  readonly k: Value<I32>;
  /** Matrices of the batch; only where K is divided and there is a batch. */
  readonly batches: Value<I32>;
  /** Parts that K is divided into; only where it is. */
  readonly parts: Value<I32>;
  readonly strideA: Value<Index>;
  readonly strideB: Value<Index>;
  readonly strideC: Value<Index>;
  readonly strideD: Value<Index>;
}

/** K steps from one on, up to another. */
export interface StepRange {
  readonly first: Value<I32> | 0;
  readonly end: Value<I32>;
}

/** What one block does, or does next. */
export interface Work {
  /** Number of the tile in its matrix. */
  readonly tile: Value<I32>;
  /** Number of the matrix of A, B and C; undefined where there is one. */
  readonly batch: Value<I32> | undefined;
  /** Number of the matrix of D: of parts and batch together. */
  readonly target: Value<I32> | undefined;
  /** The part of a tile's K steps. */
  range(steps: Value<I32>): StepRange;
}

/** Whether K is divided among blocks. */
export function dividesK({ params }: Pick<GemmKind, "params">): boolean {
  return (params.splitK ?? 1) > 1;
}

/** The work with a number, where each matrix of D has `tiles` tiles. */
export function workOf(
  kind: Pick<GemmKind, "params" | "batch">,
  args: Pick<WorkArguments, "batches" | "parts">,
  number: Value<I32>,
  tiles: () => Value<I32>,
): Work {
  const batched = kind.batch === "strided";
  const divided = dividesK(kind);
  const all = (steps: Value<I32>): StepRange => ({ first: 0, end: steps });
  if (!batched && !divided) return { tile: number, batch: undefined, target: undefined, range: all };
  const each = tiles();
  const target = number.div(each);
  const tile = number.sub(target.mul(each));
  if (!divided) return { tile, batch: target, target, range: all };
  const part = batched ? target.div(args.batches) : target;
  const batch = batched ? target.sub(part.mul(args.batches)) : undefined;
  return {
    tile,
    batch,
    target,
    range(steps) {
      const share = steps.ceilDiv(args.parts);
      return { first: part.mul(share), end: part.add(1).mul(share).min(steps) };
    },
  };
}

/** Elements before matrix `number`. */
export function matrixStart(number: Value<I32>, stride: Value<Index>): Value<Index> {
  return number.to(index).mul(stride);
}
