import { describe, expect, it } from "vitest";
import { constant, KernelBuilder } from "../../ir/builder-for-tests.ts";
import type { Operand } from "../../ir/nodes.ts";
import { scalar } from "../../ir/nodes.ts";
import { bool, i32, index, u32 } from "../../types/types.ts";
import { run } from "./harness-for-tests.ts";

const I = (value: number): Operand => constant(i32, value);

/** Control flow of single lanes, and the same around a collective, must do the same. */
describe.each([
  ["lanes alone", false],
  ["with a collective inside", true],
] as const)("control flow of %s", (_, together) => {
  const meet = (k: KernelBuilder): void => {
    if (together) k.effect("subgroupBarrier", [], {});
  };
  const perThread = async (
    body: (k: KernelBuilder, t: Operand, result: (value: Operand) => void) => void,
  ): Promise<readonly number[]> => {
    const k = new KernelBuilder();
    const y = k.buffer("y", i32);
    const t = k.builtin("threadIndexX");
    body(k, t, (value) => k.store(y, t, value));
    const out = new Int32Array(64).fill(-7);
    for (const schedule of ["forward", { seed: 5 }] as const)
      await run({ kernel: k.build({ block: [64, 1, 1] }), args: { y: out }, options: { schedule } });
    return [...out];
  };

  it("counted loops, in each type of counter, with break and continue", async () => {
    for (const type of [i32, u32, index]) {
      const out = await perThread((k, t, result) => {
        const sum = k.variable("sum", i32);
        k.write(sum, I(0));
        k.loop(constant(type, 1), constant(type, 20), constant(type, 3), (n) => {
          meet(k);
          k.if(k.compare("equal", n, constant(type, 7)), () => k.jump("continue"));
          k.if(k.compare("equal", n, constant(type, 16)), () => k.jump("break"));
          meet(k);
          k.write(sum, k.calculate("add", k.read(sum), k.convert(n, i32)));
        });
        result(k.calculate("add", k.read(sum), t));
      });
      expect(out).toEqual(Array.from({ length: 64 }, (_u, n) => 1 + 4 + 10 + 13 + n));
    }
  });

  it("nested loops and jumps out of the inner one", async () => {
    const out = await perThread((k, _t, result) => {
      const sum = k.variable("sum", i32);
      k.write(sum, I(0));
      k.loop(I(0), I(5), I(1), (a) => {
        k.loop(I(0), I(5), I(1), (b) => {
          k.if(k.compare("greater", b, a), () => k.jump("break"));
          meet(k);
          k.write(sum, k.calculate("add", k.read(sum), k.calculate("add", k.calculate("mul", a, I(10)), b)));
        });
        k.if(k.compare("equal", a, I(3)), () => k.jump("break"));
        meet(k);
      });
      result(k.read(sum));
    });
    let expected = 0;
    for (let a = 0; a <= 3; a++) for (let b = 0; b <= a; b++) expected += 10 * a + b;
    expect(new Set(out)).toEqual(new Set([expected]));
  });

  it("while loops", async () => {
    const out = await perThread((k, _t, result) => {
      const n = k.variable("n", i32);
      const turns = k.variable("turns", i32);
      k.write(n, I(27));
      k.write(turns, I(0));
      k.while(
        () => k.compare("notEqual", k.read(n), I(1)),
        () => {
          meet(k);
          const value = k.read(n);
          const odd = k.compare("equal", k.calculate("and", value, I(1)), I(1));
          k.write(
            n,
            k.select(
              odd,
              k.calculate("add", k.calculate("mul", value, I(3)), I(1)),
              k.calculate("shiftRight", value, I(1)),
            ),
          );
          k.write(turns, k.calculate("add", k.read(turns), I(1)));
        },
      );
      result(k.read(turns));
    });
    expect(new Set(out)).toEqual(new Set([111]));
  });

  it("branches of whole subgroups, and lanes that end", async () => {
    const out = await perThread((k, t, result) => {
      k.if(
        k.compare("less", t, I(32)),
        () => {
          meet(k);
          result(I(1));
        },
        () => {
          meet(k);
          result(I(2));
          k.if(k.compare("greaterEqual", t, I(48)), () => k.jump("exit"));
          meet(k);
          result(I(3));
        },
      );
      k.if(k.compare("equal", t, I(0)), () => k.jump("exit"));
      meet(k);
      result(k.calculate("add", t, I(100)));
    });
    expect(out).toEqual(Array.from({ length: 64 }, (_u, n) => (n === 0 ? 1 : n < 48 ? 100 + n : 2)));
  });
});

describe("lanes that go through loops of different lengths", () => {
  it("do so alone", async () => {
    const k = new KernelBuilder();
    const y = k.buffer("y", i32);
    const t = k.builtin("threadIndexX");
    const sum = k.variable("sum", i32);
    k.write(sum, I(0));
    k.loop(I(0), t, I(1), (n) => k.write(sum, k.calculate("add", k.read(sum), n)));
    k.store(y, t, k.read(sum));
    const out = new Int32Array(32);
    await run({ kernel: k.build(), args: { y: out } });
    expect([...out]).toEqual(Array.from({ length: 32 }, (_, n) => (n * Math.abs(n - 1)) / 2));
  });

  it("or until a vote ends the loop for all", async () => {
    const k = new KernelBuilder();
    const y = k.buffer("y", i32);
    const t = k.builtin("threadIndexX");
    const n = k.variable("n", i32);
    k.write(n, t);
    k.while(
      () => k.op("vote", scalar(bool), [k.compare("greater", k.read(n), I(0))], { mode: "any" }),
      () => k.write(n, k.calculate("sub", k.read(n), I(1))),
    );
    k.store(y, t, k.read(n));
    const out = new Int32Array(32);
    await run({ kernel: k.build(), args: { y: out } });
    expect([...out]).toEqual(Array.from({ length: 32 }, (_, lane) => lane - 31));
  });
});

describe("regions", () => {
  it("are cut where they get long, and nothing is lost between", async () => {
    const k = new KernelBuilder();
    const y = k.buffer("y", i32);
    const t = k.builtin("threadIndexX");
    let value = k.calculate("add", t, I(0));
    const early = k.calculate("mul", t, I(3));
    const pair = k.op("compose", { element: i32, lanes: 2 }, [t, I(5)], {});
    for (let n = 0; n < 3000; n++) value = k.calculate("add", k.calculate("xor", value, I(n)), I(1));
    k.store(
      y,
      t,
      k.calculate("add", value, k.calculate("add", early, k.op("extract", scalar(i32), [pair], { lane: 1 }))),
    );
    const out = new Int32Array(32);
    await run({ kernel: k.build(), args: { y: out } });
    expect([...out]).toEqual(
      Array.from({ length: 32 }, (_, lane) => {
        let expected = lane;
        for (let n = 0; n < 3000; n++) expected = ((expected ^ n) + 1) | 0;
        return (expected + 3 * lane + 5) | 0;
      }),
    );
  });
});
