/**
 * @file The warpgroup schedule: when its kernel can serve, and what that is given.
 */
import { byteSize } from "../../lang/index.ts";
import type { TargetFacts } from "../../target/facts.ts";
import { defaultEpilogue } from "../epilogues/epilogue.ts";
import { factsOf, rowMajor } from "../layouts/layout.ts";
import type { GemmParams } from "../params.ts";
import { withSplit } from "../split.ts";
import {
  componentsRefusal,
  type GemmLaunch,
  type Schedule,
  tilesOf,
  type UnscheduledKind,
} from "./schedule.ts";
import { warpgroupArguments } from "./warpgroup-interface.ts";
import { warpgroupKernel } from "./warpgroup-kernel.ts";
import { rewritingWarps } from "./warpgroup-rewriting.ts";
import {
  canTurn,
  check,
  consumersOf,
  depthOf,
  instructionOf,
  isPingPong,
  kMajor,
  narrowTypes,
  passageOf,
  rewrittenOf,
  sized,
  stageCount,
  tileType,
} from "./warpgroup-shape.ts";
import { warpgroupParts } from "./warpgroup-store.ts";

function refusal(kind: UnscheduledKind, launch: GemmLaunch, facts: TargetFacts): string | undefined {
  if (facts.warpgroupMma.length === 0 || !facts.bulkCopy)
    return "the target has no warpgroup products or tensor maps";
  const elements = componentsRefusal(kind);
  if (elements !== undefined) return elements;
  const instruction = instructionOf(kind, facts);
  const { a, b, accumulator } = kind.types;
  if (instruction === undefined)
    return `no warpgroup instruction multiplies ${a.name}·${b.name} into ${accumulator.name}`;
  const reason = operandRefusal(kind, "a") ?? operandRefusal(kind, "b");
  if (reason !== undefined) return reason;
  if (kind.d.layout !== rowMajor) return "D is not row-major";
  if (kind.c !== undefined && kind.c.layout !== rowMajor) return "C is not row-major";
  if (kind.epilogue !== defaultEpilogue) return "the epilogue wants accumulators in shared memory";
  if (kind.batch === "grouped") return "its tensor maps hold matrices of one size";
  if (launch.k === 0) return "there are no K steps";
  return undefined;
}

/** Why tensor maps and instructions cannot have an operand as it is. */
function operandRefusal(kind: UnscheduledKind, name: "a" | "b"): string | undefined {
  const operand = kind[name];
  const upper = name.toUpperCase();
  const passage = passageOf(kind, name);
  const { movement, maskedBox = false } = factsOf(operand.layout);
  if (movement !== "box" && !(maskedBox && passage !== "direct"))
    return `${upper}'s layout (${operand.layout.name}) is not what a tensor map reads`;
  if (operand.alignment < 16)
    return `${upper}'s lines are aligned to ${operand.alignment} bytes and tensor maps want 16`;
  const tile = tileType(kind, name);
  if (passage !== "direct" && (tile.bits !== 16 || operand.type.bits > 16))
    return `${upper}'s elements of type ${operand.type.name} are changed on their way to ${kind.types[name].name}, which warpgroups do from 8 or 16 bits to 16`;
  if (tile.bits !== 16 && !kMajor(kind, name))
    return `warpgroups multiply ${kind.types[name].name} with K contiguous, and ${upper}'s elements are neighbours along ${name === "a" ? "M" : "N"}`;
  return undefined;
}

/** Tile shapes, largest first. */
const shapes = [
  { m: 128, n: 256 },
  { m: 256, n: 128 },
  { m: 128, n: 192 },
  { m: 128, n: 128 },
  { m: 128, n: 64 },
] as const;

/** Tile shapes where lanes hold elements of A besides sums, and where they hold two sets of sums. */
const lowShapes = shapes.filter(({ m }) => m === 128);
const promotedShapes = lowShapes.slice(1);

/**
 * Columns of a tile that would take as long as the loads of its rows of A, and what else is done once a tile: measured for
 * 16-bit operands (tiles of 128 columns took 0.67 of the time of tiles of 256); two sets of sums hide most of it.
 */
const columnsOfRows = { usual: 132, promoted: 32 };

/**
 * Tiles in turn load more for each product than tiles twice as wide, and hide every epilogue but the last: on an H200, with
 * 7.8 rounds and more, they took 0.85 to 1.01 of the time, with 4.4 rounds 1.1, and 1.3 where lines straddle cache lines.
 */
