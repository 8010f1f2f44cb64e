/**
 * @file Shadow memory: for each granule who wrote it last, and who read it since. An access asks whether what it meets is
 * known to its thread ({@link isKnown}); mostly two comparisons tell.
 *
 * Times of engines carry {@link beside}, so that they never pass for ordered by a base. A granule that nobody has written
 * and one that an asynchronous copy is still to fill have a time that nothing reaches.
 */
import { isFenced, isKnown } from "./clocks.ts";
import { actionAt, faultError, subjectOf } from "./faults.ts";
import type { Block } from "./state.ts";

/** Added to times of engines. */
export const beside: number = 2 ** 30;
const never = 2 ** 31 - 1;
const unwritten = -1;
const pending = -2;

/** Lists of readers: nodes of 32 participants each. */
export class NodePool {
  group: Int32Array = new Int32Array(1024);
  mask: Int32Array = new Int32Array(1024);
  time: Int32Array = new Int32Array(1024);
  site: Int32Array = new Int32Array(1024);
  next: Int32Array = new Int32Array(1024);
  private free = 0;
  private used = 1;

  take(): number {
    if (this.free !== 0) {
      const node = this.free;
      this.free = this.next[node]!;
      return node;
    }
    if (this.used === this.group.length) this.grow();
    return this.used++;
  }

  /** Gives a whole list back. */
  release(head: number): void {
    let last = head;
    while (this.next[last] !== 0) last = this.next[last]!;
    this.next[last] = this.free;
    this.free = head;
  }

  reset(): void {
    this.free = 0;
    this.used = 1;
  }

  private grow(): void {
    for (const name of ["group", "mask", "time", "site", "next"] as const) {
      const grown = new Int32Array(2 * this[name].length);
      grown.set(this[name]);
      this[name] = grown;
    }
  }
}

/** Shadow of some granules. */
export class Shadow {
  readonly writeTime: Int32Array;
  readonly writer: Int32Array;
  readonly writeSite: Int32Array;
  readonly readTime: Int32Array;
  readonly readers: Int32Array;
  readonly atomicTime: Int32Array;
  readonly atomics: Int32Array;

  constructor(readonly count: number, readonly pool: NodePool, private readonly tracksFirstWrite: boolean) {
    this.writeTime = new Int32Array(count);
    this.writer = new Int32Array(count);
    this.writeSite = new Int32Array(count);
    this.readTime = new Int32Array(count);
    this.readers = new Int32Array(count);
    this.atomicTime = new Int32Array(count);
    this.atomics = new Int32Array(count);
    this.reset();
  }

  /** As at the start of a block. The pool is reset by its owner. */
  reset(): void {
    this.writeTime.fill(this.tracksFirstWrite ? never : 0);
    this.writer.fill(unwritten);
    this.readTime.fill(0);
    this.readers.fill(0);
    this.atomicTime.fill(0);
    this.atomics.fill(0);
  }

  /** A read by participant `id`, on behalf of a thread. */
  read(granule: number, block: Block, thread: number, id: number, site: number, time: number, base: number): void {
    if (this.writeTime[granule]! > base && this.writer[granule] !== id) this.checkWriter(granule, block, thread, site, "reads");
    if (this.atomicTime[granule]! > base) this.checkList(this.atomics[granule]!, granule, block, thread, site, "reads", "updated atomically");
    this.record(this.readTime, this.readers, granule, id, site, time, base);
  }

  /** As read, for engines: data that threads wrote must have been fenced for them. */
  readAsynchronously(granule: number, block: Block, thread: number, id: number, site: number, time: number): void {
    this.checkWriter(granule, block, thread, site, "reads");
    const written = this.writeTime[granule]!;
    const writer = this.writer[granule]!;
    if (written < beside && !isFenced(block, thread, writer, written)) this.complainFence(granule, block, thread, site);
    this.record(this.readTime, this.readers, granule, id, site, time, 0);
  }

  write(granule: number, block: Block, thread: number, id: number, site: number, time: number, base: number): void {
    this.checkWrite(granule, block, thread, id, site, base);
    this.writeTime[granule] = time;
    this.writer[granule] = id;
    this.writeSite[granule] = site;
  }

  /** An asynchronous copy starts: until {@link Shadow.land} nobody may touch the granule. */
  start(granule: number, block: Block, thread: number, id: number, site: number): void {
    this.checkWrite(granule, block, thread, id, site, 0);
    this.writeTime[granule] = never;
    this.writer[granule] = pending;
    this.writeSite[granule] = site;
  }

  /** The asynchronous copy's data are there, written by `id` at `time`. */
  land(granule: number, id: number, site: number, time: number): void {
    this.writeTime[granule] = time;
    this.writer[granule] = id;
    this.writeSite[granule] = site;
  }

  /** An atomic access, or a volatile one: it may meet others of its kind. */
  atomic(granule: number, block: Block, thread: number, id: number, site: number, time: number, base: number, strength: string): void {
    const verb = strength === "load" ? "reads" : "updates";
    const first = strength !== "load" && this.writer[granule] === unwritten && strength === "store";
    if (!first && this.writeTime[granule]! > base && this.writer[granule] !== id) this.checkWriter(granule, block, thread, site, verb);
    if (strength === "load") return;
    if (this.readTime[granule]! > base) this.checkList(this.readers[granule]!, granule, block, thread, site, verb, "read");
    if (first) {
      this.writeTime[granule] = 0;
      this.writer[granule] = id;
    }
    this.record(this.atomicTime, this.atomics, granule, id, site, time, base);
  }

