/** @file beta = 0 never reads C, alpha = 0 never reads A and B, K = 0 leaves beta · C. */
import { type Device, type DeviceArray, f16, f32 } from "tilewright";
import { type GemmOptions, gemm, mmaSync, wmmaSync } from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { plain } from "../conformance/gemm-table.ts";
import { onEveryDevice } from "../conformance/table.ts";

const [m, n, k] = [17, 24, 40];

onEveryDevice((device) => {
  const filled = (
    rows: number,
    columns: number,
    value: number,
    type = f16 as typeof f16 | typeof f32,
  ): DeviceArray => device().array(type, [rows, columns], new Array(rows * columns).fill(value));
  const distinct = async (d: DeviceArray): Promise<Set<number>> =>
    new Set((await d.read()) as Iterable<number>);
  const ways: readonly (readonly [string, GemmOptions])[] = [
    ["default", {}],
    ["mma", { operator: mmaSync }],
    ["wmma", { operator: wmmaSync }],
    ["plain", { operator: plain }],
  ];

  describe.each(ways)("%s", (_, way) => {
    it("beta = 0 does not read C", async () => {
      const c = filled(m, n, Number.NaN, f32);
      const d = await gemm(filled(m, k, 1), filled(k, n, 2), { ...way, c, beta: 0, type: f32 });
      expect(await distinct(d)).toEqual(new Set([2 * k]));
      const inPlace = await gemm(filled(m, k, 1), filled(k, n, 2), { ...way, c, d: c, beta: 0 });
      expect(await distinct(inPlace)).toEqual(new Set([2 * k]));
    });
    it("alpha = 0 does not read A and B", async () => {
      const [a, b] = [filled(m, k, Number.NaN), filled(k, n, Number.POSITIVE_INFINITY)];
      const c = filled(m, n, 3, f32);
      expect(await distinct(await gemm(a, b, { ...way, alpha: 0, beta: 0.5, c, type: f32 }))).toEqual(
        new Set([1.5]),
      );
      expect(await distinct(await gemm(a, b, { ...way, alpha: 0, type: f32 }))).toEqual(new Set([0]));
    });
    it("K = 0 leaves beta · C", async () => {
      const [a, b] = [filled(m, 0, 0), filled(0, n, 0)];
      const c = filled(m, n, 3, f32);
      expect(await distinct(await gemm(a, b, { ...way, beta: -2, c, type: f32 }))).toEqual(new Set([-6]));
      expect(await distinct(await gemm(a, b, { ...way, type: f32 }))).toEqual(new Set([0]));
    });
  });

  it("M = 0 and N = 0 are products without elements", async () => {
    const on: Device = device();
    const d = await gemm(on.array(f16, [0, k]), on.array(f16, [k, n]));
    expect(d.shape).toEqual([0, n]);
    expect((await d.read()).length).toBe(0);
    expect((await gemm(on.array(f16, [m, k]), on.array(f16, [k, 0]))).shape).toEqual([m, 0]);
  });
});
