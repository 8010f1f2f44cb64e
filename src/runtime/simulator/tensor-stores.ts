/**
 * @file Boxes of shared memory to tensors (TMA). A store has two ends: its source has been read, and its target is
 * written. A thread waits for the first (`read`) before the source changes or the block ends, for the second before it, or
 * whom it tells, looks at the target; until then the data are not there.
 */
import type { TensorBinding } from "./arguments.ts";
import type { SharedArrayFacts } from "./array-facts.ts";
import { faultError, laneFault } from "./faults.ts";
import { acquire, advance, emptyClock } from "./ordering.ts";
import { type BulkStore, newStoreGroups } from "./pending-work.ts";
import { readGranuleAsynchronously } from "./shadow.ts";
import { beside } from "./shadow-cells.ts";
import type { Block, Warp } from "./state.ts";
import { boxAddress, boxBytes, copyElement, eachElement, eachGranule, writeTensor } from "./tensor-box.ts";

export function tensorStore(
  warp: Warp,
  lane: number,
  site: number,
  tensor: TensorBinding,
  array: SharedArrayFacts,
  element: number,
  coordinates: readonly number[],
): void {
  const { block } = warp;
  const address = boxAddress(warp, lane, site, tensor, array, element);
  const time = block.launch.now;
  if (block.shadow !== undefined) {
    requireWholeUnits(warp, lane, site, tensor, coordinates[0]!);
    const { bulkReaders, bulkWriters } = block.launch.program.numbering;
    const first = block.group.firstId + block.offset + warp.index;
    eachGranule(array, address, boxBytes(tensor), (granule) => {
      readGranuleAsynchronously(
        block.shadow!,
        granule,
        block,
        warp.first + lane,
        first + bulkReaders,
        site,
        time + beside,
      );
    });
    writeTensor(warp, lane, site, tensor, coordinates, first + bulkWriters, time + beside);
    advance(block);
  }
  const store = new BoxStore(block, tensor, coordinates, address, time, site);
  warp.stores[lane] ??= newStoreGroups();
  warp.stores[lane].open.push(store);
  block.group.deferred.push({ run: () => store.write() });
  if (warp.counters !== undefined) warp.counters.addGlobal(boxBytes(tensor), true);
}

/** The engine writes lines in units of so many bytes. */
const unit = 16;

/**
 * A store stops at the end of a line, but not within a unit (seen on an H200): the rest of the last one is overwritten with
 * what the box holds. Loads stop at any element.
 */
function requireWholeUnits(
  warp: Warp,
  lane: number,
  site: number,
  { map, view, size }: TensorBinding,
  first: number,
): void {
  const length = view.sizes[0]!;
  if (first >= length || first + map.box[0]! <= length || (length * size) % unit === 0) return;
  laneFault(
    warp,
    lane,
    site,
    "outOfBounds",
    `a box that ends beyond lines of ${length * size} bytes, no multiple of ${unit}: the rest of the last ${unit} is overwritten, too,`,
  );
}

/** A store on its way. What it has read waits here until it is written. */
class BoxStore implements BulkStore {
  #held: Uint8Array | undefined;
  #written = false;

  constructor(
    readonly block: Block,
    readonly tensor: TensorBinding,
    readonly coordinates: readonly number[],
    readonly address: number,
    readonly time: number,
    readonly site: number,
  ) {}

  read(): void {
    if (this.#held !== undefined || this.#written) return;
    const { tensor, block } = this;
    const held = new Uint8Array(boxBytes(tensor));
    let position = 0;
    eachElement(tensor, this.coordinates, this.address, (_, shared) => {
      copyElement(held, position, block.shared.u8, shared, tensor.size);
      position += tensor.size;
    });
    this.#held = held;
  }

  write(): void {
    if (this.#written) return;
    this.read();
    const { tensor, block } = this;
    let position = 0;
    eachElement(tensor, this.coordinates, this.address, (global) => {
      if (global >= 0) copyElement(tensor.buffer.octets, global, this.#held!, position, tensor.size);
      position += tensor.size;
    });
    this.#written = true;
    this.#held = undefined;
    block.launch.changes++;
  }
}

export function tensorStoreCommit(warp: Warp, lane: number, _site: number): void {
  warp.stores[lane] ??= newStoreGroups();
  const groups = warp.stores[lane];
  groups.closed.push(groups.open);
  groups.open = [];
}

/** `read`: only the sources of the groups are free afterwards; else their targets are written, too. */
export function tensorStoreWait(
  warp: Warp,
  lane: number,
  _site: number,
  pending: number,
  read: boolean,
): void {
  const groups = warp.stores[lane];
  if (groups === undefined) return;
  const done = groups.closed.length - pending;
  let readUntil = -1;
  for (; groups.read < done; groups.read++) {
    for (const store of groups.closed[groups.read]!) {
      store.read();
      readUntil = Math.max(readUntil, store.time);
    }
  }
  let writtenUntil = -1;
  if (!read && done > 0) {
    for (const store of groups.closed.splice(0, done).flat()) {
      store.write();
      writtenUntil = Math.max(writtenUntil, store.time);
    }
    groups.read -= done;
  }
  learn(warp, lane, readUntil, writtenUntil);
}

function learn(warp: Warp, lane: number, readUntil: number, writtenUntil: number): void {
  const { block } = warp;
  if (block.shadow === undefined || (readUntil < 0 && writtenUntil < 0)) return;
  const { bulkReaders, bulkWriters } = block.launch.program.numbering;
  const clock = emptyClock(block.group);
  clock[block.offset + bulkReaders + warp.index] = Math.max(readUntil, 0);
  clock[block.offset + bulkWriters + warp.index] = Math.max(writtenUntil, 0);
  acquire(block, warp.first + lane, clock);
}

/** The block ends and gives its shared memory back: every store's thread must have waited until its source was read. */
export function requireStoresRead(block: Block): void {
  for (const warp of block.warps) {
    warp.stores.forEach((groups, lane) => {
      const store = groups && (groups.closed.slice(groups.read).flat()[0] ?? groups.open[0]);
      if (store === undefined) return;
      throw faultError(
        block,
        "inFlight",
        `the block ends while the tensorStore at {0} by thread ${warp.first + lane} may still read its shared memory; commit it, and let that thread call tensorStoreWait(0, { read: true }) before it ends`,
        [warp.first + lane],
        [store.site],
      );
    });
  }
}
