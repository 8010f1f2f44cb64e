import { describe, expect, it } from "vitest";
import { ArgumentError } from "../errors.ts";
import type { Letter } from "./letters.ts";
import { tile, translate } from "./tile.ts";

describe("tile", () => {
  it("begins at zero with the given extents", () => {
    const t = tile({ M: 128, N: 64 });
    expect(t.dimensions).toEqual(["M", "N"]);
    expect(t.size).toEqual({ M: 128, N: 64 });
    expect(t.offset).toEqual({ M: 0, N: 0 });
    expect(t.base).toEqual({ M: 0, N: 0 });
  });

  it.each([
    [{}, "1 to 6 dimensions, not 0"],
    [{ A: 1, B: 1, C: 1, D: 1, E: 1, F: 1, G: 1 }, "1 to 6 dimensions, not 7"],
    [{ MN: 4 }, 'one upper-case letter, not "MN"'],
    [{ m: 4 }, 'one upper-case letter, not "m"'],
    [{ M: 0 }, "extent along M is a positive integer known while tracing, not 0"],
    [{ M: 1.5 }, "not 1.5"],
    [{ M: Number.NaN }, "not NaN"],
  ])("refuses %j", (size, message) => {
    expect(() => tile(size as { M: number })).toThrow(ArgumentError);
    expect(() => tile(size as { M: number })).toThrow(message);
  });

  it("projects by name and by word, in any order", () => {
    const t = translate(tile({ M: 128, N: 64, K: 32 }), { K: 8 });
    expect(t.project("K", "M")).toEqual(t.KM);
    expect(t.KM.dimensions).toEqual(["K", "M"]);
    expect(t.KM.size).toEqual({ K: 32, M: 128 });
    expect(t.KM.offset).toEqual({ K: 8, M: 0 });
    expect(t.N.dimensions).toEqual(["N"]);
    expect(t.NMK.MK.K.offset).toEqual({ K: 8 });
  });

  it("refuses words with letters it does not have", () => {
    const t = tile({ M: 4, N: 4 }).project("M");
    const untyped = t as unknown as Record<string, unknown>;
    expect(() => untyped.MN).toThrow("this tile has the dimensions M and no N");
    expect(() => untyped.K).toThrow("and no K");
    expect(() => untyped.MM).toThrow("each dimension once, not M, M");
    expect(() => t.project()).toThrow("at least one dimension");
  });

  it("is an ordinary object otherwise", () => {
    const t = tile({ M: 4 });
    expect((t as unknown as { then: unknown }).then).toBeUndefined();
    expect(Object.keys(t)).toEqual(["dimensions", "base", "offset", "size"]);
    expect(JSON.parse(JSON.stringify(t)).size).toEqual({ M: 4 });
  });
});

describe("resize", () => {
  it("keeps where the tile begins", () => {
    const t = translate(tile({ M: 8, N: 8 }), { M: 2 }).resize({ M: 4 });
    expect(t.size).toEqual({ M: 4, N: 8 });
    expect(t.origin("M")).toBe(2);
  });

  it("refuses what is no extent or no dimension", () => {
    expect(() => tile({ M: 8 }).resize({ M: 0 })).toThrow(
      "extent along M is a positive integer known while tracing, not 0",
    );
    expect(() => tile({ M: 8 }).resize({ N: 4 } as unknown as { M: number })).toThrow(
      "the dimensions M and no N",
    );
  });
});

describe("translate", () => {
  it("adds up", () => {
    const t = translate(translate(tile({ M: 4, N: 4 }), { M: 3 }), { M: -1, N: 7 });
    expect(t.offset).toEqual({ M: 2, N: 7 });
    expect(t.origin("M")).toBe(2);
  });

  it("leaves the tile it is given alone", () => {
    const t = tile({ M: 4 });
    translate(t, { M: 3 });
    expect(t.offset).toEqual({ M: 0 });
  });

  it("refuses what it cannot move by", () => {
    const t = tile({ M: 4 });
    expect(() => translate(t, { M: 0.5 })).toThrow("by an integer or an i32 value, not 0.5");
    expect(() => translate(t, { N: 1 } as Partial<Record<Letter, number>>)).toThrow(
      "has the dimensions M and no N",
    );
  });
});
