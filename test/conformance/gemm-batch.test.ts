import { f16, f32, f64, i8, i32, type StorageType } from "tilewright";
import { bias, fmaOperator, type GemmOptions, gemm, planGemm, relu } from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { generator } from "../support/random.ts";
import { type BatchCase, checkBatch } from "./batch-cases.ts";
import { pairwise } from "./gemm-cases.ts";
import { onEveryDevice } from "./table.ts";

const soak = process.env.TILEWRIGHT_SOAK === "1";
const lanes = fmaOperator({ laneRows: 4, laneColumns: 8, rows: 2, columns: 2 });
const small = { block: { m: 16, n: 32, k: 8 }, warps: { m: 2, n: 1 }, groupRows: 2 };

const columns = {
  batch: [[0], [1], [3], [2, 3]],
  size: [
    [1, 3, 2],
    [7, 17, 33],
    [33, 7, 65],
    [65, 33, 3],
    [2, 2, 0],
  ],
  layout: ["nn", "nt", "tn", "tt"],
  columnMajorD: [false, true],
  shared: [{}, { a: "absent" }, { b: "repeated" }, { a: "repeated", c: "absent" }, { b: "absent" }],
  interleaved: [false, true],
  gaps: [
    [0, 0],
    [3, 5],
    [8, 16],
  ],
  factors: [
    [1, 0],
    [2, 0],
    [-1, 3],
  ],
} as const;

function rowsOf(a: StorageType, d: StorageType, seed: number): readonly BatchCase[] {
  return pairwise(columns, seed).map(({ size: [m, n, k], factors: [alpha, beta], batch, ...rest }) => {
    // Interleaved lines of several outer dimensions are still one walk.
    return { ...rest, batch, m, n, k, a, d, alpha, beta };
  });
}

const types = [
  [f32, f32],
  [f16, f16],
  [f16, f32],
  [i8, i32],
  [f64, f64],
].map(([a, d]) => ({ name: `${a!.name} to ${d!.name}`, a: a!, d: d! }));

onEveryDevice((device) => {
  const has = (...all: StorageType[]): boolean => all.every(({ name }) => device().facts.storage.has(name));

  describe("batches over shapes, orders, shared operands, gaps and factors", () => {
    it.for(types)("$name", { timeout: 300_000 }, async ({ a, d }, { skip }) => {
      skip(!has(a, d), "the target has no arithmetic for it");
      const { width } = device().facts.subgroup;
      // Few accumulators a lane compile in a moment.
      const options = width === 32 ? { operator: lanes, params: small } : {};
      const rows = rowsOf(a, d, soak ? Date.now() % 2 ** 31 : 3);
      for (const [seed, row] of (soak || a === f32 ? rows : rows.slice(0, 8)).entries())
        await checkBatch(device(), { ...row, options }, seed + 1);
    });
  });

  it("tells transforms the matrix's number", async () => {
    const options: GemmOptions = {
      transforms: { a: { globalToShared: (x, { batch }) => x.mul(batch!.to(f32).add(1)) } },
    };
    const mapA = (x: number, batch: number): number => x * (batch + 1);
    await checkBatch(device(), { batch: [3], m: 5, n: 7, k: 9, a: f32, options, mapA });
  });

  it("runs the epilogue's steps on each matrix, with vectors that are shared", async () => {
    const values = [1, 2, 3, 4, 5, 6, 7];
    using vector = device().array(f32, [7], values);
    const mapD = (x: number, _: number, column: number): number => Math.max(0, x + values[column]!);
    const test = { batch: [3], m: 5, n: 7, k: 9, a: f32, mapD } as const;
    await checkBatch(device(), { ...test, options: { epilogue: [bias(vector), relu] } });
  });

  it("multiplies vectors as NumPy does, with results of lower rank", async () => {
    const m = device().array(f32, [2, 3], [1, 2, 3, 4, 5, 6]);
    const batch = device().array(f32, [2, 3, 2], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    const [x, y] = [device().array(f32, [2], [1, 10]), device().array(f32, [3], [1, 10, 100])];
    const strided = device().array(f32, [6], [1, 0, 10, 0, 100, 0]).slice([0, undefined, 2]);
    for (const [a, b, shape, values] of [
      [m, y, [2], [321, 654]],
      [m, strided, [2], [321, 654]],
      [x, m, [3], [41, 52, 63]],
      [y, y, [], [10101]],
      [batch, x, [2, 3], [21, 43, 65, 87, 109, 131]],
      [y, batch, [2, 2], [531, 642, 1197, 1308]],
    ] as const) {
      using d = await gemm(a, b);
      expect(d.shape).toEqual(shape);
      expect([...(await d.read())]).toEqual(values);
    }
    using d = device().array(f32, [3]);
    await gemm(x, m, { d, c: device().array(f32, [3], [1, 1, 1]) });
    expect([...(await d.read())]).toEqual([42, 53, 64]);
  });

  it("20 random sizes and batch counts of one kind load one module", async () => {
    const random = generator(20);
    const up = (most: number): number => 1 + Math.floor(random() * most);
    const [a, b, d] = [f16, f16, f32].map((type) => device().array(type, [5, 40, 40]));
    const modules = new Set<unknown>();
    for (let i = 0; i < 20; i++) {
      const [count, m, n, k] = [up(5), up(40), up(40), up(40)];
      const part = (of: typeof a, rows: number, width: number) =>
        of!.slice([0, count], [0, rows], [0, width]);
      const options = { d: part(d, m, n), operator: lanes, params: small };
      using plan = await planGemm(part(a, m, k), part(b, k, n), options);
      modules.add(plan.compiled!.executable);
    }
    expect(modules.size).toBe(1);
    for (const array of [a, b, d]) array!.dispose();
  });

  it.runIf(soak)("more than 65,535 matrices", { timeout: 300_000 }, async () => {
    const count = 65_540;
    const host = Float32Array.from({ length: count }, (_, i) => i % 1000);
    using a = device().array(f32, [count, 1, 1], host);
    using b = device().array(f32, [1, 1], [2]);
    using d = await gemm(a, b, {
      schedule: "register-staged",
      params: { ...small, block: { m: 32, n: 64, k: 8 } },
    });
    expect(await d.read()).toEqual(host.map((x) => 2 * x));
  });
});
