/** @file f16 operands sum in f32; f16 results overflow to infinity unless they are held back. */
import { type Device, f16, f32 } from "tilewright";
import { clampTo, type GemmOptions, gemm } from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { plain } from "../conformance/gemm-table.ts";
import { onEveryDevice } from "../conformance/table.ts";

const ways: readonly (readonly [string, GemmOptions])[] = [
  ["tensor cores", {}],
  ["tensor cores through registers", { schedule: "register-staged" }],
  ["the plain operator", { operator: plain }],
];

onEveryDevice((device) => {
  describe.each(ways)("by %s", (_, way) => {
    const product = async (
      rows: number,
      k: number,
      a: number,
      column: readonly number[],
      options: GemmOptions,
    ) => {
      const on: Device = device();
      using left = on.array(f16, [rows, k], new Array(rows * k).fill(a));
      using right = on.array(
        f16,
        [k, 8],
        Array.from({ length: k * 8 }, (_, i) => column[Math.floor(i / 8) % column.length]!),
      );
      using d = await gemm(left, right, { ...way, ...options });
      return new Set((await d.read()) as Iterable<number>);
    };

    it("sums that cancel are exactly 0, though they pass far beyond f16", async () => {
      expect(await product(5, 4096, 16, [2250, 2250, -2250, -2250], { type: f32 })).toEqual(new Set([0]));
    });
    it("sums beyond f16 are right in f32, infinite in f16, and finite where clamped", async () => {
      expect(await product(3, 256, 16, [18.5], { type: f32 })).toEqual(new Set([75_776]));
      expect(await product(3, 256, 16, [18.5], { type: f16 })).toEqual(new Set([Number.POSITIVE_INFINITY]));
      const held = { type: f16, epilogue: [clampTo(-65_504, 65_504)] };
      expect(await product(3, 256, 16, [18.5], held)).toEqual(new Set([65_504]));
      expect(await product(3, 256, 16, [-18.5], held)).toEqual(new Set([-65_504]));
    });
  });

  it("sums in f16 overflow, as was asked for", async () => {
    using a = device().array(f16, [4, 4096], new Array(4 * 4096).fill(16));
    using b = device().array(f16, [4096, 4], new Array(4 * 4096).fill(2250));
    using d = await gemm(a, b, { accumulate: f16, type: f16 });
    expect(new Set((await d.read()) as Iterable<number>)).toEqual(new Set([Number.POSITIVE_INFINITY]));
  });
});
