/**
 * @file Asynchronous copies. What a thread starts is put aside and done later, by the thread's own wait or whenever the
 * scheduler pleases: data must not be there before somebody has waited for them.
 */

import { touchBuffer } from "./access.ts";
import type { BufferBinding, TensorBinding } from "./arguments.ts";
import type { SharedArrayFacts } from "./array-facts.ts";
import { countCopy } from "./counting.ts";
import { laneFault } from "./faults.ts";
import { acquire, advance, emptyClock, releaseInto } from "./ordering.ts";
import { type BulkStore, commitGroup, groupsOf, type ThreadCopy } from "./pending-work.ts";
import { barrierAt, completePhase, requireInitFence } from "./phase-barriers.ts";
import { landCopy, readGranuleAsynchronously, startCopy } from "./shadow.ts";
import { beside } from "./shadow-cells.ts";
import type { Block, PhaseBarrier, Warp } from "./state.ts";
import { swizzled } from "./swizzle.ts";

/** Granules of bytes of a shared array. */
function eachGranule(
  array: SharedArrayFacts,
  address: number,
  bytes: number,
  visit: (granule: number) => void,
): void {
  const last = array.base + ((address + bytes - 1 - array.start) >> array.shift);
  for (let granule = array.base + ((address - array.start) >> array.shift); granule <= last; granule++)
    visit(granule);
}

// Copies of threads ----------------------------------------------------------------------------------------------------

export function copyAsync(
  warp: Warp,
  lane: number,
  site: number,
  array: SharedArrayFacts,
  element: number,
  source: BufferBinding,
  sourceElement: number,
  bytes: number,
  valid: number,
): void {
  const { block } = warp;
  const address = array.byteOffset + element * array.size;
  const sourceByte = source.byteOffset + sourceElement * source.size;
  const used = Math.max(0, Math.min(bytes, valid));
  if (block.shadow !== undefined) {
    checkCopy(warp, lane, site, array, element, address, source, sourceElement, sourceByte, bytes, used);
    const thread = warp.first + lane;
    const id = block.group.firstId + block.offset + thread;
    eachGranule(array, address, bytes, (granule) =>
      startCopy(block.shadow!, granule, block, thread, id, site),
    );
  }
  if (warp.counters !== undefined)
    countCopy(warp, lane, site, { byte: sourceByte, bytes: used }, { byte: address, bytes });
  groupsOf(warp.copies, lane).open.push({
    array,
    address,
    source,
    sourceByte,
    bytes,
    valid: used,
    site,
    landed: false,
  });
}

function checkCopy(
  warp: Warp,
  lane: number,
  site: number,
  array: SharedArrayFacts,
  element: number,
  address: number,
  source: BufferBinding,
  sourceElement: number,
  sourceByte: number,
  bytes: number,
  used: number,
): void {
  const elements = bytes / array.size;
  if (!(element >= 0 && element + elements <= array.length)) {
    laneFault(
      warp,
      lane,
      site,
      "outOfBounds",
      `an asynchronous copy to elements ${element} to ${element + elements - 1} of a shared array of ${array.length}`,
    );
  }
  const sourceElements = Math.ceil(used / source.size);
  if (used > 0 && !(sourceElement >= 0 && sourceElement + sourceElements <= source.length)) {
    laneFault(
      warp,
      lane,
      site,
      "outOfBounds",
      `an asynchronous copy from elements ${sourceElement} to ${sourceElement + sourceElements - 1} of array ${source.parameter.name}, which has ${source.length}`,
    );
  }
  if (address % bytes !== 0 || (used > 0 && sourceByte % bytes !== 0)) {
    laneFault(
      warp,
      lane,
      site,
      "misaligned",
      `an asynchronous copy of ${bytes} bytes from byte ${sourceByte} to byte ${address}, not both multiples of ${bytes},`,
    );
  }
  if (source.shadow !== undefined && used > 0)
    touchBuffer(warp, lane, site, source.shadow, sourceByte, used, false);
}

function land(block: Block, copy: ThreadCopy, id: number, time: number): void {
  if (copy.landed) return;
  copy.landed = true;
  const { u8 } = block.shared;
  u8.set(copy.source.buffer.octets.subarray(copy.sourceByte, copy.sourceByte + copy.valid), copy.address);
  if (copy.valid < copy.bytes) u8.fill(0, copy.address + copy.valid, copy.address + copy.bytes);
  if (block.shadow !== undefined) {
    eachGranule(copy.array, copy.address, copy.bytes, (granule) =>
      landCopy(block.shadow!, granule, id, copy.site, time),
    );
  }
}

