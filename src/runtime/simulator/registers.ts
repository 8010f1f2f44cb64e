/** @file Register variables: whether they were assigned, and whether an asynchronous product holds them. */

import { unassigned } from "./diagnostics.ts";
import { faultError } from "./faults.ts";
import type { RangePlan } from "./fragments.ts";
import type { Warp } from "./state.ts";

/** A product in flight holds the register. */
function complainHeld(warp: Warp, lane: number, site: number, element: number, write: boolean): never {
  const product = warp.productSite[element]!;
  throw faultError(
    warp.block,
    "inFlight",
    `thread ${warp.first + lane} ${write ? "writes" : "reads"} a register at {0} that the asynchronous product at {1} holds; put warpgroupWait between them`,
    [warp.first + lane],
    [site, product],
  );
}

/** A lane touches an element that products use at times. Groups are numbered from 1. */
export function touchRegister(warp: Warp, lane: number, site: number, element: number, write: boolean): void {
  if (warp.accumulating[element]! > warp.doneGroups) complainHeld(warp, lane, site, element, write);
  if (write && warp.multiplying[element]! > warp.doneGroups) complainHeld(warp, lane, site, element, write);
  warp.touched[element] = 1;
}

/** Before a matrix operation reads a range. */
export function checkRange(warp: Warp, site: number, range: RangePlan): void {
  if (warp.block.shadow === undefined) return;
  const { checkedElements } = warp.launch.program;
  for (let element = range.first; element < range.first + range.elements; element++) {
    const kinds = checkedElements[element]!;
    if (kinds === 0) continue;
    if ((kinds & 1) !== 0) {
      for (let lane = 0; lane < warp.width; lane++) {
        if (warp.assigned[element * warp.width + lane] === 0) {
          const [variable, position] = warp.launch.program.elementName(element);
          unassigned(warp, lane, site, variable, position);
        }
      }
    }
    if ((kinds & 2) !== 0) touchRegister(warp, 0, site, element, false);
  }
}

/** A matrix operation writes a range. */
export function noteWritten(warp: Warp, site: number, range: RangePlan): void {
  if (warp.block.shadow === undefined) return;
  const { checkedElements } = warp.launch.program;
  for (let element = range.first; element < range.first + range.elements; element++) {
    const kinds = checkedElements[element]!;
    if (kinds === 0) continue;
    if ((kinds & 1) !== 0) warp.assigned.fill(1, element * warp.width, (element + 1) * warp.width);
    if ((kinds & 2) !== 0) touchRegister(warp, 0, site, element, true);
  }
}
