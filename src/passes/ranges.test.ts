/** @file Ranges hold every value that a kernel computes. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { constant, KernelBuilder } from "../ir/builder-for-tests.ts";
import { nvidiaTarget } from "../target/nvidia.ts";
import { f32, i32, index, u32 } from "../types/types.ts";
import { interpret } from "./interpreter-for-tests.ts";
import { argumentsFor, growKernel } from "./program-for-tests.ts";
import { analyseRanges } from "./ranges.ts";

const facts = nvidiaTarget("sm_90a");

test("every computed value lies in its range", () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(1_000_000), { minLength: 20, maxLength: 400, size: "max" }),
      fc.nat(30),
      (tape, choice) => {
        const kernel = growKernel(tape);
        const ranges = analyseRanges(kernel, facts);
        interpret(kernel, {
          builtins: { threadIndexX: choice, blockIndexX: choice * 99 },
          parameters: argumentsFor(kernel, choice),
          observe: (value, computed) => {
            const range = ranges(value);
            if (range === undefined) return;
            expect(Number(computed)).toBeGreaterThanOrEqual(range.low);
            expect(Number(computed)).toBeLessThanOrEqual(range.high);
          },
        });
      },
    ),
    { numRuns: 200, seed: 7 },
  );
});

test("each operation's range holds its results", () => {
  const bounds = fc.oneof(
    fc.integer({ min: -20, max: 20 }),
    fc.integer(),
    fc.constantFrom(-(2 ** 31), 2 ** 31 - 1),
  );
  const interval = fc.tuple(bounds, bounds).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
  const names = [
    "add",
    "sub",
    "mul",
    "div",
    "rem",
    "floorDiv",
    "floorMod",
    "min",
    "max",
    "and",
    "or",
    "xor",
    "shiftLeft",
    "shiftRight",
  ] as const;
  const u32Of = (x: number): number => (x < 0 ? x + 2 ** 31 : x);
  fc.assert(
    fc.property(
      fc.constantFrom(i32, u32),
      fc.constantFrom(...names),
      interval,
      interval,
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (type, name, p, q, s, t) => {
        const of = type === u32 ? u32Of : (x: number): number => x;
        const [xs, ys] = [p, q].map(
          ([a, b]) => [of(a), of(b)].sort((one, other) => one - other) as [number, number],
        );
        const b = new KernelBuilder();
        const clamped = ([low, high]: [number, number], parameter: string) => {
          const raw = b.parameter(b.scalarParameter(parameter, type));
          return b.calculate("min", b.calculate("max", raw, constant(type, low)), constant(type, high));
        };
        const [x, y] = [clamped(xs!, "x"), clamped(ys!, "y")];
        const results = [
          b.calculate(name, x, y),
          b.calculate("neg", x),
          b.calculate("abs", x),
          b.calculate("fma", x, y, x),
        ];
        const kernel = b.build();
        const ranges = analyseRanges(kernel, facts);
        const within = ([low, high]: [number, number], share: number): number =>
          Math.floor(low + (high - low) * share);
        interpret(kernel, {
          builtins: {},
          parameters: [within(xs!, s), within(ys!, t)],
          observe: (value, computed) => {
            if (!results.includes(value)) return;
            expect(Number(computed)).toBeGreaterThanOrEqual(ranges(value)!.low);
            expect(Number(computed)).toBeLessThanOrEqual(ranges(value)!.high);
          },
        });
      },
    ),
    { numRuns: 3000, seed: 11 },
  );
});

test("positions within a block are known", () => {
  const b = new KernelBuilder({ block: [256, 1, 1] });
  const x = b.buffer("x", f32);
  const thread = b.builtin("threadIndexX");
  const warp = b.builtin("subgroupIndex");
  const row = b.calculate(
    "add",
    b.calculate("mul", warp, constant(i32, 16)),
    b.calculate("and", thread, constant(i32, 15)),
  );
  const block = b.builtin("blockIndexX");
  const far = b.calculate("mul", block, constant(i32, 256));
  const wide = b.calculate("mul", b.convert(block, index), constant(index, 256));
  const stage = b.variable("stage", i32);
  b.write(stage, constant(i32, 0));
  const next = b.calculate("floorMod", b.calculate("add", b.read(stage), constant(i32, 1)), constant(i32, 3));
  b.write(stage, next);
  const now = b.read(stage);
  b.loop(thread, b.size(x), constant(i32, 256), (i) => b.store(x, i, constant(f32, 0)));
  const kernel = b.build();
  const ranges = analyseRanges(kernel, facts);
  expect(ranges(row)).toEqual({ low: 0, high: 127 });
  expect(ranges(far)).toEqual({ low: -(2 ** 31), high: 2 ** 31 - 1 });
  expect(ranges(wide)).toEqual({ low: 0, high: (facts.limits.gridX - 1) * 256 });
  expect(ranges(now)).toEqual({ low: 0, high: 2 });
  expect(ranges(constant(u32, 5))).toEqual({ low: 5, high: 5 });
  const loop = kernel.body.statements.at(-1)!;
  expect(loop.kind === "loop" && ranges(loop.counter)).toEqual({ low: 0, high: 2 ** 31 - 2 });
});
