/**
 * @file Params: sizes of everything that a GEMM divides, all independent, all compile-time constants of a kind.
 */
import { ArgumentError } from "../errors.ts";
import type { Operator } from "./operators/operator.ts";

/** Tile sizes and counts. */
export interface GemmParams {
  /** What one block computes, and its K step. */
  readonly block: { readonly m: number; readonly n: number; readonly k: number };
  /**
   * Warps of a block, along M and N; `k` of them share each K step with the matrix-vector schedule, 1 unless given. On
   * warpgroups, one warp for each 16 rows of a tile; or 4 for tiles of 128 rows: then each of two warpgroups computes tiles
   * of its own, in turn, and one's epilogue runs beside the other's products.
   */
  readonly warps: { readonly m: number; readonly n: number; readonly k?: number };
  /** Tile rows that blocks walk down before the next tile column: keeps B's columns in the L2 cache. */
  readonly groupRows: number;
  /** K steps that shared memory holds at once; by shared memory and schedule unless given. */
  readonly stages?: number;
  /**
   * Parts that K is divided into, each computed by blocks of its own; their sums are added in a fixed order by a second
   * kernel, which then runs the epilogue. 1, or what fills the machine where tiles are few and K is long, unless given.
   */
  readonly splitK?: number;
  /** Blocks that a multiprocessor should be able to hold at once; limits registers. Said by the compiler unless given. */
  readonly residentBlocks?: number;
  /** Elements that one access of each copy moves at most; 16 bytes' worth unless given. */
  readonly copies?: { readonly a?: number; readonly b?: number; readonly c?: number; readonly d?: number };
}

/**
 * Checks that params and an operator fit together.
 * @throws ArgumentError that names the two sizes which do not, and sizes that would
 */
export function checkParams(params: GemmParams, operator: Operator, subgroupWidth: number): void {
  const { block, warps, groupRows } = params;
  const all = {
    "block.m": block.m,
    "block.n": block.n,
    "block.k": block.k,
    "warps.m": warps.m,
    "warps.n": warps.n,
    groupRows,
    splitK: params.splitK ?? 1,
  };
  for (const [name, value] of Object.entries(all)) {
    if (!Number.isInteger(value) || value < 1)
      throw new ArgumentError(`params.${name} is a positive integer, not ${String(value)}`);
  }
  const multiple = (name: string, size: number, by: string, unit: number): void => {
    if (size % unit !== 0)
      throw new ArgumentError(`params: ${name} = ${size} is no multiple of ${by} = ${unit}`);
  };
  if ((warps.k ?? 1) !== 1)
    throw new ArgumentError(
      `params.warps.k = ${String(warps.k)}: only the matrix-vector schedule has such warps`,
    );
  const { shape } = operator;
  multiple("block.m", block.m, `warps.m x the operator's m = ${warps.m} x ${shape.m}`, warps.m * shape.m);
  multiple("block.n", block.n, `warps.n x the operator's n = ${warps.n} x ${shape.n}`, warps.n * shape.n);
  multiple("block.k", block.k, "the operator's k", shape.k);
  const threads = warps.m * warps.n * subgroupWidth;
  if (threads > 1024)
    throw new ArgumentError(
      `params: ${warps.m} x ${warps.n} warps of ${subgroupWidth} lanes are ${threads} threads; a block has at most 1024`,
    );
}
