import { type Device, f16, f32, i8 } from "tilewright";
import {
  auxiliary,
  bias,
  type EpilogueStep,
  gelu,
  geluTanh,
  gemm,
  hardSwish,
  leakyRelu,
  planGemm,
  relu,
  residual,
  scale,
  silu,
  type Transform,
} from "tilewright/gemm";
import { expect, it } from "vitest";
import { generator, normal } from "./gemm-cases.ts";
import { onEveryDevice } from "./table.ts";

/** erf by its Taylor series in double, enough terms for |x| < 6. */
function erf(x: number): number {
  let term = x;
  let sum = x;
  for (let n = 1; n < 200; n++) {
    term *= (-x * x) / n;
    sum += term / (2 * n + 1);
  }
  return Math.abs(x) > 5 ? Math.sign(x) : (2 / Math.sqrt(Math.PI)) * sum;
}

const activations: readonly [string, Transform, (x: number) => number][] = [
  ["relu", relu, (x) => Math.max(x, 0)],
  ["leaky relu", leakyRelu(0.1), (x) => (x < 0 ? 0.1 * x : x)],
  ["gelu", gelu, (x) => (x / 2) * (1 + erf(x / Math.SQRT2))],
  [
    "gelu, tanh form",
    geluTanh,
    (x) => (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  ],
  ["silu", silu, (x) => x / (1 + Math.exp(-x))],
  ["hard swish", hardSwish, (x) => (x * Math.min(Math.max(x + 3, 0), 6)) / 6],
];

const routes = ["register-staged", "warpgroup"] as const;

onEveryDevice((device: () => Device) => {
  const sizes = { m: 72, n: 80, k: 40 };
  async function run(
    schedule: (typeof routes)[number],
    steps: (random: () => number) => {
      readonly list: readonly (EpilogueStep | Transform)[];
      readonly expected: (x: number, row: number, column: number) => number;
    },
  ): Promise<void> {
    if (schedule === "warpgroup" && device().facts.warpgroupMma.length === 0) return;
    const random = generator(5);
    const { m, n, k } = sizes;
    const values = (count: number): number[] =>
      Array.from({ length: count }, () => Math.round(normal(random) * 8) / 16);
    const [x, y] = [values(m * k), values(k * n)];
    using a = device().array(f16, [m, k], x);
    using b = device().array(f16, [k, n], y);
    const { list, expected } = steps(random);
    using d = await gemm(a, b, { type: f32, schedule, epilogue: list });
    const result = await d.read();
    for (let row = 0; row < m; row++) {
      for (let column = 0; column < n; column++) {
        let sum = 0;
        for (let inner = 0; inner < k; inner++) sum += x[row * k + inner] * y[inner * n + column];
        const wanted = expected(sum, row, column);
        expect(Math.abs(Number(result[row * n + column]) - wanted), `D[${row}, ${column}]`).toBeLessThan(
          2e-5 * (1 + Math.abs(wanted)),
        );
      }
    }
  }

  for (const schedule of routes) {
    for (const [name, activation, expected] of activations) {
      it(`${name}, ${schedule}`, () =>
        run(schedule, () => ({ list: [activation], expected: (x) => expected(x) })));
    }
    it(`bias per column and row, scale, function of coordinates, ${schedule}`, () =>
      run(schedule, (random) => {
        const { m, n } = sizes;
        const perColumn = Array.from({ length: n }, () => 100 * Math.round(normal(random) * 8));
        const perRow = Array.from({ length: m }, () => 50 * Math.round(normal(random) * 8));
        const factors = Array.from({ length: n }, () => Math.round(random() * 16) / 8);
        return {
          list: [
            bias(device().array(f32, [n], perColumn)),
            bias(device().array(f16, [m], perRow), { per: "row" }),
            scale(device().array(f32, [n], factors)),
            (x, { row, column }) => x.add(row.mul(1000).add(column).to(f32)),
          ],
          expected: (x, row, column) =>
            (x + perColumn[column] + perRow[row]) * factors[column] + row * 1000 + column,
        };
      }));
    it(`residual and auxiliary output, ${schedule}`, async () => {
      if (schedule === "warpgroup" && device().facts.warpgroupMma.length === 0) return;
      const { m, n } = sizes;
      using before = device().array(f32, [m, n], new Array(m * n).fill(Number.NaN));
      let pre: number[] = [];
      await run(schedule, (random) => {
        const added = Array.from({ length: m * n }, () => Math.round(normal(random) * 1000));
        pre = added;
        return {
          list: [residual(device().array(f32, [m, n], added)), auxiliary(before), relu],
          expected: (x, row, column) => Math.max(x + added[row * n + column], 0),
        };
      });
      const kept = await before.read();
      expect(kept.every((x, i) => Math.abs(Number(x) - pre[i]) < 100)).toBe(true);
    });
  }

  it("integers saturate on their way out", async () => {
    using a = device().array(i8, [1, 4], [100, 100, 1, 1]);
    using b = device().array(i8, [4, 3], [100, -100, 1, 100, -100, 1, 0, 0, 0, 0, 0, 0]);
    using d = await gemm(a, b, { type: i8 });
    expect([...(await d.read())]).toEqual([127, -128, 127]);
  });

  it("says what a step's array should be", async () => {
    using a = device().array(f16, [16, 8]);
    using b = device().array(f16, [8, 24]);
    await expect(gemm(a, b, { epilogue: [bias(device().array(f32, [16]))] })).rejects.toThrow(
      /bias wants one element for each column of D, \[24\]; it was given f32\[16\]/,
    );
    await expect(
      gemm(a, b, { epilogue: [residual(device().array(f32, [24, 16]).transposed)] }),
    ).rejects.toThrow(/neighbouring elements/);
  });

  it("shares a kernel between other arrays of the same kind", async () => {
    using a = device().array(f16, [16, 8]);
    using b = device().array(f16, [8, 24]);
    using first = await planGemm(a, b, { epilogue: [bias(device().array(f32, [24])), relu] });
    using second = await planGemm(a, b, { epilogue: [bias(device().array(f32, [24])), relu] });
    expect(second.compiled).toBe(first.compiled);
  });
});
