/** @file Checks of memory accesses: bounds, alignment, and the shadow. */
import type { BufferBinding } from "./arguments.ts";
import type { SharedArrayFacts, TableFacts } from "./array-facts.ts";
import { type ForeignClock, joinedForeign } from "./clock.ts";
import { laneFault, subjectOf } from "./faults.ts";
import { acquireForeign, advance, snapshot } from "./ordering.ts";
import { readGranule, updateGranule, writeGranule } from "./shadow.ts";
import type { BufferShadow, Shadow } from "./shadow-cells.ts";
import type { Block, Warp } from "./state.ts";

function outOfBounds(
  warp: Warp,
  lane: number,
  site: number,
  element: number,
  lanes: number,
  length: number,
): never {
  const what = lanes === 1 ? `element ${element}` : `elements ${element} to ${element + lanes - 1}`;
  laneFault(
    warp,
    lane,
    site,
    "outOfBounds",
    `${what} of ${subjectOf(warp.block, site)}, which has ${length}`,
  );
}

function misaligned(warp: Warp, lane: number, site: number, bytes: number, address: number): never {
  laneFault(
    warp,
    lane,
    site,
    "misaligned",
    `an access of ${bytes} bytes to ${subjectOf(warp.block, site)} at byte ${address}, no multiple of ${bytes}`,
  );
}

export function readShared(
  warp: Warp,
  lane: number,
  site: number,
  array: SharedArrayFacts,
  element: number,
  lanes: number,
): void {
  if (!(element >= 0 && element + lanes <= array.length))
    outOfBounds(warp, lane, site, element, lanes, array.length);
  const address = array.byteOffset + element * array.size;
  const bytes = lanes * array.size;
  if (lanes !== 1 && address % bytes !== 0) misaligned(warp, lane, site, bytes, address);
  const { block } = warp;
  const thread = warp.first + lane;
  const id = block.group.firstId + block.offset + thread;
  const first = array.base + ((address - array.start) >> array.shift);
  const last = array.base + ((address + bytes - 1 - array.start) >> array.shift);
  for (let granule = first; granule <= last; granule++) {
    readGranule(block.shadow!, granule, block, thread, id, site, block.launch.now, block.base);
  }
}

export function writeShared(
  warp: Warp,
  lane: number,
  site: number,
  array: SharedArrayFacts,
  element: number,
  lanes: number,
): void {
  if (!(element >= 0 && element + lanes <= array.length))
    outOfBounds(warp, lane, site, element, lanes, array.length);
  const address = array.byteOffset + element * array.size;
  const bytes = lanes * array.size;
  if (lanes !== 1 && address % bytes !== 0) misaligned(warp, lane, site, bytes, address);
  const { block } = warp;
  const thread = warp.first + lane;
  const id = block.group.firstId + block.offset + thread;
  const first = array.base + ((address - array.start) >> array.shift);
  const last = array.base + ((address + bytes - 1 - array.start) >> array.shift);
  for (let granule = first; granule <= last; granule++) {
    writeGranule(block.shadow!, granule, block, thread, id, site, block.launch.now, block.base);
  }
}

function checkGlobal(
  warp: Warp,
  lane: number,
  site: number,
  array: BufferBinding,
  element: number,
  lanes: number,
): void {
  if (!(element >= 0 && element + lanes <= array.length))
    outOfBounds(warp, lane, site, element, lanes, array.length);
  if (lanes !== 1) {
    const bytes = lanes * array.size;
    const address = array.byteOffset + element * array.size;
    if (address % bytes !== 0) misaligned(warp, lane, site, bytes, address);
  }
}

export function readGlobal(
  warp: Warp,
  lane: number,
  site: number,
  array: BufferBinding,
  element: number,
  lanes: number,
): void {
  checkGlobal(warp, lane, site, array, element, lanes);
  if (array.shadow !== undefined)
    touchBuffer(
      warp,
      lane,
      site,
      array.shadow,
      array.byteOffset + element * array.size,
      lanes * array.size,
      false,
    );
}

export function writeGlobal(
  warp: Warp,
  lane: number,
  site: number,
  array: BufferBinding,
  element: number,
  lanes: number,
): void {
  checkGlobal(warp, lane, site, array, element, lanes);
  if (array.shadow !== undefined)
    touchBuffer(
      warp,
      lane,
      site,
      array.shadow,
      array.byteOffset + element * array.size,
      lanes * array.size,
      true,
    );
}

