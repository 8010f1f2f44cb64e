/** @file Types other than 16-bit floats on the warpgroup schedule: what the tensor cores read in one order alone. */
import { f32, tf32 } from "tilewright";
import { planGemm } from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { roundToTF32 } from "../../src/types/round.ts";
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

onEveryDevice((device) => {
  describe("the warpgroup schedule multiplies", () => {
    it.for(rows)("$name", async ({ name: _, sizes, options, ...row }, { skip }) => {
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
      expect([...(await plan.d.read())]).toEqual(numbers.map(roundToTF32));
      plan.d.dispose();
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
