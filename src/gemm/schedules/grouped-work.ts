/**
 * @file What a block computes of a grouped product: tables say how large each product is and where its matrices are.
 *
 * Blocks are numbered product by product, tile by tile; `tiles` holds the number of each product's first tile, and of all
 * tiles at its end. Positions count from one array for each operand, in elements; where allocations share an address space
 * they reach from one into another.
 */
import {
  type GlobalArray,
  type I32,
  type Index,
  i32,
  index,
  loopWhile,
  type StorageType,
  select,
  type Value,
  variable,
} from "../../lang/index.ts";
import type { GemmKind } from "../kind.ts";
import { placeEntries, sizeEntries } from "./group-tables.ts";
import type { GemmArguments } from "./kernel-interface.ts";
import type { Work } from "./work.ts";

/** The tables inside the kernel. */
interface GroupArguments extends GemmArguments {
  readonly problems: Value<I32>;
  readonly tiles: GlobalArray<I32>;
  readonly sizes: GlobalArray<I32>;
  readonly places: GlobalArray<StorageType>;
}

/** The product that a block works on, and its part of it. */
export function groupedWork(
  kind: GemmKind,
  given: GemmArguments,
  block: Value<I32>,
): { readonly args: GemmArguments; readonly work: Work } {
  const { problems, tiles, sizes, places, a, b, c, d } = given as GroupArguments;
  // The last product whose first tile is not beyond the block: those without tiles begin where the next does.
  const low = variable(i32, 0);
  const high = variable(i32, problems);
  loopWhile(
    () => high.value.sub(low.value).gt(1),
    () => {
      const middle = low.value.add(high.value).div(2);
      const begins = tiles.loadAt(middle).le(block);
      const [from, to] = [low.value, high.value];
      low.value = select(begins, middle, from);
      high.value = select(begins, to, middle);
    },
  );
  const number = low.value;
  const size = (entry: number): Value<I32> => sizes.loadAt(number.mul(sizeEntries).add(entry));
  const place = (entry: number): Value<Index> =>
    places.loadAt(number.mul(placeEntries).add(entry)).to(index) as Value<Index>;
  const args = {
    ...given,
    m: size(0),
    n: size(1),
    k: size(2),
    ...(kind.gate === undefined ? {} : { columns: size(3) }),
    ...(a === undefined ? {} : { a: a.from(place(0)) }),
    leadingA: place(1),
    ...(b === undefined ? {} : { b: b.from(place(2)) }),
    leadingB: place(3),
    ...(kind.c === undefined ? {} : { c: c.from(place(4)), leadingC: place(5) }),
    d: d.from(place(6)),
    leadingD: place(7),
  };
  const tile = block.sub(tiles.loadAt(number));
  const range: Work["range"] = (steps) => ({ first: 0, end: steps });
  return { args, work: { tile, batch: number, target: undefined, range } };
}
