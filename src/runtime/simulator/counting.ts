/**
 * @file Counting while a kernel runs. Memory instructions are matched between lanes by how often each lane has come to
 * the same place within a region, as lanes in step would.
 */
import type { BufferBinding } from "./arguments.ts";
import type { SharedArrayFacts } from "./array-facts.ts";
import type { CountedPlace } from "./counters.ts";
import type { Warp } from "./state.ts";

function note(
  warp: Warp,
  lane: number,
  site: number,
  kind: CountedPlace["kind"],
  address: number,
  bytes: number,
): void {
  warp.trace ??= new Map();
  const { trace } = warp;
  let place = trace.get(site);
  if (place === undefined) {
    place = { kind, bytes, visits: new Int32Array(warp.width), instructions: [] };
    trace.set(site, place);
  }
  const visit = place.visits[lane]!++;
  const addresses = place.instructions[visit];
  if (addresses === undefined) place.instructions[visit] = [address];
  else addresses.push(address);
}

export function countGlobal(
  warp: Warp,
  lane: number,
  site: number,
  array: BufferBinding,
  element: number,
  bytes: number,
  store: boolean,
): void {
  note(warp, lane, site, store ? "store" : "load", array.byteOffset + element * array.size, bytes);
}

export function countShared(
  warp: Warp,
  lane: number,
  site: number,
  array: SharedArrayFacts,
  element: number,
  bytes: number,
  _store: boolean,
): void {
  note(warp, lane, site, "shared", array.byteOffset + element * array.size, bytes);
}

/** A copy of one lane: a load from device memory and a store to shared memory. */
export function countCopy(
  warp: Warp,
  lane: number,
  site: number,
  from: { readonly byte: number; readonly bytes: number },
  to: { readonly byte: number; readonly bytes: number },
): void {
  // Places are told apart by site alone; sites count from 0.
  if (from.bytes > 0) note(warp, lane, site, "load", from.byte, from.bytes);
  note(warp, lane, -1 - site, "shared", to.byte, to.bytes);
}

/** A region ends: its accesses become instructions of the subgroup. */
export function closeRegion(warp: Warp): void {
  const { trace, counters } = warp;
  if (trace === undefined || counters === undefined) return;
  for (const { kind, bytes, instructions } of trace.values()) {
    for (const addresses of instructions) {
      if (kind === "shared") counters.addSharedAccess(addresses, bytes);
      else counters.addGlobalAccess(addresses, bytes, kind === "store");
    }
  }
  warp.trace = undefined;
}
