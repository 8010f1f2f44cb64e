/**
 * @file Shared tiles: element types and addresses.
 */
import { UnsupportedError } from "../../errors.ts";
import { type ElementType, f32, type StorageType, tf32 } from "../../lang/index.ts";
import { type Coordinate, plus, type Tile } from "../../tile/index.ts";
import type { SharedTile } from "./operator.ts";

/**
 * Position of a tile's first element in the array that holds the shared tile.
 * @throws UnsupportedError where the layout has no positions
 */
export function positionIn(source: SharedTile, tile: Tile<"R" | "C">): Coordinate {
  const { layout, origin, leading } = source;
  if (layout.position === undefined)
    throw new UnsupportedError(`${layout.name} shared tiles have no positions for matrix instructions`);
  return layout.position({ origin, leading }, tile) as Coordinate;
}

/** The type in which operands of a type lie in shared memory: tf32 numbers are f32 there. */
export function sharedType(type: ElementType): StorageType {
  return type === tf32 ? f32 : (type as StorageType);
}

/** The plane of a shared tile that holds one component of its elements. */
export function planeOf(whole: SharedTile, component: number): SharedTile {
  return { ...whole, origin: plus(whole.origin, component * (whole.planeLength ?? 0)) };
}
