import {
  ArgumentError,
  type DeviceArray,
  f16,
  f32,
  f64,
  i8,
  i32,
  ShapeError,
  type StorageType,
  TypeMismatchError,
  UnsupportedError,
} from "tilewright";
import {
  bias,
  fmaOperator,
  type GroupedOptions,
  type GroupedProduct,
  gemmGrouped,
  interleaveColumns,
  planGrouped,
  reduceAll,
  relu,
  silu,
} from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { generator, normals } from "../support/random.ts";
import { numbers } from "./gate-cases.ts";
import { onEveryDevice } from "./table.ts";

type Size = readonly [m: number, n: number, k: number];

/** Remainders, one element, no columns, no K, and a product of several tiles. */
const sizes: readonly Size[] = [
  [5, 7, 9],
  [1, 1, 1],
  [33, 70, 20],
  [4, 0, 3],
  [3, 5, 0],
  [64, 32, 33],
];

interface GroupCase {
  readonly type: StorageType;
  readonly d?: StorageType;
  readonly layout?: "nn" | "nt" | "tn" | "tt";
  readonly columnMajorD?: boolean;
  readonly alpha?: number;
  readonly beta?: number;
  /** Whether each operand's matrices are slices of one array. */
  readonly together?: boolean;
  /** Whether lines begin at multiples of 8 elements. */
  readonly aligned?: boolean;
  readonly options?: GroupedOptions;
  readonly map?: (x: number, product: number) => number;
}

