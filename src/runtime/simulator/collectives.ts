/** @file Collectives of a subgroup on its slots. They order no memory. */

import { evaluateOperation } from "../../ir/evaluate.ts";
import { scalar } from "../../ir/nodes.ts";
import { type ElementType, types } from "../../types/types.ts";
import { requireTogether } from "./barriers.ts";
import { laneFault } from "./faults.ts";
import type { LaneSet, Warp } from "./state.ts";

type BankName = "f" | "i" | "b";

/** The lane that a shuffle reads, or -1 for the lane's own value. */
function sourceLane(mode: string, width: number, lane: number, by: number): number {
  const within = lane & (width - 1);
  const segment = lane - within;
  switch (mode) {
    case "index":
      return by >= 0 && by < width ? segment + by : -1;
    case "up":
      return by >= 0 && within - by >= 0 ? lane - by : -1;
    case "down":
      return by >= 0 && within + by < width ? lane + by : -1;
    default:
      return by >= 0 && by < width ? segment + (within ^ by) : -1;
  }
}

export function shuffle(
  warp: Warp,
  m: LaneSet,
  site: number,
  mode: string,
  width: number,
  bank: BankName,
  slots: readonly number[],
  bySlot: number,
  result: number,
): void {
  requireTogether(warp, m, site, false);
  if (warp.counters !== undefined) warp.counters.shuffles += slots.length;
  const values = warp[bank] as Float64Array;
  slots.forEach((slot, part) => {
    const before = values.slice(slot, slot + warp.width);
    for (let n = 0; n < m.count; n++) {
      const lane = m.lanes[n]!;
      const source = sourceLane(mode, width, lane, warp.i[bySlot + lane]!);
      const from = source < 0 || source >= warp.width ? lane : source;
      if (warp.state[from] === -1 || !isLane(warp, from)) {
        laneFault(
          warp,
          lane,
          site,
          "divergentCollective",
          `a shuffle reads lane ${from} of its subgroup, which has ended or does not exist,`,
        );
      }
      values[result + part * warp.width + lane] = before[from]!;
    }
  });
}

/** The last subgroup of a block may have fewer threads than lanes. */
function isLane(warp: Warp, lane: number): boolean {
  return warp.first + lane < warp.launch.program.numbering.threads;
}

export function vote(warp: Warp, m: LaneSet, site: number, all: boolean, slot: number, result: number): void {
  requireTogether(warp, m, site, false);
  if (warp.counters !== undefined) warp.counters.shuffles++;
  let held = 0;
  for (let n = 0; n < m.count; n++) if (warp.i[slot + m.lanes[n]!] !== 0) held++;
  const answer = (all ? held === m.count : held > 0) ? 1 : 0;
  for (let n = 0; n < m.count; n++) warp.i[result + m.lanes[n]!] = answer;
}

export function ballot(warp: Warp, m: LaneSet, site: number, slot: number, result: number): void {
  requireTogether(warp, m, site, false);
  if (warp.counters !== undefined) warp.counters.shuffles++;
  let mask = 0;
  for (let n = 0; n < m.count; n++) if (warp.i[slot + m.lanes[n]!] !== 0) mask |= 1 << m.lanes[n]!;
  for (let n = 0; n < m.count; n++) warp.i[result + m.lanes[n]!] = mask;
}

/** Chooses the lowest lane that is there. */
export function electOne(warp: Warp, m: LaneSet, site: number, result: number): void {
  requireTogether(warp, m, site, false);
  let least = warp.width;
  for (let n = 0; n < m.count; n++) least = Math.min(least, m.lanes[n]!);
  for (let n = 0; n < m.count; n++) warp.i[result + m.lanes[n]!] = m.lanes[n] === least ? 1 : 0;
}

function combine(
  operation: string,
  element: ElementType,
  a: number | bigint,
  b: number | bigint,
): number | bigint {
  const type = scalar(element);
  return evaluateOperation(operation as "add", [a, b], [type, type], type, {}) as number | bigint;
}

/** A butterfly, the farthest lanes first, as shuffles do it: floats have the order of that tree. */
export function subgroupReduce(
  warp: Warp,
  m: LaneSet,
  site: number,
  operation: string,
  elementName: string,
  bank: BankName,
  slots: readonly number[],
  result: number,
): void {
  requireTogether(warp, m, site, false);
  if (warp.counters !== undefined) warp.counters.shuffles += slots.length;
  const element = types[elementName as ElementType["name"]];
  const unsigned = element.name === "u32";
  const present = new Uint8Array(warp.width);
  for (let n = 0; n < m.count; n++) present[m.lanes[n]!] = 1;
  slots.forEach((slot, part) => {
    const bankArray = warp[bank] as Float64Array;
    let values: (number | bigint)[] = Array.from({ length: warp.width }, (_, lane) =>
      unsigned ? bankArray[slot + lane]! >>> 0 : bankArray[slot + lane]!,
    );
    const there = present.slice();
    for (let distance = warp.width >> 1; distance > 0; distance >>= 1) {
      const next = values.slice();
      const nextThere = there.slice();
      for (let lane = 0; lane < warp.width; lane++) {
        const other = lane ^ distance;
        if (there[lane] === 1 && there[other] === 1)
          next[lane] = combine(operation, element, values[lane]!, values[other]!);
        else if (there[other] === 1) {
          next[lane] = values[other]!;
          nextThere[lane] = 1;
        }
      }
      values = next;
      there.set(nextThere);
    }
    for (let n = 0; n < m.count; n++)
      bankArray[result + part * warp.width + m.lanes[n]!] = values[m.lanes[n]!] as number;
  });
}
