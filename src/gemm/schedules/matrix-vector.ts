/**
 * @file The matrix-vector schedule: products one side of which is a few vectors, at the speed of memory. The matrix is
 * read once and goes through no shared memory; see the kernel for how its sums are joined.
 */
import { type ElementType, isArithmetic, type StorageType } from "../../lang/index.ts";
import type { TargetFacts } from "../../target/facts.ts";
import { defaultEpilogue } from "../epilogues/epilogue.ts";
import { checkSplit, mayDivide } from "../split.ts";
import { gemmArguments } from "./kernel-interface.ts";
import { matrixVectorParts } from "./matrix-vector-finish.ts";
import { matrixVectorKernel } from "./matrix-vector-kernel.ts";
import {
  checkVectors,
  chooseShape,
  mostVectors,
  shapeOf,
  streamedOf,
  sumBytes,
} from "./matrix-vector-shape.ts";
import { arithmeticOf } from "./matrix-vector-stream.ts";
import {
  componentsRefusal,
  type GemmLaunch,
  type Schedule,
  tilesOf,
  type UnscheduledKind,
} from "./schedule.ts";

function refusal(kind: UnscheduledKind, { problem }: GemmLaunch, facts: TargetFacts): string | undefined {
  if (kind.batch === "grouped") return "the products of a group have sizes of their own";
  const elements = componentsRefusal(kind);
  if (elements !== undefined) return elements;
  const vectors = Math.min(problem.m, problem.n);
  if (vectors === 0) return "D has no elements";
  const { type } = kind[streamedOf(problem)];
  // The lanes' multiply-adds keep up with memory for some vectors of elements of a width, and no longer.
  const most = Math.min(mostVectors, type.bits / 2);
  if (vectors > most)
    return `it is for at most ${most} vectors of ${type.name}, and D is ${problem.m} x ${problem.n}`;
  const { accumulator } = kind.types;
  if (!isArithmetic(accumulator as ElementType) || !facts.arithmetic.has(accumulator.name))
    return `${facts.name} has no arithmetic in ${accumulator.name}`;
  if (arithmeticOf(kind).add === undefined)
    return `the ${kind.operator.name} operator does not say how sums that were made apart are added`;
  if (kind.epilogue !== defaultEpilogue)
    return `the ${kind.epilogue.name} epilogue wants tiles of accumulators`;
  return undefined;
}

/** A matrix by a few vectors. */
export const matrixVectorSchedule: Schedule = {
  name: "matrix-vector",
  forgoes: ({ semiring }) => semiring === undefined,
  refusal,
  params: (kind, { problem, batch, k }, facts) =>
    chooseShape(
      kind,
      { m: problem.m, n: problem.n, k, repeats: batch.count, divisible: mayDivide(kind) },
      facts,
    ),
  check(kind, facts, launch) {
    checkVectors(shapeOf(kind, facts), launch);
    checkSplit(kind);
  },
  kernel: matrixVectorKernel,
  arguments: gemmArguments,
  blocks: (kind, launch) => tilesOf(launch, kind.params),
  parts: matrixVectorParts,
  operatorName: (kind) => (kind.operator.semiring === undefined ? "fma" : kind.operator.name),
  describe(kind, facts) {
    const shape = shapeOf(kind, facts);
    const { streamed, vectors, alongK, lines, width, lanes, warps, held, turns, depth } = shape;
    const bytes = (width * kind[streamed].type.bits) / 8;
    const type = kind.types.accumulator as StorageType;
    return [
      `schedule   matrix-vector: ${streamed.toUpperCase()} streams past ${vectors} vector${vectors === 1 ? "" : "s"}, ${bytes} bytes an access along ${alongK ? "K" : "lines"}`,
      `tiles      block ${lines} lines, ${warps.lines} warps along them and ${warps.depth} along K; warp ${lanes.lines} x ${lanes.depth} lanes, steps of ${depth}`,
      `lanes      ${held} lines each, ${turns * (alongK ? held : 1)} accesses under way`,
      `shared     ${sumBytes(shape, type)} bytes a block`,
    ];
  },
};
