import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ArgumentError } from "../errors.ts";
import type { Letter } from "./letters.ts";
import { linearise } from "./linearise.ts";
import { parallelise, subdivide } from "./parallelise.ts";
import { type Tile, tile } from "./tile.ts";

const letters: readonly Letter[] = ["A", "B", "C", "D", "E", "F"];

interface Division {
  /** Extent of a sub-tile along each dimension. */
  readonly parts: readonly number[];
  /** Sub-tiles along each dimension. */
  readonly grid: readonly number[];
  readonly count: number;
  readonly fastest: Letter | undefined;
}

const divisors = (n: number): readonly number[] =>
  Array.from({ length: n }, (_, i) => i + 1).filter((d) => n % d === 0);
const product = (numbers: readonly number[]): number => numbers.reduce((a, b) => a * b, 1);

const divisions: fc.Arbitrary<Division> = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 6 })), {
    minLength: 1,
    maxLength: 4,
  })
  .chain((dimensions) => {
    const grid = dimensions.map(([, number]) => number);
    return fc.record({
      parts: fc.constant(dimensions.map(([part]) => part)),
      grid: fc.constant(grid),
      count: fc.constantFrom(...divisors(product(grid))),
      fastest: fc.constantFrom(undefined, ...letters.slice(0, dimensions.length)),
    });
  });

function divided({ parts, grid }: Division): { whole: Tile<Letter>; part: Record<Letter, number> } {
  const named = (numbers: readonly number[]): Record<Letter, number> =>
    Object.fromEntries(numbers.map((n, i) => [letters[i], n])) as Record<Letter, number>;
  return { whole: tile(named(parts.map((part, i) => part * grid[i]))) as Tile<Letter>, part: named(parts) };
}

/** Linear positions, in the parent tile, of all elements of a tile whose coordinates are numbers. */
function elements(whole: Tile<Letter>, part: Tile<Letter>): number[] {
  return part.dimensions.reduce<number[]>(
    (positions, name) =>
      positions.flatMap((position) =>
        Array.from(
          { length: part.size[name] },
          (_, i) => position * whole.size[name] + (part.origin(name) as number) + i,
        ),
      ),
    [0],
  );
}

