/** @file Products of packed operands: any order and leading dimension on the schedules that want aligned lines. */
import { type DeviceArray, f16, f32, i8, i32, type StorageType, tf32 } from "tilewright";
import { diagonal, type GemmOptions, planGemm } from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { generator } from "../support/random.ts";
import { checkGemm } from "./gemm-cases.ts";
import { layouts } from "./gemm-table.ts";
import { expectClose, onEveryDevice } from "./table.ts";

interface Types {
  readonly name: string;
  readonly a: StorageType;
  readonly d: StorageType;
  readonly compute?: typeof tf32;
}

const types: readonly Types[] = [
  { name: "f16", a: f16, d: f32 },
  { name: "i8", a: i8, d: i32 },
  { name: "tf32", a: f32, d: f32, compute: tf32 },
];

onEveryDevice((device) => {
  const hasWarpgroups = (): boolean => device().facts.warpgroupMma.length > 0;

  describe("packed operands", () => {
    it.for(types)("of $name, in every order", async ({ a, d, compute }, { skip }) => {
      skip(!hasWarpgroups(), "no schedule of the target gains");
      for (const [i, layout] of layouts.entries()) {
        const options: GemmOptions = { pack: true, ...(compute === undefined ? {} : { compute }) };
        const size = { m: 67, n: 70 + i, k: 131 };
        await checkGemm(device(), { ...size, a, d, layout, padding: 1, beta: i % 2, options });
      }
    });

    it("of a batch, one matrix of which serves for all", async ({ skip }) => {
      skip(!hasWarpgroups(), "no schedule of the target gains");
      const random = generator(5);
      const [count, m, n, k] = [3, 33, 19, 37];
      const fill = (size: number): number[] =>
        Array.from({ length: size }, () => Math.floor(random() * 9) - 4);
      const [left, right] = [fill(m * k), fill(count * k * n)];
      const a = device().array(f16, [m, k], left);
      const b = device().array(f16, [count, k, n], right);
      using plan = await planGemm(a, b, { type: f32, pack: true });
      expect(plan.explain()).toMatch(/before +A copied to lines of whole 16 bytes .*\n.*B copied/);
      plan.run();
      const expected = Array.from({ length: count * m * n }, (_, at) => {
        const [matrix, row, column] = [Math.floor(at / (m * n)), Math.floor(at / n) % m, at % n];
        let sum = 0;
        for (let l = 0; l < k; l++) sum += left[row * k + l]! * right[(matrix * k + l) * n + column]!;
        return sum;
      });
      expectClose((await plan.d.read()) as Float32Array, expected, 0);
      for (const array of [a, b, plan.d]) array.dispose();
    });

    it("follow what their arrays hold when the plan runs again", async ({ skip }) => {
      skip(!hasWarpgroups(), "no schedule of the target gains");
      const a: DeviceArray = device().array(f16, [17, 19], new Float32Array(17 * 19));
      const b = device().array(f16, [19, 24], new Float32Array(19 * 24).fill(2));
      using plan = await planGemm(a, b, { type: f32, pack: true });
      for (const value of [1, 3]) {
        a.write(new Float32Array(17 * 19).fill(value));
        plan.run();
        expect(new Set((await plan.d.read()) as Float32Array)).toEqual(new Set([value * 38]));
      }
      for (const array of [a, b, plan.d]) array.dispose();
    });

    it("are refused where nothing is gained", async () => {
      const square = device().array(f32, [8, 8]);
      const structured = diagonal(device().array(f32, [8]));
      await expect(planGemm(structured, square, { pack: true })).rejects.toThrow(/no faster schedule/);
      await expect(planGemm(square, square, { pack: true })).rejects.toThrow(/no faster schedule/);
    });
  });
});
