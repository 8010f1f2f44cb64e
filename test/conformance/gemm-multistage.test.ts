import { type Device, type ElementType, f16, f32, f64, i8, i32, type StorageType, tf32 } from "tilewright";
import { everyStep, fmaOperator, gemm, mmaSync, type Predicate, planGemm } from "tilewright/gemm";
import { openSimulator } from "tilewright/simulator";
import { describe, expect, it } from "vitest";
import { createPaperDevice } from "../../src/cli/paper-device.ts";
import { kernelOf } from "../../src/gemm/identity.ts";
import { resolve } from "../../src/gemm/resolve.ts";
import { type NvidiaTargetName, nvidiaTarget } from "../../src/target/nvidia.ts";
import { assemble } from "../support/ptxas.ts";
import { requirement } from "../support/require.ts";
import { checkGemm, pairwise } from "./gemm-cases.ts";
import { layouts } from "./gemm-table.ts";
import { onEveryDevice } from "./table.ts";

const soak = process.env.TILEWRIGHT_SOAK === "1";
const plain = fmaOperator({ laneRows: 4, laneColumns: 8, rows: 2, columns: 2 });

/** Types, the operator, and how deep one of its calls is. */
const products = [
  { a: f16, d: f32, operator: mmaSync, slice: 16 },
  { a: f32, d: f32, compute: tf32, operator: mmaSync, slice: 8 },
  { a: i8, d: i32, operator: mmaSync, slice: 32 },
  { a: f64, d: f64, operator: mmaSync, slice: 8 },
  { a: f32, d: f32, operator: plain, slice: 4 },
] as const;

/** Fewer K steps than stages, as many, more; remainders and none. */
const sizes = [
  [33, 17, 29],
  [64, 32, 192],
  [7, 40, 1],
  [40, 50, 97],
] as const;

onEveryDevice((device) => {
  it("multistage over types, majorness, sizes, alignments, stages and slices of a step", async ({ skip }) => {
    const { facts } = device();
    skip(!facts.asyncCopy || facts.mma.length === 0, "the target has no asynchronous copies or tensor cores");
    const rows = pairwise({
      product: products,
      layout: layouts,
      size: sizes,
      padding: [0, 1, 2, 4],
      stages: [2, 3, 4],
      slices: [2, 3],
      columnMajorD: [false, true],
    });
    for (const [seed, { product, size, stages, slices, ...rest }] of rows.entries()) {
      if (!soak && seed % 2 === 1) continue;
      const { a, d, operator, slice } = product;
      const [m, n, k] = size;
      const params = {
        block: { m: 32, n: 32, k: slice * slices },
        warps: { m: 2, n: 1 },
        groupRows: 2,
        stages,
      };
      const compute = "compute" in product ? { compute: product.compute } : {};
      const test = { ...rest, a, d, m, n, k, options: { operator, params, ...compute } };
      // Where neither operand can come asynchronously, another schedule takes over, and has two stages.
      const forced = await servesMultistage(device(), test);
      const options = forced ? test.options : { ...test.options, params: { ...params, stages: 2 } };
      await checkGemm(device(), { ...test, options }, seed + 1);
    }
  });

  async function servesMultistage(
    on: Device,
    {
      a,
      m,
      n,
      k,
      layout,
      padding,
      options,
    }: { [key: string]: unknown } & {
      a: StorageType;
      m: number;
      n: number;
      k: number;
      layout: string;
      padding: number;
      options: object;
    },
  ): Promise<boolean> {
    const matrix = (rows: number, columns: number, order: string) => {
      const [lines, length] = order === "t" ? [columns, rows] : [rows, columns];
      const part = on.array(a, [lines, length + padding]).slice([0, lines], [0, length]);
      return order === "t" ? part.transposed : part;
    };
    try {
      using plan = await planGemm(matrix(m, k, layout[0]!), matrix(k, n, layout[1]!), options);
      plan.d.dispose();
      return plan.kind.schedule === "multistage";
    } catch {
      return false;
    }
  }

  it("a transform sends its operand through registers, the other comes asynchronously", async ({ skip }) => {
    skip(!device().facts.asyncCopy || device().facts.mma.length === 0, "no asynchronous copies");
    using a = device().array(f16, [40, 64], new Array(40 * 64).fill(2));
    using b = device().array(f16, [64, 48], new Array(64 * 48).fill(3));
    const options = {
      type: f32,
      schedule: "multistage",
      transforms: { a: { globalToShared: (x: never) => (x as { neg(): never }).neg() } },
    } as const;
    using plan = await planGemm(a, b, options as never);
    expect(plan.explain()).toMatch(
      /copies {5}A through registers, 16 bytes an access \(A has a transform on its way to shared memory\); B by asynchronous copies of 16 bytes/,
    );
    plan.run();
    expect([...new Set([...((await plan.d.read()) as Float32Array)])]).toEqual([-6 * 64]);
    plan.d.dispose();
  });
});

