/** @file Who agrees on values, who reaches statements, and which barriers are refused. */
import { describe, expect, test } from "vitest";
import { CompileError } from "../errors.ts";
import { boolScalar, constant, intScalar, KernelBuilder } from "../ir/builder-for-tests.ts";
import type { Operand } from "../ir/nodes.ts";
import { bool, f32, i32 } from "../types/types.ts";
import { analyseControl, analyseUniformity, checkConvergence } from "./uniformity.ts";

const c = (value: number) => constant(i32, value);
const block = { block: [256, 1, 1] as const };

describe("values", () => {
  test("builtins, parameters and what depends on them", () => {
    const b = new KernelBuilder(block);
    const thread = b.builtin("threadIndexX");
    const warp = b.builtin("subgroupIndex");
    const blockIndex = b.builtin("blockIndexX");
    const n = b.parameter(b.scalarParameter("n", i32));
    const row = b.calculate("add", b.calculate("mul", blockIndex, c(8)), warp);
    const guard = b.compare("less", b.calculate("add", row, thread), n);
    const vote = b.op("vote", boolScalar, [guard], { mode: "any" });
    const first = b.op("shuffle", intScalar, [thread, c(0)], { mode: "index", width: 32 });
    const next = b.op("shuffle", intScalar, [thread, c(1)], { mode: "down", width: 32 });
    const value = analyseUniformity(b.build());
    expect([thread, warp, blockIndex, n, row, guard, vote, first, next].map(value)).toEqual([
      "lane",
      "subgroup",
      "block",
      "grid",
      "subgroup",
      "lane",
      "subgroup",
      "subgroup",
      "lane",
    ]);
  });
  test("axes of the block that fill whole subgroups", () => {
    const agree = (size: readonly [number, number, number]) => {
      const b = new KernelBuilder({ block: size });
      const axes = (["threadIndexX", "threadIndexY", "threadIndexZ"] as const).map((name) => b.builtin(name));
      return axes.map(analyseUniformity(b.build()));
    };
    expect(agree([32, 4, 1])).toEqual(["lane", "subgroup", "grid"]);
    expect(agree([16, 16, 2])).toEqual(["lane", "lane", "subgroup"]);
  });
  test("loads: read-only parameters and tables alone", () => {
    const b = new KernelBuilder(block);
    const blockIndex = b.builtin("blockIndexX");
    const loads = [
      b.load(b.buffer("r", f32, "read"), blockIndex),
      b.load(b.buffer("rw", f32), blockIndex),
      b.load(b.shared("tile", f32, 8), c(0)),
      b.load(b.table("t", f32, [1, 2]), c(0)),
      b.load(b.buffer("r2", f32, "read"), b.builtin("lane")),
    ];
    expect(loads.map(analyseUniformity(b.build()))).toEqual(["block", "lane", "lane", "grid", "lane"]);
  });
  test("variables: values written, control that decides, turns before", () => {
    const b = new KernelBuilder(block);
    const thread = b.builtin("threadIndexX");
    const [plain, guarded, carried] = ["plain", "guarded", "carried"].map((name) => b.variable(name, i32));
    for (const variable of [plain!, guarded!, carried!]) b.write(variable, c(0));
    b.if(b.compare("less", thread, c(7)), () => b.write(guarded!, c(1)));
    let before: Operand = c(0);
    b.loop(c(0), b.builtin("gridSizeX"), c(1), () => {
      before = b.read(carried!);
      b.write(carried!, thread);
    });
    const reads = [b.read(plain!), b.read(guarded!), before];
    expect(reads.map(analyseControl(b.build()).value)).toEqual(["grid", "lane", "lane"]);
  });
  test("a divergent break makes the counter and the rest of the loop divergent", () => {
    const b = new KernelBuilder(block);
    const count = b.variable("count", i32);
    b.write(count, c(0));
    let counter: Operand = c(0);
    b.loop(c(0), c(10), c(1), (i) => {
      counter = i;
      b.if(b.compare("less", b.builtin("lane"), i), () => b.jump("break"));
      b.write(count, i);
    });
    const after = b.read(count);
    const kernel = b.build();
    const { value, control } = analyseControl(kernel);
    expect([value(counter), value(after)]).toEqual(["lane", "lane"]);
    expect(control(kernel.body.statements.at(-1)!)).toBe("grid");
  });
  test("after some threads have ended nothing is reached together", () => {
    const b = new KernelBuilder(block);
    b.if(b.compare("less", b.builtin("lane"), c(7)), () => b.jump("exit"));
    b.effect("blockBarrier", [], {});
    const kernel = b.build();
    expect(analyseControl(kernel).control(kernel.body.statements.at(-1)!)).toBe("lane");
  });
});

describe("block barriers", () => {
  function refused(build: (b: KernelBuilder) => void, strict = false): number[] | undefined {
    const b = new KernelBuilder(block);
    build(b);
    try {
      checkConvergence(b.build(), { strict });
      return undefined;
    } catch (error) {
      if (!(error instanceof CompileError)) throw error;
      return error.positions.map(({ line }) => line);
    }
  }
  const barrierUnder = (condition: (b: KernelBuilder) => Operand) => (b: KernelBuilder) => {
    const test = condition(b);
    b.at(50).if(test, () => b.at(60).effect("blockBarrier", [], {}));
  };

  test("under a condition on the thread: both lines", () => {
    expect(refused(barrierUnder((b) => b.compare("less", b.builtin("threadIndexX"), c(128))))).toEqual([
      60, 50,
    ]);
    expect(
      refused(
        barrierUnder((b) => b.compare("equal", b.builtin("lane"), b.parameter(b.scalarParameter("n", i32)))),
      ),
    ).toEqual([60, 50]);
    expect(
      refused(
        barrierUnder((b) => {
          const position = b.calculate(
            "add",
            b.calculate("mul", b.builtin("blockIndexX"), c(256)),
            b.builtin("threadIndexX"),
          );
          return b.compare("less", position, b.parameter(b.scalarParameter("n", i32)));
        }),
      ),
    ).toEqual([60, 50]);
  });
  test("a condition on the thread that holds for all is fine", () => {
    expect(
      refused(barrierUnder((b) => b.compare("less", b.builtin("threadIndexX"), c(256)))),
    ).toBeUndefined();
  });
  test("a condition on the block is fine, also when strict", () => {
    const onBlock = barrierUnder((b) => b.compare("less", b.builtin("blockIndexX"), c(3)));
    expect(refused(onBlock)).toBeUndefined();
    expect(refused(onBlock, true)).toBeUndefined();
  });
  test("what cannot be proven is left to the simulator, unless strict", () => {
    const loaded = barrierUnder((b) => b.compare("less", b.load(b.buffer("x", i32), c(0)), c(3)));
    expect(refused(loaded)).toBeUndefined();
    expect(refused(loaded, true)).toEqual([60, 50]);
    const always = (b: KernelBuilder): void =>
      b.while(
        () => constant(bool, true),
        () => b.effect("blockBarrier", [], {}),
      );
    expect(refused(always, true)).toBeUndefined();
  });
});
