/**
 * @file Predicates of matrices whose elements lie between two bounds along K, one interval for each tile of D.
 */
import { type I32, select, type Value } from "../../lang/index.ts";
import type { ExtraValue } from "../extras.ts";
import type { Predicate } from "../predicate.ts";
import type { Layout } from "./layout.ts";

/** Elements of K that count: from `from`, up to, not including, `to`; all on a side that is not given. */
export interface Interval {
  readonly from?: Value<I32>;
  readonly to?: Value<I32>;
}

/** The interval of the lines `first` to `first + extent`: rows of A, columns of B. */
export type IntervalOf = (first: Value<I32>, extent: number, extras: readonly ExtraValue[]) => Interval;

function within(name: string, side: "a" | "b", intervalOf: IntervalOf, growing: boolean): Predicate {
  return {
    name,
    contiguous: true,
    growing,
    next(tile, step, extras) {
      const [first, extent] = side === "a" ? [tile.row, tile.rows] : [tile.column, tile.columns];
      const { from, to } = intervalOf(first, extent, extras);
      const start = from === undefined ? step : step.max(from.floorDiv(tile.depth));
      return to === undefined ? start : select(start.mul(tile.depth).lt(to), start, start.max(tile.steps));
    },
  };
}

/**
 * K steps that meet an interval, for a matrix that is A and for one that is B. `growing` says where the interval is longer
 * for lines further on.
 */
export function stepsWithin(
  name: string,
  a: IntervalOf,
  b: IntervalOf,
  growing?: "a" | "b",
): NonNullable<Layout["steps"]> {
  return { a: within(name, "a", a, growing === "a"), b: within(name, "b", b, growing === "b") };
}