  private checkWrite(granule: number, block: Block, thread: number, id: number, site: number, base: number): void {
    if (this.writeTime[granule]! > base && this.writer[granule] !== id && this.writer[granule] !== unwritten) {
      this.checkWriter(granule, block, thread, site, "writes");
    }
    if (this.readTime[granule]! > base) this.checkList(this.readers[granule]!, granule, block, thread, site, "writes", "read");
    this.forget(this.readTime, this.readers, granule);
    if (this.atomicTime[granule]! > base) this.checkList(this.atomics[granule]!, granule, block, thread, site, "writes", "updated atomically");
    this.forget(this.atomicTime, this.atomics, granule);
  }

  private forget(times: Int32Array, heads: Int32Array, granule: number): void {
    if (heads[granule] !== 0) {
      this.pool.release(heads[granule]!);
      heads[granule] = 0;
    }
    times[granule] = 0;
  }

  private record(times: Int32Array, heads: Int32Array, granule: number, id: number, site: number, time: number, base: number): void {
    const { pool } = this;
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
    this.recordFurther(times, heads, granule, group, bit, site, time);
  }

  private recordFurther(times: Int32Array, heads: Int32Array, granule: number, group: number, bit: number, site: number, time: number): void {
    const { pool } = this;
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

  private checkList(head: number, granule: number, block: Block, thread: number, site: number, verb: string, did: string): void {
    const { pool } = this;
    for (let node = head; node !== 0; node = pool.next[node]!) {
      const time = pool.time[node]!;
      for (let mask = pool.mask[node]!; mask !== 0; mask &= mask - 1) {
        const id = pool.group[node]! * 32 + (31 - Math.clz32(mask & -mask));
        if (!isKnown(block, thread, id, time & (beside - 1))) this.complain(granule, block, thread, site, verb, id, pool.site[node]!, did);
      }
    }
  }

  private checkWriter(granule: number, block: Block, thread: number, site: number, verb: string): void {
    const writer = this.writer[granule]!;
    if (writer === unwritten) {
      if (!this.tracksFirstWrite) return;
      throw faultError(block, "unwrittenShared", `thread ${thread} ${verb} ${subjectOf(block, site)} at {0}, where nothing was written since the block began`, [thread], [site]);
    }
    const copySite = this.writeSite[granule]!;
    if (writer === pending) {
      throw faultError(
        block, "inFlight",
        `thread ${thread} ${verb} ${subjectOf(block, site)} at {0} while the ${actionAt(block, copySite)} at {1} is still under way; wait for it first`,
        [thread], [site, copySite],
      );
    }
    if (!isKnown(block, thread, writer, this.writeTime[granule]! & (beside - 1))) this.complain(granule, block, thread, site, verb, writer, copySite, "wrote");
  }

  private complain(_granule: number, block: Block, thread: number, site: number, verb: string, id: number, otherSite: number, did: string): never {
    const other = participant(block, id);
    const actor = other.thread === undefined ? `the ${actionAt(block, otherSite)} at {1}` : `${other.name} at {1}`;
    throw faultError(
      block, "race",
      `race on ${subjectOf(block, site)}: ${actor} ${did} what thread ${thread} ${verb} at {0}, and nothing orders the two`,
      other.thread === undefined ? [thread] : [thread, other.thread],
      [site, otherSite],
    );
  }

  private complainFence(granule: number, block: Block, thread: number, site: number): never {
    const writer = participant(block, this.writer[granule]!);
    throw faultError(
      block, "proxy",
      `${actionAt(block, site)} at {0} by thread ${thread} reads asynchronously what ${writer.name} wrote at {1}; the writer needs a proxyFence after the write, before the barrier`,
      writer.thread === undefined ? [thread] : [thread, writer.thread],
      [site, this.writeSite[granule]!],
    );
  }
}

/** Who a participant number is. */
function participant(block: Block, id: number): { readonly name: string; readonly thread: number | undefined } {
  const { numbering } = block.launch.program;
  const local = id - block.group.firstId;
  const thread = (((local % numbering.size) + numbering.size) % numbering.size);
  const own = local >= block.offset && local < block.offset + numbering.size;
  if (thread >= numbering.threads) return { name: "an engine", thread: undefined };
  return { name: own ? `thread ${thread}` : `thread ${thread} of another block`, thread };
}

/** Shadow of a buffer, in pages made when first touched. */
export class BufferShadow {
  private readonly pages: (Shadow | undefined)[] = [];
  private readonly pool = new NodePool();
  constructor(/** Bytes of a granule. */ readonly granule: number) {}

  page(granule: number): Shadow {
    const number = granule >>> 12;
    let page = this.pages[number];
    if (page === undefined) {
      page = new Shadow(4096, this.pool, false);
      this.pages[number] = page;
    }
    return page;
  }

  /** Clocks that atomics published, by granule. */
  clocks: Map<number, import("./clocks.ts").ForeignClock> | undefined;
}
