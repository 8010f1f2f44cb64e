/** @file Types other than 16-bit floats on the warpgroup schedule: what the tensor cores read in one order alone. */
import { bf16, e4m3, e5m2, f16, f32, tf32 } from "tilewright";
import { type GemmOptions, planGemm } from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { roundToTF32Even } from "../../src/types/round.ts";
import { checkGemm, type GemmCase } from "./gemm-cases.ts";
import { onEveryDevice } from "./table.ts";

const tile = { warps: { m: 4, n: 1 }, groupRows: 2 } as const;

interface Row extends Omit<GemmCase, "m" | "n" | "k"> {
  readonly name: string;
  readonly sizes: readonly (readonly [m: number, n: number, k: number])[];
}

const rows: readonly Row[] = [
  {
    name: "f32 rounded to tf32",
    a: f32,
    lineMultiple: 4,
    layout: "nt",
    alpha: 0.5,
    beta: 2,
    options: { compute: tf32, params: { ...tile, block: { m: 64, n: 64, k: 32 } } },
    sizes: [
      [65, 70, 99],
      [40, 33, 7],
    ],
  },
];

const bytes = { ...tile, block: { m: 64, n: 64, k: 128 } };
const eights: readonly Row[] = [
  {
    name: "e4m3, what 128 elements of K give added in f32",
    a: e4m3,
    d: f32,
    lineMultiple: 16,
    layout: "nt",
    beta: 0.5,
    options: { params: bytes },
    sizes: [
      [65, 70, 300],
      [3, 9, 20],
    ],
  },
  {
    name: "e5m2 by e4m3, the sums left to the instruction",
    a: e5m2,
    b: e4m3,
    d: bf16,
    lineMultiple: 16,
    layout: "nt",
    alpha: -1.5,
    options: { params: bytes, fastAccumulation: true },
    sizes: [[40, 65, 272]],
  },
  {
    name: "e4m3 with K in parts",
    a: e4m3,
    d: f16,
    lineMultiple: 16,
    layout: "nt",
    options: { params: { ...bytes, splitK: 2 } },
    sizes: [[33, 20, 270]],
  },
];

onEveryDevice((device) => {
  describe("the warpgroup schedule multiplies", () => {
    it.for([...rows, ...eights])("$name", async ({ name: _, sizes, options, ...row }, { skip }) => {
      skip(device().facts.warpgroupMma.length === 0, "the target has no warpgroup products");
      for (const [m, n, k] of sizes)
        await checkGemm(device(), { ...row, m, n, k, options: { ...options, schedule: "warpgroup" } });
    });

    it("tf32 that was rounded to nearest, not cut off", async ({ skip }) => {
      skip(device().facts.warpgroupMma.length === 0, "the target has no warpgroup products");
      const numbers = Array.from({ length: 64 * 4 }, (_, n) => 1 + ((n * 37) % 64) * 2 ** -13);
      using a = device().array(f32, [64, 4], numbers);
      using b = device().array(
        f32,
        [4, 4],
        Array.from({ length: 16 }, (_, n) => (n % 5 === 0 ? 1 : 0)),
      );
      using plan = await planGemm(a, b.transposed, { compute: tf32, schedule: "warpgroup" });
      plan.run();
      expect([...(await plan.d.read())]).toEqual(numbers.map(roundToTF32Even));
      plan.d.dispose();
    });

    it("8-bit floats as they are, unless something happens to them or another type is asked for", async ({
      skip,
    }) => {
      skip(device().facts.warpgroupMma.length === 0, "the target has no warpgroup products");
      using a = device().array(e4m3, [32, 32]);
      const explained = async (options: GemmOptions) => {
        using plan = await planGemm(a, a.transposed, options);
        plan.d.dispose();
        return plan.explain();
      };
      expect(await explained({})).toMatch(/as e4m3 · e4m3, summed in f32 after every 128 elements of K\n/);
      expect(await explained({ fastAccumulation: true })).toMatch(/as e4m3 · e4m3, summed in f32\n/);
      for (const options of [
        { compute: f16 },
        { transforms: { b: { globalToShared: (x) => x.to(f16).neg() } } },
      ] satisfies GemmOptions[])
        expect(await explained(options)).toMatch(/as f16 · f16, summed in f32\n/);
      await expect(planGemm(a, a, { schedule: "warpgroup" })).rejects.toThrow(
        /multiply e4m3 with K contiguous/,
      );
      const wide = { ...bytes, block: { m: 128, n: 256, k: 128 } };
      await expect(planGemm(a, a.transposed, { schedule: "warpgroup", params: wide })).rejects.toThrow(
        /multiple of 64 up to 192/,
      );
    });

    it("f32 in another order is refused, and goes elsewhere", async ({ skip }) => {
      skip(device().facts.warpgroupMma.length === 0, "the target has no warpgroup products");
      using a = device().array(f32, [64, 64]);
      await expect(planGemm(a, a, { compute: tf32, schedule: "warpgroup" })).rejects.toThrow(
        /multiply tf32 with K contiguous, and B's elements are neighbours along N/,
      );
      using plan = await planGemm(a, a, { compute: tf32 });
      expect(plan.kind.schedule).toBe("multistage");
      expect(plan.explain()).toMatch(/not taken {2}warpgroup: .*K contiguous/);
      plan.d.dispose();
    });
  });
});
