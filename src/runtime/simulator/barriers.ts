/** @file Barriers of whole subgroups: the block's, named ones, the cluster's, a subgroup's own. */
import { type Clock, joinInto } from "./clock.ts";
import { faultError, laneFault } from "./faults.ts";
import { acquire, addOwn, advance, emptyClock, synchroniseBlock } from "./ordering.ts";
import type { Block, Group, LaneSet, NamedBarrier, Warp } from "./state.ts";

/** All lanes that have not exited must be here. */
export function requireTogether(warp: Warp, m: LaneSet, site: number, barrier: boolean): void {
  if (m.count !== warp.liveCount) complainApart(warp, m, site, barrier);
}

function complainApart(warp: Warp, m: LaneSet, site: number, barrier: boolean): never {
  const here = new Set(m.lanes.subarray(0, m.count));
  const missing: number[] = [];
  for (const lane of warp.live.lanes.subarray(0, warp.live.count))
    if (warp.state[lane] !== -1 && !here.has(lane)) missing.push(lane);
  missing.sort((a, b) => a - b);
  const name = warp.launch.program.operationAt(site)?.name ?? "operation";
  const left = warp.left[missing[0]!]!;
  const shown = [...here].sort((a, b) => a - b);
  throw faultError(
    warp.block,
    barrier ? "divergentBarrier" : "divergentCollective",
    `${name} at {0} needs all lanes of subgroup ${warp.index}; only lanes ${ranges(shown)} are there, lanes ${ranges(missing)} went another way at {1}`,
    [warp.first + shown[0]!, warp.first + missing[0]!],
    [site, left],
  );
}

/** "0-3, 7" */
function ranges(numbers: readonly number[]): string {
  const parts: string[] = [];
  for (let first = 0; first < numbers.length; ) {
    let last = first;
    while (numbers[last + 1] === numbers[last]! + 1) last++;
    parts.push(first === last ? `${numbers[first]}` : `${numbers[first]}-${numbers[last]}`);
    first = last + 1;
  }
  return parts.join(", ");
}

function wake(warp: Warp): void {
  warp.waiting = "nothing";
}

// The block's barrier -------------------------------------------------------------------------------------------------

/** Returns whether the warp must wait. */
export function blockBarrier(warp: Warp, m: LaneSet, site: number): boolean {
  requireTogether(warp, m, site, true);
  const { block } = warp;
  if (warp.counters !== undefined) warp.counters.barriers++;
  if (block.arrivedWarps > 0 && block.barrierSite !== site) {
    const other = block.warps.find(({ waiting }) => waiting === "blockBarrier")!;
    throw faultError(
      block,
      "divergentBarrier",
      `subgroup ${warp.index} is at the block barrier at {0} while subgroup ${other.index} is at another one at {1}`,
      [warp.first, other.first],
      [site, block.barrierSite],
    );
  }
  block.barrierSite = site;
  block.arrivedWarps++;
  if (block.arrivedWarps === block.liveWarps) {
    releaseBlockBarrier(block);
    return false;
  }
  warp.waiting = "blockBarrier";
  warp.waitSite = site;
  return true;
}

function releaseBlockBarrier(block: Block): void {
  block.arrivedWarps = 0;
  if (block.shadow !== undefined) synchroniseBlock(block);
  for (const warp of block.warps) if (warp.waiting === "blockBarrier") wake(warp);
}

/** A warp has ended: a barrier need not wait for it. */
export function leaveBlock(block: Block): void {
  if (block.liveWarps > 0 && block.arrivedWarps === block.liveWarps) releaseBlockBarrier(block);
}

export function subgroupBarrier(warp: Warp, m: LaneSet, site: number): void {
  requireTogether(warp, m, site, true);
  if (warp.counters !== undefined) warp.counters.barriers++;
  const { block } = warp;
  if (block.shadow === undefined) return;
  const clock = emptyClock(block.group);
  let last: Clock | undefined;
  for (let n = 0; n < m.count; n++) {
    const thread = warp.first + m.lanes[n]!;
    const known = block.knowledge[thread];
    if (known !== undefined && known !== last) {
      joinInto(clock, known);
      last = known;
    }
    addOwn(clock, block, thread);
  }
  advance(block);
  for (let n = 0; n < m.count; n++) block.knowledge[warp.first + m.lanes[n]!] = clock;
}

// Named barriers ------------------------------------------------------------------------------------------------------