export function copyAsyncCommit(warp: Warp, lane: number, _site: number): void {
  commitGroup(warp.copies, lane);
}

export function copyAsyncWait(warp: Warp, lane: number, _site: number, pending: number): void {
  const groups = warp.copies[lane];
  if (groups === undefined) return;
  const { block } = warp;
  const id = block.group.firstId + block.offset + warp.first + lane;
  while (groups.closed.length > pending) {
    for (const copy of groups.closed.shift()!) land(block, copy, id, block.launch.now);
  }
}

export function copyAsyncArrive(warp: Warp, lane: number, site: number, word: number): void {
  const { block } = warp;
  const barrier = barrierAt(block, warp, lane, site, word);
  const groups = warp.copies[lane];
  const copies = groups === undefined ? [] : [...groups.closed.flat(), ...groups.open];
  const thread = warp.first + lane;
  const time = block.launch.now;
  const clock = emptyClock(block.group);
  releaseInto(clock, block, thread);
  advance(block);
  block.group.deferred.push({
    run: () => {
      const id = block.group.firstId + block.offset + thread;
      for (const copy of copies) land(block, copy, id, time);
      barrier.clock ??= emptyClock(block.group);
      for (let n = 0; n < clock.length; n++) if (clock[n]! > barrier.clock[n]!) barrier.clock[n] = clock[n]!;
      barrier.pending--;
      if (barrier.pending < 0)
        laneFault(
          warp,
          lane,
          site,
          "barrierPhase",
          `one arrival more than the ${barrier.count} that the barrier's phase expects`,
        );
      completePhase(barrier, block);
    },
  });
}

// Tensor copies --------------------------------------------------------------------------------------------------------

function boxBytes(tensor: TensorBinding): number {
  return tensor.map.box.reduce((product, extent) => product * extent, tensor.size);
}

/** The box's part of shared memory; checked. */
function boxAddress(
  warp: Warp,
  lane: number,
  site: number,
  tensor: TensorBinding,
  array: SharedArrayFacts,
  element: number,
): number {
  const address = array.byteOffset + element * array.size;
  if (warp.block.shadow === undefined) return address;
  const elements = boxBytes(tensor) / array.size;
  if (!(element >= 0 && element + elements <= array.length)) {
    laneFault(
      warp,
      lane,
      site,
      "outOfBounds",
      `a box of ${elements} elements at element ${element} of a shared array of ${array.length}`,
    );
  }
  if (address % 128 !== 0)
    laneFault(
      warp,
      lane,
      site,
      "misaligned",
      `a box at byte ${address} of shared memory, no multiple of 128,`,
    );
  return address;
}

/** Calls `visit` with the byte of the tensor (-1 outside of it) and of shared memory for each element of the box. */
function eachElement(
  tensor: TensorBinding,
  coordinates: readonly number[],
  address: number,
  visit: (global: number, shared: number) => void,
): void {
  const { map, view, size } = tensor;
  const counter = map.box.map(() => 0);
  const count = map.box.reduce((product, extent) => product * extent, 1);
  for (let n = 0; n < count; n++) {
    let inside = true;
    let position = 0;
    for (let dimension = 0; dimension < map.rank; dimension++) {
      const coordinate = coordinates[dimension]! + counter[dimension]!;
      if (coordinate < 0 || coordinate >= view.sizes[dimension]!) inside = false;
      position += coordinate * view.strides[dimension]!;
    }
    visit(inside ? view.byteOffset + position * size : -1, swizzled(address + n * size, map.swizzle));
    for (let dimension = 0; dimension < map.rank; dimension++) {
      if (++counter[dimension]! < map.box[dimension]!) break;
      counter[dimension] = 0;
    }
  }
}

/** Marks the box's elements in the tensor as read or written by the thread. */
function touchTensor(
  warp: Warp,
  lane: number,
  site: number,
  tensor: TensorBinding,
  coordinates: readonly number[],
  write: boolean,
): void {
  const { shadow } = tensor;
  if (shadow === undefined) return;
  eachElement(tensor, coordinates, 0, (global) => {
    if (global >= 0) touchBuffer(warp, lane, site, shadow, global, tensor.size, write);
  });
}

