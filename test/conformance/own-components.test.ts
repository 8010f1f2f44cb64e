/** @file Components as users write them: a layout by its position, a structure with its predicate, an operator around another. */
import { ArgumentError, bf16, type DeviceArray, f16, f32, UnsupportedError } from "tilewright";
import {
  elementAt,
  firstElement,
  gemm,
  type Layout,
  layoutAt,
  type MatrixSource,
  matrixSource,
  mmaSync,
  type Operator,
  type OperatorFactory,
  planGemm,
  rowMajor,
  stepsWithin,
} from "tilewright/gemm";
import { type I32, type Value, variable, when } from "tilewright/lang";
import { describe, expect, it } from "vitest";
import { hasMma } from "../../src/gemm/operators/mma.ts";
import { generator } from "../support/random.ts";
import { checkGemm, normal } from "./gemm-cases.ts";
import { expectClose, onEveryDevice } from "./table.ts";

const blocks = layoutAt(
  { ...rowMajor, name: "8 x 8 blocks", facts: { movement: "run", widest: 8 } },
  (place, tile) => {
    const { row, column } = firstElement(tile);
    const inBlock = row.floorMod(8).mul(8).add(column.floorMod(8));
    return rowMajor.position!(
      place,
      elementAt(row.floorDiv(8).mul(8), column.floorDiv(8).mul(64).add(inBlock)),
    );
  },
);

const inBand = (row: Value<I32>, column: Value<I32>) => column.ge(row).and(column.le(row.add(1)));
const bidiagonal: Layout = {
  ...rowMajor,
  name: "bidiagonal",
  facts: { movement: "registers", widest: 1, thin: true },
  counts: inBand,
  steps: stepsWithin(
    "within the band",
    (row, rows) => ({ from: row, to: row.add(rows + 1) }),
    (column, columns) => ({ from: column.sub(1), to: column.add(columns) }),
  ),
  load(array, place, tile) {
    const { row, column } = firstElement(tile);
    const element = variable(array.type, place.zero ?? 0);
    when(inBand(row, column), () => {
      element.value = rowMajor.load(array, place, elementAt(row, column.sub(row))) as never;
    });
    return element.value;
  },
};

type Parts = readonly [high: unknown, low: unknown];
const parts = (create: () => unknown) => (): Parts => [create(), create()];
const inParts =
  (load: Operator["loadA"]): Operator<Parts>["loadA"] =>
  ([high, low], source, tile, transform = (x) => x) => {
    load(high, source, tile, transform);
    load(low, source, tile, (...at) =>
      transform(...at).sub(
        transform(...at)
          .to(bf16)
          .to(f32),
      ),
    );
  };
const threeProducts: OperatorFactory = {
  name: "bf16 x 3",
  create(types, facts) {
    const inner = mmaSync.create({ a: bf16, b: bf16, accumulator: types.accumulator }, facts);
    const made: Operator<Parts, Parts> = {
      ...inner,
      types,
      shared: { a: f32, b: f32 },
      held: { accumulators: 1, left: 2, right: 2 },
      createA: parts(inner.createA),
      createB: parts(inner.createB),
      loadA: inParts(inner.loadA),
      loadB: inParts(inner.loadB),
      multiply: (sum, [high, low], [otherHigh, otherLow]) => {
        inner.multiply(sum, low, otherHigh);
        inner.multiply(sum, high, otherLow);
        inner.multiply(sum, high, otherHigh);
      },
    };
    return made as Operator;
  },
};

onEveryDevice((device) => {
  describe("components of one's own", () => {
    it.for(["a", "b"] as const)("a layout in blocks, as %s", async (side) => {
      const [down, across, other] = [5, 9, 21];
      const [rows, columns] = [8 * down, 8 * across];
      const random = generator(7);
      const values = Float32Array.from({ length: rows * columns }, () => Math.fround(normal(random)));
      const place = (i: number, j: number): number =>
        (Math.floor(i / 8) * across + Math.floor(j / 8)) * 64 + (i % 8) * 8 + (j % 8);
      const stored = new Float32Array(values.length);
      for (let i = 0; i < rows; i++)
        for (let j = 0; j < columns; j++) stored[place(i, j)] = values[i * columns + j]!;
      using array = device().array(f32, [down, across, 8, 8], stored);
      const matrix = matrixSource(array, {
        layout: blocks,
        shape: [rows, columns],
        leading: columns,
        alignment: 16,
      });
      using dense = device().array(f32, [rows, columns], values);
      using factor =
        side === "a"
          ? device().array(
              f32,
              [columns, other],
              Float32Array.from({ length: columns * other }, () => normal(random)),
            )
          : device().array(
              f32,
              [other, rows],
              Float32Array.from({ length: other * rows }, () => normal(random)),
            );
      const product = (x: DeviceArray | MatrixSource): Promise<DeviceArray> =>
        side === "a" ? gemm(x, factor) : gemm(factor, x);
      using d = await product(matrix);
      using expected = await product(dense);
      expectClose((await d.read()) as Float32Array, [...((await expected.read()) as Float32Array)], 1e-4);
      expect(() => matrix.transposed).toThrow(UnsupportedError);
      expect(() => matrixSource(array, { layout: blocks, shape: [rows, columns], alignment: 3 })).toThrow(
        ArgumentError,
      );
    });

    it.for([f16, f32])("a bidiagonal matrix of $name, from which nothing else is read", async (type) => {
      const [n, columns] = [70, 19];
      const random = generator(3);
      const whole = (): number => Math.floor(random() * 9) - 4;
      const bands = Float32Array.from({ length: 2 * n }, whole);
      bands[2 * n - 1] = Number.NaN;
      const right = Float32Array.from({ length: n * columns }, whole);
      using array = device().array(type, [n, 2], bands);
      using b = device().array(type, [n, columns], right);
      using d = await gemm(matrixSource(array, { layout: bidiagonal, shape: [n, n] }), b, { type: f32 });
      const at = (i: number, j: number): number => (i < n ? right[i * columns + j]! : 0);
      const expected = Array.from({ length: n * columns }, (_, e) => {
        const [i, j] = [Math.floor(e / columns), e % columns];
        return bands[2 * i]! * at(i, j) + (i + 1 < n ? bands[2 * i + 1]! * at(i + 1, j) : 0);
      });
      expect([...((await d.read()) as Float32Array)].map((x) => x + 0)).toEqual(expected.map((x) => x + 0));
    });

    it("an operator of three products in bf16", async ({ skip }) => {
      const types = { a: bf16, b: bf16, accumulator: f32 };
      skip(!hasMma(types, device().facts), "the target has no mma of bf16");
      const size = { m: 45, n: 37, k: 70 };
      const check = (operator: OperatorFactory): Promise<unknown> =>
        checkGemm(device(), { ...size, a: f32, options: { operator }, inexact: 2 ** -15 });
      await check(threeProducts);
      using a = device().array(f32, [64, 64]);
      using plan = await planGemm(a, a, { operator: threeProducts });
      expect(plan.explain()).toMatch(/mma/);
      plan.d.dispose();
    });
  });
});
