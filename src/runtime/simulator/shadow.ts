/**
 * @file Shadow memory: an access asks whether what it meets is known to its thread ({@link isKnown}); mostly two
 * comparisons tell.
 */
import { actionAt, faultError, subjectOf } from "./faults.ts";
import { isFenced, isKnown } from "./ordering.ts";
import { beside, never, pending, type Shadow, unwritten } from "./shadow-cells.ts";
import type { Block } from "./state.ts";

/** A read by participant `id`, on behalf of a thread. */
export function readGranule(
  shadow: Shadow,
  granule: number,
  block: Block,
  thread: number,
  id: number,
  site: number,
  time: number,
  base: number,
): void {
  if (shadow.writeTime[granule]! > base && shadow.writer[granule] !== id)
    checkWriter(shadow, granule, block, thread, site, "reads");
  if (shadow.atomicTime[granule]! > base)
    checkList(shadow, shadow.atomics[granule]!, block, thread, site, "reads", "updated atomically");
  record(shadow, shadow.readTime, shadow.readers, granule, id, site, time, base);
}

/** As read, for engines: data that threads wrote must have been fenced for them. */
export function readGranuleAsynchronously(
  shadow: Shadow,
  granule: number,
  block: Block,
  thread: number,
  id: number,
  site: number,
  time: number,
): void {
  checkWriter(shadow, granule, block, thread, site, "reads");
  const written = shadow.writeTime[granule]!;
  const writer = shadow.writer[granule]!;
  if (written < beside && !isFenced(block, thread, writer, written))
    complainFence(shadow, granule, block, thread, site);
  record(shadow, shadow.readTime, shadow.readers, granule, id, site, time, 0);
}

export function writeGranule(
  shadow: Shadow,
  granule: number,
  block: Block,
  thread: number,
  id: number,
  site: number,
  time: number,
  base: number,
): void {
  checkWrite(shadow, granule, block, thread, id, site, base);
  shadow.writeTime[granule] = time;
  shadow.writer[granule] = id;
  shadow.writeSite[granule] = site;
}

/** As write, for engines: the engine's own earlier writes are ordered by the thread's wait alone. */
export function writeGranuleAsynchronously(
  shadow: Shadow,
  granule: number,
  block: Block,
  thread: number,
  id: number,
  site: number,
  time: number,
): void {
  // The same copy, at another element of the granule.
  if (shadow.writer[granule] === id && shadow.writeTime[granule] === time) return;
  checkWrite(shadow, granule, block, thread, unwritten, site, block.launch.startTime);
  shadow.writeTime[granule] = time;
  shadow.writer[granule] = id;
  shadow.writeSite[granule] = site;
}

/** An asynchronous copy starts: until {@link landCopy} nobody may touch the granule. */
export function startCopy(
  shadow: Shadow,
  granule: number,
  block: Block,
  thread: number,
  id: number,
  site: number,
): void {
  checkWrite(shadow, granule, block, thread, id, site, 0);
  shadow.writeTime[granule] = never;
  shadow.writer[granule] = pending;
  shadow.writeSite[granule] = site;
}

/** The asynchronous copy's data are there, written by `id` at `time`. */
export function landCopy(shadow: Shadow, granule: number, id: number, site: number, time: number): void {
  shadow.writeTime[granule] = time;
  shadow.writer[granule] = id;
  shadow.writeSite[granule] = site;
}

/** An atomic access, or a volatile one: it may meet others of its kind. */
export function updateGranule(
  shadow: Shadow,
  granule: number,
  block: Block,
  thread: number,
  id: number,
  site: number,
  time: number,
  base: number,
  strength: string,
): void {
  const verb = strength === "load" ? "reads" : "updates";
  const first = strength !== "load" && shadow.writer[granule] === unwritten && strength === "store";
  if (!first && shadow.writeTime[granule]! > base && shadow.writer[granule] !== id)
    checkWriter(shadow, granule, block, thread, site, verb);
  if (strength === "load") return;
  if (shadow.readTime[granule]! > base)
    checkList(shadow, shadow.readers[granule]!, block, thread, site, verb, "read");
  if (first) {
    shadow.writeTime[granule] = 0;
    shadow.writer[granule] = id;
  }
  record(shadow, shadow.atomicTime, shadow.atomics, granule, id, site, time, base);
}

function checkWrite(
  shadow: Shadow,
  granule: number,
  block: Block,
  thread: number,
  id: number,
  site: number,
  base: number,
): void {
  if (
    shadow.writeTime[granule]! > base &&
    shadow.writer[granule] !== id &&
    shadow.writer[granule] !== unwritten
  ) {
    checkWriter(shadow, granule, block, thread, site, "writes");
  }
  if (shadow.readTime[granule]! > base)
    checkList(shadow, shadow.readers[granule]!, block, thread, site, "writes", "read");
  forget(shadow, shadow.readTime, shadow.readers, granule);
  if (shadow.atomicTime[granule]! > base)
    checkList(shadow, shadow.atomics[granule]!, block, thread, site, "writes", "updated atomically");
  forget(shadow, shadow.atomicTime, shadow.atomics, granule);
}

function forget(shadow: Shadow, times: Int32Array, heads: Int32Array, granule: number): void {
  if (heads[granule] !== 0) {
    shadow.pool.release(heads[granule]!);
    heads[granule] = 0;
  }
  times[granule] = 0;
}

