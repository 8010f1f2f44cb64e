import {
  ArgumentError,
  bf16,
  type DeviceArray,
  f16,
  f32,
  f64,
  i8,
  i32,
  type StorageType,
  UnsupportedError,
} from "tilewright";
import {
  bias,
  diagonal,
  dropout,
  type GemmOptions,
  gemm,
  generated,
  maxPlus,
  planGemm,
  positiveMask,
  reduceAll,
  reduceColumns,
  reduceRows,
  relu,
  type Semiring,
  semiringOperator,
  triangular,
} from "tilewright/gemm";
import { u32 } from "tilewright/lang";
import { describe, expect, it } from "vitest";
import { normals } from "../support/random.ts";
import { checkBatch } from "./batch-cases.ts";
import { checkGemm, pairwise } from "./gemm-cases.ts";
import { onEveryDevice } from "./table.ts";

const soak = process.env.TILEWRIGHT_SOAK === "1";
const schedule = "matrix-vector";

const numbers = async (array: DeviceArray): Promise<readonly number[]> =>
  Array.from(await array.read(), Number);

/** Sizes on both sides: few vectors, remainders of lines and of K, none at all. */
const columns = {
  vectors: [1, 2, 3, 4],
  extent: [1, 5, 33, 70, 300],
  k: [0, 1, 7, 64, 129, 600],
  side: ["a", "b"],
  layout: ["nn", "nt", "tn", "tt"],
  padding: [0, 1, 2, 8],
  factors: [
    [1, 0],
    [-2, 3],
    [0, 1],
  ],
  columnMajorD: [false, true],
} as const;

const types = [
  [f32, f32],
  [f16, f16],
  [bf16, f32],
  [f64, f64],
  [i8, i32],
  [f16, f32, f32],
].map(([a, d, b = a]) => ({ name: `${a!.name}·${b!.name} to ${d!.name}`, a: a!, b: b!, d: d! }));

