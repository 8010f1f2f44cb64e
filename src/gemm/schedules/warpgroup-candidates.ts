/**
 * @file What tuning tries of the warpgroup schedule: tiles, shared by two warpgroups or in turn, tile orders, parts of K.
 */
import type { TargetFacts } from "../../target/facts.ts";
import { byCost, costOfParts, ordersTried } from "../param-candidates.ts";
import type { GemmParams } from "../params.ts";
import { splitCandidates } from "../split.ts";
import { type GemmLaunch, tilesOf, type UnscheduledKind } from "./schedule.ts";
import {
  canTurn,
  depthOf,
  groupRows as rowsOfGroup,
  stagesWithin,
  threadsPerGroup,
} from "./warpgroup-shape.ts";

const rowsTried = [64, 128, 256] as const;
const columnsTried = [64, 128, 192, 256] as const;

/** Fewer stages leave the tensor cores waiting for memory. */
const fewestStages = 3;
/** Registers of a lane for sums; addresses and the epilogue's values take the others. */
const mostSums = 128;
/** Columns of a tile that take as long as what else is done once a K step, as in the schedule's own choice. */
const columnsOfRows = 132;
/** Part of what is done once a tile that tiles in turn hide. */
const hidden = 0.3;

/** Candidates by a model of rounds of tiles. */
export function warpgroupCandidates(
  kind: UnscheduledKind,
  launch: GemmLaunch,
  facts: TargetFacts,
): readonly GemmParams[] {
  const k = depthOf(kind);
  const candidates = rowsTried
    .flatMap((m) => columnsTried.map((n) => ({ m, n, k })))
    .flatMap((extents) => warpsTried(extents.m).map((m) => ({ block: extents, warps: { m, n: 1 } })))
    .flatMap((shape) => ordersTried.map((groupRows) => ({ ...shape, groupRows })))
    .flatMap((params) =>
      splitCandidates(kind, launch, params, facts).map((splitK) =>
        splitK === 1 ? params : { ...params, splitK },
      ),
    )
    .filter((params) => hasRoom({ ...kind, schedule: "warpgroup", params }, facts));
  return byCost(candidates, (params) => costOf(params, launch, facts));
}

/** Warps of a tile's rows: all that share it, or those of one warpgroup whose turn it is. */
function warpsTried(rows: number): readonly number[] {
  const shared = Math.min(8, rows / 16);
  return rows === 2 * rowsOfGroup ? [shared, 4] : [shared];
}

/** Whether lanes have registers for the sums, and shared memory has room for a ring that hides the memory's latency. */
function hasRoom(
  kind: UnscheduledKind & { params: GemmParams; schedule: string },
  facts: TargetFacts,
): boolean {
  const { block: extents, warps } = kind.params;
  const sums = (extents.m * extents.n) / ((warps.m / 4) * threadsPerGroup);
  const inTurn = extents.m === 2 * rowsOfGroup && warps.m === 4;
  return sums <= mostSums && stagesWithin(kind, facts) >= fewestStages && (!inTurn || canTurn(kind));
}

/** Time of the busiest multiprocessor in multiplications; unlike orders among equals come later. */
function costOf(params: GemmParams, launch: GemmLaunch, facts: TargetFacts): number {
  const { block: extents, warps, groupRows, splitK = 1 } = params;
  const rounds = Math.ceil(tilesOf(launch, params) / facts.machine.multiprocessors);
  const inTurn = extents.m === 2 * rowsOfGroup && warps.m === 4;
  const beside = columnsOfRows * (inTurn ? 1 - hidden : 1);
  // One warpgroup alone keeps the tensor cores half as busy.
  const alone = extents.m === rowsOfGroup ? 2 : 1;
  const width = alone * (extents.m / 128) * extents.n + beside;
  const order = groupRows === 2048 / extents.m ? 1 : 1.05;
  return order * rounds * 128 * width * (launch.k / splitK) + costOfParts(params, launch);
}
