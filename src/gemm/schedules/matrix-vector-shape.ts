/**
 * @file The shape of a matrix-vector product: which operand is streamed, and which lanes, warps and blocks read what of it.
 *
 * One operand is a matrix of many lines, the other a few vectors along K. A lane reads 16 bytes of the matrix at a time:
 * neighbours along K where K is the contiguous direction, neighbouring lines where it is not. The lanes of a subgroup form a
 * grid along lines and K, the warps of a block another one.
 */
import { ArgumentError } from "../../errors.ts";
import { byteSize, type StorageType } from "../../lang/index.ts";
import type { TargetFacts } from "../../target/facts.ts";
import { gatePair } from "../gate-columns.ts";
import { accessWidth, type GemmKind } from "../kind.ts";
import type { GemmParams } from "../params.ts";
import type { GemmLaunch, UnscheduledKind } from "./schedule.ts";

/** Which operand is the matrix of many lines. */
export type Streamed = "a" | "b";

/** What is compiled in, read out of the params. */
export interface MatrixVectorShape {
  readonly streamed: Streamed;
  readonly thin: Streamed;
  /** Whether the matrix's elements are neighbours along K. */
  readonly alongK: boolean;
  readonly vectors: number;
  /** Lines of the matrix that a block reads. */
  readonly lines: number;
  /** Elements of one access to the matrix. */
  readonly width: number;
  /** The grid of lanes. */
  readonly lanes: { readonly lines: number; readonly depth: number };
  /** The grid of warps. */
  readonly warps: { readonly lines: number; readonly depth: number };
  /** Lines that a lane sums. */
  readonly held: number;
  /** Accesses along K that a lane has under way at once for each of its lines, or runs of lines. */
  readonly turns: number;
  /** Elements along K of one step of a warp. */
  readonly depth: number;
}

/** Most vectors that are multiplied at once. */
export const mostVectors = 8;
/** Accumulators of a lane beyond which few bytes can be under way. */
const mostAccumulators = 64;
/** Bytes of the sums that warps leave for each other; all targets have that much. */
const mostSumBytes = 16384;
/** Warps of a block, of 32 lanes. */
const mostWarps = 8;

/** Which operand is streamed where D is m x n. */
export function streamedOf({ m, n }: { readonly m: number; readonly n: number }): Streamed {
  return n <= m ? "a" : "b";
}

function isAlongK(kind: Pick<GemmKind, "a" | "b">, streamed: Streamed): boolean {
  return kind[streamed].layout.major === (streamed === "a" ? "row" : "column");
}

/** Sums of all warps of a block, in bytes. */
export function sumBytes({ lines, vectors, warps }: MatrixVectorShape, accumulator: StorageType): number {
  return lines * vectors * warps.depth * byteSize(accumulator);
}

const isPowerOfTwo = (x: number): boolean => Number.isInteger(x) && x >= 1 && (x & (x - 1)) === 0;

/**
 * The shape that params say.
 * @throws ArgumentError for params that say none
 */
export function shapeOf(
  kind: Pick<GemmKind, "a" | "b" | "params" | "types" | "gate">,
  facts: TargetFacts,
): MatrixVectorShape {
  const { block, warps: grid, copies } = kind.params;
  const refuse = (what: string): never => {
    throw new ArgumentError(`params with the matrix-vector schedule: ${what}`);
  };
  if (block.m === block.n)
    return refuse(`block.m = block.n = ${block.m}; the larger says which operand is streamed`);
  const streamed: Streamed = block.m > block.n ? "a" : "b";
  const [lines, vectors, across] = streamed === "a" ? [block.m, block.n, grid.n] : [block.n, block.m, grid.m];
  const warps = { lines: streamed === "a" ? grid.m : grid.n, depth: grid.k ?? 1 };
  if (across !== 1) return refuse(`${across} warps along the vectors; one is wanted`);
  if (!Number.isInteger(vectors) || vectors < 1 || vectors > mostVectors)
    return refuse(`${vectors} vectors; 1 to ${mostVectors} are wanted`);
  for (const [name, count] of Object.entries({ ...warps, "block's lines": lines, "block.k": block.k })) {
    if (!isPowerOfTwo(count)) return refuse(`${name} ${String(count)} is no power of two`);
  }
  if (kind.gate !== undefined && (streamed === "a" || lines % gatePair !== 0))
    return refuse(`with gate, block.n is a multiple of ${gatePair}, not ${block.n}`);
  const threads = warps.lines * warps.depth * facts.subgroup.width;
  if (threads > facts.limits.threadsPerBlock)
    return refuse(`${threads} threads; ${facts.name} has ${facts.limits.threadsPerBlock} a block`);
  const alongK = isAlongK(kind, streamed);
  const perWarp = lines / warps.lines;
  const { width: subgroup } = facts.subgroup;
  const width = accessWidth(kind[streamed], alongK ? block.k : perWarp, copies?.[streamed]);
  const lanesAcross = alongK ? subgroup / Math.min(subgroup, block.k / width) : perWarp / width;
  const lanes = { lines: lanesAcross, depth: subgroup / lanesAcross };
  const held = alongK ? perWarp / lanes.lines : width;
  const turns = block.k / lanes.depth / (alongK ? width : 1);
  for (const [name, count] of Object.entries({
    "lanes along lines": lanes.lines,
    "lanes along K": lanes.depth,
    "lines a lane": held,
    "accesses a step": turns,
  })) {
    if (!isPowerOfTwo(count))
      return refuse(`${name} would be ${count}, for ${lines} lines and steps of ${block.k}`);
  }
  const shape: MatrixVectorShape = {
    streamed,
    thin: streamed === "a" ? "b" : "a",
    alongK,
    vectors,
    lines,
    width,
    lanes,
    warps,
    held,
    turns,
    depth: block.k,
  };
  if (held * vectors > 2 * mostAccumulators)
    return refuse(`${held * vectors} sums a lane; at most ${2 * mostAccumulators} are wanted`);
  if (sumBytes(shape, kind.types.accumulator as StorageType) > facts.limits.sharedBytes)
    return refuse("the sums of a block do not fit shared memory");
  return shape;
}