/** Records an access to device memory. */
export function touchBuffer(
  warp: Warp,
  lane: number,
  site: number,
  shadow: BufferShadow,
  address: number,
  bytes: number,
  write: boolean,
): void {
  const { block } = warp;
  const { now, startTime } = block.launch;
  const thread = warp.first + lane;
  const id = block.group.firstId + block.offset + thread;
  const last = Math.floor((address + bytes - 1) / shadow.granule);
  for (let granule = Math.floor(address / shadow.granule); granule <= last; granule++) {
    const page = shadow.page(granule);
    if (write) writeGranule(page, granule & 4095, block, thread, id, site, now, startTime);
    else readGranule(page, granule & 4095, block, thread, id, site, now, startTime);
  }
}

export function readTable(
  warp: Warp,
  lane: number,
  site: number,
  table: TableFacts,
  element: number,
  lanes: number,
): void {
  if (!(element >= 0 && element + lanes <= table.length))
    outOfBounds(warp, lane, site, element, lanes, table.length);
}

/** Orders bits as the generated text gives them: 1 acquires, 2 releases. */
function exchangeKnowledge(
  block: Block,
  thread: number,
  order: number,
  strength: string,
  published: ForeignClock | undefined,
): ForeignClock | undefined {
  if (published !== undefined && strength !== "store") {
    if ((order & 1) !== 0) acquireForeign(block, thread, published);
    else block.seen[thread] = joinedForeign(block.seen[thread], published);
  }
  if (strength === "load") return published;
  if ((order & 2) !== 0) {
    const clock = snapshot(block, thread);
    advance(block);
    return joinedForeign(published, clock);
  }
  return joinedForeign(published, block.fenced[thread]);
}

export function atomicGlobal(
  warp: Warp,
  lane: number,
  site: number,
  array: BufferBinding,
  element: number,
  lanes: number,
  order: number,
  strength: string,
): void {
  checkGlobal(warp, lane, site, array, element, lanes);
  const { shadow } = array;
  if (shadow === undefined) return;
  const { block } = warp;
  const { now, startTime } = block.launch;
  const thread = warp.first + lane;
  const id = block.group.firstId + block.offset + thread;
  const address = array.byteOffset + element * array.size;
  const first = Math.floor(address / shadow.granule);
  const last = Math.floor((address + lanes * array.size - 1) / shadow.granule);
  for (let granule = first; granule <= last; granule++) {
    updateGranule(shadow.page(granule), granule & 4095, block, thread, id, site, now, startTime, strength);
  }
  const before = shadow.clocks?.get(first);
  const after = exchangeKnowledge(block, thread, order, strength, before);
  if (after !== before && after !== undefined) {
    shadow.clocks ??= new Map();
    shadow.clocks.set(first, after);
  }
}

export function atomicShared(
  warp: Warp,
  lane: number,
  site: number,
  array: SharedArrayFacts,
  element: number,
  lanes: number,
  order: number,
  strength: string,
): void {
  if (!(element >= 0 && element + lanes <= array.length))
    outOfBounds(warp, lane, site, element, lanes, array.length);
  const { block } = warp;
  const thread = warp.first + lane;
  const id = block.group.firstId + block.offset + thread;
  const address = array.byteOffset + element * array.size;
  const first = array.base + ((address - array.start) >> array.shift);
  const last = array.base + ((address + lanes * array.size - 1 - array.start) >> array.shift);
  for (let granule = first; granule <= last; granule++) {
    updateGranule(block.shadow!, granule, block, thread, id, site, block.launch.now, block.base, strength);
  }
  const clocks = sharedClocks(block);
  const before = clocks.get(first);
  const after = exchangeKnowledge(block, thread, order, strength, before);
  if (after !== before && after !== undefined) clocks.set(first, after);
}

const clocksOfBlocks = new WeakMap<Shadow, Map<number, ForeignClock>>();

function sharedClocks(block: Block): Map<number, ForeignClock> {
  let clocks = clocksOfBlocks.get(block.shadow!);
  if (clocks === undefined) {
    clocks = new Map();
    clocksOfBlocks.set(block.shadow!, clocks);
  }
  return clocks;
}

/** Forgets what shared atomics published: a new block begins. */
export function forgetSharedClocks(shadow: Shadow): void {
  clocksOfBlocks.delete(shadow);
}

/** A fence: relaxed atomics before it become acquires, those after it releases. */
export function fence(warp: Warp, lane: number, _site: number): void {
  const { block } = warp;
  if (block.shadow === undefined) return;
  const thread = warp.first + lane;
  const seen = block.seen[thread];
  if (seen !== undefined) {
    acquireForeign(block, thread, seen);
    block.seen[thread] = undefined;
  }
  block.fenced[thread] = snapshot(block, thread);
  advance(block);
}

export function proxyFence(warp: Warp, lane: number, _site: number): void {
  const { block } = warp;
  block.proxyTime[warp.first + lane] = block.launch.now;
  advance(block);
}
