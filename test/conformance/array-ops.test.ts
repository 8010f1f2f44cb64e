import type { DeviceArray, StorageType } from "tilewright";
import {
  bf16,
  e4m3,
  e5m2,
  f16,
  f32,
  f64,
  i8,
  i16,
  i32,
  i64,
  ShapeError,
  TraceError,
  TypeMismatchError,
  u8,
  u16,
  u32,
  u64,
} from "tilewright";
import { convert, copy, copyInto, fill, map, random, reduce, slice } from "tilewright/array-ops";
import { exp2, max, type Value } from "tilewright/lang";
import { expect, it } from "vitest";
import { convertValue } from "../../src/types/convert.ts";
import { integers, normals } from "../support/random.ts";
import { expectClose, expectSame, onEveryDevice, poisoned } from "./table.ts";

type Numbers = ArrayLike<number | bigint>;
const numbers = (list: Numbers): number[] => Array.from(list as ArrayLike<number>, Number);
const count = (length: number): number[] => Array.from({ length }, (_, position) => position);
const storageTypes: readonly StorageType[] = [
  f16,
  bf16,
  f32,
  f64,
  e4m3,
  e5m2,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
];
const small = (type: StorageType, length: number, seed = 1): number[] => {
  const values = integers(length, seed, type.class === "unsigned" ? 0 : -8, 9);
  return (type.bits === 64 && type.class !== "float" ? values.map(BigInt) : values) as number[];
};

/** The same elements in every arrangement that takes another way through the kernels. */
function views(whole: DeviceArray<typeof f32>): readonly DeviceArray<typeof f32>[] {
  const [rows, columns] = whole.shape as [number, number];
  return [
    whole,
    whole.transposed,
    whole.slice([], [0, undefined, 2]),
    whole.slice([1], [1]),
    whole.slice([1]),
    whole.column(0),
    whole.row(rows - 1),
    whole.slice([rows, rows]),
    whole.slice([0, 1], [columns - 1]),
    whole.reshape([rows * columns]),
    whole.row(0).broadcast([3, columns]),
    whole.slice([0, 1], [0, 1]).broadcast([2, 5]),
  ];
}

