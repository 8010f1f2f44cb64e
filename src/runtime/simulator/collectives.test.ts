import { describe, expect, it } from "vitest";
import { constant, KernelBuilder } from "../../ir/builder-for-tests.ts";
import { scalar } from "../../ir/nodes.ts";
import { bool, f32, i32, u32, u64 } from "../../types/types.ts";
import { run } from "./harness-for-tests.ts";

const widths = [4, 8, 16, 32, 64] as const;
const threads = 64;
const numbers: readonly number[] = Array.from({ length: threads }, (_, n) => (n * 37 + 11) % 101);

/** Runs a body on 64 threads with `x` given; returns `y`. */
async function onThreads(
  width: number,
  body: (k: KernelBuilder, x: ReturnType<KernelBuilder["load"]>) => ReturnType<KernelBuilder["load"]>,
): Promise<readonly number[]> {
  const k = new KernelBuilder();
  const x = k.buffer("x", i32, "read");
  const y = k.buffer("y", i32);
  const t = k.builtin("threadIndexX");
  k.store(y, t, body(k, k.load(x, t)));
  const result = new Int32Array(threads);
  const kernel = k.build({ block: [threads, 1, 1], subgroupSize: width });
  for (const schedule of ["forward", "reverse", { seed: 3 }] as const) {
    await run({
      kernel,
      args: { x: Int32Array.from(numbers), y: result },
      options: { subgroupWidth: width, schedule },
    });
  }
  return [...result];
}

const groups = (width: number): readonly (readonly number[])[] =>
  Array.from({ length: threads / width }, (_, n) => numbers.slice(n * width, (n + 1) * width));

describe.each(widths)("subgroups of %d lanes", (width) => {
  it("know their lanes and numbers", async () => {
    const y = await onThreads(width, (k) =>
      k.calculate(
        "add",
        k.builtin("lane"),
        k.calculate("mul", k.builtin("subgroupIndex"), constant(i32, 1000)),
      ),
    );
    expect(y).toEqual(numbers.map((_, n) => (n % width) + 1000 * Math.floor(n / width)));
  });

  it.each([
    ["index", (lane: number, by: number, size: number) => (by < size ? lane - (lane % size) + by : lane)],
    ["up", (lane: number, by: number, size: number) => ((lane % size) - by >= 0 ? lane - by : lane)],
    ["down", (lane: number, by: number, size: number) => ((lane % size) + by < size ? lane + by : lane)],
    [
      "xor",
      (lane: number, by: number, size: number) =>
        by < size ? lane - (lane % size) + ((lane % size) ^ by) : lane,
    ],
  ] as const)("shuffle by %s, in segments too", async (mode, source) => {
    for (const size of [width, width / 2]) {
      for (const by of [0, 1, 3, size]) {
        const y = await onThreads(width, (k, x) =>
          k.op("shuffle", scalar(i32), [x, constant(i32, by)], { mode, width: size }),
        );
        expect(y).toEqual(numbers.map((_, n) => numbers[n - (n % width) + source(n % width, by, size)]));
      }
    }
  });

  it.each([
    ["add", (a: number, b: number) => a + b],
    ["min", Math.min],
    ["max", Math.max],
    ["and", (a: number, b: number) => a & b],
    ["or", (a: number, b: number) => a | b],
    ["xor", (a: number, b: number) => a ^ b],
  ] as const)("reduce by %s", async (operation, combine) => {
    const y = await onThreads(width, (k, x) => k.op("subgroupReduce", scalar(i32), [x], { operation }));
    expect(y).toEqual(
      groups(width).flatMap((group) => group.map(() => group.reduce((a, b) => combine(a, b)))),
    );
  });

  it("vote and elect", async () => {
    const big =
      (limit: number) =>
      (value: number): boolean =>
        value > limit;
    for (const [mode, limit] of [
      ["any", 90],
      ["all", 10],
      ["all", -1],
    ] as const) {
      const y = await onThreads(width, (k, x) => {
        const held = k.op("vote", scalar(bool), [k.compare("greater", x, constant(i32, limit))], { mode });
        return k.select(held, constant(i32, 1), constant(i32, 0));
      });
      const expected = groups(width).flatMap((group) =>
        group.map(() => Number(mode === "any" ? group.some(big(limit)) : group.every(big(limit)))),
      );
      expect(y).toEqual(expected);
    }
    const elected = await onThreads(width, (k) =>
      k.select(k.op("electOne", scalar(bool), [], {}), constant(i32, 1), constant(i32, 0)),
    );
    for (const group of Array.from({ length: threads / width }, (_, n) =>
      elected.slice(n * width, (n + 1) * width),
    )) {
      expect(group.filter((one) => one === 1)).toHaveLength(1);
    }
  });

  it.runIf(width <= 32)("ballot", async () => {
    const y = await onThreads(width, (k, x) =>
      k.op(
        "bitcast",
        scalar(i32),
        [k.op("ballot", scalar(u32), [k.compare("greater", x, constant(i32, 50))], {})],
        {},
      ),
    );
    const expected = groups(width).flatMap((group) => {
      const mask = group.reduce((bits, value, lane) => (value > 50 ? bits | (1 << lane) : bits), 0);
      return group.map(() => mask);
    });
    expect(y).toEqual(expected);
  });
});

describe("collectives of other types", () => {
  it("shuffle vectors and 64-bit integers, reduce floats as a butterfly", async () => {
    const k = new KernelBuilder();
    const x = k.buffer("x", u64, "read");
    const y = k.buffer("y", u64);
    const z = k.buffer("z", f32);
    const t = k.builtin("threadIndexX");
    const pair = k.load(x, k.calculate("mul", t, constant(i32, 2)), { lanes: 2 });
    const moved = k.op("shuffle", pair.type, [pair, constant(i32, 1)], { mode: "xor", width: 32 });
    k.store(y, k.calculate("mul", t, constant(i32, 2)), moved);
    const sum = k.op(
      "subgroupReduce",
      scalar(f32),
      [k.calculate("div", constant(f32, 1), k.convert(k.calculate("add", t, constant(i32, 1)), f32))],
      { operation: "add" },
    );
    k.store(z, t, sum);
    const input = BigUint64Array.from({ length: 64 }, (_, n) => 2n ** 63n + BigInt(n));
    const [output, sums] = [new BigUint64Array(64), new Float32Array(32)];
    await run({ kernel: k.build(), args: { x: input, y: output, z: sums } });
    expect([...output]).toEqual([...input].map((_, n) => input[n ^ 2]));
    let values = Array.from({ length: 32 }, (_, n) => Math.fround(1 / (n + 1)));
    for (let distance = 16; distance >= 1; distance /= 2)
      values = values.map((value, n) => Math.fround(value + values[n ^ distance]!));
    expect([...sums]).toEqual(values);
  });

  it("leave out lanes that have ended", async () => {
    const k = new KernelBuilder();
    const y = k.buffer("y", i32);
    const t = k.builtin("threadIndexX");
    k.if(k.compare("less", t, constant(i32, 5)), () => k.jump("exit"));
    k.store(y, t, k.op("subgroupReduce", scalar(i32), [t], { operation: "add" }));
    const output = new Int32Array(32).fill(-1);
    await run({ kernel: k.build(), args: { y: output } });
    expect([...output]).toEqual(Array.from({ length: 32 }, (_, n) => (n < 5 ? -1 : 486)));
  });
});