onEveryDevice((device, kind) => {
  const narrow = (): boolean => device().facts.subgroup.width !== 32;
  const small = (): GroupedOptions =>
    narrow()
      ? {}
      : {
          operator: fmaOperator({ laneRows: 4, laneColumns: 8, rows: 4, columns: 4 }),
          params: { block: { m: 32, n: 32, k: 8 }, warps: { m: 2, n: 1 }, groupRows: 2 },
        };

  /** Matrices of given extents between poison, in one array or in arrays of their own. */
  function matrices(
    type: StorageType,
    extents: readonly (readonly [number, number])[],
    transposed: boolean,
    { together = true, aligned = false }: GroupCase,
    fill: () => number,
  ): { readonly views: readonly DeviceArray[]; readonly whole: readonly DeviceArray[] } {
    const up = (count: number): number => (aligned ? Math.ceil(count / 8) * 8 : count);
    const gap = up(3);
    const lines = extents.map(([rows, columns]) => {
      const [count, length] = transposed ? [columns, rows] : [rows, columns];
      return { count, length, leading: up(length + gap) };
    });
    const spans = lines.map(({ count, leading }) => count * leading + gap);
    const starts = together
      ? spans.map((_, i) => spans.slice(0, i).reduce((x, y) => x + y, gap))
      : spans.map(() => gap);
    const poison = type.class === "float" ? Number.NaN : 99;
    const total = spans.reduce((x, y) => x + y, gap);
    const hosts = together
      ? [Array<number>(total).fill(poison)]
      : spans.map((span) => Array<number>(span + gap).fill(poison));
    lines.forEach(({ count, length, leading }, i) => {
      const host = hosts[together ? 0 : i]!;
      for (let line = 0; line < count; line++)
        for (let e = 0; e < length; e++) host[starts[i]! + line * leading + e] = fill();
    });
    const whole = hosts.map((host) => device().array(type, [host.length], host));
    const views = lines.map(({ count, length, leading }, i) => {
      const of = whole[together ? 0 : i]!;
      return transposed
        ? of.strided([length, count], [1, leading], starts[i]!)
        : of.strided([count, length], [leading, 1], starts[i]!);
    });
    return { views, whole };
  }

  async function check(test: GroupCase, list: readonly Size[] = sizes): Promise<void> {
    const { type, d: result = type, layout = "nn", columnMajorD = false, alpha = 1, beta = 0 } = test;
    const { options = {}, map = (x) => x } = test;
    const random = generator(7);
    const float = type.class === "float";
    const fill = (): number => (float ? random() * 2 - 1 : Math.floor(random() * 20) - 10);
    const a = matrices(
      type,
      list.map(([m, , k]) => [m, k]),
      layout[0] === "t",
      test,
      fill,
    );
    const b = matrices(
      type,
      list.map(([, n, k]) => [k, n]),
      layout[1] === "t",
      test,
      fill,
    );
    const c = matrices(
      result,
      list.map(([m, n]) => [m, n]),
      columnMajorD,
      test,
      fill,
    );
    const poison = 77;
    const d = matrices(
      result,
      list.map(([m, n]) => [m, n]),
      columnMajorD,
      test,
      () => poison,
    );
    const products = list.map(
      (_, i): GroupedProduct => ({
        a: a.views[i]!,
        b: b.views[i]!,
        d: d.views[i]!,
        ...(beta === 0 ? {} : { c: c.views[i]! }),
      }),
    );
    await gemmGrouped(products, { ...options, alpha, beta });
    const epsilon = result === f16 ? 4e-3 : type === f64 ? 1e-13 : float ? 1e-5 : 0;
    for (const [i, [m, n, k]] of list.entries()) {
      const [left, right, added, got] = await Promise.all(
        [a, b, c, d].map(({ views }) => numbers(views[i]!)),
      );
      for (let row = 0; row < m; row++) {
        for (let column = 0; column < n; column++) {
          let [sum, scale] = [0, 1];
          for (let q = 0; q < k; q++) {
            const product = left![row * k + q]! * right![q * n + column]!;
            sum += product;
            scale += Math.abs(product);
          }
          const expected = map(alpha * sum + beta * added![row * n + column]!, i);
          const value = got![row * n + column]!;
          if (!(Math.abs(value - expected) <= epsilon * scale * 4))
            throw new Error(
              `product ${i}, D[${row}, ${column}] of ${JSON.stringify({ ...test, type: type.name, d: result.name, options: undefined })} is ${value}, not ${expected}`,
            );
        }
      }
    }
    const written = list.reduce((sum, [m, n]) => sum + m * n, 0);
    let kept = 0;
    let elements = 0;
    for (const whole of d.whole) {
      const all = await numbers(whole);
      kept += all.filter((x) => x === poison || Number.isNaN(x) || x === 99).length;
      elements += all.length;
    }
    expect(kept).toBeGreaterThanOrEqual(elements - written);
    for (const { whole } of [a, b, c, d]) for (const array of whole) array.dispose();
  }

  describe("products of several sizes in one launch", () => {
    it.for([
      { name: "f32", type: f32 },
      { name: "f32, transposed, with C", type: f32, layout: "tt", alpha: -2, beta: 3 },
      { name: "f16 to f32", type: f16, d: f32, layout: "nt", columnMajorD: true },
      { name: "i8 to i32", type: i8, d: i32, layout: "tn", beta: 1 },
      { name: "f64", type: f64 },
    ] as readonly (GroupCase & { readonly name: string })[])(
      "$name",
      { timeout: 60_000 },
      async (test, { skip }) => {
        const has = [test.type, test.d ?? test.type].every(({ name }) => device().facts.storage.has(name));
        skip(!has, "the target has no arithmetic for it");
        await check({ ...test, options: small() });
      },
    );

    it("by what the library chooses", async () => check({ type: f32, beta: 1 }, sizes.slice(0, 3)));

    it("by multistage", async ({ skip }) => {
      skip(!device().facts.asyncCopy, "the target has no asynchronous copies");
      await check({ type: f16, d: f32, aligned: true, options: { schedule: "multistage" } }, [
        ...sizes.slice(2),
        [16, 8, 64],
      ]);
    });

    it("in arrays of their own", async () => {
      await check({ type: f32, beta: 2, together: false, options: small() });
      const list = [8, 12, 8].map(
        (m): GroupedProduct => ({
          a: device().array(f32, [m, 8], normals(8 * m, m)),
          b: device().array(f32, [8, 4], normals(32, 2)),
        }),
      );
      using plan = await planGrouped(list, small());
      expect(plan.d.map(({ shape }) => shape)).toEqual([
        [8, 4],
        [12, 4],
        [8, 4],
      ]);
      expect(plan.launches).toBe(kind === "cuda" ? 1 : 3);
      expect(plan.explain()).toMatch(
        kind === "cuda" ? /3 products in one launch/ : /in a launch each: .* one allocation/,
      );
    });

    it("with transforms that know the product, steps, and a gate", async () => {
      const options: GroupedOptions = {
        ...small(),
        transforms: { a: { globalToShared: (x, { batch }) => x.mul(batch!.to(f32).add(1)) } },
        epilogue: [relu],
      };
      await check({ type: f32, options, map: (x, i) => Math.max(0, x * (i + 1)) });
      const weights = await interleaveColumns(
        device().array(f32, [8, 16], normals(128, 1)),
        device().array(f32, [8, 16], normals(128, 2)),
      );
      const rows = device().array(f32, [20, 8], normals(160, 3));
      const parts = [rows.slice([0, 3]), rows.slice([3, 20])].map((a) => ({ a, b: weights }));
      const results = device().empty(f32, [20, 16]);
      const [one, two] = [results.slice([0, 3]), results.slice([3, 20])];
      using plan = await planGrouped(
        [
          { ...parts[0]!, d: one },
          { ...parts[1]!, d: two },
        ],
        { gate: silu },
      );
      expect(plan.launches).toBe(1);
      plan.run();
      const whole = await gemmGrouped([{ a: rows, b: weights }], { gate: silu });
      const [got, expected] = [await numbers(results), await numbers(whole[0]!)];
      for (const [i, x] of got.entries()) expect(x).toBeCloseTo(expected[i]!, 5);
    });

    it("of one kind load one module, whatever their sizes and number", async () => {
      const whole = device().array(f32, [64, 64]);
      const part = (m: number, k: number) => whole.slice([0, m], [0, k]);
      const results = device().array(f32, [200, 64]);
      const modules = new Set<unknown>();
      for (const list of [[3, 5], [8, 30, 7], [64]]) {
        let row = 0;
        const products = list.map((m) => {
          const d = results.slice([row, row + m], [0, m]);
          row += m;
          return { a: part(m, 2 * (m % 8) + 1), b: part(2 * (m % 8) + 1, m), d };
        });
        using plan = await planGrouped(products, small());
        expect(plan.launches).toBe(1);
        modules.add(plan.compiled?.executable);
      }
      expect(modules.size).toBe(1);
    });

    it("refuse what is no group, and say which product it is", async () => {
      const [a, b] = [device().array(f32, [4, 6]), device().array(f32, [6, 8])];
      const other = device().array(f32, [7, 8]);
      const vector = device().array(f32, [8]);
      await expect(planGrouped([])).rejects.toThrow(ArgumentError);
      await expect(
        planGrouped([
          { a, b },
          { a, b: other },
        ]),
      ).rejects.toThrow(ShapeError);
      await expect(
        planGrouped([
          { a, b },
          { a, b: other },
        ]),
      ).rejects.toThrow(/product 1: .*A is 4 x 6 and B is 7 x 8/);
      const half = [device().array(f16, [4, 6]), device().array(f16, [6, 8])] as const;
      await expect(
        planGrouped([
          { a, b },
          { a: half[0], b: half[1] },
        ]),
      ).rejects.toThrow(TypeMismatchError);
      await expect(
        planGrouped([
          { a, b, c: device().array(f32, [4, 8]) },
          { a, b },
        ]),
      ).rejects.toThrow(/C is given for all products or for none/);
      const d = device().array(f32, [4, 8]);
      await expect(
        planGrouped([
          { a, b, d },
          { a, b, d },
        ]),
      ).rejects.toThrow(/D of product 0 overlaps D of product 1/);
      const chained = [
        { a, b, d },
        { a: d, b: device().array(f32, [8, 3]) },
      ];
      await expect(planGrouped(chained)).rejects.toThrow(/D of product 0 overlaps A of product 1/);
      await expect(planGrouped([{ a, b }], { epilogue: [bias(vector)] })).rejects.toThrow(UnsupportedError);
      const sum = device().array(f32, [1]);
      await expect(planGrouped([{ a, b }], { epilogue: [reduceAll(sum, "sum")] })).rejects.toThrow(
        UnsupportedError,
      );
      const batch = device().array(f32, [2, 4, 6]);
      await expect(planGrouped([{ a: batch, b }])).rejects.toThrow(
        /product 0: a batch is a group of its own/,
      );
      await expect(planGrouped([{ a, b }], { schedule: "warpgroup" as never })).rejects.toThrow(
        UnsupportedError,
      );
    });
  });
});