onEveryDevice((device) => {
  const matrix = (rows = 33, columns = 47): DeviceArray<typeof f32> =>
    device().array(f32, [rows, columns], normals(rows * columns, rows));

  it("map: a function of elements, over every kind of view", async () => {
    const compute = (x: Value<typeof f32>): Value<typeof f32> => max(x, 0).fma(2, 1);
    for (const view of views(matrix())) {
      const result = await map(view, compute);
      expect(result.shape).toEqual(view.shape);
      expectSame(
        await result.read(),
        numbers(await view.read()).map((x) => Math.fround(Math.max(x, 0) * 2 + 1)),
      );
    }
  });

  it("map: sizes around the vector width and the grid", async () => {
    for (const size of [0, 1, 2, 3, 4, 5, 7, 8, 9, 1023, 1024, 1025, 4099]) {
      const x = device().array(f16, [size], small(f16, size));
      const doubled = device().facts.arithmetic.has("f16")
        ? await map(x, (value) => value.mul(2))
        : await map(x, (value) => value.to(f32).mul(2));
      expectSame(
        await doubled.read(),
        numbers(await x.read()).map((value) => value * 2),
      );
      const y = device()
        .array(f32, [size + 3], small(f32, size + 3))
        .slice([3]);
      expectSame(
        await (await map([x, y], (a, b) => a.to(f32).sub(b))).read(),
        numbers(await x.read()).map((value, at) => value - small(f32, size + 3)[at + 3]!),
      );
    }
  });

  it("map: several arrays, types and shapes; truth values; another type; into a view", async () => {
    const [a, b] = [matrix(5, 7), device().array(i32, [7], count(7))];
    const sum = await map([a, b], (x, y) => x.add(y.to(f32)));
    expect([sum.type, sum.shape]).toEqual([f32, [5, 7]]);
    const values = numbers(await a.read());
    expectSame(
      await sum.read(),
      values.map((x, at) => Math.fround(x + (at % 7))),
    );
    const isLess = await map([a, b.slice([0, 1])], (x, y) => x.lt(y.to(f32)));
    expect(isLess.type).toBe(u8);
    expectSame(
      await isLess.read(),
      values.map((x) => Number(x < 0)),
    );
    const halves = await map(a, (x) => x.mul(3), { type: f16 });
    expectSame(
      await halves.read(),
      values.map((x) => convertValue(Math.fround(x * 3), f32, f16) as number),
    );
    const whole = poisoned(device(), f32, [7, 9]);
    await map(a, (x) => x, { into: whole.slice([1, 6], [1, 8]) });
    expectSame(await whole.slice([1, 6], [1, 8]).read(), values);
    expect(numbers(await whole.read()).filter(Number.isNaN).length).toBe(7 * 9 - 35);
    const one = await map(device().array(f32, [], [3]), (x) => exp2(x));
    expect([one.shape, await one.item()]).toEqual([[], 8]);
  });

  it("map: refuses what does not fit", async () => {
    const a = matrix(5, 7);
    await expect(map([a, matrix(6, 7)], (x, y) => x.add(y))).rejects.toThrow(ShapeError);
    await expect(map(a, (x) => x, { into: matrix(7, 5) })).rejects.toThrow(ShapeError);
    await expect(map(a, () => 3 as never)).rejects.toThrow(/must return a value/);
    await expect(
      map(device().array(i8, [3]), (x) => (x as never as Value<typeof i32>).add(1)),
    ).rejects.toThrow(TraceError);
  });

  it.each([...storageTypes])("copy, convert and fill of $name", async (type) => {
    if (!device().facts.storage.has(type.name)) return;
    const x = device().array(type, [19, 35], small(type, 19 * 35));
    for (const view of [
      x,
      x.transposed,
      x.slice([2, 17], [0, undefined, 3]),
      x.slice([1]),
    ] as readonly DeviceArray[]) {
      const copied = await copy(view);
      expect(copied.isContiguous).toBe(true);
      expectSame(await copied.read(), await view.read());
      for (const to of [f32, i32, f16, i8]) {
        const expected = Array.from((await view.read()) as Iterable<number>, (value) =>
          type === to ? value : (convertValue(value, type, to) as number),
        );
        expectSame(await (await convert(view, to)).read(), expected);
      }
    }
    await fill(x.slice([0, 5], [3]), type.class === "unsigned" ? 7 : -7);
    const filled = numbers(await x.read());
    expectSame(
      filled,
      small(type, 19 * 35).map((value, at) =>
        at < 5 * 35 && at % 35 >= 3 ? (type.class === "unsigned" ? 7 : -7) : Number(value),
      ),
    );
  });

  it("copy: exchanged dimensions of all sizes, in batches too", async () => {
    for (const shape of [
      [16, 16],
      [31, 65],
      [100, 17],
      [64, 64],
      [3, 33, 40],
      [2, 100, 16],
    ]) {
      const size = shape.reduce((product, extent) => product * extent, 1);
      const x = device().array(i32, shape, count(size));
      expectSame(await (await copy(x.transposed)).read(), await x.transposed.read());
      const part = x.slice(...shape.map((extent) => [1, extent] as const)).transposed;
      expectSame(await (await copy(part)).read(), await part.read());
    }
    const x = device().array(i32, [20, 3, 40], count(2400));
    for (const order of [
      [0, 2, 1],
      [1, 0, 2],
      [1, 2, 0],
      [2, 0, 1],
      [2, 1, 0],
    ]) {
      expectSame(await (await copy(x.permute(order))).read(), await x.permute(order).read());
    }
  });

  it("copyInto: into views, repeating the source, never over itself", async () => {
    const [source, target] = [device().array(i32, [4], [1, 2, 3, 4]), device().array(i32, [3, 5])];
    await copyInto(source, target.slice([], [1]));
    expectSame(
      await target.read(),
      count(3).flatMap(() => [0, 1, 2, 3, 4]),
    );
    await expect(copyInto(target.row(0), target.row(0))).rejects.toThrow(/share memory/);
    await expect(copyInto(source, device().array(f32, [4]) as never)).rejects.toThrow(TypeMismatchError);
    await expect(copyInto(source, device().array(i32, [5]))).rejects.toThrow(ShapeError);
    await expect(copyInto(source, target.row(0).slice([0, 1]).broadcast([4]))).rejects.toThrow(ShapeError);
    expectSame(await (await slice(target, [1, 2], [0, undefined, 2])).read(), [0, 2, 4]);
  });

  it("fill: rounds, and refuses what the type cannot hold", async () => {
    const x = device().array(f16, [5]);
    expectSame(await (await fill(x, 0.1)).read(), Array(5).fill(convertValue(0.1, f16, f16)));
    await expect(fill(device().array(u8, [2]), 256)).rejects.toThrow(/takes integers from 0 to 255/);
    if (device().facts.storage.has("u64")) {
      const wide = await fill(device().array(u64, [2]), 2n ** 64n - 1n);
      expectSame(await wide.read(), [2n ** 64n - 1n, 2n ** 64n - 1n]);
    }
    expect((await fill(device().array(f32, [0, 3]), 1)).size).toBe(0);
  });

  it("reduce: over all, over each dimension and pair, of every kind of view", async () => {
    const x = device().array(f32, [5, 6, 67], integers(5 * 6 * 67, 8, -50, 51));
    const arrangements = [x, x.transposed, x.permute([2, 0, 1]), x.slice([1], [0, undefined, 2], [3, 60])];
    for (const view of arrangements) {
      for (const axis of [undefined, 0, 1, 2, -1, [0, 1], [0, 2], [1, 2], [2, 0, 1]]) {
        for (const name of ["sum", "min", "max"] as const) {
          const result = await reduce(view, name, axis === undefined ? {} : { axis });
          const expected = await reduced(view, axis, name);
          expect(result.shape).toEqual(expected.shape);
          expectSame(await result.read(), expected.values, (at) => `${name} over ${axis} at ${at}`);
        }
      }
    }
  });

  it("reduce: many elements, in two passes, with the same bits every time", async () => {
    for (const [rows, columns] of [
      [1, 30011],
      [3, 9001],
      [200, 150],
      [4000, 3],
    ] as const) {
      const x = matrix(rows, columns);
      const values = numbers(await x.read());
      const magnitude = values.reduce((sum, value) => sum + Math.abs(value), 0);
      const once = await reduce(x, "sum");
      const again = await reduce(x, "sum");
      expectSame(await once.read(), await again.read());
      expectClose(await once.read(), [values.reduce((sum, value) => sum + value, 0)], 1e-6 * magnitude);
      const byColumn = await reduce(x, "sum", { axis: 0 });
      expectClose(
        await byColumn.read(),
        count(columns).map((column) => {
          let sum = 0;
          for (let row = 0; row < rows; row++) sum += values[row * columns + column]!;
          return sum;
        }),
        1e-5 * Math.sqrt(rows) + 1e-4,
      );
    }
  });

  it("reduce: no elements, one element, types of sums and of results", async () => {
    const none = device().array(f32, [0, 3]);
    expect(await (await reduce(none, "sum")).item()).toBe(0);
    expectSame(await (await reduce(none, "max", { axis: 0 })).read(), [-Infinity, -Infinity, -Infinity]);
    expect((await reduce(none, "sum", { axis: 1 })).shape).toEqual([0]);
    expect(await (await reduce(device().array(i32, [0]), "min")).item()).toBe(2 ** 31 - 1);
    expect(await (await reduce(device().array(f32, [], [4]), "product")).item()).toBe(4);
    const halves = device().array(f16, [4097], Array(4097).fill(1));
    const sum = await reduce(halves, "sum");
    expect([sum.type, await sum.item()]).toEqual([f32, 4097]);
    expect((await reduce(halves, "max")).type).toBe(f16);
    expect((await reduce(halves, "sum", { type: f16 })).type).toBe(f16);
    expect(await (await reduce(device().array(u8, [1000], Array(1000).fill(255)), "sum")).item()).toBe(
      255000,
    );
    if (device().facts.storage.has("i64")) {
      const wide = device().array(i64, [3], [2n ** 40n, 1n, -5n]);
      expect(await (await reduce(wide, "sum")).item()).toBe(2n ** 40n - 4n);
    }
    expect(await (await reduce(device().array(f32, [3], [NaN, 2, 1]), "min")).item()).toBe(1);
    await expect(reduce(none, "sum", { axis: 2 })).rejects.toThrow(ShapeError);
    await expect(reduce(none, "sum", { axis: [0, -2] })).rejects.toThrow(/twice/);
    await expect(reduce(none, "median" as never)).rejects.toThrow(/knows sum/);
  });

  it("reduce: functions of one's own", async () => {
    const x = device().array(
      i32,
      [1000],
      count(1000).map((at) => (at * 37) % 101),
    );
    const longest = {
      accumulator: i32,
      identity: 0,
      map: (value: Value<typeof i32>) => value.mul(value),
      combine: (a: Value<typeof i32>, b: Value<typeof i32>) => max(a, b),
    };
    expect(await (await reduce(x, longest)).item()).toBe(10000);
    const product = {
      accumulator: u32,
      identity: 1,
      combine: (a: Value<typeof u32>, b: Value<typeof u32>) => a.mul(b).rem(65521),
    };
    for (const size of [1, 64, 65, 300, 30000]) {
      const values = count(size).map((at) => (at % 1000) + 1);
      const expected = values.reduce((left, value) => (left * value) % 65521, 1);
      expect(await (await reduce(device().array(u32, [size], values), product)).item()).toBe(expected);
    }
    const mistyped = { ...product, combine: (a: Value<typeof u32>) => a.to(f32) as never };
    await expect(reduce(device().array(u32, [3]), mistyped)).rejects.toThrow(
      /accumulator's type u32, not f32/,
    );
  });

  it("random: the same numbers for the same seed, whatever the size, as distributed as said", async () => {
    const [short, long] = [
      await random(device(), f32, [10], { seed: 7 }),
      await random(device(), f32, [3, 1001], { seed: 7 }),
    ];
    expectSame(await short.read(), (await long.read()).slice(0, 10));
    expect(await (await random(device(), f32, [10], { seed: 8 })).read()).not.toEqual(await short.read());
    expect(await (await random(device(), f32, [10], { seed: 2n ** 40n + 7n })).read()).not.toEqual(
      await short.read(),
    );
    const uniformly = numbers(await long.read());
    expect([Math.min(...uniformly) >= 0, Math.max(...uniformly) < 1]).toEqual([true, true]);
    expect(mean(uniformly)).toBeCloseTo(0.5, 1);
    const normally = numbers(
      await (await random(device(), f32, [20001], { distribution: "normal", mean: 3, deviation: 2 })).read(),
    );
    expect(mean(normally)).toBeCloseTo(3, 1);
    expect(mean(normally.map((x) => (x - 3) ** 2))).toBeCloseTo(4, 0);
    await expect(random(device(), f32, [1], { seed: -1 })).rejects.toThrow(/seed/);
    await expect(random(device(), i8, [1], { high: 1000 })).rejects.toThrow(/i8 from 0 to below 1000/);
    await expect(random(device(), f32, [1], { distribution: "cauchy" as never })).rejects.toThrow(
      /distributions/,
    );
    // Integers come from 64-bit ones.
    if (!device().facts.storage.has("u64")) return;
    const dice = numbers(await (await random(device(), i8, [6001], { low: -1, high: 3 })).read());
    expect([...new Set(dice)].sort((a, b) => a - b)).toEqual([-1, 0, 1, 2]);
    for (const face of [-1, 0, 1, 2])
      expect(dice.filter((x) => x === face).length / 6001).toBeCloseTo(0.25, 1);
    const words = numbers(await (await random(device(), u32, [2001], { high: 2 ** 32 })).read());
    expect(Math.max(...words)).toBeGreaterThan(2 ** 31);
    const wide = numbers(await (await random(device(), f64, [101], { low: -1, high: 1 })).read());
    expect(wide.some((x) => x !== Math.fround(x))).toBe(true);
    expect((await random(device(), f16, [0])).size).toBe(0);
  });

  it("random: these very numbers, on every device", async () => {
    const [uniformly, normally] = [
      await random(device(), f32, [4], { seed: 2026 }),
      await random(device(), f32, [4], { seed: 2026, distribution: "normal" }),
    ];
    expect(Array.from(await uniformly.readBits())).toMatchInlineSnapshot(`
      [
        0.4310784339904785,
        0.5223349332809448,
        0.7023729085922241,
        0.2965354323387146,
      ]
    `);
    expect(Array.from(await normally.readBits())).toMatchInlineSnapshot(`
      [
        -1.0366051197052002,
        0.7799873948097229,
        0.3978292942047119,
        0.7404817938804626,
      ]
    `);
  });
});

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Reduction on the host. */
async function reduced(
  view: DeviceArray,
  axis: number | readonly number[] | undefined,
  name: "sum" | "min" | "max",
): Promise<{ readonly shape: readonly number[]; readonly values: readonly number[] }> {
  const axes = (axis === undefined ? count(view.rank) : [axis].flat()).map(
    (at) => (at + view.rank) % view.rank,
  );
  const kept = count(view.rank).filter((dimension) => !axes.includes(dimension));
  const shape = kept.map((dimension) => view.shape[dimension]!);
  const values = new Map<number, number>();
  const combine = { sum: (a: number, b: number) => a + b, min: Math.min, max: Math.max }[name];
  numbers((await view.read()) as Numbers).forEach((value, position) => {
    let rest = position;
    const at = view.shape.map(() => 0);
    for (let dimension = view.rank - 1; dimension >= 0; dimension--) {
      at[dimension] = rest % view.shape[dimension]!;
      rest = Math.floor(rest / view.shape[dimension]!);
    }
    const key = kept.reduce((sum, dimension) => sum * view.shape[dimension]! + at[dimension]!, 0);
    values.set(key, values.has(key) ? combine(values.get(key)!, value) : value);
  });
  return { shape, values: [...values.entries()].sort(([a], [b]) => a - b).map(([, value]) => value) };
}
