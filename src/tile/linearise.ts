/**
 * @file From a tile to the position of its first element in memory.
 */
import { ArgumentError } from "../errors.ts";
import { constant, type I32, type Index, index, Value } from "../lang/index.ts";
import { type Coordinate, plus, times } from "./coordinate.ts";
import type { Box } from "./tile.ts";

/** Elements between neighbours along a dimension. */
export type Stride = number | Value<I32> | Value<Index>;

/**
 * Position of a tile's first element in an array whose dimensions are the tile's, in its order: `linearise(tile.MN, ld)`
 * is row-major, `linearise(tile.NM, ld)` column-major. The last dimension is contiguous unless as many strides as
 * dimensions are given.
 *
 * The sum is made of what the device knows first and what tracing knows last: a single constant, which becomes the
 * immediate of the access. A stride that only the device knows costs one addition for each offset along it. With strides
 * of type `index` the position has that type, otherwise i32.
 *
 * @throws ArgumentError unless there is a stride for each dimension, or for each but the last
 */
export function linearise<D extends string>(
  tile: Box<D>,
  ...strides: readonly (number | Value<I32>)[]
): Coordinate;
export function linearise<D extends string>(
  tile: Box<D>,
  ...strides: readonly Stride[]
): Coordinate | Value<Index>;
export function linearise<D extends string>(
  tile: Box<D>,
  ...strides: readonly Stride[]
): Coordinate | Value<Index> {
  const all = allStrides(tile, strides);
  return all.some((stride) => stride instanceof Value && stride.type === (index as I32 | Index))
    ? wide(tile, all)
    : narrow(tile, all as readonly (number | Value<I32>)[]);
}

function allStrides<D extends string>(tile: Box<D>, strides: readonly Stride[]): readonly Stride[] {
  const { dimensions } = tile;
  const missing = dimensions.length - strides.length;
  if (missing !== 0 && missing !== 1) {
    throw new ArgumentError(
      `a tile of ${dimensions.length} dimensions (${dimensions.join(", ")}) takes ${dimensions.length - 1} strides, or ${dimensions.length} if the last is not 1; ${strides.length} were given`,
    );
  }
  for (const stride of strides) {
    const fits =
      stride instanceof Value
        ? ["i32", "index"].includes((stride as Value<I32>).type.name)
        : Number.isInteger(stride);
    if (!fits) throw new ArgumentError("a stride is an integer, an i32 value or an index value, in elements");
  }
  return missing === 1 ? [...strides, 1] : strides;
}

/** What tracing knows of the position: offsets (and bases that are numbers) along strides that are numbers. */
function immediate<D extends string>(tile: Box<D>, strides: readonly Stride[]): number {
  return tile.dimensions.reduce((sum, name, dimension) => {
    const stride = strides[dimension];
    return typeof stride === "number" ? sum + known(tile, name) * stride : sum;
  }, 0);
}

/** Offset along a dimension, and base where that is a number. */
function known<D extends string>(tile: Box<D>, name: D): number {
  const base: Coordinate = tile.base[name];
  return tile.offset[name] + (typeof base === "number" ? base : 0);
}

function narrow<D extends string>(tile: Box<D>, strides: readonly (number | Value<I32>)[]): Coordinate {
  let sum: Coordinate = 0;
  tile.dimensions.forEach((name, dimension) => {
    const stride = strides[dimension];
    const base: Coordinate = tile.base[name];
    if (base instanceof Value)
      sum = plus(sum, typeof stride === "number" ? times(base, stride) : base.mul(stride));
  });
  tile.dimensions.forEach((name, dimension) => {
    const stride = strides[dimension];
    if (stride instanceof Value && known(tile, name) !== 0) sum = plus(sum, times(stride, known(tile, name)));
  });
  return plus(sum, immediate(tile, strides));
}

function wide<D extends string>(tile: Box<D>, strides: readonly Stride[]): Value<Index> {
  const terms: Value<Index>[] = [];
  tile.dimensions.forEach((name, dimension) => {
    const stride = strides[dimension];
    const base: Coordinate = tile.base[name];
    if (!(base instanceof Value)) return;
    terms.push(stride === 1 ? base.to(index) : base.to(index).mul(widened(stride)));
  });
  tile.dimensions.forEach((name, dimension) => {
    const stride = strides[dimension];
    const offset = known(tile, name);
    if (typeof stride === "number" || offset === 0) return;
    terms.push(
      offset === 1 ? (widened(stride) as Value<Index>) : (widened(stride) as Value<Index>).mul(offset),
    );
  });
  const last = immediate(tile, strides);
  const [first, ...others] = terms;
  if (first === undefined) return constant(index, last);
  const sum = others.reduce((total, term) => total.add(term), first);
  return last === 0 ? sum : sum.add(last);
}

function widened(stride: Stride): Value<Index> | number {
  return typeof stride === "number" ? stride : (stride as Value<I32>).to(index);
}