describe("the shared memory of a ring", () => {
  const nothing: Predicate = { name: "no step", next: (_, step) => step.mul(0).add(2 ** 20) };
  const shapes = [
    ["f16", f16, undefined, 64],
    ["f16, short lines", f16, undefined, 32],
    ["tf32", f32, tf32, 32],
    ["f64", f64, undefined, 16],
  ] as const;
  const rows = shapes.flatMap(([name, type, compute, depth]) =>
    // Either order of either operand.
    (["nn", "tt"] as const).map((layout) => [name, layout, type, compute, depth] as const),
  );

  it.each([...rows, ["i8", "nt", i8, undefined, 64] as const])(
    "has no bank conflicts: %s %s",
    async (_, layout, type, compute, depth) => {
      const { device, profile } = openSimulator();
      const conflicts = async (predicate: Predicate) => {
        const matrix = (order: string) => {
          const whole = device.array(type, [128, 128]);
          return order === "t" ? whole.transposed : whole;
        };
        const params = { block: { m: 64, n: 64, k: depth }, warps: { m: 2, n: 2 }, groupRows: 1, stages: 3 };
        const resolved = resolve(matrix(layout[0]!), matrix(layout[1]!), {
          schedule: "multistage",
          predicate,
          params,
          operator: mmaSync,
          ...(compute === undefined ? {} : { compute }),
        });
        const { kind, schedule } = resolved;
        const counters = await profile(kernelOf(kind, schedule).kernel, {
          blocks: 1,
          args: schedule.arguments(kind, resolved) as never,
        });
        return counters;
      };
      // The epilogue's own are the same without any K step.
      const [all, none] = [await conflicts(everyStep), await conflicts(nothing)];
      expect(all.sharedWavefronts).toBeGreaterThan(none.sharedWavefronts);
      expect(all.sharedBankConflicts - none.sharedBankConflicts).toBe(0);
      device.dispose();
    },
  );
});

/** Target, A's and B's type, how it is multiplied, majorness. */
type Assembled = readonly [NvidiaTargetName, StorageType, ElementType | undefined, (typeof layouts)[number]];
const assembled: readonly Assembled[] = [
  ["sm_80", f16, undefined, "nn"],
  ["sm_90a", f64, undefined, "nt"],
];
const soaked: readonly Assembled[] = [
  ...layouts.map((layout) => ["sm_80", f16, undefined, layout] as const),
  ...(["sm_86", "sm_89", "sm_90a"] as const).flatMap((target) => [
    [target, f16, undefined, "nt"] as const,
    [target, f32, tf32, "nn"] as const,
    [target, f32, tf32, "nt"] as const,
    [target, i8, undefined, "nt"] as const,
    [target, i8, undefined, "tn"] as const,
    [target, f32, undefined, "nn"] as const,
  ]),
  ...layouts.map((layout) => ["sm_90a", f64, undefined, layout] as const),
];

describe.skipIf(!requirement("ptxas").available)(
  "the tiles of large products assemble without spills",
  () => {
    it.each(process.env.TILEWRIGHT_SOAK === "1" ? [...assembled, ...soaked] : assembled)(
      "%s, %s %s %s",
      async (target, type, compute, layout) => {
        using device = createPaperDevice(nvidiaTarget(target));
        const matrix = (order: string) => {
          const whole = device.empty(type, [4096, 4096]);
          return order === "t" ? whole.transposed : whole;
        };
        const choice = compute === undefined ? {} : { compute };
        using plan = await planGemm(matrix(layout[0]!), matrix(layout[1]!), {
          schedule: "multistage",
          ...choice,
        });
        const { succeeded, spilledBytes, warnings, log } = assemble(plan.compiled!.text, target);
        expect(succeeded, log).toBe(true);
        expect(spilledBytes, log).toBe(0);
        expect(warnings).toEqual([]);
        expect(plan.compiled!.text).toContain("cp.async");
      },
    );
  },
);

describe("what multistage refuses", () => {
  it("says why", async () => {
    const { device } = openSimulator();
    const options = { schedule: "multistage" } as const;
    const odd = device.array(f16, [9, 9]);
    await expect(gemm(odd, odd, options)).rejects.toThrow(
      "A's lines are aligned to 2 bytes, and copies move at least 4, and B's lines",
    );
    const bytes = device.array(i8, [64, 64]);
    await expect(gemm(bytes.transposed, bytes, options)).rejects.toThrow(
      "A's i8 elements change order on their way",
    );
    const halves = device.array(f16, [64, 64]);
    const params = { block: { m: 64, n: 64, k: 64 }, warps: { m: 2, n: 2 }, groupRows: 1 };
    await expect(gemm(halves, halves, { ...options, params: { ...params, stages: 9 } })).rejects.toThrow(
      "params.stages is 2 to 8, not 9",
    );
    const large = { ...params, block: { m: 256, n: 256, k: 64 }, stages: 4 };
    await expect(gemm(halves, halves, { ...options, params: large })).rejects.toThrow(
      /4 stages take \d+ bytes of shared memory/,
    );
    await expect(
      gemm(halves, halves, { schedule: "register-staged", params: { ...params, stages: 3 } }),
    ).rejects.toThrow("params.stages is 2 with register-staged, not 3; multistage takes more");
    device.dispose();
  });
});
