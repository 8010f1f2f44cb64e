import { ArgumentError, f16, f32, f64, i8, i32, type StorageType } from "tilewright";
import { bias, fmaOperator, gemm, maxPlus, planGemm, relu, semiringOperator } from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { normals } from "../support/random.ts";
import { checkBatch } from "./batch-cases.ts";
import { onEveryDevice } from "./table.ts";

const lanes = fmaOperator({ laneRows: 4, laneColumns: 8, rows: 2, columns: 2 });
const block = { m: 16, n: 32, k: 8 };

/** Sizes with remainders, parts that do not divide the K steps, more parts than steps, and no K at all. */
const rows = [
  { batch: [], m: 17, n: 33, k: 65, splitK: 3 },
  { batch: [3], m: 5, n: 7, k: 65, splitK: 4, alpha: -1, beta: 2 },
  { batch: [2], m: 20, n: 8, k: 33, splitK: 2, columnMajorD: true, gaps: [8, 16], beta: 1 },
  { batch: [], m: 1, n: 40, k: 9, splitK: 5, layout: "tt" },
  { batch: [], m: 3, n: 4, k: 0, splitK: 2, beta: 1 },
  { batch: [0], m: 3, n: 4, k: 20, splitK: 2 },
] as const;

const types = [
  [f32, f32],
  [f16, f16],
  [i8, i32],
  [f64, f64],
].map(([a, d]) => ({ name: `${a!.name} to ${d!.name}`, a: a!, d: d! }));

onEveryDevice((device) => {
  const has = (...all: StorageType[]): boolean => all.every(({ name }) => device().facts.storage.has(name));
  const params = (splitK: number) => ({ block, warps: { m: 2, n: 1 }, groupRows: 2, splitK });
  const options = (splitK: number) => ({ operator: lanes, params: params(splitK) });

  describe("K divided among blocks", () => {
    it.for(types)("$name", { timeout: 120_000 }, async ({ a, d }, { skip }) => {
      skip(!has(a, d), "the target has no arithmetic for it");
      skip(device().facts.subgroup.width !== 32, "these lanes are a warp's");
      for (const [seed, { splitK, ...row }] of rows.entries())
        await checkBatch(device(), { ...row, a, d, options: options(splitK) }, seed + 1);
    });

    it("runs the epilogue once, on whole sums", async ({ skip }) => {
      skip(device().facts.subgroup.width !== 32, "these lanes are a warp's");
      const values = [3, -2, 1, 0, 5];
      using vector = device().array(f32, [5], values);
      const mapD = (x: number, _: number, column: number): number => Math.max(0, x + values[column]!);
      const test = { batch: [2], m: 7, n: 5, k: 50, a: f32, mapD } as const;
      await checkBatch(device(), { ...test, options: { ...options(3), epilogue: [bias(vector), relu] } });
    });

    it("gives the same bits each time, and one kernel serves any number of parts", async ({ skip }) => {
      skip(device().facts.subgroup.width !== 32, "these lanes are a warp's");
      using a = device().array(f32, [9, 100], normals(900, 1));
      using b = device().array(f32, [100, 9], normals(900, 2));
      const modules = new Set<unknown>();
      for (const splitK of [2, 3, 5]) {
        using plan = await planGemm(a, b, options(splitK));
        plan.run();
        const first = await plan.d.readBits();
        plan.run();
        expect(await plan.d.readBits()).toEqual(first);
        modules.add(plan.compiled!.executable);
        expect(plan.explain()).toContain(`split      K in ${splitK} parts, added in order`);
        expect(plan.explain()).toContain(`adds ${splitK} parts of K`);
        plan.d.dispose();
      }
      expect(modules.size).toBe(1);
    });
  });

  it("divides K where tiles are few and K is long, and only there", async () => {
    using a = device().array(f32, [4, 2048]);
    using b = device().array(f32, [2048, 4]);
    using long = await planGemm(a, b, { schedule: "register-staged" });
    const fewer = Math.min(4, device().facts.machine.multiprocessors);
    expect(long.kind.params.splitK ?? 1).toBe(fewer);
    // Parts of K fill the machine; tiles do not grow over a small matrix for that.
    const { block } = long.kind.params;
    expect(block.m * block.n).toBeLessThanOrEqual(2 * 32 * 64);
    using short = await planGemm(a.slice([], [0, 512]), b.slice([0, 512]), { schedule: "register-staged" });
    expect(short.kind.params.splitK).toBeUndefined();
    for (const plan of [long, short]) plan.d.dispose();
  });

  it("refuses parts where sums are no sums, and numbers that are none", async () => {
    using a = device().array(f32, [4, 64]);
    const refused = (operator: typeof lanes, splitK: number): Promise<unknown> =>
      gemm(a, a.transposed, { operator, params: { ...params(splitK), block: { m: 64, n: 64, k: 8 } } });
    await expect(refused(semiringOperator(maxPlus), 2)).rejects.toThrow(ArgumentError);
    await expect(refused(lanes, 1.5)).rejects.toThrow("params.splitK is a positive integer, not 1.5");
  });
});
