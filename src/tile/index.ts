/**
 * @file Tiles: named boxes of an index space, divided among threads and turned into addresses: `tilewright/tile`.
 */
export { type Coordinate, plus } from "./coordinate.ts";
export type { Letter, LettersOf, Sizes, Words } from "./letters.ts";
export { linearise, type Stride } from "./linearise.ts";
export { parallelise, subdivide, type Traversal } from "./parallelise.ts";
export { type Coordinates, type Tile, tile, translate } from "./tile.ts";
