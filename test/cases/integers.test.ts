/** @file Integers stay integers, at compile time and at run time. */
import { type Device, i32, type StorageType, u32 } from "tilewright";
import { type AnyValue, constant, input, kernel, loop, output, thread, variable } from "tilewright/lang";
import { describe, expect, it } from "vitest";
import { onEveryDevice } from "../conformance/table.ts";

type Operation = (a: AnyValue, b: AnyValue) => AnyValue;

/** The result with operands that only the device knows, and with constants that the compiler folds. */
async function bothWays(
  device: Device,
  type: StorageType,
  a: number,
  b: number,
  operation: Operation,
): Promise<number[]> {
  const atRunTime = kernel("at_run_time", {
    params: { x: input(type), y: output(type) },
    block: 32,
    body: ({ x, y }) => y.storeAt(thread.index, operation(x.loadAt(0), x.loadAt(1))),
  });
  const folded = kernel("folded", {
    params: { y: output(type) },
    block: 32,
    body: ({ y }) => y.storeAt(thread.index, operation(constant(type, a), constant(type, b))),
  });
  using x = device.array(type, [2], [a, b]);
  using y = device.array(type, [32]);
  await device.run(atRunTime, { blocks: 1, args: { x, y } as never });
  const first = Number(await y.item(5));
  await device.run(folded, { blocks: 1, args: { y } as never });
  return [first, Number(await y.item(5))];
}

const both = (value: number): number[] => [value, value];

onEveryDevice((device) => {
  describe("division", () => {
    const rows: readonly (readonly [string, StorageType, number, number, Operation, number])[] = [
      ["16777217 / 1, beyond the precision of f32", i32, 16777217, 1, (a, b) => a.div(b), 16777217],
      ["4294967295 / 2, unsigned", u32, 4294967295, 2, (a, b) => a.div(b), 2147483647],
      ["4294967295 / 4294967295", u32, 4294967295, 4294967295, (a, b) => a.div(b), 1],
      ["-7 / 2 truncates", i32, -7, 2, (a, b) => a.div(b), -3],
      ["7 / -2 truncates", i32, 7, -2, (a, b) => a.div(b), -3],
      ["-7 % 2 has the dividend's sign", i32, -7, 2, (a, b) => a.rem(b), -1],
      ["7 % -2 has the dividend's sign", i32, 7, -2, (a, b) => a.rem(b), 1],
      ["floorDiv(-7, 2)", i32, -7, 2, (a, b) => a.floorDiv(b), -4],
      ["floorMod(-7, 2)", i32, -7, 2, (a, b) => a.floorMod(b), 1],
      ["the smallest / -1 stays", i32, -(2 ** 31), -1, (a, b) => a.div(b), -(2 ** 31)],
    ];
    it.each(rows)("%s", async (_, type, a, b, operation, expected) => {
      expect(await bothWays(device(), type, a, b, operation)).toEqual(both(expected));
    });
  });

  it("a loop to n / 16 with n = 40 turns twice", async () => {
    const turns = kernel("turns", {
      params: { y: output(u32), n: u32 },
      block: 32,
      body({ y, n }) {
        const count = variable(u32, 0);
        loop(n.div(16), () => {
          count.value = count.value.add(1);
        });
        y.store(thread.index, count.value);
      },
    });
    using y = device().array(u32, [32]);
    await device().run(turns, { blocks: 1, args: { y, n: 40 } });
    expect(await y.item(0)).toBe(2);
  });
});
