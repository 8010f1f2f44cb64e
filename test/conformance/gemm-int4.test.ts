/** @file Products with 4-bit weights against sums in float64 of what the weights stand for. */
import { ArgumentError, bf16, type DeviceArray, f16, f32, ShapeError, TypeMismatchError } from "tilewright";
import {
  bias,
  gelu,
  gemmInt4,
  type Int4GemmOptions,
  type Int4Group,
  int4Weights,
  planGemmInt4,
  quantiseInt4,
  reduceRows,
  residual,
} from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { hasMma } from "../../src/gemm/operators/mma.ts";
import { normals } from "../support/random.ts";
import { onEveryDevice } from "./table.ts";

type Half = typeof f16 | typeof bf16;

interface Row {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly group: Int4Group;
  readonly type: Half;
  /** Elements between rows of X beyond K. */
  readonly padding?: number;
  readonly options?: Int4GemmOptions;
}

const rows: readonly Row[] = [
  { m: 16, n: 64, k: 256, group: 128, type: bf16 },
  { m: 1, n: 16, k: 128, group: 128, type: f16 },
  { m: 7, n: 37, k: 192, group: 64, type: bf16, padding: 8 },
  { m: 9, n: 100, k: 64, group: 32, type: f16, padding: 3 },
  { m: 35, n: 32, k: 1216, group: 64, type: bf16 },
  { m: 16, n: 48, k: 2304, group: 128, type: f16 },
];

