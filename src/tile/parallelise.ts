/**
 * @file Dividing a tile among cooperating threads, warps or blocks.
 */
import { ArgumentError } from "../errors.ts";
import { Value } from "../lang/index.ts";
import { type Coordinate, plus, quotient, remainder, times } from "./coordinate.ts";
import type { Sizes } from "./letters.ts";
import { type Box, boxed, type Coordinates, checkExtent, pick, type Tile } from "./tile.ts";

/** Choices in dividing a tile. */
export interface Traversal<D extends string> {
  /** The dimension along which neighbouring entities do neighbouring sub-tiles; the tile's last unless given. */
  readonly fastest?: D;
}

/**
 * The sub-tiles that entity `index` of `count` has to do; together the entities do every sub-tile once. Neighbouring
 * entities do neighbouring sub-tiles. What depends on the entity is in the sub-tiles' bases, and is the same for all of
 * them; what differs between them is in their offsets, known while tracing.
 *
 * @param size extents of a sub-tile; those not given are the tile's own
 * @param index the entity, from 0 up to `count`; a number computes everything while tracing
 * @throws ArgumentError if sub-tiles do not divide the tile, or `count` does not divide their number
 */
export function parallelise<D extends string>(
  tile: Box<D>,
  size: Partial<Sizes<D>>,
  index: Coordinate,
  count: number,
  traversal: Traversal<D> = {},
): readonly Tile<D>[] {
  const subTile = subTileSize(tile, size);
  const order = fastestFirst(tile, traversal);
  const grid = pick(tile.dimensions, (name) => tile.size[name] / subTile[name]);
  checkEntities(index, count);
  const total = order.reduce((product, name) => product * grid[name], 1);
  if (total < count) {
    throw new ArgumentError(
      `${describe(tile.dimensions, tile.size)} has ${total} sub-tiles of ${describe(tile.dimensions, subTile)}: too few for ${count} to share`,
    );
  }
  if (total % count !== 0) {
    throw new ArgumentError(
      `${describe(tile.dimensions, tile.size)} has ${total} sub-tiles of ${describe(tile.dimensions, subTile)}; ${count} cannot share them evenly`,
    );
  }
  const entities = entityGrid(order, grid, count);
  const base = entityBase(tile, order, entities, subTile, index);
  const turns = pick(order, (name) => grid[name] / entities[name]);
  return Array.from({ length: total / count }, (_, turn) => {
    const offset = turnOffset(order, turns, turn);
    return boxed<D>(
      tile.dimensions,
      base,
      pick(tile.dimensions, (name) => tile.offset[name] + offset[name] * entities[name] * subTile[name]),
      subTile,
    );
  });
}

/**
 * The one sub-tile that entity `index` of `count` has to do; see {@link parallelise}.
 *
 * @throws ArgumentError if there is not exactly one for each entity
 */
export function subdivide<D extends string>(
  tile: Box<D>,
  size: Partial<Sizes<D>>,
  index: Coordinate,
  count: number,
  traversal: Traversal<D> = {},
): Tile<D> {
  const subTiles = parallelise(tile, size, index, count, traversal);
  if (subTiles.length !== 1) {
    throw new ArgumentError(
      `subdivide() gives each of ${count} entities one sub-tile, and here are ${subTiles.length * count}; parallelise() gives each several`,
    );
  }
  return subTiles[0];
}

function subTileSize<D extends string>(tile: Box<D>, size: Partial<Sizes<D>>): Sizes<D> {
  for (const name of Object.keys(size)) tile.check(name);
  return pick(tile.dimensions, (name) => {
    const whole = tile.size[name];
    const part = size[name] ?? whole;
    checkExtent("a sub-tile's", name, part);
    if (whole % part !== 0)
      throw new ArgumentError(`a sub-tile's ${part} along ${name} does not divide the tile's ${whole}`);
    return part;
  });
}

function fastestFirst<D extends string>(tile: Box<D>, { fastest }: Traversal<D>): readonly D[] {
  const lastFirst = [...tile.dimensions].reverse();
  if (fastest === undefined) return lastFirst;
  tile.check(fastest);
  return [fastest, ...lastFirst.filter((name) => name !== fastest)];
}

function checkEntities(index: Coordinate, count: number): void {
  if (!Number.isInteger(count) || count < 1) {
    throw new ArgumentError(
      `a tile is divided among a positive number of entities known while tracing, not ${String(count)}`,
    );
  }
  if (index instanceof Value ? index.type.name !== "i32" : !Number.isInteger(index)) {
    const got = index instanceof Value ? `a value of type ${index.type.name}` : String(index);
    throw new ArgumentError(`an entity's index is an i32 value or an integer, not ${got}`);
  }
  if (typeof index === "number" && (index < 0 || index >= count)) {
    throw new ArgumentError(`entity ${index} of ${count}: indices are 0 to ${count - 1}`);
  }
}

/**
 * Entities along each dimension. Each dimension takes as many as divide it, the fastest first; as `count` divides the
 * number of sub-tiles, none are left over: each prime factor of `count` finds its place.
 */
function entityGrid<D extends string>(order: readonly D[], grid: Sizes<D>, count: number): Sizes<D> {
  let left = count;
  return pick(order, (name) => {
    const along = greatestCommonDivisor(left, grid[name]);
    left /= along;
    return along;
  });
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

function entityBase<D extends string>(
  tile: Box<D>,
  order: readonly D[],
  entities: Sizes<D>,
  subTile: Sizes<D>,
  index: Coordinate,
): Coordinates<D> {
  let left = index;
  const digits = new Map<D, Coordinate>();
  const split = order.filter((name) => entities[name] > 1);
  for (const [position, name] of split.entries()) {
    const last = position === split.length - 1;
    digits.set(name, last ? left : remainder(left, entities[name]));
    if (!last) left = quotient(left, entities[name]);
  }
  return pick(tile.dimensions, (name) => plus(tile.base[name], times(digits.get(name) ?? 0, subTile[name])));
}

/** Digits of a turn's number in the mixed base of the turns along each dimension, fastest first. */
function turnOffset<D extends string>(order: readonly D[], turns: Sizes<D>, turn: number): Sizes<D> {
  let left = turn;
  return pick(order, (name) => {
    const digit = left % turns[name];
    left = (left - digit) / turns[name];
    return digit;
  });
}

function describe<D extends string>(dimensions: readonly D[], size: Sizes<D>): string {
  return dimensions.map((name) => `${name} ${size[name]}`).join(" x ");
}