function copyElement(target: Uint8Array, to: number, source: Uint8Array, from: number, size: number): void {
  for (let n = 0; n < size; n++) target[to + n] = source[from + n]!;
}

/** `mask` -1: to the own block only. */
export function tensorLoad(
  warp: Warp,
  lane: number,
  site: number,
  tensor: TensorBinding,
  array: SharedArrayFacts,
  element: number,
  word: number,
  coordinates: readonly number[],
  mask: number,
): void {
  const { block } = warp;
  const address = boxAddress(warp, lane, site, tensor, array, element);
  const bytes = boxBytes(tensor);
  const targets =
    mask === -1 ? [block] : block.group.blocks.filter(({ rank }) => ((mask >>> rank) & 1) === 1);
  const thread = warp.first + lane;
  touchTensor(warp, lane, site, tensor, coordinates, false);
  for (const target of targets) {
    if (target.finished)
      laneFault(
        warp,
        lane,
        site,
        "barrierPhase",
        `a tensor load into block ${target.rank} of the cluster, which has already ended`,
      );
    const barrier = barrierAt(target, warp, lane, site, word);
    requireInitFence(target, barrier, warp, lane, site);
    const { shadow } = target;
    if (shadow !== undefined)
      eachGranule(array, address, bytes, (granule) => startCopy(shadow, granule, block, thread, -3, site));
    block.group.deferred.push({
      run: () => deliver(target, barrier, tensor, array, coordinates, address, bytes, site),
    });
  }
  if (warp.counters !== undefined) warp.counters.addGlobal(bytes, false);
}

function deliver(
  block: Block,
  barrier: PhaseBarrier,
  tensor: TensorBinding,
  array: SharedArrayFacts,
  coordinates: readonly number[],
  address: number,
  bytes: number,
  site: number,
): void {
  const { u8 } = block.shared;
  const { octets } = tensor.buffer;
  eachElement(tensor, coordinates, address, (global, shared) => {
    if (global < 0) u8.fill(0, shared, shared + tensor.size);
    else copyElement(u8, shared, octets, global, tensor.size);
  });
  const { shadow, launch } = block;
  if (shadow !== undefined) {
    const engine = block.offset + launch.program.numbering.barriers + barrier.word;
    const time = launch.now;
    eachGranule(array, address, bytes, (granule) =>
      landCopy(shadow, granule, block.group.firstId + engine, site, time + beside),
    );
    barrier.clock ??= emptyClock(block.group);
    barrier.clock[engine] = time;
    advance(block);
  }
  barrier.bytes -= bytes;
  completePhase(barrier, block);
}

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
    const id = block.group.firstId + block.offset + block.launch.program.numbering.bulkEngines + warp.index;
    eachGranule(array, address, boxBytes(tensor), (granule) => {
      readGranuleAsynchronously(block.shadow!, granule, block, warp.first + lane, id, site, time + beside);
    });
    advance(block);
  }
  touchTensor(warp, lane, site, tensor, coordinates, true);
  const store: BulkStore = {
    time,
    done: false,
    perform: () => {
      if (store.done) return;
      store.done = true;
      eachElement(tensor, coordinates, address, (global, shared) => {
        if (global >= 0) copyElement(tensor.buffer.octets, global, block.shared.u8, shared, tensor.size);
      });
      block.launch.changes++;
    },
  };
  groupsOf(warp.stores, lane).open.push(store);
  block.group.deferred.push({ run: store.perform });
  if (warp.counters !== undefined) warp.counters.addGlobal(boxBytes(tensor), true);
}

export function tensorStoreCommit(warp: Warp, lane: number, _site: number): void {
  commitGroup(warp.stores, lane);
}

export function tensorStoreWait(
  warp: Warp,
  lane: number,
  _site: number,
  pending: number,
  _read: boolean,
): void {
  const groups = warp.stores[lane];
  if (groups === undefined) return;
  const { block } = warp;
  let time = -1;
  while (groups.closed.length > pending) {
    for (const store of groups.closed.shift()!) {
      store.perform();
      time = Math.max(time, store.time);
    }
  }
  if (time < 0 || block.shadow === undefined) return;
  const clock = emptyClock(block.group);
  clock[block.offset + block.launch.program.numbering.bulkEngines + warp.index] = time;
  acquire(block, warp.first + lane, clock);
}