function record(
  shadow: Shadow,
  times: Int32Array,
  heads: Int32Array,
  granule: number,
  id: number,
  site: number,
  time: number,
  base: number,
): void {
  const { pool } = shadow;
  const group = id >> 5;
  const bit = 1 << (id & 31);
  const head = heads[granule]!;
  if (times[granule]! <= base || head === 0) {
    // Everything before is known to all: start anew.
    let node = head;
    if (node === 0) {
      node = pool.take();
      heads[granule] = node;
    } else if (pool.next[node] !== 0) pool.release(pool.next[node]!);
    pool.group[node] = group;
    pool.mask[node] = bit;
    pool.time[node] = time;
    pool.site[node] = site;
    pool.next[node] = 0;
    times[granule] = time;
    return;
  }
  if (pool.group[head] === group && pool.time[head] === time && pool.site[head] === site) {
    pool.mask[head]! |= bit;
    return;
  }
  recordFurther(shadow, times, heads, granule, group, bit, site, time);
}

function recordFurther(
  shadow: Shadow,
  times: Int32Array,
  heads: Int32Array,
  granule: number,
  group: number,
  bit: number,
  site: number,
  time: number,
): void {
  const { pool } = shadow;
  let same = 0;
  for (let node = heads[granule]!; node !== 0; node = pool.next[node]!) {
    if (pool.group[node] !== group) continue;
    if (pool.time[node] === time) same = node;
    // A participant's later read stands for its earlier one.
    else pool.mask[node]! &= ~bit;
  }
  if (time > times[granule]!) times[granule] = time;
  if (same !== 0) {
    pool.mask[same]! |= bit;
    return;
  }
  const node = pool.take();
  pool.group[node] = group;
  pool.mask[node] = bit;
  pool.time[node] = time;
  pool.site[node] = site;
  // Empty nodes go; the list stays as short as there are readers.
  let next = heads[granule]!;
  while (next !== 0 && pool.mask[next] === 0) {
    const empty = next;
    next = pool.next[empty]!;
    pool.next[empty] = 0;
    pool.release(empty);
  }
  pool.next[node] = next;
  heads[granule] = node;
}

function checkList(
  shadow: Shadow,
  head: number,
  block: Block,
  thread: number,
  site: number,
  verb: string,
  did: string,
): void {
  const { pool } = shadow;
  for (let node = head; node !== 0; node = pool.next[node]!) {
    const time = pool.time[node]!;
    for (let mask = pool.mask[node]!; mask !== 0; mask &= mask - 1) {
      const id = pool.group[node]! * 32 + (31 - Math.clz32(mask & -mask));
      if (!isKnown(block, thread, id, time & (beside - 1)))
        complain(block, thread, site, verb, id, pool.site[node]!, did);
    }
  }
}

function checkWriter(
  shadow: Shadow,
  granule: number,
  block: Block,
  thread: number,
  site: number,
  verb: string,
): void {
  const writer = shadow.writer[granule]!;
  if (writer === unwritten) {
    if (!shadow.tracksFirstWrite) return;
    throw faultError(
      block,
      "unwrittenShared",
      `thread ${thread} ${verb} ${subjectOf(block, site)} at {0}, where nothing was written since the block began`,
      [thread],
      [site],
    );
  }
  const copySite = shadow.writeSite[granule]!;
  if (writer === pending) {
    throw faultError(
      block,
      "inFlight",
      `thread ${thread} ${verb} ${subjectOf(block, site)} at {0} while the ${actionAt(block, copySite)} at {1} is still under way; wait for it first`,
      [thread],
      [site, copySite],
    );
  }
  if (!isKnown(block, thread, writer, shadow.writeTime[granule]! & (beside - 1)))
    complain(block, thread, site, verb, writer, copySite, "wrote");
}

function complain(
  block: Block,
  thread: number,
  site: number,
  verb: string,
  id: number,
  otherSite: number,
  did: string,
): never {
  const other = participant(block, id);
  const actor =
    other.thread === undefined ? `the ${actionAt(block, otherSite)} at {1}` : `${other.name} at {1}`;
  throw faultError(
    block,
    "race",
    `race on ${subjectOf(block, site)}: ${actor} ${did} what thread ${thread} ${verb} at {0}, and nothing orders the two`,
    other.thread === undefined ? [thread] : [thread, other.thread],
    [site, otherSite],
  );
}

function complainFence(shadow: Shadow, granule: number, block: Block, thread: number, site: number): never {
  const writer = participant(block, shadow.writer[granule]!);
  throw faultError(
    block,
    "proxy",
    `${actionAt(block, site)} at {0} by thread ${thread} reads asynchronously what ${writer.name} wrote at {1}; the writer needs a proxyFence after the write, before the barrier`,
    writer.thread === undefined ? [thread] : [thread, writer.thread],
    [site, shadow.writeSite[granule]!],
  );
}

/** Who a participant number is. */
function participant(
  block: Block,
  id: number,
): { readonly name: string; readonly thread: number | undefined } {
  const { numbering } = block.launch.program;
  const local = id - block.group.firstId;
  const thread = ((local % numbering.size) + numbering.size) % numbering.size;
  const own = local >= block.offset && local < block.offset + numbering.size;
  if (thread >= numbering.threads) return { name: "an engine", thread: undefined };
  return { name: own ? `thread ${thread}` : `thread ${thread} of another block`, thread };
}
