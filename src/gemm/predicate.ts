/**
 * @file Predicates: which K steps of a tile count.
 */
import type { I32, Value } from "../lang/index.ts";

/** The output tile of a block, in elements. */
export interface OutputTile {
  readonly row: Value<I32>;
  readonly column: Value<I32>;
  readonly rows: number;
  readonly columns: number;
  /** Extent of one K step. */
  readonly depth: number;
}

/**
 * Says which K steps count for a tile. `next` gives the first step ≥ `step` that counts, or anything ≥ the number of
 * steps when none does; it is a function of its arguments alone and the same in all threads of a block. A tile with no
 * steps still runs its epilogue.
 */
export interface Predicate {
  readonly name: string;
  next(tile: OutputTile, step: Value<I32>): Value<I32>;
}

/** Every step counts. */
export const everyStep: Predicate = { name: "every step", next: (_, step) => step };
