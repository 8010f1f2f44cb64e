import { describe, expect, it } from "vitest";
import { fuseAndSort, fuseInOrder } from "./modes.ts";

const mode = (extent: number, a: number, d: number) => ({ extent, strides: { a, d } });

describe("modes", () => {
  it("fuse where every array steps through two as through one", () => {
    expect(fuseAndSort([mode(4, 3, 6), mode(3, 1, 2), mode(5, 12, 24)], ["a"])).toEqual([mode(60, 1, 2)]);
    expect(fuseAndSort([mode(3, 1, 2), mode(4, 3, 5)], ["a"])).toHaveLength(2);
  });

  it("keep their order where it means something", () => {
    expect(fuseInOrder([mode(3, 4, 1), mode(4, 1, 3)])).toEqual([mode(3, 4, 1), mode(4, 1, 3)]);
    expect(fuseAndSort([mode(3, 4, 1), mode(4, 1, 3)], ["a", "d"])).toEqual([mode(4, 1, 3), mode(3, 4, 1)]);
  });

  it("without neighbours in the first array follow the next; repeated elements come last", () => {
    expect(fuseAndSort([mode(4, 2, 5), mode(5, 10, 1)], ["a", "d"])[0]).toEqual(mode(5, 10, 1));
    expect(fuseAndSort([mode(4, 0, 5), mode(5, 3, 21)], ["a"])[0]).toEqual(mode(5, 3, 21));
  });

  it("of one element are none, and one without elements empties its group", () => {
    expect(fuseAndSort([mode(1, 7, 7), mode(4, 1, 1)], ["a"])).toEqual([mode(4, 1, 1)]);
    expect(fuseInOrder([mode(3, 1, 1), mode(0, 3, 3)])).toEqual([mode(0, 3, 3)]);
  });
});
