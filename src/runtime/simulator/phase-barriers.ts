/** @file Barriers in shared memory (mbarriers): phases that complete when the expected arrivals and bytes have come. */
import { joined } from "./clock.ts";
import { faultError, laneFault } from "./faults.ts";
import { type IndexSource, readIndex } from "./operands.ts";
import { acquire, advance, emptyClock, isKnown, releaseInto } from "./ordering.ts";
import { type Block, type LaneSet, PhaseBarrier, type Warp } from "./state.ts";

export function barrierInit(warp: Warp, lane: number, site: number, word: number, count: number): void {
  const { block } = warp;
  const old = block.phaseBarriers[word];
  if (old !== undefined && (old.waiters.length > 0 || old.bytes !== 0)) {
    laneFault(warp, lane, site, "barrierPhase", "a barrier that is in use is initialised again");
  }
  block.phaseBarriers[word] = new PhaseBarrier(word, count, warp.first + lane, block.launch.now, site);
}

export function barrierInitFence(warp: Warp, lane: number, _site: number): void {
  const { block } = warp;
  block.initFenceTime[warp.first + lane] = block.launch.now;
  advance(block);
}

/** The barrier at a word of a block, as a thread of `warp` uses it. */
export function barrierAt(block: Block, warp: Warp, lane: number, site: number, word: number): PhaseBarrier {
  const barrier = block.phaseBarriers[word];
  if (barrier === undefined)
    laneFault(warp, lane, site, "barrierPhase", `barrier word ${word} is used before it was initialised`);
  if (warp.block.shadow !== undefined) {
    const id = block.group.firstId + block.offset + barrier.initThread;
    if (!isKnown(warp.block, warp.first + lane, id, barrier.initTime)) {
      throw faultError(
        warp.block,
        "race",
        `thread ${warp.first + lane} uses a barrier at {0} that thread ${barrier.initThread} initialised at {1}, and nothing orders the two`,
        [warp.first + lane, barrier.initThread],
        [site, barrier.initSite],
      );
    }
    if (block !== warp.block) requireInitFence(block, barrier, warp, lane, site);
  }
  return barrier;
}

/** Engines and other blocks see an initialisation only behind its fence. */
export function requireInitFence(
  block: Block,
  barrier: PhaseBarrier,
  warp: Warp,
  lane: number,
  site: number,
): void {
  const fenced = Math.max(block.initFenceTime[barrier.initThread]!, block.proxyTime[barrier.initThread]!);
  if (block.shadow === undefined || fenced >= barrier.initTime) return;
  throw faultError(
    warp.block,
    "proxy",
    `${warp.launch.program.operationAt(site)?.name ?? "an asynchronous operation"} at {0} uses a barrier whose initialisation at {1} no barrierInitFence made visible`,
    [warp.first + lane, barrier.initThread],
    [site, barrier.initSite],
  );
}

function release(barrier: PhaseBarrier, block: Block, warp: Warp, lane: number): void {
  if (block.shadow === undefined) return;
  barrier.clock ??= emptyClock(block.group);
  releaseInto(barrier.clock, warp.block, warp.first + lane);
  advance(block);
}

function countDown(barrier: PhaseBarrier, block: Block, warp: Warp, lane: number, site: number): void {
  barrier.pending--;
  if (barrier.pending < 0) {
    laneFault(
      warp,
      lane,
      site,
      "barrierPhase",
      `one arrival more than the ${barrier.count} that the barrier's phase expects`,
    );
  }
  completePhase(barrier, block);
}

export function completePhase(barrier: PhaseBarrier, block: Block): void {
  if (barrier.pending !== 0) return;
  if (barrier.bytes < 0 && block.shadow !== undefined) {
    const sites = barrier.expectSite < 0 ? [barrier.initSite] : [barrier.expectSite];
    throw faultError(
      block,
      "expectedBytes",
      `copies delivered ${-barrier.bytes} bytes more than were announced to the barrier at {0}`,
      [barrier.initThread],
      sites,
    );
  }
  if (barrier.bytes !== 0) return;
  barrier.phase++;
  barrier.pending = barrier.count;
  barrier.completed = joined(barrier.completed, barrier.clock);
  barrier.clock = undefined;
  for (const waiter of barrier.waiters) waiter.waiting = "nothing";
  barrier.waiters.length = 0;
}

/** `rank` -1 is the thread's own block. */
export function barrierArrive(warp: Warp, lane: number, site: number, word: number, rank: number): void {
  const block = rank < 0 ? warp.block : warp.block.group.blocks[rank];
  if (block === undefined)
    laneFault(warp, lane, site, "barrierPhase", `the cluster has no block of rank ${rank}`);
  if (block.finished)
    laneFault(
      warp,
      lane,
      site,
      "barrierPhase",
      `an arrival at a barrier of block ${rank} of the cluster, which has already ended`,
    );
  const barrier = barrierAt(block, warp, lane, site, word);
  release(barrier, block, warp, lane);
  countDown(barrier, block, warp, lane, site);
}

export function barrierArriveExpect(
  warp: Warp,
  lane: number,
  site: number,
  word: number,
  bytes: number,
): void {
  const { block } = warp;
  const barrier = barrierAt(block, warp, lane, site, word);
  barrier.bytes += bytes;
  barrier.expectSite = site;
  release(barrier, block, warp, lane);
  countDown(barrier, block, warp, lane, site);
}

/** Returns whether the warp must wait, and then ask again. */
export function barrierWait(
  warp: Warp,
  m: LaneSet,
  site: number,
  base: number,
  index: IndexSource,
  paritySlot: number,
): boolean {
  const { block } = warp;
  for (let n = 0; n < m.count; n++) {
    const lane = m.lanes[n]!;
    const parity = warp.i[paritySlot + lane]!;
    if (parity !== 0 && parity !== 1)
      laneFault(warp, lane, site, "barrierPhase", `a parity of ${parity}, where 0 and 1 are possible`);
    const barrier = barrierAt(block, warp, lane, site, base + readIndex(warp, index, lane));
    if ((barrier.phase & 1) === parity) {
      barrier.waiters.push(warp);
      warp.waiting = "barrierWait";
      warp.waitSite = site;
      warp.waitDetail = `word ${barrier.word}, parity ${parity}`;
      warp.waitBarrier = barrier;
      return true;
    }
  }
  if (block.shadow !== undefined) {
    for (let n = 0; n < m.count; n++) {
      const lane = m.lanes[n]!;
      const barrier = block.phaseBarriers[base + readIndex(warp, index, lane)]!;
      acquire(block, warp.first + lane, barrier.completed);
    }
  }
  return false;
}
