import {
  ArgumentError,
  type DeviceArray,
  f16,
  f32,
  f64,
  i8,
  ShapeError,
  type StorageType,
  TypeMismatchError,
  UnsupportedError,
} from "tilewright";
import {
  bias,
  defaultEpilogue,
  fmaOperator,
  type GemmOptions,
  interleaveColumns,
  planGemm,
  reduceAll,
  reduceColumns,
  reduceRows,
  relu,
  residual,
  silu,
} from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { normals } from "../support/random.ts";
import { checkGate, type GateCase, numbers, randomMatrix } from "./gate-cases.ts";
import { onEveryDevice } from "./table.ts";

onEveryDevice((device, kind) => {
  const check = (test: GateCase): Promise<readonly number[]> => checkGate(device(), test);
  const matrix = (type: StorageType, rows: number, columns: number, seed: number): DeviceArray =>
    randomMatrix(device(), type, rows, columns, seed);

  describe("gated products", () => {
    it.for(["register-staged", "multistage"] as const)(
      "by the %s schedule",
      { timeout: 60_000 },
      async (schedule, { skip }) => {
        skip(schedule === "multistage" && !device().facts.asyncCopy, "the target has no asynchronous copies");
        const options = { schedule } as const;
        await check({ m: 33, n: 41, k: 40, options });
        await check({ m: 20, n: 32, k: 24, b: "t", beta: -2, alpha: 0.5, options });
        await check({ m: 17, n: 15, k: 8, a: "t", columnMajorD: true, beta: 1, options });
        if (device().facts.storage.has("f16")) await check({ m: 40, n: 24, k: 32, type: f16, options });
      },
    );

    it("by warpgroups, through boxes and in pairs", { timeout: 60_000 }, async ({ skip }) => {
      skip(device().facts.warpgroupMma.length === 0, "the target has no warpgroup products");
      const options = { schedule: "warpgroup" } as const;
      const params = { block: { m: 64, n: 128, k: 64 }, warps: { m: 4, n: 1 }, groupRows: 2 };
      const [m, n, k, type] = [70, 72, 72, f16];
      await check({ m, n, k, type, padding: 8, alpha: 0.5, options: { ...options, params } });
      await check({ m, n, k, type, b: "t", beta: 1, options });
      const narrow = { ...params, block: { ...params.block, n: 64 } };
      await check({ m: 64, n: 64, k, type, d: f32, padding: 4, options: { ...options, params: narrow } });
    });

    it("of few rows stream B once", async () => {
      const options = { schedule: "matrix-vector" } as const;
      for (const b of [undefined, "t"] as const) {
        const order = b === undefined ? {} : { b };
        await check({ ...order, m: 1, n: 41, k: 130, options });
        await check({ ...order, m: 3, n: 16, k: 7, beta: 2, alpha: -1, columnMajorD: true, options });
      }
    });

    it("in other types, tiles and batches", async ({ skip }) => {
      await check({ m: 9, n: 20, k: 12, batch: 3 });
      skip(!device().facts.storage.has("f64") || device().facts.subgroup.width !== 32, "narrow target");
      // PTX has no exp2 of f64, which SiLU is made of.
      if (kind !== "cuda") await check({ m: 9, n: 20, k: 12, type: f64 });
      const operator = fmaOperator({ laneRows: 8, laneColumns: 4, rows: 2, columns: 2 });
      const params = { block: { m: 32, n: 64, k: 4 }, warps: { m: 2, n: 2 }, groupRows: 2 };
      await check({ m: 35, n: 70, k: 13, options: { operator, params } });
    });

    it("take steps and reductions in D's columns", async () => {
      for (const schedule of ["register-staged", "matrix-vector"] as const) {
        const [m, n, k] = [schedule === "matrix-vector" ? 4 : 21, 37, 19];
        const plain = await check({ m, n, k });
        using offsets = device().array(f32, [n], normals(n, 5));
        using more = device().array(f32, [m, n], normals(m * n, 6));
        using rows = device().array(f32, [m]);
        using columns = device().array(f32, [n]);
        using all = device().array(f32, [1]);
        const targets = [reduceRows(rows, "sum"), reduceColumns(columns, "max"), reduceAll(all, "sum")];
        const epilogue = [bias(offsets), residual(more), relu, ...targets];
        const got = await check({ m, n, k, options: { schedule, epilogue } });
        const [o, r] = [await numbers(offsets), await numbers(more)];
        plain.forEach((x, at) => {
          expect(got[at]).toBeCloseTo(Math.max(0, x + o[at % n]! + r[at]!), 3);
        });
        const sums = await numbers(rows);
        for (let i = 0; i < m; i++)
          expect(sums[i]).toBeCloseTo(
            got.slice(i * n, (i + 1) * n).reduce((x, y) => x + y),
            2,
          );
        const tops = await numbers(columns);
        for (let j = 0; j < n; j++) expect(tops[j]).toBe(Math.max(...got.filter((_, at) => at % n === j)));
        expect((await numbers(all))[0]).toBeCloseTo(
          got.reduce((x, y) => x + y),
          1,
        );
      }
    });

    it("refuse what has no gate", async () => {
      const [a, b] = [matrix(f32, 8, 8, 1), matrix(f32, 8, 64, 2)];
      const plan = (options: GemmOptions, other: DeviceArray = b) =>
        planGemm(a, other, { gate: silu, ...options });
      await expect(plan({}, matrix(f32, 8, 48, 1))).rejects.toThrow(ShapeError);
      await expect(plan({}, matrix(f32, 8, 48, 1))).rejects.toThrow(
        /a multiple of 32 columns, not 48; interleaveColumns/,
      );
      await expect(plan({ d: device().array(f32, [8, 16]) })).rejects.toThrow(
        /D has 17 to 32 columns; it has 16/,
      );
      await expect(plan({ gate: "silu" as never })).rejects.toThrow(ArgumentError);
      await expect(plan({ epilogue: { ...defaultEpilogue, name: "own" } })).rejects.toThrow(UnsupportedError);
      const params = { block: { m: 32, n: 16, k: 8 }, warps: { m: 1, n: 1 }, groupRows: 1 };
      await expect(plan({ params, schedule: "register-staged" })).rejects.toThrow(ArgumentError);
      const bytes = device().array(i8, [32, 32]);
      await expect(planGemm(bytes, bytes, { gate: silu })).rejects.toThrow(/summed in floats, not in i32/);
      await expect(interleaveColumns(a, b)).rejects.toThrow(ShapeError);
      await expect(interleaveColumns(a, device().array(f64, [8, 8]))).rejects.toThrow(TypeMismatchError);
      await expect(interleaveColumns(a, 3 as never)).rejects.toThrow(ArgumentError);
      using explained = await plan({});
      expect(explained.explain()).toMatch(/gate {7}columns of B in pairs of groups, 32 columns of D/);
    });
  });
});
