/**
 * @file Copy engines: how a tile of A or B gets from global memory into a stage of the ring. All have one interface, so that
 * A may come by one and B by another.
 */
import type { Condition, GlobalArray, I32, Index, StorageType, Value } from "../../lang/index.ts";
import { thread } from "../../lang/index.ts";
import { parallelise, type Tile, tile } from "../../tile/index.ts";
import type { ExtraValue } from "../extras.ts";
import type { Layout } from "../layouts/layout.ts";
import type { SharedTile } from "../operators/operator.ts";

/** A matrix in global memory, and the tile that is copied of it. */
export interface CopyOptions {
  /** Undefined for a pure layout. */
  readonly source: GlobalArray<StorageType> | undefined;
  readonly type: StorageType;
  readonly layout: Layout;
  readonly leading: Value<Index>;
  /** What the layout takes at run time. */
  readonly extras: readonly ExtraValue[];
  /** Extents of the whole matrix. */
  readonly rows: Value<I32>;
  readonly columns: Value<I32>;
  /** Extents of the tile. */
  readonly tile: { readonly rows: number; readonly columns: number };
  /** Elements of one access. */
  readonly width: number;
  readonly threads: number;
  /** The dimension that is K: beyond it, elements must count as nothing; beyond the other, only D's edge sees them. */
  readonly depth: "R" | "C";
}

/** One tile on its way. */
export interface CopyStep {
  /** The stage's tile in shared memory. */
  readonly target: SharedTile;
  /** First element of the tile in the matrix. */
  readonly row: Value<I32>;
  readonly column: Value<I32>;
  /** Promises that the whole tile lies inside the matrix. */
  readonly whole: () => Condition;
}

/** A way from global memory to shared memory. */
export interface CopyEngine {
  /** Whether its copies run on their own: they are to be committed as a group, and waited for. */
  readonly asynchronous: boolean;
  /** Starts copying a tile. */
  issue(step: CopyStep): void;
  /**
   * Starts one of several `parts` of a tile whose lines all lie well inside along K (another line follows the last):
   * without branches, so that it can be spread over other work.
   */
  issueInner(step: CopyStep, part: number, parts: number): void;
  /** Does what is left to do by the threads, before the barrier after which the tile is read. */
  arrive(step: CopyStep): void;
}

/** The accesses of this thread, and whether it has any. */
export interface ThreadShare {
  readonly parts: readonly Tile<"R" | "C">[];
  readonly active: Condition;
}

/** Divides the tile among the threads: neighbours along the contiguous direction, one access each in turn. */
export function shareOf({ layout, tile: extents, width, threads }: CopyOptions): ThreadShare {
  const along = layout.major === "row" ? "C" : "R";
  const size = along === "C" ? { R: 1, C: width } : { R: width, C: 1 };
  const total = (extents.rows * extents.columns) / width;
  // Entities must share the parts evenly: with fewer parts than threads some threads rest.
  let entities = Math.min(threads, total);
  while (total % entities !== 0) entities--;
  const { index } = thread;
  const whole = tile({ R: extents.rows, C: extents.columns });
  return {
    parts: parallelise(whole, size, index, entities, { fastest: along }),
    active: entities === threads ? true : index.lt(entities),
  };
}
