/** @file Boxes of tensors into shared memory (TMA). The scheduler brings them; barriers tell when. */
import { roundToTF32Even } from "../../types/round.ts";
import type { TensorBinding } from "./arguments.ts";
import type { SharedArrayFacts } from "./array-facts.ts";
import { faultError, laneFault } from "./faults.ts";
import { advance, emptyClock } from "./ordering.ts";
import { barrierAt, completePhase, requireInitFence } from "./phase-barriers.ts";
import { landCopy, startCopy } from "./shadow.ts";
import { beside } from "./shadow-cells.ts";
import type { ArrivingLoad, Block, PhaseBarrier, Warp } from "./state.ts";
import { boxAddress, boxBytes, copyElement, eachElement, eachGranule, readTensor } from "./tensor-box.ts";

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
  readTensor(warp, lane, site, tensor, coordinates);
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
    const load: ArrivingLoad = { rank: block.rank, thread, site };
    target.arriving.add(load);
    block.group.deferred.push({
      run: () => {
        target.arriving.delete(load);
        deliver(target, barrier, tensor, array, coordinates, address, bytes, site);
      },
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
  const { u8, f32 } = block.shared;
  const { octets } = tensor.buffer;
  const rounds = tensor.map.rounding === "tf32";
  eachElement(tensor, coordinates, address, (global, shared) => {
    if (global < 0) u8.fill(0, shared, shared + tensor.size);
    else copyElement(u8, shared, octets, global, tensor.size);
    if (rounds) f32[shared / 4] = roundToTF32Even(f32[shared / 4]!);
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

/** The block ends and gives its shared memory back: nothing may still be on its way there. */
export function requireLoadsLanded(block: Block): void {
  for (const { rank, thread, site } of block.arriving) {
    const who = rank === block.rank ? `thread ${thread}` : `thread ${thread} of block ${rank} of the cluster`;
    throw faultError(
      block,
      "inFlight",
      `the block ends before the tensorLoad at {0} by ${who} has filled its shared memory; wait for its barrier`,
      [thread],
      [site],
    );
  }
}
