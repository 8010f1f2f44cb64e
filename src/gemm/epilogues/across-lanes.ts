/**
 * @file Joins what the lanes of a subgroup hold, by shuffles.
 */
import {
  type AnyValue,
  type Condition,
  constant,
  type I32,
  select,
  subgroup,
  type Value,
} from "../../lang/index.ts";
import type { Reduction } from "./reduction.ts";

/** What joins two states. */
export type Joining = Pick<Reduction, "combine">;

/** What a lane has of one line: a value for each component. */
export type State = readonly AnyValue[];

/** A state and which line it is of, on top of what the lane decides. */
export interface Line {
  readonly offset: number;
  readonly state: State;
}

/** What a lane has after the exchange. */
export interface Exchanged {
  readonly lines: readonly Line[];
  /** What the lane adds to the lines' offsets. */
  readonly shift: Value<I32> | undefined;
  /** Whether the lane stores them. */
  readonly owner: Condition;
}

const isPowerOfTwo = (x: number): boolean => (x & (x - 1)) === 0;

/**
 * Joins each line's states over `size` lanes that lie `stride` apart. While there are several lines, lanes exchange halves of
 * them, so that each ends up with its own share of the lines instead of all lanes with all of them.
 */
export function acrossLanes(
  reduction: Joining,
  lines: readonly Line[],
  size: number,
  stride: number,
): Exchanged {
  if (!isPowerOfTwo(size) || !isPowerOfTwo(stride)) return inTurn(reduction, lines, size, stride);
  const { lane } = subgroup;
  let held = lines;
  let shift: Value<I32> | undefined;
  let owner: Condition = true;
  for (let distance = size / 2; distance >= 1; distance /= 2) {
    const mask = distance * stride;
    const upper = lane.and(mask).ne(0);
    const gap = halvesApart(held);
    if (gap === undefined) {
      held = held.map(({ offset, state }) => ({
        offset,
        state: reduction.combine(
          state,
          state.map((x) => subgroup.shuffleXor(x, mask)),
        ),
      }));
      owner = upper.not().and(owner);
      continue;
    }
    const half = held.length / 2;
    held = held.slice(0, half).map(({ offset, state }, l) => {
      const other = held[l + half].state;
      const kept = state.map((x, c) => select(upper, other[c], x));
      const sent = state.map((x, c) => subgroup.shuffleXor(select(upper, x, other[c]) as AnyValue, mask));
      return { offset, state: reduction.combine(kept, sent) };
    });
    const moved = select(upper, constant(lane.type, gap), 0);
    shift = shift === undefined ? moved : shift.add(moved);
  }
  return { lines: held, shift, owner };
}

/** How far the second half of the lines lies behind the first, if it is the same for all. */
function halvesApart(lines: readonly Line[]): number | undefined {
  const half = lines.length / 2;
  if (!Number.isInteger(half)) return undefined;
  const gap = lines[half].offset - lines[0].offset;
  return lines.slice(0, half).every(({ offset }, l) => lines[l + half].offset - offset === gap)
    ? gap
    : undefined;
}

/** The same for numbers of lanes that are no powers of two: each lane gathers its group's states one after another. */
function inTurn(reduction: Joining, lines: readonly Line[], size: number, stride: number): Exchanged {
  const { lane, size: width } = subgroup;
  const member = lane.div(stride).rem(size);
  const first = lane.sub(member.mul(stride));
  const joined = lines.map(({ offset, state }) => {
    const of = (which: number): State =>
      state.map((x) => subgroup.shuffle(x, first.add(which * stride).min(width - 1)));
    let sum = of(0);
    for (let which = 1; which < size; which++) sum = reduction.combine(sum, of(which));
    return { offset, state: sum };
  });
  return { lines: joined, shift: undefined, owner: member.eq(0) };
}