const inTurn = { fewestRounds: 7, lineAlignment: 128 };

/** Whether tiles in turn take no more rounds than `best`, and hide more than they load. */
function turnsPay(kind: UnscheduledKind, launch: GemmLaunch, best: GemmParams, facts: TargetFacts): boolean {
  const { block: extents } = best;
  const operands = [kind.a, kind.b].map(({ type }, i) => ({
    type,
    leading: (i === 0 ? launch.problem.a : launch.problem.b).leading,
  }));
  const turns = turning(extents.k);
  const rounds = (params: GemmParams): number => tilesOf(launch, params) / facts.machine.multiprocessors;
  return (
    extents.m * extents.n === 2 * turns.block.m * turns.block.n &&
    canTurn({ ...kind, schedule: "warpgroup", params: turns }) &&
    rounds(turns) >= inTurn.fewestRounds &&
    Math.ceil(rounds(turns)) <= 2 * Math.ceil(rounds(best)) &&
    operands.every(({ type, leading }) => (leading * byteSize(type)) % inTurn.lineAlignment === 0)
  );
}

function turning(depth: number): GemmParams {
  return { block: { m: 128, n: 128, k: depth }, warps: { m: 4, n: 1 }, groupRows: 8 };
}

/** Elements of K below which the kernel that adds parts takes longer than they save. */
const shortestDivided = 2048;

function params(kind: UnscheduledKind, launch: GemmLaunch, facts: TargetFacts): GemmParams {
  const depth = depthOf(kind);
  const { multiprocessors } = facts.machine;
  const tiles = (shape: { readonly m: number; readonly n: number }): number =>
    tilesOf(launch, { block: { ...shape, k: depth }, warps: { m: 8, n: 1 }, groupRows: 16 });
  // The width of the tiles that each multiprocessor computes in turn, as though of 128 rows, beside what comes once a tile.
  const time = (shape: (typeof shapes)[number]): number =>
    Math.ceil(tiles(shape) / multiprocessors) * ((shape.m / 128) * shape.n + beside);
  const promoted = kind.types.promotionInterval !== undefined;
  const possible = promoted ? promotedShapes : passageOf(kind, "a") === "registers" ? lowShapes : shapes;
  const beside = promoted ? columnsOfRows.promoted : columnsOfRows.usual;
  const { m: rows, n: columns } = possible.reduce((best, shape) => (time(shape) < time(best) ? shape : best));
  const whole = {
    block: { m: rows, n: columns, k: depth },
    warps: { m: 8, n: 1 },
    groupRows: 2048 / rows,
  };
  if (turnsPay(kind, launch, whole, facts)) return turning(depth);
  return launch.k < shortestDivided ? whole : withSplit(kind, launch, whole, facts);
}

/** Tensor maps, a ring of stages, a producer and consumer warpgroups, resident blocks. */
export const warpgroupSchedule: Schedule = {
  name: "warpgroup",
  forgoes: () => true,
  refusal,
  params,
  typesOf: narrowTypes,
  check,
  kernel: warpgroupKernel,
  arguments: warpgroupArguments,
  blocks: (kind, launch, facts) => Math.min(tilesOf(launch, kind.params), facts.machine.multiprocessors),
  parts: warpgroupParts,
  operatorName(kind, facts) {
    const { m, n, k } = sized(kind, facts);
    return `wgmma m${m}n${n}k${k}`;
  },
  describe(kind, facts) {
    const { block: extents } = kind.params;
    const passages = (["a", "b"] as const).map((name) => ({
      name: name.toUpperCase(),
      passage: passageOf(kind, name),
    }));
    const changed = passages.filter(({ passage }) => passage !== "direct");
    const ways = changed.map(({ name, passage }) =>
      passage === "registers" ? `${name} changed in registers` : `${name} rewritten in shared memory`,
    );
    const rewriters = rewrittenOf(kind).length === 0 ? "" : `, ${rewritingWarps} warps that rewrite`;
    return [
      `schedule   warpgroup: tensor maps, ${stageCount(kind, facts)} stages, one producer${rewriters}, ${consumersOf(kind)} consumer warpgroups${isPingPong(kind) ? " with tiles in turn (ping-pong)" : ""}, resident blocks`,
      ...(ways.length === 0 ? [] : [`operands   ${ways.join(", ")}`]),
      `tiles      block ${extents.m} x ${extents.n} x ${extents.k}`,
    ];
  },
};
