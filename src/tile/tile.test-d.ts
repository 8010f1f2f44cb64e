import { expectTypeOf, it } from "vitest";
import type { I32, Index, Value } from "../lang/index.ts";
import { linearise } from "./linearise.ts";
import { parallelise, subdivide } from "./parallelise.ts";
import { type Tile, tile, translate } from "./tile.ts";

const t = tile({ M: 128, N: 64, K: 32 });
declare const lane: Value<I32>;
declare const position: Value<Index>;

it("knows its letters", () => {
  expectTypeOf(t).toEqualTypeOf<Tile<"M" | "N" | "K">>();
  expectTypeOf(t.MK).toEqualTypeOf<Tile<"M" | "K">>();
  expectTypeOf(t.KM.size).toEqualTypeOf<Readonly<Record<"M" | "K", number>>>();
  expectTypeOf(t.project("M", "K")).toEqualTypeOf<Tile<"M" | "K">>();
  expectTypeOf(t.N.base.N).toEqualTypeOf<Value<I32> | number>();
  // @ts-expect-error: there is no Q
  t.MQ;
  // @ts-expect-error: each letter once
  t.MM;
  // @ts-expect-error: N is gone
  t.MK.N;
  // @ts-expect-error: there is no Q
  t.project("Q");
  // @ts-expect-error: there is no Q
  t.size.Q;
});

it("is divided along its own dimensions", () => {
  expectTypeOf(parallelise(t.MN, { M: 8 }, lane, 32)).toEqualTypeOf<readonly Tile<"M" | "N">[]>();
  expectTypeOf(subdivide(t.MN, { M: 8 }, 3, 16).M).toEqualTypeOf<Tile<"M">>();
  // @ts-expect-error: there is no K any more
  parallelise(t.MN, { K: 8 }, lane, 32);
  // @ts-expect-error: an entity's index is i32
  parallelise(t.MN, { M: 8 }, position, 32);
  // @ts-expect-error: K cannot be fastest
  parallelise(t.MN, { M: 8 }, lane, 32, { fastest: "K" });
});

it("moves along its own dimensions", () => {
  expectTypeOf(translate(t.MN, { M: lane, N: 3 })).toEqualTypeOf<Tile<"M" | "N">>();
  // @ts-expect-error: there is no K any more
  translate(t.MN, { K: 3 });
});

it("has a position of the width that its strides ask for", () => {
  expectTypeOf(linearise(t.MN, 136)).toEqualTypeOf<Value<I32> | number>();
  expectTypeOf(linearise(t.MN, lane)).toEqualTypeOf<Value<I32> | number>();
  expectTypeOf(linearise(t.MN, position)).toEqualTypeOf<Value<I32> | number | Value<Index>>();
});

it("works for dimensions that a function leaves open", () => {
  function rows<D extends "M" | "N">(whole: Tile<D>, along: D): readonly Tile<D>[] {
    return parallelise(whole, { [along]: 1 } as Partial<Record<D, number>>, 0, 1);
  }
  expectTypeOf(rows(t.MN, "M")).toEqualTypeOf<readonly Tile<"M" | "N">[]>();
});