onEveryDevice((device) => {
  const has = (...all: StorageType[]): boolean => all.every(({ name }) => device().facts.storage.has(name));

  describe("matrix by vectors over sides, orders, sizes, alignments, factors", () => {
    it.for(types)("$name", { timeout: 120_000 }, async ({ a, b, d }, { skip }) => {
      skip(!has(a, b, d), "the target has no arithmetic for it");
      const rows = pairwise(columns, soak ? Date.now() % 2 ** 31 : 11);
      // Each row is a kernel of its own.
      const some = soak || a === f32 ? rows : rows.filter((_, i) => i % 3 === 0);
      for (const [seed, { vectors, extent, side, factors, ...rest }] of some.entries()) {
        // The larger side is the matrix's.
        const other = Math.max(extent, vectors);
        const [m, n] = side === "a" ? [other, vectors] : [vectors, other];
        const [alpha, beta] = factors;
        await checkGemm(device(), { ...rest, m, n, a, b, d, alpha, beta, options: { schedule } }, seed + 1);
      }
    });
  });

  describe("its grids of lanes and warps", () => {
    it.for([
      { name: "one warp, all lanes along K", block: [4, 1], k: 4, warps: [1, 1, 1] },
      { name: "warps along lines and K", block: [16, 2], k: 8, warps: [2, 1, 2] },
      { name: "K in parts", block: [8, 3], k: 2, warps: [1, 1, 2], splitK: 5 },
      { name: "vectors from the left", block: [3, 8], k: 4, warps: [1, 2, 1], splitK: 2 },
      { name: "narrow accesses", block: [8, 5], k: 1, warps: [1, 1, 4], copies: { a: 1, b: 1 } },
    ])("$name", async ({ block: [m, n], k, warps, splitK, copies }) => {
      const { width } = device().facts.subgroup;
      const streamed = m! > n! ? "a" : "b";
      for (const layout of ["nn", "tt"] as const) {
        const block = { m: m!, n: n!, k: k * width };
        const params = {
          block,
          warps: { m: warps[0]!, n: warps[1]!, k: warps[2]! },
          groupRows: 1,
          ...(splitK === undefined ? {} : { splitK }),
          ...(copies === undefined ? {} : { copies }),
        };
        const size = streamed === "a" ? { m: 37, n: n! } : { m: m!, n: 37 };
        await checkGemm(device(), {
          ...size,
          k: 173,
          a: f32,
          layout,
          beta: 1,
          lineMultiple: 16,
          options: { schedule, params },
        });
      }
    });
  });

  it("walks batches, with one matrix for all vectors", async () => {
    for (const layout of ["nn", "tt"] as const) {
      for (const [m, n] of [
        [21, 2],
        [2, 21],
      ] as const) {
        const test = { batch: [3], m, n, k: 70, a: f32, layout, gaps: [3, 5], beta: 2 } as const;
        await checkBatch(device(), { ...test, shared: { a: "absent" }, options: { schedule } });
        await checkBatch(device(), { ...test, shared: { b: "repeated" }, options: { schedule } });
      }
    }
  });

  it("takes transforms, told of the batch, on both operands", async () => {
    const options: GemmOptions = {
      schedule,
      transforms: {
        a: { globalToShared: (x, { batch }) => x.mul(batch!.to(f32).add(1)) },
        b: { sharedToRegister: (x, { row }) => x.mul(row.to(f32).mul(0).add(1)) },
      },
    };
    const mapA = (x: number, batch: number): number => x * (batch + 1);
    for (const [m, n] of [
      [19, 1],
      [1, 19],
    ] as const)
      await checkBatch(device(), { batch: [3], m, n, k: 37, a: f32, options, mapA });
  });

  it("takes structured matrices, and K steps left out", async () => {
    const [m, k] = [41, 41];
    using dense = device().array(f32, [m, k], normals(m * k, 1));
    using x = device().array(f32, [k, 2], normals(2 * k, 2));
    using v = device().array(f32, [k], normals(k, 3));
    const values = await dense.read();
    const vector = await v.read();
    const right = await x.read();
    const sources = [
      { of: triangular(dense, "lower"), at: (i: number, j: number) => (j <= i ? values[i * k + j]! : 0) },
      {
        of: triangular(dense.transposed, "upper"),
        at: (i: number, j: number) => (j >= i ? values[j * k + i]! : 0),
      },
      { of: diagonal(v), at: (i: number, j: number) => (i === j ? vector[i]! : 0) },
      {
        of: generated([m, k], f32, (row, column) => row.sub(column).to(f32)),
        at: (i: number, j: number) => i - j,
      },
    ];
    for (const { of, at } of sources) {
      using d = await gemm(of, x, { schedule });
      using e = await gemm(x.transposed, of.transposed, { schedule });
      const [got, other] = [await d.read(), await e.read()];
      for (let i = 0; i < m; i++) {
        for (let c = 0; c < 2; c++) {
          let sum = 0;
          for (let j = 0; j < k; j++) sum += at(i, j) * right[j * 2 + c]!;
          expect(got[i * 2 + c]).toBeCloseTo(sum, 3);
          expect(other[c * m + i]).toBeCloseTo(sum, 3);
        }
      }
    }
  });

  it("takes structured matrices as the vectors", async () => {
    using a = device().array(f32, [30, 3], normals(90, 1));
    using v = device().array(f32, [3], normals(3, 2));
    const [left, factors] = [await a.read(), await v.read()];
    const scaled = left.map((x, at) => x * factors[at % 3]!);
    using d = await gemm(a, diagonal(v), { schedule });
    expect(await d.read()).toEqual(scaled);
    using e = await gemm(diagonal(v), a.transposed, { schedule });
    expect(await e.read()).toEqual(scaled.map((_, at) => scaled[(at % 30) * 3 + Math.floor(at / 30)]!));
  });

  it("multiplies over semirings whose sums can be joined, and says why over others", async () => {
    const [m, k] = [37, 75];
    using a = device().array(f32, [m, k], normals(m * k, 4));
    using x = device().array(f32, [k], normals(k, 5));
    const operator = semiringOperator(maxPlus);
    using plan = await planGemm(a, x, { operator });
    expect(plan.kind.schedule).toBe(schedule);
    expect(plan.explain()).toMatch(
      /operator {3}max-plus\nschedule {3}matrix-vector: A streams past 1 vector/,
    );
    plan.run();
    const [left, right, got] = [await a.read(), await x.read(), await plan.d.read()];
    for (let i = 0; i < m; i++) {
      const all = Array.from(right, (y, j) => Math.fround(left[i * k + j]! + y));
      expect(got[i]).toBe(Math.max(...all));
    }
    const { add: _, ...apart } = maxPlus;
    const whole: Semiring = { ...apart, name: "max-plus in one piece" };
    await expect(planGemm(a, x, { operator: semiringOperator(whole), schedule })).rejects.toThrow(
      /does not say how sums that were made apart are added/,
    );
  });

  it("runs epilogues: vectors, masks, reductions", async () => {
    for (const [m, n] of [
      [70, 3],
      [3, 70],
    ] as const) {
      const [k, size] = [50, m * n];
      using a = device().array(f32, [m, k], normals(m * k, 6));
      using b = device().array(f32, [k, n], normals(k * n, 7));
      using offsets = device().array(f32, [n], normals(n, 8));
      using bits = device().array(u32, [m, Math.ceil(n / 32)]);
      using rows = device().array(f32, [m]);
      using columns = device().array(f32, [n]);
      using all = device().array(f32, [1]);
      const targets = [
        reduceRows(rows, "sum"),
        reduceColumns(columns, "max"),
        reduceAll(all, "sumOfSquares"),
      ];
      const epilogue = [bias(offsets), positiveMask(bits), relu, dropout(0.5, { seed: 3 }), ...targets];
      using d = await gemm(a, b, { schedule, epilogue });
      using other = await gemm(a, b, {
        schedule: "register-staged",
        epilogue: [bias(offsets), relu, dropout(0.5, { seed: 3 })],
      });
      const [got, expected] = [await numbers(d), await numbers(other)];
      const kept = await bits.read();
      const words = Math.ceil(n / 32);
      for (let at = 0; at < size; at++) {
        expect(got[at]).toBeCloseTo(expected[at]!, 3);
        const [i, j] = [Math.floor(at / n), at % n];
        const bit = (kept[i * words + Math.floor(j / 32)]! >>> (j % 32)) & 1;
        if (got[at]! > 0) expect(bit).toBe(1);
      }
      const line = (of: ArrayLike<number>, i: number): number[] =>
        Array.from({ length: n }, (_, j) => of[i * n + j]!);
      const sums = await rows.read();
      for (let i = 0; i < m; i++)
        expect(sums[i]).toBeCloseTo(
          line(got, i).reduce((x, y) => x + y),
          3,
        );
      const tops = await columns.read();
      for (let j = 0; j < n; j++)
        expect(tops[j]).toBe(Math.max(...Array.from({ length: m }, (_, i) => got[i * n + j]!)));
      expect((await all.read())[0]).toBeCloseTo(
        got.map((x) => x * x).reduce((x, y) => x + y),
        1,
      );
    }
  });

  it("gives the same bits each time, K in parts or not", async () => {
    using a = device().array(f32, [9, 3000], normals(27000, 1));
    using x = device().array(f32, [3000], normals(3000, 2));
    using plan = await planGemm(a, x);
    expect(plan.kind.schedule).toBe(schedule);
    plan.run();
    const first = await plan.d.read();
    plan.run();
    expect(await plan.d.read()).toEqual(first);
  });

  it("refuses what it cannot do, and is not taken where tiles are the better", async () => {
    using a = device().array(f32, [20, 30]);
    using b = device().array(f32, [30, 9]);
    await expect(planGemm(a, b, { schedule })).rejects.toThrow(UnsupportedError);
    await expect(planGemm(a, b, { schedule })).rejects.toThrow(/at most 8 vectors of f32, and D is 20 x 9/);
    using plan = await planGemm(a, b);
    expect(plan.kind.schedule).not.toBe(schedule);
    expect(plan.explain()).toMatch(/not taken {2}matrix-vector: /);
    const x = b.slice([], [0, 2]);
    const params = { block: { m: 8, n: 3, k: 32 }, warps: { m: 1, n: 1 }, groupRows: 1 };
    await expect(planGemm(a, x, { schedule, params })).rejects.toThrow(ArgumentError);
    await expect(planGemm(a, x, { schedule, params })).rejects.toThrow(/3 vectors wide and the product 2/);
    const tiles = { block: { m: 16, n: 32, k: 8 }, warps: { m: 1, n: 1, k: 2 }, groupRows: 1 };
    await expect(planGemm(a, b, { schedule: "register-staged", params: tiles })).rejects.toThrow(
      /warps\.k = 2: only the matrix-vector schedule/,
    );
  });
});
