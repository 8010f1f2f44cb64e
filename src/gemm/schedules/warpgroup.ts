/**
 * @file The warpgroup schedule: when its kernel can serve, and what that is given.
 */
import { byteSize } from "../../lang/index.ts";
import type { TargetFacts } from "../../target/facts.ts";
import { defaultEpilogue } from "../epilogues/epilogue.ts";
import { componentsOf } from "../kind.ts";
import { factsOf, rowMajor, streamsOf } from "../layouts/layout.ts";
import type { GemmParams } from "../params.ts";
import { withSplit } from "../split.ts";
import { type GemmLaunch, type Schedule, tilesOf, type UnscheduledKind } from "./schedule.ts";
import { warpgroupCandidates } from "./warpgroup-candidates.ts";
import { warpgroupArguments } from "./warpgroup-interface.ts";
import { warpgroupKernel } from "./warpgroup-kernel.ts";
import { rewritingWarps } from "./warpgroup-rewriting.ts";
import {
  canTurn,
  check,
  componentsShapeRefusal,
  consumersOf,
  depthOf,
  instructionOf,
  isPingPong,
  isWindowed,
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
  const instruction = instructionOf(kind, facts);
  const { a, b, accumulator } = kind.types;
  if (instruction === undefined)
    return `no warpgroup instruction multiplies ${a.name}·${b.name} into ${accumulator.name}`;
  const reason = elementsRefusal(kind, facts) ?? operandRefusal(kind, "a") ?? operandRefusal(kind, "b");
  if (reason !== undefined) return reason;
  if (!byRows(kind, kind.d)) return "D is not row-major";
  if (kind.c !== undefined && !byRows(kind, kind.c)) return "C is not row-major";
  if (kind.epilogue !== defaultEpilogue && kind.epilogue.algebra === undefined)
    return "the epilogue wants accumulators in shared memory";
  if (kind.batch === "grouped") return "its tensor maps hold matrices of one size";
  if (launch.k === 0) return "there are no K steps";
  return undefined;
}

/** Whether C or D lies as rows of numbers, or of elements with several components in whichever way. */
function byRows(kind: UnscheduledKind, { layout }: UnscheduledKind["d"]): boolean {
  return componentsOf(kind) === 1 ? layout === rowMajor : layout.major === "row";
}

/** Why elements with several components cannot be multiplied so; undefined when they can, or are numbers. */
function elementsRefusal(kind: UnscheduledKind, facts: TargetFacts): string | undefined {
  const components = componentsOf(kind);
  const { operator, types } = kind;
  if (components === 1) return undefined;
  if (operator.terms === undefined)
    return `${operator.name} multiplies sums of components, which warpgroups do not make`;
  if (types.a.class !== "float" && operator.terms.some(({ sign }) => sign < 0))
    return `${operator.name} negates products, and warpgroups have no sign for those of ${types.a.name}`;
  if (types.promotionInterval !== undefined)
    return `elements have ${components} components, and ${types.a.name} wants two sets of sums for each`;
  if (elementShapes(kind, facts).length === 0)
    return `elements have ${components} components, whose sums and planes fit no tile of warpgroups`;
  return undefined;
}

/** Why tensor maps and instructions cannot have the components of an operand as they are. */
function planesRefusal(kind: UnscheduledKind, name: "a" | "b"): string | undefined {
  const { layout } = kind[name];
  if (streamsOf(layout).length !== componentsOf(kind))
    return `the components of ${name.toUpperCase()}'s elements lie side by side (${layout.name}), and tensor maps want each in a matrix of its own; pack: true copies them so`;
  if (passageOf(kind, name) !== "direct")
    return `${name.toUpperCase()}'s elements of several components are changed on their way, which wants registers`;
  return undefined;
}

