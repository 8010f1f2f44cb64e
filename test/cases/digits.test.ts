/** @file Digit-coded products: a lost, doubled or shifted lane shows in the digits of the result. */
import { bf16, type Device, f16, f32, f64, i8, i32, i64, type StorageType, u8 } from "tilewright";
import { type GemmOptions, gemm, mmaSync, wmmaSync } from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { plain } from "../conformance/gemm-table.ts";
import { onEveryDevice } from "../conformance/table.ts";

/** Digit of channel `c` at depth `k`: 1 to 9, the channels apart by one. */
const digit = (c: number, k: number): number => 1 + ((k + c) % 9);

/** Column `j` of B weighs depths j, j + 1… with 1, 10, 100…, as many as the type holds exactly. */
const weight = (places: number, k: number, j: number): number =>
  k >= j && k < j + places ? 10 ** (k - j) : 0;

async function check(
  device: Device,
  type: StorageType,
  places: number,
  channels: number,
  depth: number,
  options: GemmOptions,
): Promise<void> {
  const values = <T>(rows: number, columns: number, at: (row: number, column: number) => T): T[] =>
    Array.from({ length: rows * columns }, (_, i) => at(Math.floor(i / columns), i % columns));
  const typed = (numbers: number[]): never => (type === i64 ? numbers.map(BigInt) : numbers) as never;
  using a = device.array(type, [channels, depth], typed(values(channels, depth, digit)));
  using b = device.array(type, [depth, depth], typed(values(depth, depth, (k, j) => weight(places, k, j))));
  const sums = type.class !== "float" ? {} : { type: type === f64 ? f64 : f32 };
  using d = await gemm(a, b, { ...sums, ...options });
  const expected = values(channels, depth, (c, j) =>
    Array.from({ length: places }, (_, i) => (j + i < depth ? digit(c, j + i) * 10 ** i : 0)).reduce(
      (x, y) => x + y,
    ),
  );
  const result = Array.from((await d.read()) as ArrayLike<number | bigint>, Number);
  expect(result, `${type.name}, ${channels} channels, depth ${depth}`).toEqual(expected);
}

onEveryDevice((device) => {
  it("[1, 2, 3, 4, 5] · [1, 10, 100, 1000, 10000] is 54321", async () => {
    using a = device().array(f16, [1, 5], [1, 2, 3, 4, 5]);
    using b = device().array(f16, [5, 1], [1, 10, 100, 1000, 10_000]);
    for (const operator of [undefined, mmaSync, wmmaSync, plain]) {
      using d = await gemm(a, b, { type: f32, ...(operator === undefined ? {} : { operator }) });
      expect(await d.item(0, 0)).toBe(54_321);
    }
  });

  describe("every depth from 1 to 33, every number of channels from 1 to 9", () => {
    const types: readonly (readonly [StorageType, number])[] = [
      [f16, 5],
      [bf16, 4],
      [f32, 7],
      [f64, 15],
      [i8, 3],
      [u8, 3],
      [i32, 9],
      [i64, 15],
    ];
    it.each(types.map(([type, places]) => [type.name, type, places] as const))(
      "%s",
      async (_, type, places) => {
        for (let depth = 1; depth <= 33; depth++) {
          await check(device(), type, places, 1 + (depth % 9), depth, {});
        }
        for (let channels = 1; channels <= 9; channels++) {
          await check(device(), type, places, channels, 33, { operator: plain });
        }
      },
    );
  });
});
