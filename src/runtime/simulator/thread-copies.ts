/**
 * @file Copies that threads start and go on beside them (cp.async). They are done by the thread's own wait, or whenever
 * the scheduler pleases: data must not be there before somebody has waited for them.
 */
import { touchBuffer } from "./access.ts";
import type { BufferBinding } from "./arguments.ts";
import type { SharedArrayFacts } from "./array-facts.ts";
import { countCopy } from "./counting.ts";
import { laneFault } from "./faults.ts";
import { advance, emptyClock, releaseInto } from "./ordering.ts";
import { commitGroup, groupsOf, type ThreadCopy } from "./pending-work.ts";
import { barrierAt, completePhase } from "./phase-barriers.ts";
import { landCopy, startCopy } from "./shadow.ts";
import type { Block, Warp } from "./state.ts";
import { eachGranule } from "./tensor-box.ts";

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
    if (!(valid >= 0 && valid <= bytes))
      laneFault(
        warp,
        lane,
        site,
        "outOfBounds",
        `an asynchronous copy of ${bytes} bytes of which ${valid} count`,
      );
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
