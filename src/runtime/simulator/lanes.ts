/** @file Sets of lanes: how the subgroup's function splits, shrinks and rejoins them. */
import type { LaneSet, Warp } from "./state.ts";

/** A lane ends. */
export function exitLane(warp: Warp, lane: number, site: number): void {
  warp.state[lane] = -1;
  warp.left[lane] = site;
  warp.liveCount--;
}

/** The lanes of `m` that have not jumped away, in set number `set`. */
export function remaining(warp: Warp, m: LaneSet, set: number): LaneSet {
  const target = warp.sets[set]!;
  let count = 0;
  for (let n = 0; n < m.count; n++) {
    const lane = m.lanes[n]!;
    if (warp.state[lane] === 0) target.lanes[count++] = lane;
  }
  target.count = count;
  return target;
}

/** Parts lanes by a condition. */
export function split(warp: Warp, m: LaneSet, slot: number, yes: LaneSet, no: LaneSet, site: number): void {
  let yesCount = 0;
  let noCount = 0;
  for (let n = 0; n < m.count; n++) {
    const lane = m.lanes[n]!;
    if (warp.i[slot + lane] !== 0) yes.lanes[yesCount++] = lane;
    else no.lanes[noCount++] = lane;
  }
  yes.count = yesCount;
  no.count = noCount;
  if (yesCount > 0 && noCount > 0) for (let n = 0; n < m.count; n++) warp.left[m.lanes[n]!] = site;
}

export function copied(m: LaneSet, target: LaneSet): LaneSet {
  for (let n = 0; n < m.count; n++) target.lanes[n] = m.lanes[n]!;
  target.count = m.count;
  return target;
}

/** At the end of a turn of loop `loop`: keeps the lanes that go on. */
export function goOn(warp: Warp, m: LaneSet, loop: number): void {
  let count = 0;
  for (let n = 0; n < m.count; n++) {
    const lane = m.lanes[n]!;
    const state = warp.state[lane]!;
    if (state === 2 * loop + 1) warp.state[lane] = 0;
    else if (state !== 0) continue;
    m.lanes[count++] = lane;
  }
  m.count = count;
}

/** Behind loop `loop`: the lanes that entered it and neither exited nor left an outer loop. */
export function leftLoop(warp: Warp, m: LaneSet, target: LaneSet, loop: number): LaneSet {
  let count = 0;
  for (let n = 0; n < m.count; n++) {
    const lane = m.lanes[n]!;
    const state = warp.state[lane]!;
    if (state === 2 * loop) warp.state[lane] = 0;
    else if (state !== 0) continue;
    target.lanes[count++] = lane;
  }
  target.count = count;
  return target;
}

/** After a turn of a loop that looks at memory: others get to run before the next one. */
export function spin(warp: Warp, m: LaneSet, site: number): boolean {
  if (m.count === 0) return false;
  warp.waiting = "spin";
  warp.waitSite = site;
  return true;
}
