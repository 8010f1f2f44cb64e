/** @file Clocks as values: by participant, up to which time its accesses are known. See ordering.ts. */

/** By participant of the group, times; then by participant, times of fenced writes. */
export type Clock = Int32Array;

/** Clocks of several groups, by first participant number. */
export type ForeignClock = ReadonlyMap<number, Clock>;

let lastA: Clock | undefined;
let lastB: Clock | undefined;
let lastJoined: Clock | undefined;

/** The later of two times for each participant. */
export function joined(a: Clock | undefined, b: Clock | undefined): Clock | undefined {
  if (a === b || b === undefined) return a;
  if (a === undefined) return b;
  if (a === lastA && b === lastB) return lastJoined;
  const result = a.slice();
  joinInto(result, b);
  lastA = a;
  lastB = b;
  lastJoined = result;
  return result;
}

/** Raises a mutable clock to another. */
export function joinInto(target: Clock, other: Clock): void {
  for (let n = 0; n < other.length; n++) if (other[n]! > target[n]!) target[n] = other[n]!;
}

/** Union of what two clocks of several groups know. */
export function joinedForeign(
  a: ForeignClock | undefined,
  b: ForeignClock | undefined,
): ForeignClock | undefined {
  if (a === b || b === undefined) return a;
  if (a === undefined) return b;
  const result = new Map(a);
  for (const [group, clock] of b) result.set(group, joined(result.get(group), clock)!);
  return result;
}
