/**
 * @file `Tile`: a box of a larger index space, after Faingnaert, Besard and De Sutter, "Flexible Performant GEMM Kernels
 * on GPUs" (IEEE TPDS 33(9), 2022), section 4.
 *
 * Along each dimension a tile begins at `base + offset`. The base is known on the device alone (it depends on the block
 * or the thread), the offset while tracing (it depends on the turn of an unrolled loop). Keeping them apart until the
 * address is made is what lets an offset become an immediate of the load instead of an addition.
 */
import { ArgumentError } from "../errors.ts";
import { Value } from "../lang/index.ts";
import { type Coordinate, plus } from "./coordinate.ts";
import { isLetter, type Letter, type LettersOf, mostDimensions, type Sizes, type Words } from "./letters.ts";

/** A coordinate for each dimension. */
export type Coordinates<D extends string> = Readonly<Record<D, Coordinate>>;

/** @internal What a tile is made of, words apart. */
export class Box<D extends string> {
  constructor(
    /** Names of the dimensions; order matters to `linearise` and to traversal, where the last is fastest. */
    readonly dimensions: readonly D[],
    /** Where the tile begins, as far as only the device knows. */
    readonly base: Coordinates<D>,
    /** What tracing knows of where the tile begins. */
    readonly offset: Sizes<D>,
    /** Extents. */
    readonly size: Sizes<D>,
  ) {}

  /** The tile seen along some of its dimensions, in the given order. `tile.MK` is short for `tile.project("M", "K")`. */
  project<E extends D>(...dimensions: readonly E[]): Tile<E> {
    if (dimensions.length === 0) throw new ArgumentError("project() takes at least one dimension");
    if (new Set(dimensions).size !== dimensions.length) {
      throw new ArgumentError(`project() takes each dimension once, not ${dimensions.join(", ")}`);
    }
    for (const name of dimensions) this.check(name);
    return boxed<E>(
      dimensions,
      pick(dimensions, (name) => this.base[name]),
      pick(dimensions, (name) => this.offset[name]),
      pick(dimensions, (name) => this.size[name]),
    );
  }

  /** Where the tile begins along one dimension: base and offset together. */
  origin(dimension: D): Coordinate {
    this.check(dimension);
    return plus(this.base[dimension], this.offset[dimension]);
  }

  /** A tile that begins at the same place and has other extents along the dimensions given. */
  resize(size: Partial<Sizes<D>>): Tile<D> {
    for (const [name, extent] of Object.entries(size)) {
      this.check(name);
      checkExtent("a tile's", name, extent);
    }
    return boxed<D>(
      this.dimensions,
      this.base,
      this.offset,
      pick(this.dimensions, (name) => size[name] ?? this.size[name]),
    );
  }

  /** @internal */
  check(name: string): void {
    if (!this.dimensions.includes(name as D)) {
      throw new ArgumentError(`this tile has the dimensions ${this.dimensions.join(", ")} and no ${name}`);
    }
  }
}

// Words such as `MK` are no members of the class: looking one up falls through to here.
Object.setPrototypeOf(
  Box.prototype,
  new Proxy(Object.prototype, {
    get(target, property, receiver: Box<string>): unknown {
      if (typeof property === "string" && /^[A-Z]+$/.test(property)) {
        return receiver.project(...[...property]);
      }
      return Reflect.get(target, property, receiver);
    },
  }),
);

/**
 * A box of a larger index space with named dimensions: a run-time base, a compile-time offset and a compile-time size
 * along each. `tile.MK` and the like project.
 */
export type Tile<D extends string> = Box<D> & { readonly [Word in Words<D>]: Tile<LettersOf<Word>> };

/** @internal A tile of its parts. */
export function boxed<D extends string>(
  dimensions: readonly D[],
  base: Coordinates<D>,
  offset: Sizes<D>,
  size: Sizes<D>,
): Tile<D> {
  return new Box(dimensions, base, offset, size) as unknown as Tile<D>;
}

/** @internal A record with an entry for each dimension. */
export function pick<D extends string, T>(
  dimensions: readonly D[],
  entry: (name: D) => T,
): Readonly<Record<D, T>> {
  return Object.fromEntries(dimensions.map((name) => [name, entry(name)])) as Record<D, T>;
}

/**
 * A tile of the given extents that begins at zero.
 *
 * @throws ArgumentError for names that are no single upper-case letter, more than six of them, or extents that are no
 * positive integers
 */
export function tile<const S extends Partial<Sizes<Letter>>>(size: S): Tile<keyof S & Letter> {
  const dimensions = Object.keys(size) as (keyof S & Letter)[];
  if (dimensions.length === 0 || dimensions.length > mostDimensions) {
    throw new ArgumentError(`a tile has 1 to ${mostDimensions} dimensions, not ${dimensions.length}`);
  }
  for (const name of dimensions) {
    if (!isLetter(name))
      throw new ArgumentError(`a dimension is named by one upper-case letter, not ${JSON.stringify(name)}`);
    checkExtent("a tile's", name, size[name]);
  }
  const zeros = pick(dimensions, () => 0);
  return boxed<keyof S & Letter>(
    dimensions,
    zeros,
    zeros,
    pick(dimensions, (name) => size[name] as number),
  );
}

/**
 * The tile moved: by what tracing knows (a number moves the offset) or by what the device knows (a value moves the
 * base). In elements.
 */
export function translate<D extends string>(tile: Box<D>, by: Partial<Coordinates<D>>): Tile<D> {
  for (const name of Object.keys(by)) tile.check(name);
  const moves = by as Partial<Record<D, unknown>>;
  const { dimensions, size } = tile;
  for (const name of dimensions) {
    const move = moves[name];
    if (move === undefined || move instanceof Value || Number.isInteger(move)) continue;
    throw new ArgumentError(
      `a tile moves along ${name} by an integer or an i32 value, not ${describe(move)}`,
    );
  }
  return boxed<D>(
    dimensions,
    pick(dimensions, (name) => {
      const move = by[name];
      return move instanceof Value ? plus(tile.base[name], move) : tile.base[name];
    }),
    pick(dimensions, (name) => {
      const move = by[name];
      return typeof move === "number" ? tile.offset[name] + move : tile.offset[name];
    }),
    size,
  );
}

/** @internal */
export function checkExtent(whose: string, name: string, extent: unknown): void {
  if (Number.isInteger(extent) && (extent as number) >= 1) return;
  throw new ArgumentError(
    `${whose} extent along ${name} is a positive integer known while tracing, not ${describe(extent)}`,
  );
}

function describe(thing: unknown): string {
  return thing instanceof Value ? `a value of type ${thing.type.name}` : String(thing);
}