onEveryDevice((device) => {
  const lacking = (): boolean => !hasMma({ a: bf16, b: bf16, accumulator: f32 }, device().facts);
  const why = "the target has no mma of bf16";

  async function check(
    { m, n, k, group, type, padding = 0, options = {} }: Row,
    seed: number,
  ): Promise<void> {
    const x = device().array(type, [m, k + padding], normals(m * (k + padding), seed));
    const view = x.slice([], [0, k]);
    using weights = quantiseInt4(device(), [k, n], normals(k * n, seed + 1), { group, type });
    const [held, w] = [Array.from(await view.read(), Number), await weights.read()];
    // D inside a larger, poisoned matrix.
    const whole = device().array(f32, [m + 1, n + 5], new Float32Array((m + 1) * (n + 5)).fill(7777));
    const d = whole.slice([0, m], [0, n]);
    using plan = await planGemmInt4(view, weights, { d, ...options });
    plan.run();
    const got = Array.from((await whole.read()) as Float32Array);
    for (let row = 0; row <= m; row++)
      for (let column = 0; column < n + 5; column++) {
        const value = got[row * (n + 5) + column]!;
        if (row === m || column >= n) {
          expect(value).toBe(7777);
          continue;
        }
        let [sum, magnitude] = [0, 0];
        for (let depth = 0; depth < k; depth++) {
          const product = held[row * k + depth]! * w[depth * n + column]!;
          sum += product;
          magnitude += Math.abs(product);
        }
        const { alpha = 1 } = options;
        if (!(Math.abs(value - alpha * sum) <= 1e-5 * Math.abs(alpha) * magnitude + 1e-6))
          expect.fail(`element [${row}, ${column}] is ${value}, not ${alpha * sum}`);
      }
    for (const array of [x, whole]) array.dispose();
  }

  describe("4-bit weights", () => {
    it.for(rows)("$m x $k by $k x $n, groups of $group, $type.name", async (row, { skip }) => {
      skip(lacking(), why);
      await check(row, 3);
    });

    it("a factor in front", async ({ skip }) => {
      skip(lacking(), why);
      await check({ m: 3, n: 20, k: 128, group: 32, type: bf16, options: { alpha: -2 } }, 5);
    });

    it("every nibble is where it belongs", async ({ skip }) => {
      skip(lacking(), why);
      const [k, n] = [128, 33];
      // One row of X picks one row of weights; scales tell groups and columns apart.
      const values = Int8Array.from({ length: k * n }, (_, i) => ((i * 7) % 16) - 8);
      const scales = Float32Array.from({ length: 4 * n }, (_, i) => 2 ** (i % 5));
      using weights = int4Weights(device(), [k, n], values, scales, { group: 32, type: f16 });
      const identity = new Float32Array(k * k);
      for (let i = 0; i < k; i++) identity[i * (k + 1)] = 1;
      using x = device().array(f16, [k, k], identity);
      using d = await gemmInt4(x, weights, { type: f32 });
      const expected = Float32Array.from(
        values,
        (value, i) => value * scales[Math.floor(i / (32 * n)) * n + (i % n)]!,
      );
      expect(await d.read()).toEqual(expected);
      expect(await weights.read()).toEqual(expected);
    });

    it("with bias, activation and residual", async ({ skip }) => {
      skip(lacking(), why);
      const [m, n, k] = [5, 40, 64];
      using x = device().array(bf16, [m, k], normals(m * k, 1));
      using weights = quantiseInt4(device(), [k, n], normals(k * n, 2), { group: 64 });
      using v = device().array(f32, [n], normals(n, 3));
      using r = device().array(bf16, [m, n], normals(m * n, 4));
      using plain = await gemmInt4(x, weights, { type: f32 });
      using d = await gemmInt4(x, weights, { type: f32, epilogue: [bias(v), (y) => y.mul(y), residual(r)] });
      const [sums, offsets, others] = [await plain.read(), await v.read(), await r.read()];
      const expected = Float32Array.from(sums as Float32Array, (sum, i) => {
        const y = Math.fround(sum + (offsets as Float32Array)[i % n]!);
        return Math.fround(Math.fround(y * y) + Number(others[i]));
      });
      const got = (await d.read()) as Float32Array;
      got.forEach((value, i) => {
        expect(Math.abs(value - expected[i]!)).toBeLessThanOrEqual(1e-6 * Math.abs(expected[i]!) + 1e-6);
      });
    });

    it("of one row is a vector, and of none nothing", async ({ skip }) => {
      skip(lacking(), why);
      using weights = quantiseInt4(device(), [64, 24], normals(64 * 24, 2), { group: 32 });
      using x = device().array(bf16, [64], normals(64, 1));
      using y = await gemmInt4(x, weights, { epilogue: [gelu] });
      expect(y.shape).toEqual([24]);
      expect(y.type).toBe(bf16);
      using nothing = device().array(bf16, [0, 64]);
      using none = await gemmInt4(nothing, weights);
      expect(none.shape).toEqual([0, 24]);
    });

    it("refuses what is none", async ({ skip }) => {
      skip(lacking(), why);
      const host = normals(128 * 8, 1);
      expect(() => quantiseInt4(device(), [96, 8], host)).toThrow(/K is a multiple of 128/);
      expect(() => quantiseInt4(device(), [128, 8], host.slice(1))).toThrow(ShapeError);
      expect(() => quantiseInt4(device(), [128, 8], host, { group: 48 as never })).toThrow(/32, 64 or 128/);
      expect(() =>
        int4Weights(
          device(),
          [128, 8],
          host.map(() => 9),
          new Float32Array(8),
        ),
      ).toThrow(/value \[0, 0\] is 9; 4-bit integers are from -8 to 7/);
      using weights = quantiseInt4(device(), [128, 8], host);
      const wrong = async (
        x: DeviceArray,
        type: abstract new (...args: never) => Error,
        message: RegExp,
        options: Int4GemmOptions = {},
      ): Promise<void> => {
        const plan = planGemmInt4(x, weights, options);
        await expect(plan).rejects.toThrow(message);
        await expect(plan).rejects.toThrow(type);
      };
      using x = device().array(bf16, [4, 128]);
      using narrow = device().array(bf16, [4, 64]);
      using other = device().array(f16, [4, 128]);
      using target = device().array(bf16, [4, 9]);
      using sums = device().array(f32, [4]);
      await wrong(narrow, ShapeError, /X is \[M, 128\] or \[128\]/);
      await wrong(other, TypeMismatchError, /have one type; convert\(\)/);
      await wrong(x, ShapeError, /D is \[4, 8\]/, { d: target });
      await wrong(x, ArgumentError, /alpha is a number/, { alpha: "2" as never });
      await expect(planGemmInt4(x, weights, { epilogue: [reduceRows(sums, "sum")] })).rejects.toThrow(
        /writes beside D/,
      );
    });
  });
});