export function namedBarrier(
  warp: Warp,
  m: LaneSet,
  site: number,
  sync: boolean,
  threads: number,
  slot: number,
): boolean {
  requireTogether(warp, m, site, true);
  const { block } = warp;
  if (warp.counters !== undefined) warp.counters.barriers++;
  const id = warp.i[slot + m.lanes[0]!]!;
  for (let n = 1; n < m.count; n++) {
    if (warp.i[slot + m.lanes[n]!] !== id)
      laneFault(
        warp,
        m.lanes[n]!,
        site,
        "divergentBarrier",
        `lanes of one subgroup are at different named barriers, ${id} and ${warp.i[slot + m.lanes[n]!]},`,
      );
  }
  let barrier = block.namedBarriers[id];
  if (barrier === undefined) {
    barrier = { arrived: 0, threads, site, clock: undefined, waiters: [] };
    block.namedBarriers[id] = barrier;
  }
  if (barrier.arrived > 0 && barrier.threads !== threads) {
    throw faultError(
      block,
      "divergentBarrier",
      `named barrier ${id} is used for ${threads} threads at {0} and for ${barrier.threads} at {1} at the same time`,
      [warp.first],
      [site, barrier.site],
    );
  }
  barrier.threads = threads;
  barrier.site = site;
  if (block.shadow !== undefined) arriveTogether(barrier, warp, m);
  barrier.arrived += warp.width;
  if (barrier.arrived > threads) {
    throw faultError(
      block,
      "divergentBarrier",
      `named barrier ${id} for ${threads} threads got ${barrier.arrived} at {0}`,
      [warp.first],
      [site],
    );
  }
  if (sync) barrier.waiters.push(warp);
  if (barrier.arrived < threads) {
    if (!sync) return false;
    warp.waiting = "namedBarrier";
    warp.waitSite = site;
    warp.waitDetail = `${id} (${barrier.arrived} of ${threads} threads)`;
    return true;
  }
  completeNamed(block, barrier);
  return false;
}

/** The lanes' release into a barrier's clock. */
function arriveTogether(barrier: { clock: Clock | undefined }, warp: Warp, m: LaneSet): void {
  const { block } = warp;
  const clock = barrier.clock ?? emptyClock(block.group);
  barrier.clock = clock;
  let last: Clock | undefined;
  for (let n = 0; n < m.count; n++) {
    const thread = warp.first + m.lanes[n]!;
    const known = block.knowledge[thread];
    if (known !== undefined && known !== last) {
      joinInto(clock, known);
      last = known;
    }
    addOwn(clock, block, thread);
  }
  advance(block);
}

function acquireTogether(warp: Warp, lanes: LaneSet, clock: Clock | undefined): void {
  for (let n = 0; n < lanes.count; n++) acquire(warp.block, warp.first + lanes.lanes[n]!, clock);
}

function completeNamed(block: Block, barrier: NamedBarrier): void {
  const { clock } = barrier;
  barrier.clock = undefined;
  barrier.arrived = 0;
  for (const warp of barrier.waiters) {
    if (warp.waiting === "namedBarrier") wake(warp);
    if (block.shadow !== undefined) acquireTogether(warp, warp.live, clock);
  }
  barrier.waiters.length = 0;
}

// The cluster's barrier -----------------------------------------------------------------------------------------------

export function clusterArrive(warp: Warp, m: LaneSet, site: number): void {
  requireTogether(warp, m, site, true);
  const { group } = warp.block;
  const state = group.clusterArrivals;
  if (warp.counters !== undefined) warp.counters.barriers++;
  if (warp.block.shadow !== undefined) arriveTogether(state, warp, m);
  warp.clusterPhase = state.phase;
  state.arrived++;
  completeCluster(group);
}

function completeCluster(group: Group): void {
  const state = group.clusterArrivals;
  if (state.arrived === 0 || state.arrived < group.running) return;
  state.arrived = 0;
  state.phase++;
  state.completed = state.clock;
  state.clock = undefined;
  for (const warp of group.warps) {
    if (warp.waiting !== "clusterWait") continue;
    wake(warp);
    finishClusterWait(warp, warp.clusterWaiter!);
  }
}

/** A warp of the cluster has ended. */
export function leaveCluster(group: Group): void {
  if (group.running > 0) completeCluster(group);
}

export function clusterWait(warp: Warp, m: LaneSet, site: number): boolean {
  requireTogether(warp, m, site, true);
  const state = warp.block.group.clusterArrivals;
  const { block } = warp;
  if (warp.clusterPhase < 0) {
    throw faultError(
      block,
      "barrierPhase",
      `subgroup ${warp.index} waits at {0} for a cluster barrier where it never arrived`,
      [warp.first],
      [site],
    );
  }
  if (state.phase === warp.clusterPhase) {
    warp.waiting = "clusterWait";
    warp.waitSite = site;
    warp.clusterWaiter = m;
    return true;
  }
  finishClusterWait(warp, m);
  return false;
}

function finishClusterWait(warp: Warp, m: LaneSet): void {
  warp.clusterPhase = -1;
  if (warp.block.shadow !== undefined) acquireTogether(warp, m, warp.block.group.clusterArrivals.completed);
}
