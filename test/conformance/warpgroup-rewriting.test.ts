/** @file Operands that warpgroups rewrite in shared memory: transforms and masks of B, elements of 8 bits widened to 16. */
import { bf16, e4m3, f16, f32, i8, type StorageType } from "tilewright";
import { bound, type GemmOptions, planGemm, type Transform, triangular } from "tilewright/gemm";
import { select } from "tilewright/lang";
import { describe, expect, it } from "vitest";
import { checkGemm, type GemmCase } from "./gemm-cases.ts";
import { expectClose, onEveryDevice } from "./table.ts";

const tile = { block: { m: 64, n: 64, k: 64 }, warps: { m: 4, n: 1 }, groupRows: 2 };

/** Neither is zero where x is, so that what lies beyond the edges must not count. */
const shifted: Transform = (x, { row, column }) =>
  select(row.lt(column), x.mul(2), x.add(1)) as ReturnType<Transform>;
const shiftedValue = (x: number, row: number, column: number): number => (row < column ? 2 * x : x + 1);
const halved: Transform = (x) => x.to(f16).mul(0.5).add(1);
const halvedValue = (x: number): number => 0.5 * x + 1;

interface Row extends Omit<GemmCase, "m" | "n" | "k" | "options"> {
  readonly name: string;
  readonly transforms?: GemmOptions["transforms"];
  readonly sizes: readonly (readonly [m: number, n: number, k: number])[];
}

const rows: readonly Row[] = [
  {
    name: "B along N",
    a: f16,
    transforms: { b: { globalToShared: shifted } },
    mapB: shiftedValue,
    sizes: [
      [65, 72, 200],
      [8, 40, 24],
    ],
  },
  {
    name: "B along K, changed twice, and A in registers",
    a: bf16,
    d: f32,
    layout: "tt",
    transforms: {
      a: { globalToShared: shifted },
      b: { globalToShared: shifted, sharedToRegister: (x) => x.neg() },
    },
    mapA: shiftedValue,
    mapB: (x, row, column) => -shiftedValue(x, row, column),
    sizes: [[72, 65, 136]],
  },
  {
    name: "B of 8 bits along N, widened",
    a: f16,
    b: e4m3,
    d: f32,
    sizes: [[33, 80, 208]],
  },
  {
    name: "A of 8 bits along K, and B along K, both changed",
    a: e4m3,
    b: f16,
    d: f32,
    layout: "nt",
    transforms: { a: { globalToShared: halved }, b: { sharedToRegister: shifted } },
    mapA: halvedValue,
    mapB: shiftedValue,
    sizes: [[70, 33, 208]],
  },
  {
    name: "A of 8 bits along M",
    a: e4m3,
    b: f16,
    d: f16,
    layout: "tn",
    transforms: { a: { globalToShared: halved } },
    mapA: halvedValue,
    beta: 2,
    sizes: [[80, 72, 70]],
  },
];

onEveryDevice((device) => {
  const lacking = (): boolean => device().facts.warpgroupMma.length === 0;
  const why = "the target has no warpgroup products";

  describe("warpgroups rewrite", () => {
    it.for(rows)("$name", async ({ name: _, sizes, transforms = {}, ...row }, { skip }) => {
      skip(lacking(), why);
      for (const [m, n, k] of sizes) {
        const options = { schedule: "warpgroup", params: tile, transforms } as const;
        await checkGemm(device(), { ...row, lineMultiple: 16, m, n, k, options });
      }
    });

    it("weights of whole numbers with a scale for each row of B, several tiles a block", async ({ skip }) => {
      skip(lacking(), why);
      const [m, n, k] = [16, 144, 80];
      const activation = (row: number, depth: number): number => ((row * 7 + depth * 3) % 11) - 5;
      const weight = (depth: number, column: number): number => ((depth * 5 + column * 13) % 251) - 125;
      const scaleOf = (depth: number): number => 2 ** -(depth % 4);
      using a = device().array(bf16, [m, k], filled(m, k, activation));
      using b = device().array(i8, [k, n], filled(k, n, weight));
      using scales = device().array(
        f32,
        [k],
        Array.from({ length: k }, (_, depth) => scaleOf(depth)),
      );
      const scaled = bound((x, { row }, [v]) => x.to(f32).mul(v.loadAt(row)).to(bf16), scales);
      using plan = await planGemm(a, b, {
        type: f32,
        params: tile,
        transforms: { b: { globalToShared: scaled } },
      });
      expect(plan.explain()).toMatch(/operands {3}B rewritten in shared memory/);
      plan.run();
      const expected = filled(m, n, (row, column) => {
        let sum = 0;
        for (let depth = 0; depth < k; depth++)
          sum += activation(row, depth) * weight(depth, column) * scaleOf(depth);
        return sum;
      });
      expectClose((await plan.d.read()) as Float32Array, expected, 1e-2);
      plan.d.dispose();
    });

    it("a triangular B, of which whole K steps are left out", async ({ skip }) => {
      skip(lacking(), why);
      const size = 136;
      const value = (row: number, column: number): number => ((row * 3 + column * 5) % 7) - 3;
      using a = device().array(f16, [8, size], filled(8, size, value));
      using b = device().array(f16, [size, size], filled(size, size, value));
      const upper = triangular(b, "upper");
      using plan = await planGemm(a, upper, { type: f32, schedule: "warpgroup", params: tile });
      plan.run();
      const expected = filled(8, size, (row, column) => {
        let sum = 0;
        for (let depth = 0; depth <= column; depth++) sum += value(row, depth) * value(depth, column);
        return sum;
      });
      expectClose((await plan.d.read()) as Float32Array, expected, 0);
      plan.d.dispose();
    });

    it("not what would not fit in 16 bits", async ({ skip }) => {
      skip(lacking(), why);
      using a = device().array(f32 as StorageType, [64, 64]);
      await expect(planGemm(a, a, { compute: bf16, schedule: "warpgroup" })).rejects.toThrow(
        /from 8 or 16 bits to 16/,
      );
    });
  });
});

function filled(rows: number, columns: number, value: (row: number, column: number) => number): number[] {
  return Array.from({ length: rows * columns }, (_, at) => value(Math.floor(at / columns), at % columns));
}
