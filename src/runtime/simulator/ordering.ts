/**
 * @file Who knows of whose accesses: happens-before by vector clocks, made cheap.
 *
 * Every access carries the launch's time. A *release* (arriving at a barrier, say) lets time advance, so that all that a
 * thread did up to then has an earlier time than what it does later. Block and cluster barriers are one number, the
 * *base*: what threads of the block did up to it is known to all. Only what mbarriers, named barriers, subgroup barriers
 * and atomics order beyond that needs a clock: by participant the latest time known. Clocks are immutable and shared; a
 * warp whose lanes learn the same thing learn it once (compare FastTrack, Flanagan and Freund, 2009).
 *
 * Participants are threads, and the engines that work beside them: one for each barrier word (what tensor copies write
 * becomes known through that barrier alone), two for each warp's bulk stores (what they read, what they write) and one for
 * each warpgroup's matrix products (their reads end at the wait). The upper half of a clock says up to which time a thread's writes are known
 * *and* made visible to asynchronous reads by its proxy fence.
 */
import { type Clock, type ForeignClock, joined, joinedForeign, joinInto } from "./clock.ts";
import type { Block, Group } from "./state.ts";

/** A clock that knows nothing. */
export function emptyClock(group: Group): Clock {
  return new Int32Array(2 * group.size);
}

/** Adds all that a thread did and knows to a mutable clock. Time advances only with {@link advance}. */
export function releaseInto(target: Clock, block: Block, thread: number): void {
  const known = block.knowledge[thread];
  if (known !== undefined) joinInto(target, known);
  addOwn(target, block, thread);
}

/** Adds what a thread itself did, without what it knows of others. */
export function addOwn(target: Clock, block: Block, thread: number): void {
  const { group, launch } = block;
  const own = block.offset + thread;
  target[own] = launch.now;
  if (block.proxyTime[thread]! > target[group.size + own]!)
    target[group.size + own] = block.proxyTime[thread]!;
  if (group.blocks.length > 1) addBase(target, block);
}

/** What a block barrier ordered, for participants of other blocks. */
function addBase(target: Clock, block: Block): void {
  const { threads } = block.launch.program.numbering;
  for (let n = block.offset; n < block.offset + threads; n++)
    if (target[n]! < block.base) target[n] = block.base;
}

/** Ends a release: what comes now is later. */
export function advance(block: Block): void {
  block.launch.now++;
}

/** A thread learns a clock. */
export function acquire(block: Block, thread: number, clock: Clock | undefined): void {
  if (clock !== undefined) block.knowledge[thread] = joined(block.knowledge[thread], clock);
}

/** Everything a thread did and knows, for any group. */
export function snapshot(block: Block, thread: number): ForeignClock {
  const clock = emptyClock(block.group);
  releaseInto(clock, block, thread);
  addBase(clock, block);
  const result = new Map(block.foreign[thread] ?? []);
  result.set(block.group.firstId, clock);
  return result;
}

/** A thread learns what another thread published, of its own group or another one. */
export function acquireForeign(block: Block, thread: number, clock: ForeignClock): void {
  const own = clock.get(block.group.firstId);
  if (own !== undefined) acquire(block, thread, own);
  if (own === undefined || clock.size > 1)
    block.foreign[thread] = joinedForeign(block.foreign[thread], clock);
}

/** Whether thread `thread` of `block` knows of what participant `id` of the launch did up to `time`. */
export function isKnown(block: Block, thread: number, id: number, time: number): boolean {
  const { group, launch } = block;
  const local = id - group.firstId;
  if (local < 0 || local >= group.size) {
    if (time <= launch.startTime) return true;
    return knownOfGroup(block.foreign[thread], id, time);
  }
  const inBlock = local - block.offset;
  if (inBlock === thread) return true;
  const isThread = local % launch.program.numbering.size < launch.program.numbering.threads;
  if (isThread && time <= group.base) return true;
  if (isThread && time <= block.base && inBlock >= 0 && inBlock < launch.program.numbering.size) return true;
  const known = block.knowledge[thread];
  return known !== undefined && known[local]! >= time;
}

function knownOfGroup(foreign: ForeignClock | undefined, id: number, time: number): boolean {
  if (foreign === undefined) return false;
  for (const [first, clock] of foreign) {
    const local = id - first;
    if (local >= 0 && 2 * local < clock.length) return clock[local]! >= time;
  }
  return false;
}

/** Whether a thread knows that writer `id`, a thread, has fenced what it wrote at `time` for asynchronous reads. */
export function isFenced(block: Block, thread: number, id: number, time: number): boolean {
  const local = id - block.group.firstId;
  const inBlock = local - block.offset;
  if (inBlock === thread) return block.proxyTime[thread]! >= time;
  if (inBlock >= 0 && inBlock < block.proxyPublic.length && block.proxyPublic[inBlock]! >= time) return true;
  const known = block.knowledge[thread];
  return known !== undefined && known[block.group.size + local]! >= time;
}

/** All threads of the block know all of them: a block barrier. */
export function synchroniseBlock(block: Block): void {
  block.base = block.launch.now;
  advance(block);
  block.proxyPublic.set(block.proxyTime);
  const distinct = new Set(block.knowledge);
  distinct.delete(undefined);
  if (distinct.size > 0) {
    let all: Clock | undefined;
    for (const clock of distinct) all = joined(all, clock);
    block.knowledge.fill(all);
  }
  // A fence of one thread and an atomic of another, with a barrier between, work together as those of one thread do:
  // what was fenced has left the block, and what was seen is not cached by its threads.
  shareForeign(block.foreign);
  shareForeign(block.fenced);
  shareForeign(block.seen);
}

function shareForeign(clocks: (ForeignClock | undefined)[]): void {
  const distinct = new Set(clocks);
  distinct.delete(undefined);
  if (distinct.size === 0) return;
  let all: ForeignClock | undefined;
  for (const clock of distinct) all = joinedForeign(all, clock);
  clocks.fill(all);
}