/** The next power of two, up or down. */
const upTo = (x: number): number => 2 ** Math.ceil(Math.log2(Math.max(1, x)));
const downTo = (x: number): number => 2 ** Math.floor(Math.log2(Math.max(1, x)));

/** Bytes that a lane is to have under way, and accesses that make them at most. */
const bytesUnderWay = 128;
const mostAccesses = 16;
/** Warps of 32 lanes that a multiprocessor is to have: with those bytes, some 100 KiB under way. */
const warpsWanted = 24;

/** What of a launch decides the shape. */
export interface MatrixVectorSize {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  /** Matrices of the batch. */
  readonly repeats: number;
  /** Whether parts of K may have blocks of their own. */
  readonly divisible: boolean;
}

/** Steps of a warp that are worth a part of K. */
const fewestSteps = 2;
/** Parts of K beyond which adding them takes longer than it saves. */
const mostParts = 64;

/** Params for those who give none. */
export function chooseShape(kind: UnscheduledKind, size: MatrixVectorSize, facts: TargetFacts): GemmParams {
  const streamed = streamedOf(size);
  const [extent, vectors] = streamed === "a" ? [size.m, size.n] : [size.n, size.m];
  const { width: subgroup } = facts.subgroup;
  const operand = kind[streamed];
  const bytes = byteSize(operand.type);
  const alongK = isAlongK(kind, streamed);
  const width = accessWidth(operand, 16, undefined);
  const limit = Math.max(1, Math.floor(mostAccumulators / vectors));
  const wanted = Math.max(1, Math.floor(bytesUnderWay / (width * bytes)));
  let lanes: number;
  let held: number;
  let turns: number;
  if (alongK) {
    lanes = subgroup / Math.min(subgroup, upTo(size.k / width));
    held = Math.min(4, upTo(extent / lanes), downTo(limit));
    turns = Math.min(wanted, mostAccesses) / held;
    turns = Math.min(Math.max(1, turns), upTo(size.k / (width * (subgroup / lanes))));
  } else {
    held = width;
    // Runs of 256 bytes are read at full speed; narrower ones leave more warps for the same lines.
    const run = upTo(256 / (width * bytes));
    lanes = Math.min(subgroup, run, upTo(extent / width));
    turns = Math.min(
      wanted,
      mostAccesses,
      Math.max(2, (2 * limit) / width),
      upTo(size.k / (subgroup / lanes)),
    );
  }
  turns = downTo(turns);
  const perWarp = lanes * held;
  const depth = (subgroup / lanes) * turns * (alongK ? width : 1);
  const groups = Math.ceil(extent / perWarp) * Math.max(1, size.repeats);
  const goal = facts.machine.multiprocessors * warpsWanted;
  const steps = Math.max(1, Math.ceil(size.k / depth));
  const accumulator = byteSize(kind.types.accumulator as StorageType);
  const fit = Math.min(mostWarps, downTo(mostSumBytes / (perWarp * vectors * accumulator)));
  // Both factors of a gated product's element are in one block.
  const least = kind.gate === undefined ? vectors + 1 : gatePair;
  const most = Math.max(1, downTo(Math.min(1, perWarp / least) * fit));
  let along = 1;
  while (along < most && groups * along < goal && along * 2 * fewestSteps <= steps) along *= 2;
  let lineWarps = Math.max(1, fit / along);
  while (lineWarps > 1 && perWarp * (lineWarps / 2) >= Math.max(extent, least)) lineWarps /= 2;
  while (perWarp * lineWarps < least) lineWarps *= 2;
  const parts = size.divisible
    ? Math.min(mostParts, Math.floor(goal / (groups * along)), Math.floor(steps / (along * fewestSteps)))
    : 1;
  const lines = perWarp * lineWarps;
  return {
    block: streamed === "a" ? { m: lines, n: vectors, k: depth } : { m: vectors, n: lines, k: depth },
    warps: streamed === "a" ? { m: lineWarps, n: 1, k: along } : { m: 1, n: lineWarps, k: along },
    groupRows: 1,
    ...(parts > 1 ? { splitK: parts } : {}),
  };
}

/** @throws ArgumentError unless the block has as many vectors as the problem */
export function checkVectors({ streamed, vectors }: MatrixVectorShape, { problem }: GemmLaunch): void {
  const given = streamed === "a" ? problem.n : problem.m;
  if (given === vectors) return;
  throw new ArgumentError(
    `params: the block is ${vectors} vectors wide and the product ${given}; the matrix-vector schedule wants all of them at once`,
  );
}
