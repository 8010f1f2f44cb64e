/**
 * @file Reductions of what leaves a product: every axis and reduction, both schedules, both orders of D, sizes off the tiles.
 */
import { type Device, type DeviceArray, f16, f32, i8, i32, type StorageType } from "tilewright";
import {
  type EpilogueStep,
  gemm,
  moments,
  planGemm,
  type Reduction,
  reduceAll,
  reduceColumns,
  reduceRows,
  relu,
  softmaxStatistics,
} from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { operands } from "./exact-operands.ts";
import { generator } from "./gemm-cases.ts";
import { plain } from "./gemm-table.ts";
import { onEveryDevice, poisoned } from "./table.ts";

const sums: Readonly<Record<string, (values: readonly number[]) => number>> = {
  sum: (values) => values.reduce((sum, x) => sum + x, 0),
  max: (values) => values.reduce((most, x) => Math.max(most, x), Number.NEGATIVE_INFINITY),
  min: (values) => values.reduce((least, x) => Math.min(least, x), Number.POSITIVE_INFINITY),
  absMax: (values) => values.reduce((most, x) => Math.max(most, Math.abs(x)), 0),
  sumOfSquares: (values) => values.reduce((sum, x) => sum + x * x, 0),
};
const names = ["sum", "max", "min", "absMax", "sumOfSquares"] as const;
const axes = { row: reduceRows, column: reduceColumns, all: reduceAll } as const;
type Axis = keyof typeof axes;

/** Lines of a row-major matrix along an axis. */
function linesOf(
  values: readonly number[],
  m: number,
  n: number,
  axis: Axis,
): readonly (readonly number[])[] {
  if (axis === "all") return [values];
  const [lines, length] = axis === "row" ? [m, n] : [n, m];
  return Array.from({ length: lines }, (_, line) =>
    Array.from({ length }, (_, e) => values[axis === "row" ? line * n + e : e * n + line]),
  );
}

const linesFor = (m: number, n: number, axis: Axis): number => ({ row: m, column: n, all: 1 })[axis];

function close(
  got: ArrayLike<number | bigint>,
  lines: readonly (readonly number[])[],
  of: (line: readonly number[]) => number,
): void {
  expect(got.length).toBe(lines.length);
  lines.forEach((line, i) => {
    const wanted = of(line);
    const scale = line.reduce((sum, x) => sum + Math.abs(x) + x * x, 1);
    expect(Math.abs(Number(got[i]) - wanted), `line ${i}: ${got[i]}, not ${wanted}`).toBeLessThan(
      1e-6 * scale,
    );
  });
}

/** Schedule, sizes, D in column-major order, operator. */
const rows = [
  ["register-staged", [33, 17, 17], false, undefined],
  ["register-staged", [17, 33, 7], true, undefined],
  ["register-staged", [3, 7, 1], false, undefined],
  ["register-staged", [40, 33, 9], true, plain],
  ["register-staged", [1, 65, 5], false, plain],
  ["register-staged", [140, 1, 2], true, undefined],
  ["warpgroup", [129, 72, 24], false, undefined],
  ["warpgroup", [7, 8, 8], false, undefined],
] as const;

