/**
 * @file Epilogue steps: each by itself where it has something to say, and lists of them at random, against float64. Side
 * inputs are far larger than the products, so that one that is missed shows.
 */
import {
  type Device,
  type DeviceArray,
  e4m3,
  f16,
  f32,
  i8,
  i32,
  type StorageType,
  u8,
  u32,
} from "tilewright";
import {
  applyMask,
  auxiliary,
  backward,
  bias,
  clampTo,
  columnVector,
  derivative,
  deviceScalar,
  dropout,
  type EpilogueStep,
  gelu,
  geluTanh,
  gemm,
  hardSwish,
  leakyRelu,
  planGemm,
  positiveMask,
  quantise,
  reduceAll,
  reduceColumns,
  reduceRows,
  relu,
  residual,
  rowVector,
  sameShape,
  saturate,
  scale,
  sigmoid,
  silu,
  type Transform,
  tanh,
  type UsingFunction,
  uses,
} from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { operands } from "./exact-operands.ts";
import { generator, normal } from "./gemm-cases.ts";
import { onEveryDevice, poisoned } from "./table.ts";

const soak = process.env.TILEWRIGHT_SOAK === "1";

/** The same as arrays of f16. */
function matrices(device: Device, m: number, n: number, k: number, seed: number) {
  const { x, y, product } = operands(m, n, k, seed);
  return { a: device.array(f16, [m, k], x), b: device.array(f16, [k, n], y), product, x, y };
}

/** One step at random: what it does to an element, and what it must have written when all is done. */
interface Drawn {
  readonly step: EpilogueStep | Transform;
  readonly of: (x: number, row: number, column: number) => number;
  /** Checks what the step wrote, given the values that came to it. */
  readonly written?: (values: readonly number[]) => Promise<void>;
}

interface Draw {
  readonly device: Device;
  readonly m: number;
  readonly n: number;
  readonly random: () => number;
}

const using: UsingFunction<"v" | "w" | "s" | "factor"> = (x, { v, w, s, factor }, { row, column }) =>
  x.mul(factor).add(v.to(f32)).sub(w.to(f32)).add(s.to(f32)).add(row.sub(column).to(f32));

const list = (count: number, random: () => number, size: number): number[] =>
  Array.from({ length: count }, () => Math.round(normal(random) * 8 * size) / 8);

function near(got: ArrayLike<number | bigint>, wanted: readonly number[], what: string, slack = 1): void {
  expect(got.length, what).toBe(wanted.length);
  wanted.forEach((value, i) => {
    const error = Math.abs(Number(got[i]) - value);
    expect(error, `${what}[${i}]: ${got[i]}, not ${value}`).toBeLessThan(
      slack * 4e-5 * (1 + Math.abs(value)),
    );
  });
}

const draws: readonly ((draw: Draw) => Drawn)[] = [
  ({ device, n, random }) => {
    const v = list(n, random, 100);
    return { step: bias(device.array(f32, [n], v)), of: (x, _, column) => x + v[column] };
  },
  ({ device, m, random }) => {
    const v = list(m, random, 20);
    return { step: bias(device.array(f16, [m], v), { per: "row" }), of: (x, row) => x + v[row] };
  },
  ({ device, n, random }) => {
    const v = list(n, random, 1);
    return { step: scale(device.array(f32, [n], v)), of: (x, _, column) => x * v[column] };
  },
  ({ device, random }) => {
    const [s] = list(1, random, 2);
    return { step: scale(device.array(f32, [1], [s]), { per: "tensor" }), of: (x) => x * s };
  },
  ({ device, m, n, random }) => {
    const added = list(m * n, random, 100);
    return {
      step: residual(device.array(f32, [m, n], added)),
      of: (x, row, column) => x + added[row * n + column],
    };
  },
  ({ device, m, n }) => {
    const target = poisoned(device, f32, [m, n]);
    return {
      step: auxiliary(target),
      of: (x) => x,
      written: async (values) => near(await target.read(), values, "auxiliary"),
    };
  },
  () => ({ step: relu, of: (x) => Math.max(x, 0) }),
  () => ({ step: leakyRelu(0.25), of: (x) => (x < 0 ? 0.25 * x : x) }),
  () => ({ step: clampTo(-50, 70), of: (x) => Math.min(Math.max(x, -50), 70) }),
  () => ({ step: hardSwish, of: (x) => (x * Math.min(Math.max(x + 3, 0), 6)) / 6 }),
  ({ device, m, n, random }) => {
    const [v, w, [s]] = [list(n, random, 50), list(m, random, 50), list(1, random, 50)];
    const used = {
      v: rowVector(device.array(f32, [n], v)),
      w: columnVector(device.array(f16, [m], w.map(Math.round))),
      s: deviceScalar(device.array(f32, [1], [s])),
      factor: 0.5,
    };
    return {
      step: uses(used, using),
      of: (x, row, column) => x * 0.5 + v[column] - Math.round(w[row]) + s + (row - column),
    };
  },
  ({ device, m, n }) => {
    const target = poisoned(device, f32, [m]);
    const lines = (values: readonly number[]): number[] =>
      Array.from({ length: m }, (_, row) => Math.max(...values.slice(row * n, (row + 1) * n)));
    return {
      step: reduceRows(target, "max"),
      of: (x) => x,
      written: async (values) => near(await target.read(), lines(values), "row maxima"),
    };
  },
  ({ device, m, n }) => {
    const target = poisoned(device, f32, [n]);
    const lines = (values: readonly number[]): number[] =>
      Array.from({ length: n }, (_, column) =>
        Math.min(...Array.from({ length: m }, (_, row) => values[row * n + column])),
      );
    return {
      step: reduceColumns(target, "min"),
      of: (x) => x,
      written: async (values) => near(await target.read(), lines(values), "column minima"),
    };
  },
  ({ device }) => {
    const target = poisoned(device, f32, []);
    return {
      step: reduceAll(target, "absMax"),
      of: (x) => x,
      written: async (values) => near(await target.read(), [Math.max(...values.map(Math.abs))], "amax"),
    };
  },
];

