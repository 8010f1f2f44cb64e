/**
 * @file Addresses in a shared tile.
 */
import { type Coordinate, linearise, plus, type Tile } from "../../tile/index.ts";
import type { SharedTile } from "./operator.ts";

/** Position of a tile's first element in the array that holds the shared tile. */
export function positionIn(source: SharedTile, tile: Tile<"R" | "C">): Coordinate {
  const ordered = source.layout.major === "row" ? tile.project("R", "C") : tile.project("C", "R");
  return plus(source.origin, linearise(ordered, source.leading));
}
