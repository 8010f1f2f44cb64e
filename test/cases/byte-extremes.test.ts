/** @file The largest sums of byte products, and mixed signs. */
import { i8, i32, type StorageType, u8 } from "tilewright";
import { gemm } from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { plain } from "../conformance/gemm-table.ts";
import { onEveryDevice } from "../conformance/table.ts";

const depth = 65_536;

onEveryDevice((device) => {
  const rows: readonly (readonly [StorageType, number, StorageType, number, number])[] = [
    [i8, -128, i8, -128, 1_073_741_824],
    [i8, -128, i8, 127, -1_065_353_216],
    [u8, 255, i8, -128, -2_139_095_040],
    [u8, 255, i8, 127, 2_122_383_360],
    [i8, -128, u8, 255, -2_139_095_040],
  ];
  describe.each(rows)("$name %#", (a, x, b, y, expected) => {
    it(`${depth} times ${a.name} ${x} by ${b.name} ${y} is ${expected}`, async () => {
      using left = device().array(a, [3, depth], new Int16Array(3 * depth).fill(x));
      using right = device().array(b, [depth, 5], new Int16Array(depth * 5).fill(y));
      for (const operator of [undefined, plain]) {
        using d = await gemm(left, right, operator === undefined ? {} : { operator });
        expect(d.type).toBe(i32);
        expect(new Set((await d.read()) as Iterable<number>)).toEqual(new Set([expected]));
      }
    });
  });

  it("u8 by u8 wraps beyond i32 as i32 sums do", async () => {
    using left = device().array(u8, [1, depth], new Int16Array(depth).fill(255));
    using right = device().array(u8, [depth, 1], new Int16Array(depth).fill(255));
    using d = await gemm(left, right);
    expect(await d.item(0, 0)).toBe((255 * 255 * depth) | 0);
  });
});
