/** @file Results by columns on the warpgroup schedule: the transposed product, with everything that goes with it. */
import { type DeviceArray, f16, f32, type StorageType } from "tilewright";
import { bias, type GemmOptions, planGemm, relu, residual, scale, type Transform } from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { integers } from "../support/random.ts";
import { onEveryDevice } from "./table.ts";

const [m, n, k] = [70, 130, 72];

interface Case {
  readonly name: string;
  readonly layout: "nn" | "nt" | "tn" | "tt";
  readonly withC?: true;
  readonly options?: (vectors: { readonly rows: DeviceArray; readonly columns: DeviceArray }) => GemmOptions;
  /** D's element from the product's, the vectors' and C's. */
  readonly expected?: (x: number, row: number, column: number, c: number) => number;
}

const cases: readonly Case[] = [
  { name: "plain", layout: "nn" },
  { name: "plain", layout: "nt" },
  {
    name: "C, alpha and beta",
    layout: "tn",
    withC: true,
    options: () => ({ alpha: 2, beta: -1 }),
    expected: (x, _row, _column, c) => 2 * x - c,
  },
  {
    name: "bias per column, scale per row, ReLU",
    layout: "tt",
    options: (given) => ({ epilogue: [bias(given.columns), scale(given.rows, { per: "row" }), relu] }),
    expected: (x, row, column) => Math.max(0, (x + vectorOfColumns[column]!) * vectorOfRows[row]!),
  },
  {
    name: "bias per row, a function, scale per column",
    layout: "nt",
    options: (given) => ({
      epilogue: [bias(given.rows, { per: "row" }), (x) => x.add(1), scale(given.columns)],
    }),
    expected: (x, row, column) => (x + vectorOfRows[row]! + 1) * vectorOfColumns[column]!,
  },
];

const vectorOfRows = integers(m, 3, -4, 5);
const vectorOfColumns = integers(n, 4, -4, 5);

onEveryDevice((device) => {
  /** rows x across by rows, or by columns, in lines that tensor maps take. */
  const matrix = (
    type: StorageType,
    [rows, across]: readonly [number, number],
    byColumns: boolean,
    value: (row: number, column: number) => number,
  ): DeviceArray => {
    const [lines, length] = byColumns ? [across, rows] : [rows, across];
    const leading = Math.ceil(length / 8) * 8 + 8;
    const filled = Array.from({ length: lines * leading }, (_, at) => {
      const [line, place] = [Math.floor(at / leading), at % leading];
      if (place >= length) return Number.NaN;
      return byColumns ? value(place, line) : value(line, place);
    });
    const part = device().array(type, [lines, leading], filled).slice([0, lines], [0, length]);
    return byColumns ? part.transposed : part;
  };

  describe("D by columns on warpgroups", () => {
    it.for(cases)("$name, $layout", async ({ layout, withC, options, expected }, { skip }) => {
      skip(device().facts.warpgroupMma.length === 0, "the target has no warpgroup products");
      const [a, b, c] = [integers(m * k, 1, -8, 9), integers(k * n, 2, -8, 9), integers(m * n, 5, -8, 9)];
      const left = matrix(f16, [m, k], layout[0] === "t", (i, p) => a[i * k + p]!);
      const right = matrix(f16, [k, n], layout[1] === "t", (p, j) => b[p * n + j]!);
      const d = matrix(f32, [m, n], true, () => Number.NaN);
      const addend = matrix(f32, [m, n], true, (i, j) => c[i * n + j]!);
      const vectors = {
        rows: device().array(f32, [m], vectorOfRows),
        columns: device().array(f32, [n], vectorOfColumns),
      };
      const given = { ...options?.(vectors), ...(withC === true ? { c: addend } : {}), d };
      using plan = await planGemm(left, right, { ...given, schedule: "warpgroup" });
      expect(plan.d).toBe(d);
      expect(plan.explain()).toContain("D lies by columns");
      plan.run();
      const found = (await d.read()) as Float32Array;
      for (let i = 0; i < m; i++) {
        for (let j = 0; j < n; j++) {
          let sum = 0;
          for (let p = 0; p < k; p++) sum += a[i * k + p]! * b[p * n + j]!;
          const wanted = expected?.(sum, i, j, c[i * n + j]!) ?? sum;
          if (found[i * n + j] !== wanted) expect([i, j, found[i * n + j]]).toEqual([i, j, wanted]);
        }
      }
    });

    it("leaves what depends on coordinates to schedules that write columns, and says so", async ({
      skip,
    }) => {
      skip(device().facts.warpgroupMma.length === 0, "the target has no warpgroup products");
      const left = matrix(f16, [m, k], false, () => 1);
      const right = matrix(f16, [k, n], true, () => 1);
      const d = matrix(f32, [m, n], true, () => Number.NaN);
      const other = device().array(f32, [m, n], new Float32Array(m * n).fill(2));
      const byRow: Transform = (x, { row }) => x.add(row.to(f32) as never) as typeof x;
      for (const step of [residual(other), byRow]) {
        using plan = await planGemm(left, right, { d, epilogue: [step] });
        expect(plan.kind.schedule).not.toBe("warpgroup");
        expect(plan.explain()).toContain("not taken  warpgroup: D is not row-major");
      }
    });
  });
});