describe("parallelise", () => {
  it("covers the tile exactly once, whatever sizes, order and number of entities", () => {
    fc.assert(
      fc.property(divisions, (division) => {
        const { whole, part } = divided(division);
        const { count, fastest } = division;
        const covered = Array.from({ length: count }, (_, entity) =>
          parallelise(whole, part, entity, count, { fastest }).flatMap((sub) => elements(whole, sub)),
        ).flat();
        covered.sort((a, b) => a - b);
        expect(covered).toEqual(Array.from({ length: product(Object.values(whole.size)) }, (_, i) => i));
      }),
    );
  });

  it("puts what differs between entities in the base and what differs between turns in the offset", () => {
    fc.assert(
      fc.property(divisions, (division) => {
        const { whole, part } = divided(division);
        const { count, fastest } = division;
        const all = Array.from({ length: count }, (_, entity) =>
          parallelise(whole, part, entity, count, { fastest }),
        );
        for (const subTiles of all) {
          expect(subTiles).toHaveLength(product(division.grid) / count);
          for (const [turn, sub] of subTiles.entries()) {
            expect(sub.base).toEqual(subTiles[0].base);
            expect(sub.offset).toEqual(all[0][turn].offset);
            expect(sub.size).toEqual(part);
          }
        }
      }),
    );
  });

  it("gives neighbours neighbouring sub-tiles along the last dimension, or the one asked for", () => {
    const t = tile({ M: 4, N: 6 });
    const origins = (fastest?: "M" | "N"): (readonly [unknown, unknown])[] =>
      Array.from({ length: 4 }, (_, entity) => parallelise(t, { M: 1, N: 3 }, entity, 4, { fastest })[0]).map(
        (sub) => [sub.origin("M"), sub.origin("N")] as const,
      );
    expect(origins()).toEqual([
      [0, 0],
      [0, 3],
      [1, 0],
      [1, 3],
    ]);
    expect(origins("N")).toEqual(origins());
    expect(origins("M")).toEqual([
      [0, 0],
      [1, 0],
      [2, 0],
      [3, 0],
    ]);
  });

  it("takes the turns in the same order", () => {
    const t = tile({ M: 4, N: 4 });
    const offsets = parallelise(t, { M: 1, N: 2 }, 1, 2).map((sub) => linearise(sub, 4));
    expect(offsets).toEqual([2, 6, 10, 14]);
    const byRows = parallelise(t, { M: 2, N: 1 }, 0, 1, { fastest: "M" }).map((sub) => linearise(sub, 4));
    expect(byRows).toEqual([0, 8, 1, 9, 2, 10, 3, 11]);
  });

  it("takes the tile's own extent where none is given", () => {
    const [only, ...others] = parallelise(tile({ M: 8, N: 4 }), { M: 8 }, 0, 1);
    expect(only.size).toEqual({ M: 8, N: 4 });
    expect(others).toEqual([]);
  });

  it("shares among any number that divides the sub-tiles, powers of two or not", () => {
    // 4 entities do not go evenly into rows of 3: they spread along M.
    const bases = Array.from(
      { length: 4 },
      (_, entity) => parallelise(tile({ M: 4, N: 3 }), { M: 1, N: 1 }, entity, 4)[0].base,
    );
    expect(bases).toEqual([0, 1, 2, 3].map((M) => ({ M, N: 0 })));
  });

  const t = tile({ M: 12, N: 8 });
  it.each([
    [
      "sub-tiles that do not divide",
      () => parallelise(t, { M: 5 }, 0, 1),
      "a sub-tile's 5 along M does not divide the tile's 12",
    ],
    [
      "a sub-tile of no size",
      () => parallelise(t, { M: 0 }, 0, 1),
      "a sub-tile's extent along M is a positive integer known while tracing, not 0",
    ],
    [
      "unknown dimensions",
      () => parallelise(t, { K: 1 } as unknown as { M: number }, 0, 1),
      "this tile has the dimensions M, N and no K",
    ],
    [
      "too few sub-tiles",
      () => parallelise(t, { M: 6, N: 8 }, 0, 4),
      "M 12 x N 8 has 2 sub-tiles of M 6 x N 8: too few for 4 to share",
    ],
    [
      "a number of sub-tiles that cannot be shared",
      () => parallelise(t, { M: 4, N: 8 }, 0, 2),
      "has 3 sub-tiles of M 4 x N 8; 2 cannot share them evenly",
    ],
    [
      "no entities",
      () => parallelise(t, {}, 0, 0),
      "a positive number of entities known while tracing, not 0",
    ],
    ["half entities", () => parallelise(t, {}, 0, 0.5), "not 0.5"],
    ["an index out of range", () => parallelise(t, { M: 1 }, 4, 4), "entity 4 of 4: indices are 0 to 3"],
    [
      "an index that is no integer",
      () => parallelise(t, { M: 1 }, 0.5, 4),
      "an i32 value or an integer, not 0.5",
    ],
    ["an unknown fastest dimension", () => parallelise(t, {}, 0, 1, { fastest: "K" as "M" }), "and no K"],
  ])("refuses %s", (_, divide, message) => {
    expect(divide).toThrow(ArgumentError);
    expect(divide).toThrow(message);
  });
});

describe("subdivide", () => {
  it("gives each entity its one sub-tile", () => {
    expect(subdivide(tile({ M: 8, N: 8 }), { M: 4, N: 4 }, 3, 4).base).toEqual({ M: 4, N: 4 });
  });

  it("refuses to give several", () => {
    expect(() => subdivide(tile({ M: 8 }), { M: 2 }, 0, 2)).toThrow(
      "each of 2 entities one sub-tile, and here are 4",
    );
  });
});