onEveryDevice((device: () => Device) => {
  const schedules = ["register-staged", "warpgroup"] as const;
  const missing = (schedule: string): boolean =>
    schedule === "warpgroup" && device().facts.warpgroupMma.length === 0;

  async function runDrawn(seed: number, schedule: (typeof schedules)[number]): Promise<void> {
    const random = generator(seed);
    const pick = (from: number, to: number): number => from + Math.floor(random() * (to - from + 1));
    const [m, n] = [pick(1, 40), schedule === "warpgroup" ? 8 * pick(1, 10) : pick(1, 40)];
    const { a, b, product } = matrices(device(), m, n, schedule === "warpgroup" ? 16 : pick(1, 20), seed);
    const columnMajor = schedule === "register-staged" && random() < 0.4;
    const drawn = Array.from({ length: pick(0, 4) }, () =>
      draws[pick(0, draws.length - 1)]({ device: device(), m, n, random }),
    );
    const target = poisoned(device(), f32, columnMajor ? [n, m] : [m, n]);
    const d = columnMajor ? target.transposed : target;
    await gemm(a, b, { schedule, d, epilogue: drawn.map(({ step }) => step) });
    let values: readonly number[] = product;
    for (const { of, written } of drawn) {
      await written?.(values);
      values = values.map((x, i) => of(x, Math.floor(i / n), i % n));
    }
    near(await d.read(), values, `seed ${seed}, D`, 4);
  }

  describe.each(schedules)("lists of steps at random, %s", (schedule) => {
    const count = soak ? 300 : schedule === "warpgroup" ? 3 : 8;
    it.each(Array.from({ length: count }, (_, i) => 100 + i))("seed %i", async (seed) => {
      if (missing(schedule)) return;
      await runDrawn(soak ? Date.now() % 2 ** 31 : seed, schedule);
    });
  });

  describe.each(schedules)("quantised results, %s", (schedule) => {
    const halfEven = (x: number): number => {
      const floor = Math.floor(x);
      const rest = x - floor;
      return rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor;
    };
    const within = (x: number, low: number, high: number): number => Math.min(Math.max(x, low), high);
    const cases: readonly (readonly [StorageType, (x: number) => number])[] = [
      [i8, (x) => within(halfEven(x), -128, 127)],
      [u8, (x) => within(halfEven(x), 0, 255)],
    ];
    it.each(cases)("$name: nearest even, saturated, per column, per row, per tensor", async (type, of) => {
      if (missing(schedule)) return;
      const [m, n, k] = [19, 24, 16];
      const { a, b, product } = matrices(device(), m, n, k, 5);
      const columns = Array.from({ length: n }, (_, j) => 2 ** ((j % 9) - 1));
      const rows = Array.from({ length: m }, (_, i) => 2 ** ((i % 7) - 2));
      for (const [factor, by] of [
        [rowVector(device().array(f32, [n], columns)), (_: number, column: number) => columns[column]],
        [columnVector(device().array(f32, [m], rows)), (row: number) => rows[row]],
        [device().array(f32, [1], [8]), () => 8],
        [4, () => 4],
      ] as const) {
        using d = await gemm(a, b, { schedule, type, epilogue: [quantise(factor, type)] });
        const wanted = product.map((x, i) => of(x * by(Math.floor(i / n), i % n)));
        expect([...(await d.read())].map(Number)).toEqual(wanted.map((x) => x + 0));
      }
    });
    it("e4m3, and f16 on request, become the largest finite number and not infinity", async () => {
      if (missing(schedule)) return;
      using a = device().array(f16, [1, 8], [400, 0, 0, 0, 0, 0, 0, 0]);
      using b = device().array(f16, [8, 8], [400, -400, 1, 0.3, 0, 0, 0, 0, ...new Array(56).fill(0)]);
      using plain = await gemm(a, b, { schedule });
      expect([...(await plain.read())].slice(0, 3)).toEqual([Infinity, -Infinity, 400]);
      using held = await gemm(a, b, { schedule, epilogue: [saturate(f16)] });
      expect([...(await held.read())].slice(0, 3)).toEqual([65504, -65504, 400]);
      if (!device().facts.storage.has("e4m3")) return;
      // 200 lies between 192 and 208: to the even significand.
      using narrow = await gemm(a, b, { schedule, type: e4m3, epilogue: [quantise(0.5, e4m3)] });
      expect([...(await narrow.read())].slice(0, 4)).toEqual([448, -448, 192, 60]);
    });
  });

  it("integer sums times float scales", async () => {
    using a = device().array(i8, [2, 2], [100, 100, -3, 5]);
    using b = device().array(i8, [2, 2], [100, 1, 100, 2]);
    using s = device().array(f32, [2], [0.125, 0.5]);
    using d = await gemm(a, b, { type: f32, epilogue: [scale(s)] });
    expect([...(await d.read())]).toEqual([2500, 150, 25, 3.5]);
    using q = await gemm(a, b, { type: i8, epilogue: [quantise(rowVector(s), i8)] });
    expect([...(await q.read())]).toEqual([127, 127, 25, 4]);
  });

  it("derivatives are those of the activations, by differences", async () => {
    const activations = [
      relu,
      leakyRelu(0.125),
      gelu,
      geluTanh,
      silu,
      sigmoid,
      tanh,
      hardSwish,
      clampTo(-1, 2),
    ];
    const n = 64;
    const add: UsingFunction<"shift"> = (v, used) => v.add(used.shift);
    const points = Array.from({ length: n }, (_, j) => (j - 31) / 8 + 1 / 32);
    using one = device().array(f16, [1, 1], [1]);
    using x = device().array(f16, [1, n], points);
    using ones = device().array(f16, [1, n], new Array(n).fill(1));
    for (const activation of activations) {
      const at = async (shift: number): Promise<Float32Array> => {
        const shifted = uses({ shift }, add);
        using d = await gemm(one, x, { type: f32, epilogue: [shifted, activation] });
        return (await d.read()) as Float32Array;
      };
      const [low, high] = [await at(-1 / 64), await at(1 / 64)];
      using slopes = await gemm(one, ones, { type: f32, epilogue: [backward(derivative(activation), x)] });
      const got = await slopes.read();
      points.forEach((point, j) => {
        const difference = (high[j] - low[j]) * 32;
        expect(Math.abs(Number(got[j]) - difference), `${activation.name} at ${point}`).toBeLessThan(1e-3);
      });
    }
    expect(() => derivative((v) => v)).toThrow(/write its derivative/);
  });

  describe.each(schedules)("masks and dropout, %s", (schedule) => {
    const [m, n, k] = [35, 72, 16];
    const masks = (type: StorageType): DeviceArray =>
      poisoned(device(), type, [m, type === u8 ? n : Math.ceil(n / 32)]);
    const bitsOf = async (mask: DeviceArray): Promise<readonly boolean[]> => {
      const held = await mask.read();
      return Array.from({ length: m * n }, (_, i) => {
        const [row, column] = [Math.floor(i / n), i % n];
        if (mask.type === u8) return Number(held[i]) === 1;
        return (
          ((Number(held[row * Math.ceil(n / 32) + Math.floor(column / 32)]) >>> (column % 32)) & 1) === 1
        );
      });
    };
    it.each([u8, u32])("which elements are positive: %s", async (type) => {
      if (missing(schedule)) return;
      const { a, b, product } = matrices(device(), m, n, k, 6);
      using mask = masks(type);
      using forward = await gemm(a, b, { schedule, type: f32, epilogue: [positiveMask(mask), relu] });
      expect(await bitsOf(mask)).toEqual(product.map((x) => x > 0));
      using again = await gemm(a, b, { schedule, type: f32, epilogue: [applyMask(mask)] });
      expect(await again.read()).toEqual(await forward.read());
    });
    it("dropout: the same choice on every schedule and for each form of mask, other seeds another", async () => {
      if (missing(schedule)) return;
      const { a, b, product } = matrices(device(), m, n, k, 7);
      const run = async (seed: number | DeviceArray, mask: DeviceArray, d?: DeviceArray) => {
        const options = { schedule, type: f32, epilogue: [dropout(0.25, { seed, mask })] } as const;
        const result = await gemm(
          a,
          b,
          d === undefined ? options : { ...options, schedule: undefined as never, d },
        );
        return { result: await result.read(), kept: await bitsOf(mask) };
      };
      const first = await run(42, masks(u8));
      const share = first.kept.filter(Boolean).length / first.kept.length;
      expect(Math.abs(share - 0.75)).toBeLessThan(0.04);
      near(
        first.result,
        product.map((x, i) => (first.kept[i] ? x / 0.75 : 0)),
        "dropped",
      );
      expect((await run(device().array(u32, [1], [42]), masks(u32))).kept).toEqual(first.kept);
      // Runs along columns, in another order.
      const columnMajor = await run(42, masks(u32), poisoned(device(), f32, [n, m]).transposed);
      expect(columnMajor.kept).toEqual(first.kept);
      expect((await run(43, masks(u8))).kept).not.toEqual(first.kept);
    });
  });

  describe("functions that use arrays and numbers", () => {
    const gain: UsingFunction<"v" | "s"> = (x, { v, s }) => x.to(f32).mul(v.to(f32)).add(s);
    const [m, n, k] = [17, 33, 7];

    it("on any stream", async () => {
      const { a, b, x, y } = matrices(device(), m, n, k, 9);
      const [rows, inner, columns] = [m, k, n].map((count) =>
        Array.from({ length: count }, (_, i) => (i % 5) + 1),
      );
      const vector = (values: readonly number[]): DeviceArray => device().array(f32, [values.length], values);
      using d = await gemm(a, b, {
        type: f32,
        transforms: {
          a: { globalToShared: uses({ v: columnVector(vector(rows)), s: 0 }, gain) },
          b: { globalToShared: uses({ v: columnVector(vector(inner)), s: 0.5 }, gain) },
          d: { sharedToGlobal: uses({ v: rowVector(vector(columns)), s: -3 }, gain) },
        },
      });
      const wanted = Array.from({ length: m * n }, (_, at) => {
        const [row, column] = [Math.floor(at / n), at % n];
        let sum = 0;
        for (let i = 0; i < k; i++) sum += x[row * k + i] * rows[row] * (y[i * n + column] * inner[i] + 0.5);
        return sum * columns[column] - 3;
      });
      near(await d.read(), wanted, "D", 20);
    });

    it("share a kernel between other arrays and numbers", async () => {
      const { a, b, product } = matrices(device(), m, n, k, 10);
      const add: UsingFunction<"r" | "s"> = (x, { r, s }) => x.add(r).add(s);
      const plans = [];
      for (const [seed, s] of [
        [1, 1000],
        [2, 2000],
      ]) {
        const added = list(m * n, generator(seed), 100);
        const r = sameShape(device().array(f32, [m, n], added));
        const plan = await planGemm(a, b, { type: f32, epilogue: [uses({ r, s }, add)] });
        plan.run();
        near(
          await plan.d.read(),
          product.map((value, i) => value + added[i] + s),
          "D",
        );
        plans.push(plan);
      }
      expect(plans[1].compiled).toBe(plans[0].compiled);
      for (const plan of plans) plan.dispose();
    });

    it("refuses what does not fit", async () => {
      const { a, b } = matrices(device(), m, n, k, 11);
      const short = device().array(f32, [n - 1]);
      const step = uses({ v: rowVector(short), s: 1 }, gain);
      await expect(gemm(a, b, { epilogue: [step] })).rejects.toThrow(
        /function of v, s wants one element for each column of D, \[33\]; it was given f32\[32\]/,
      );
      await expect(gemm(a, b, { transforms: { b: { globalToShared: step } } })).rejects.toThrow(
        /transforms\.b\.globalToShared: v is to have shape \[33\]/,
      );
      expect(() => uses({ v: short as never }, gain as never)).toThrow(/takes deviceScalar\(array\)/);
      expect(() => quantise(1, i32)).toThrow(/types of 8 and 16 bits/);
      expect(() => saturate(f32)).toThrow(/narrower than their sums/);
      expect(() => dropout(1, { seed: 1 })).toThrow(/from 0 up to 1/);
      expect(() => positiveMask(device().array(f32, [m, n]))).toThrow(/a mask of bytes/);
      await expect(gemm(a, b, { epilogue: [positiveMask(device().array(u32, [m, n]))] })).rejects.toThrow(
        /a word for every 32 columns/,
      );
      await expect(gemm(a, b, { epilogue: [dropout(0.5, { seed: -1 })] })).rejects.toThrow(
        /type u32, not -1/,
      );
    });
  });
});
