/**
 * @file Shared tiles: element types and addresses.
 */
import { type ElementType, f32, type StorageType, tf32 } from "../../lang/index.ts";
import { type Coordinate, linearise, plus, type Tile } from "../../tile/index.ts";
import type { SharedTile } from "./operator.ts";

/** Position of a tile's first element in the array that holds the shared tile. */
export function positionIn(source: SharedTile, tile: Tile<"R" | "C">): Coordinate {
  const ordered = source.layout.major === "row" ? tile.project("R", "C") : tile.project("C", "R");
  return plus(source.origin, linearise(ordered, source.leading));
}

/** The type in which operands of a type lie in shared memory: tf32 numbers are f32 there. */
export function sharedType(type: ElementType): StorageType {
  return type === tf32 ? f32 : (type as StorageType);
}
