/**
 * @file Predicates of matrices that are made of blocks, some of which are empty.
 */
import { type I32, i32, loop, loopWhile, select, type Value, variable } from "../../lang/index.ts";
import type { ExtraValue } from "../extras.ts";
import type { OutputTile, Predicate } from "../predicate.ts";
import type { Layout } from "./layout.ts";

/** Which blocks there are. */
export interface Occupancy {
  /** Rows and columns of a block. */
  readonly block: readonly [rows: number, columns: number];
  /** How many blocks the matrix has along each dimension. */
  count(extras: readonly ExtraValue[]): readonly [down: Value<I32>, across: Value<I32>];
  /** 1 where there is a block, else 0. */
  occupied(down: Value<I32>, across: Value<I32>, extras: readonly ExtraValue[]): Value<I32>;
}

/** The blocks, of `extent` elements each, that elements `first` up to `end` meet; there are `count` of them. */
function blocksOf(
  first: Value<I32>,
  end: Value<I32>,
  extent: number,
  count: Value<I32>,
): { readonly from: Value<I32>; readonly to: Value<I32> } {
  return { from: first.floorDiv(extent), to: end.ceilDiv(extent).min(count) };
}

/**
 * Steps in which a tile meets any block at all. What is read to find them is the same for all threads of a block, and so
 * are the steps.
 */
function search(side: "a" | "b", { block, count, occupied }: Occupancy): Predicate {
  const any = (tile: OutputTile, step: Value<I32>, extras: readonly ExtraValue[]): Value<I32> => {
    const [line, extent] = side === "a" ? [tile.row, tile.rows] : [tile.column, tile.columns];
    const [down, across] = count(extras);
    const [rows, columns] = block;
    const depth = step.mul(tile.depth);
    const lines = blocksOf(
      line,
      line.add(extent),
      side === "a" ? rows : columns,
      side === "a" ? down : across,
    );
    const inner = blocksOf(
      depth,
      depth.add(tile.depth),
      side === "a" ? columns : rows,
      side === "a" ? across : down,
    );
    const found = variable(i32, 0);
    loop(lines, (l) => {
      loop(inner, (k) => {
        const one = side === "a" ? occupied(l, k, extras) : occupied(k, l, extras);
        found.value = found.value.or(one);
      });
    });
    return found.value;
  };
  return {
    name: "where there are blocks",
    next(tile, step, extras) {
      const at = variable(i32, step);
      const empty = variable(i32, 1);
      loopWhile(
        () => at.value.lt(tile.steps).and(empty.value.eq(1)),
        () => {
          const here = at.value;
          const found = any(tile, here, extras);
          at.value = select(found.eq(0), here.add(1), here);
          empty.value = found.xor(1);
        },
      );
      return at.value;
    },
  };
}

/** K steps that meet a block, for a matrix that is A and for one that is B. */
export function stepsWhere(occupancy: Occupancy): NonNullable<Layout["steps"]> {
  return { a: search("a", occupancy), b: search("b", occupancy) };
}

/** The occupancy of the transposed matrix. */
export function flippedOccupancy({ block: [rows, columns], count, occupied }: Occupancy): Occupancy {
  return {
    block: [columns, rows],
    count(extras) {
      const [down, across] = count(extras);
      return [across, down];
    },
    occupied: (down, across, extras) => occupied(across, down, extras),
  };
}

/** The largest power of two that divides a number. */
export function powerOfTwoIn(value: number): number {
  return value & -value;
}
