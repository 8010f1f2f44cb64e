/**
 * @file The data of shadow memory: for each granule who wrote it last and when, and who read it since. What an access
 * asks of it stands in shadow.ts.
 */
import type { ForeignClock } from "./clock.ts";

/** Added to times of engines, so that they never pass for ordered by a base. */
export const beside: number = 2 ** 30;
/** Time of a granule that nobody has written, or that an asynchronous copy is still to fill. */
export const never: number = 2 ** 31 - 1;
/** Writers of such granules. */
export const unwritten = -1;
export const pending = -2;

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

  constructor(
    readonly count: number,
    readonly pool: NodePool,
    readonly tracksFirstWrite: boolean,
  ) {
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
  clocks: Map<number, ForeignClock> | undefined;
}