onEveryDevice((device: () => Device) => {
  const runs = (schedule: string): boolean =>
    schedule !== "warpgroup" || device().facts.warpgroupMma.length > 0;

  describe.each(rows)("%s, %j, column-major D: %s", (...row) => {
    const [schedule, [m, n, k], columnMajor, operator] = row;
    it("rows, columns and everything, by every name", async ({ skip }) => {
      skip(!runs(schedule), "the target has no warpgroup products");
      const { x, y, product } = operands(m, n, k, m + n);
      const cases = (Object.keys(axes) as Axis[]).flatMap((axis) => names.map((name) => ({ axis, name })));
      using a = device().array(f16, [m, k], x);
      using b = device().array(f16, [k, n], y);
      const targets = cases.map(({ axis }) => poisoned(device(), f32, [linesFor(m, n, axis)]));
      const d = poisoned(device(), f32, columnMajor ? [n, m] : [m, n]);
      // Four at a time: a kernel's registers are not for all fifteen.
      for (let first = 0; first < cases.length; first += 5) {
        const epilogue = cases
          .slice(first, first + 5)
          .map(({ axis, name }, i): EpilogueStep => axes[axis](targets[first + i], name));
        await gemm(a, b, {
          schedule,
          epilogue,
          d: columnMajor ? d.transposed : d,
          ...(operator === undefined ? {} : { operator }),
        });
      }
      for (const [i, { axis, name }] of cases.entries()) {
        close(await targets[i].read(), linesOf(product, m, n, axis), sums[name]);
      }
      for (const array of [...targets, d]) array.dispose();
    }, 60_000);
  });

  it("reduces what is there at the step, and repeats its bits", async () => {
    const [m, n, k] = [70, 90, 30];
    const { x, y, product } = operands(m, n, k, 3);
    using a = device().array(f16, [m, k], x);
    using b = device().array(f16, [k, n], y);
    using before = poisoned(device(), f32, [n]);
    using after = poisoned(device(), f32, [n]);
    using plan = await planGemm(a, b, {
      epilogue: [reduceColumns(before, "sum"), relu, reduceColumns(after, "sum")],
    });
    expect(plan.explain()).toMatch(/after {6}finishes the sum of columns/);
    plan.run();
    const first = await after.readBits();
    plan.run();
    expect(await after.readBits()).toEqual(first);
    close(await before.read(), linesOf(product, m, n, "column"), sums.sum);
    const positive = product.map((value) => Math.max(value, 0));
    close(await after.read(), linesOf(positive, m, n, "column"), sums.sum);
  });

  it("integers, exactly, and by atomics", async () => {
    const [m, n, k] = [37, 50, 40];
    const random = generator(8);
    const values = (count: number): number[] =>
      Array.from({ length: count }, () => Math.floor(random() * 255) - 127);
    const [x, y] = [values(m * k), values(k * n)];
    const product = Array.from({ length: m * n }, (_, at) => {
      let sum = 0;
      for (let i = 0; i < k; i++) sum += x[Math.floor(at / n) * k + i] * y[i * n + (at % n)];
      return sum;
    });
    using a = device().array(i8, [m, k], x);
    using b = device().array(i8, [k, n], y);
    for (const atomics of [false, true]) {
      using most = poisoned(device(), i32, [m]);
      using total = poisoned(device(), i32, [n]);
      using largest = poisoned(device(), i32, [1]);
      await gemm(a, b, {
        epilogue: [
          reduceRows(most, "max", { atomics }),
          reduceColumns(total, "sum", { atomics }),
          reduceAll(largest, "absMax", { atomics }),
        ],
      });
      expect([...(await most.read())]).toEqual(linesOf(product, m, n, "row").map(sums.max));
      expect([...(await total.read())]).toEqual(linesOf(product, m, n, "column").map(sums.sum));
      expect(await largest.item()).toBe(sums.absMax(product));
    }
  });

  it("several results of one reduction: softmax statistics and moments", async () => {
    const [m, n, k] = [45, 70, 33];
    const { x, y, product } = operands(m, n, k, 12);
    using a = device().array(f16, [m, k], x);
    using b = device().array(f16, [k, n], y);
    using top = poisoned(device(), f32, [m]);
    using sum = poisoned(device(), f32, [m]);
    using mean = poisoned(device(), f32, [n]);
    using variance = poisoned(device(), f32, [n]);
    await gemm(a, b, {
      type: f32,
      epilogue: [
        reduceRows([top, sum], softmaxStatistics),
        (value) => value.add(1000),
        reduceColumns([mean, variance], moments),
      ],
    });
    const rowLines = linesOf(product, m, n, "row");
    close(await top.read(), rowLines, sums.max);
    close(await sum.read(), rowLines, (line) => {
      const most = sums.max(line);
      return line.reduce((total, value) => total + Math.exp(value - most), 0);
    });
    const columnLines = linesOf(
      product.map((value) => value + 1000),
      m,
      n,
      "column",
    );
    const meanOf = (line: readonly number[]): number => sums.sum(line) / line.length;
    close(await mean.read(), columnLines, meanOf);
    const spread = await variance.read();
    columnLines.forEach((line, i) => {
      const wanted = meanOf(line.map((value) => (value - meanOf(line)) ** 2));
      expect(Math.abs(spread[i] - wanted)).toBeLessThan(2e-3 * (1 + wanted));
    });
  });

  it("a user's own, with coordinates: where each row is largest", async () => {
    const [m, n, k] = [33, 65, 9];
    const { x, y, product } = operands(m, n, k, 21);
    using a = device().array(f16, [m, k], x);
    using b = device().array(f16, [k, n], y);
    using most = poisoned(device(), f32, [m]);
    using where = poisoned(device(), f32, [m]);
    const argMax: Reduction = {
      name: "argmax",
      identity: () => [Number.NEGATIVE_INFINITY, 2 ** 24],
      enter: (value, { column }) => [value, column.to(f32)],
      combine([v, i], [w, j]) {
        const first = v.gt(w).or(v.eq(w).and(i.lt(j)));
        return [v.max(w), i.add(j.sub(i).mul(first.not().to(f32)))];
      },
    };
    await gemm(a, b, { epilogue: [reduceRows([most, where], argMax)] });
    const places = await where.read();
    linesOf(product, m, n, "row").forEach((line, i) => {
      expect(places[i]).toBe(line.indexOf(Math.max(...line)));
    });
  });

  it("gives what no elements reduce to", async () => {
    const [a, b] = [device().array(f16, [4, 3]), device().array(f16, [3, 0])];
    using total = poisoned(device(), f32, [4]);
    using most = poisoned(device(), f32, []);
    await gemm(a, b, { epilogue: [reduceRows(total, "sum"), reduceAll(most, "absMax")] });
    expect([...(await total.read())]).toEqual([0, 0, 0, 0]);
    expect(await most.item()).toBe(0);
  });

  it("refuses targets that do not fit", async () => {
    const [a, b] = [device().array(f16, [16, 8]), device().array(f16, [8, 24])];
    const array = (type: StorageType, shape: readonly number[]): DeviceArray => device().array(type, shape);
    await expect(gemm(a, b, { epilogue: [reduceRows(array(f32, [24]), "sum")] })).rejects.toThrow(
      /sum of rows wants one element for each row of D, \[16\]; it was given f32\[24\]/,
    );
    expect(() => reduceRows(array(f32, [16]), "product" as never)).toThrow(/no reduction "product"/);
    expect(() => reduceRows(array(f32, [16]), moments)).toThrow(/moments has 2 results; 1 target was given/);
    expect(() => reduceRows([array(f32, [16]), array(i32, [16])], moments)).toThrow(/want several/);
    expect(() => reduceRows(array(f32, [16]), "max", { atomics: true })).toThrow(
      /max into f32 has no atomic/,
    );
  });
});
