import { type Device, f32, f64, i8, i32, u32 } from "tilewright";
import { gemm, maxPlus, minPlus, orAnd, type Semiring, semiringOperator } from "tilewright/gemm";
import { max } from "tilewright/lang";
import { expect, it } from "vitest";
import { generator, normal } from "./gemm-cases.ts";
import { onEveryDevice } from "./table.ts";

/** max-times of numbers that are not negative: a user's own pair, three lines. */
const maxTimes: Semiring = {
  name: "max-times",
  zero: () => 0,
  accumulate: (a, b, sum) => max(a.mul(b), sum),
};

const cases = [
  [
    "max-plus in f32",
    maxPlus,
    f32,
    Number.NEGATIVE_INFINITY,
    (a: number, b: number, c: number) => Math.max(Math.fround(a + b), c),
  ],
  [
    "min-plus in f64",
    minPlus,
    f64,
    Number.POSITIVE_INFINITY,
    (a: number, b: number, c: number) => Math.min(a + b, c),
  ],
  ["min-plus in i32", minPlus, i32, 2 ** 30 - 1, (a: number, b: number, c: number) => Math.min(a + b, c)],
  ["or-and in u32", orAnd, u32, 0, (a: number, b: number, c: number) => ((a & b) | c) >>> 0],
  [
    "max-times in f32",
    maxTimes,
    f32,
    0,
    (a: number, b: number, c: number) => Math.max(Math.fround(a * b), c),
  ],
] as const;

onEveryDevice((device: () => Device) => {
  it.for(cases)("%s", async ([, semiring, type, zero, combine], { skip }) => {
    skip(!device().facts.arithmetic.has(type.name), "the target has no such arithmetic");
    const operator = semiringOperator(semiring);
    for (const [m, n, k] of [
      [33, 17, 21],
      [64, 70, 9],
    ] as const) {
      const random = generator(m);
      const draw = (): number =>
        type.class === "float" ? Math.abs(Math.fround(normal(random))) : Math.floor(random() * 1000);
      const x = Array.from({ length: m * k }, draw);
      const y = Array.from({ length: k * n }, draw);
      using a = device().array(type, [m, k], x);
      using b = device().array(type, [k, n], y);
      using d = await gemm(a, b, { operator });
      const result = await d.read();
      for (let i = 0; i < m * n; i++) {
        let sum: number = zero;
        for (let inner = 0; inner < k; inner++)
          sum = combine(x[Math.floor(i / n) * k + inner], y[inner * n + (i % n)], sum);
        expect(Number(result[i])).toBe(sum);
      }
    }
  });

  it("widens small integers, which cannot hold what stands for no path", async ({ skip }) => {
    skip(!device().facts.storage.has("i8"), "the target has no bytes");
    using a = device().array(i8, [3, 2], [1, -5, 127, 0, -128, 9]);
    using b = device().array(i8, [2, 2], [-128, 4, 100, 127]);
    using d = await gemm(a, b, { operator: semiringOperator(maxPlus) });
    expect([...(await d.read())]).toEqual([95, 122, 100, 131, 109, 136]);
  });

  it("refuses factors that a semiring has not", async () => {
    using a = device().array(f32, [4, 4]);
    await expect(gemm(a, a, { operator: semiringOperator(maxPlus), alpha: 2 })).rejects.toThrow(
      /leave alpha at 1/,
    );
  });
});