/** Why tensor maps and instructions cannot have an operand as it is. */
function operandRefusal(kind: UnscheduledKind, name: "a" | "b"): string | undefined {
  const operand = kind[name];
  const upper = name.toUpperCase();
  const passage = passageOf(kind, name);
  const { movement, maskedBox = false } = factsOf(operand.layout);
  const planes = componentsOf(kind) === 1 ? undefined : planesRefusal(kind, name);
  if (planes !== undefined) return planes;
  if (isWindowed(kind, name)) {
    if (name === "b" || kind.batch !== "single")
      return `${upper}'s layout (${operand.layout.name}) is what a tensor map reads as A of a single product`;
  } else if (componentsOf(kind) === 1 && movement !== "box" && !(maskedBox && passage !== "direct"))
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

/** Tile shapes for elements with several components. */
const componentShapes = [
  { m: 128, n: 128 },
  { m: 128, n: 64 },
  { m: 64, n: 64 },
] as const;

type TileShape = (typeof shapes)[number] | (typeof componentShapes)[number];

/** Tile shapes that elements with several components fit. */
function elementShapes(kind: UnscheduledKind, facts: TargetFacts): readonly TileShape[] {
  const k = depthOf(kind);
  const scheduled = ({ m, n }: TileShape) => ({
    ...kind,
    schedule: "warpgroup",
    params: { block: { m, n, k }, warps: { m: Math.min(8, m / 16), n: 1 }, groupRows: 1 },
  });
  return componentShapes.filter((shape) => componentsShapeRefusal(scheduled(shape), facts) === undefined);
}

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

/** Tile shapes that a kind can have. */
function possibleShapes(kind: UnscheduledKind, facts: TargetFacts): readonly TileShape[] {
  if (componentsOf(kind) > 1) return elementShapes(kind, facts);
  if (kind.types.promotionInterval !== undefined) return promotedShapes;
  return passageOf(kind, "a") === "registers" ? lowShapes : shapes;
}

/** Elements of K below which the kernel that adds parts takes longer than they save. */
const shortestDivided = 2048;

function params(kind: UnscheduledKind, launch: GemmLaunch, facts: TargetFacts): GemmParams {
  const depth = depthOf(kind);
  const { multiprocessors } = facts.machine;
  const tiles = (shape: { readonly m: number; readonly n: number }): number =>
    tilesOf(launch, { block: { ...shape, k: depth }, warps: { m: 8, n: 1 }, groupRows: 16 });
  // The width of the tiles that each multiprocessor computes in turn, as though of 128 rows, beside what comes once a tile.
  const time = (shape: TileShape): number =>
    Math.ceil(tiles(shape) / multiprocessors) * ((shape.m / 128) * shape.n + beside);
  const promoted = kind.types.promotionInterval !== undefined;
  const possible = possibleShapes(kind, facts);
  const beside = promoted ? columnsOfRows.promoted : columnsOfRows.usual;
  const { m: rows, n: columns } = possible.reduce((best, shape) => (time(shape) < time(best) ? shape : best));
  const whole = {
    block: { m: rows, n: columns, k: depth },
    warps: { m: Math.min(8, rows / 16), n: 1 },
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
  candidates: warpgroupCandidates,
  typesOf: narrowTypes,
  check,
  kernel: warpgroupKernel,
  arguments: warpgroupArguments,
  blocks: (kind, launch, facts) => Math.min(tilesOf(launch, kind.params), facts.machine.multiprocessors),
  parts: warpgroupParts,
  operatorName(kind, facts) {
    const { m, n, k } = sized(kind, facts);
    const { algebra } = kind.epilogue;
    return `${algebra === undefined ? "" : `${algebra.name} `}wgmma m${m}n${n}k${k}`;
  },
  describe(kind, facts) {
    const { block: extents } = kind.params;
    const passages = (["a", "b"] as const).map((name) => ({
      name: name.toUpperCase(),
      passage: passageOf(kind, name),
    }));
    const changed = passages.filter(({ passage }) => passage !== "direct");
    const ways = [
      ...(isWindowed(kind, "a") ? ["A by a tensor map of windows (im2col)"] : []),
      ...changed.map(({ name, passage }) =>
        passage === "registers" ? `${name} changed in registers` : `${name} rewritten in shared memory`,
      ),
    ];
    const rewriters = rewrittenOf(kind).length === 0 ? "" : `, ${rewritingWarps} warps that rewrite`;
    return [
      `schedule   warpgroup: tensor maps, ${stageCount(kind, facts)} stages, one producer${rewriters}, ${consumersOf(kind)} consumer warpgroups${isPingPong(kind) ? " with tiles in turn (ping-pong)" : ""}, resident blocks`,
      ...(kind.operator.terms === undefined
        ? []
        : [
            `components ${componentsOf(kind)} planes of A and of B, ${kind.operator.terms.length} products of them`,
          ]),
      ...(ways.length === 0 ? [] : [`operands   ${ways.join(", ")}`]),
      `tiles      block ${extents.m} x ${extents.n} x ${extents.k}`,
    ];
  },
};
