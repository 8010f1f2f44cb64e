import { describe, expect, it } from "vitest";
import { SimulationError } from "../../errors.ts";
import { constant, KernelBuilder } from "../../ir/builder-for-tests.ts";
import type { IrValue, KernelIr, Operand } from "../../ir/nodes.ts";
import { bool, f32, i32, u32 } from "../../types/types.ts";
import type { SimulatorOptions } from "./backend.ts";
import type { Fault } from "./faults.ts";
import { run, type TestArgument } from "./harness-for-tests.ts";

const I = (value: number): Operand => constant(i32, value);
const F = (value: number): Operand => constant(f32, value);

/** Runs a kernel; the fault and the lines that it names. */
async function faultOf(
  kernel: KernelIr,
  args: Record<string, TestArgument> = {},
  options: SimulatorOptions = {},
): Promise<readonly [string, ...number[]]> {
  try {
    await run({ kernel, args, options });
  } catch (error) {
    if (!(error instanceof SimulationError)) throw error;
    expect(error.details.kernel).toBe("test");
    for (const position of error.details.positions)
      if (position !== undefined) expect(error.message).toContain(`kernel.ts:${position.line}:1`);
    return [error.fault, ...error.details.positions.map((position) => position!.line)];
  }
  return ["none"];
}

const fault = (name: Fault | "none", ...lines: readonly number[]): readonly [string, ...number[]] => [
  name,
  ...lines,
];

/** Every order of warps and lanes must find the fault. */
const schedules = [["forward"], ["reverse"], [{ seed: 1 }], [{ seed: 2 }]] as const;

/** The line of one statement; its operands were built before. */
const at =
  <Name extends "load" | "store" | "calculate" | "if" | "loop" | "while" | "effect">(name: Name) =>
  (
    k: KernelBuilder,
    line: number,
    ...args: Parameters<KernelBuilder[Name]>
  ): ReturnType<KernelBuilder[Name]> =>
    (k.at(line)[name] as (...args: readonly unknown[]) => ReturnType<KernelBuilder[Name]>)(...args);
const loadAt = at("load");
const storeAt = at("store");
const calculateAt = at("calculate");
const ifAt = at("if");
const loopAt = at("loop");
const whileAt = at("while");
const effectAt = at("effect");

const barrier = (k: KernelBuilder): void => k.effect("blockBarrier", [], {});

/** y[t] = s[n - 1 - t] after s[t] = t, with or without the barrier between. */
function exchange(withBarrier: boolean, threads = 64): KernelIr {
  const k = new KernelBuilder();
  const y = k.buffer("y", i32);
  const s = k.shared("s", i32, threads);
  const t = k.builtin("threadIndexX");
  storeAt(k, 10, s, t, t);
  if (withBarrier) barrier(k);
  const other = k.calculate("sub", I(threads - 1), t);
  const v = loadAt(k, 20, s, other);
  k.store(y, t, v);
  return k.build({ block: [threads, 1, 1] });
}

describe("races on shared memory", () => {
  it.each(schedules)("a missing barrier, %o", async (schedule) => {
    const y = new Int32Array(64);
    const found = await faultOf(exchange(false), { y }, { schedule });
    expect(found[0]).toMatch(/race|unwrittenShared/);
    expect(found).toContain(20);
  });

  it("names both lines where both were reached", async () => {
    const k = new KernelBuilder();
    const s = k.shared("s", i32, 64);
    const t = k.builtin("threadIndexX");
    k.store(s, t, I(0));
    barrier(k);
    storeAt(k, 10, s, t, t);
    loadAt(k, 20, s, k.calculate("xor", t, I(1)));
    expect(await faultOf(k.build({ block: [64, 1, 1] }))).toEqual(fault("race", 10, 20));
  });

  it.each(schedules)("none with the barrier, %o", async (schedule) => {
    const y = new Int32Array(64);
    expect(await faultOf(exchange(true), { y }, { schedule })).toEqual(fault("none"));
    expect([...y]).toEqual(Array.from({ length: 64 }, (_, n) => 63 - n));
  });

  it.each(schedules)("two writes of the same value are a race, %o", async (schedule) => {
    const k = new KernelBuilder();
    const s = k.shared("s", i32, 1);
    storeAt(k, 10, s, I(0), I(5));
    expect(await faultOf(k.build(), {}, { schedule })).toEqual(fault("race", 10, 10));
  });

  it.each(schedules)("rewriting what others still read, %o", async (schedule) => {
    const k = new KernelBuilder();
    const s = k.shared("s", i32, 64);
    const t = k.builtin("threadIndexX");
    storeAt(k, 10, s, t, t);
    barrier(k);
    loadAt(k, 20, s, k.calculate("xor", t, I(32)));
    storeAt(k, 30, s, t, I(1));
    const found = await faultOf(k.build({ block: [64, 1, 1] }), {}, { schedule });
    expect(found[0]).toBe("race");
    expect(new Set(found)).toEqual(new Set(["race", 20, 30]));
  });

  it("a subgroup barrier orders one subgroup and no more", async () => {
    const build = (distance: number): KernelIr => {
      const k = new KernelBuilder();
      const s = k.shared("s", i32, 64);
      const t = k.builtin("threadIndexX");
      k.store(s, t, I(0));
      barrier(k);
      storeAt(k, 10, s, t, t);
      k.effect("subgroupBarrier", [], {});
      loadAt(k, 20, s, k.calculate("xor", t, I(distance)));
      return k.build({ block: [64, 1, 1] });
    };
    expect(await faultOf(build(16))).toEqual(fault("none"));
    expect((await faultOf(build(32)))[0]).toBe("race");
  });

  it("shuffles and votes order nothing", async () => {
    const k = new KernelBuilder();
    const s = k.shared("s", i32, 32);
    const t = k.builtin("threadIndexX");
    storeAt(k, 10, s, t, t);
    k.op("shuffle", { element: i32, lanes: 1 }, [t, I(1)], { mode: "xor", width: 32 });
    k.op("vote", { element: bool, lanes: 1 }, [constant(bool, true)], { mode: "all" });
    loadAt(k, 20, s, k.calculate("xor", t, I(1)));
    expect(await faultOf(k.build())).toEqual(fault("race", 20, 10));
  });

  it("atomics meet atomics, not ordinary accesses", async () => {
    const build = (mixed: boolean): KernelIr => {
      const k = new KernelBuilder();
      const s = k.shared("s", i32, 1);
      const t = k.builtin("threadIndexX");
      k.if(k.compare("equal", t, I(0)), () => k.store(s, I(0), I(0)));
      barrier(k);
      k.at(10).op("atomic", { element: i32, lanes: 1 }, [I(0), I(1)], {
        array: { kind: "shared", array: s },
        offset: 0,
        operation: "add",
        order: "relaxed",
        scope: "block",
      });
      if (!mixed) barrier(k);
      k.if(k.compare("equal", t, I(3)), () => loadAt(k, 20, s, I(0)));
      return k.build();
    };
    expect(await faultOf(build(false))).toEqual(fault("none"));
    expect(new Set(await faultOf(build(true)))).toEqual(new Set(["race", 10, 20]));
  });

  it("neighbouring bytes are no race, the same word seen twice is", async () => {
    const k = new KernelBuilder();
    const bytes = k.shared("bytes", { ...u32, name: "u8", bits: 8, precision: 8 } as never, 64);
    const t = k.builtin("threadIndexX");
    k.store(bytes, t, k.convert(t, { ...u32, name: "u8", bits: 8, precision: 8 } as never));
    expect(await faultOf(k.build({ block: [64, 1, 1] }))).toEqual(fault("none"));
  });

  it("overlaid views are one memory", async () => {
    const k = new KernelBuilder();
    const a = k.shared("a", i32, 64);
    const overlay = { ...a, id: 1, name: "b", element: f32 };
    k.sharedArrays.push(overlay);
    const t = k.builtin("threadIndexX");
    storeAt(k, 10, a, t, t);
    storeAt(k, 20, overlay, k.calculate("xor", t, I(1)), F(1));
    expect(await faultOf(k.build({ block: [64, 1, 1] }))).toEqual(fault("race", 10, 20));
  });
});

describe("races on device memory", () => {
  it("between threads of a block", async () => {
    const k = new KernelBuilder();
    const y = k.buffer("y", i32);
    const t = k.builtin("threadIndexX");
    storeAt(k, 10, y, t, t);
    loadAt(k, 20, y, k.calculate("xor", t, I(32)));
    const found = await faultOf(k.build({ block: [64, 1, 1] }), { y: new Int32Array(64) });
    expect(new Set(found)).toEqual(new Set(["race", 10, 20]));
  });

  it("between blocks, whatever barriers they have", async () => {
    const k = new KernelBuilder();
    const y = k.buffer("y", i32);
    const t = k.builtin("threadIndexX");
    storeAt(k, 10, y, t, t);
    barrier(k);
    await expect(
      run({ kernel: k.build(), grid: [2, 1, 1], args: { y: new Int32Array(32) } }),
    ).rejects.toMatchObject({ fault: "race" });
    await expect(
      run({ kernel: k.build(), grid: [1, 1, 1], args: { y: new Int32Array(32) } }),
    ).resolves.toBeDefined();
  });

  it("not through a barrier of one block", async () => {
    const k = new KernelBuilder();
    const y = k.buffer("y", i32);
    const t = k.builtin("threadIndexX");
    k.store(y, t, t);
    barrier(k);
    k.store(y, k.calculate("xor", t, I(32)), t);
    expect(await faultOf(k.build({ block: [64, 1, 1] }), { y: new Int32Array(64) })).toEqual(fault("none"));
  });

  it("the same buffer as input and output", async () => {
    const k = new KernelBuilder();
    const x = k.buffer("x", i32, "read");
    const y = k.buffer("y", i32, "write");
    const t = k.builtin("threadIndexX");
    const v = loadAt(k, 10, x, k.calculate("xor", t, I(1)));
    storeAt(k, 20, y, t, v);
    const data = new Int32Array(32);
    expect(await faultOf(k.build(), { x: data, y: data })).toEqual(fault("race", 10, 20));
    expect(await faultOf(k.build(), { x: data, y: new Int32Array(32) })).toEqual(fault("none"));
  });

  /** The last block to finish sums what all have written. */
  function lastBlock(order: "relaxed" | "acquireRelease", fences: boolean): KernelIr {
    const k = new KernelBuilder();
    const data = k.buffer("data", i32);
    const counter = k.buffer("counter", i32);
    const t = k.builtin("threadIndexX");
    const b = k.builtin("blockIndexX");
    const last = k.shared("last", i32, 1);
    storeAt(k, 10, data, k.calculate("add", k.calculate("mul", b, I(32)), t), b);
    if (fences) k.effect("fence", [], { scope: "device" });
    barrier(k);
    k.if(k.compare("equal", t, I(0)), () => {
      const old = k.op("atomic", { element: i32, lanes: 1 }, [I(0), I(1)], {
        array: { kind: "buffer", parameter: counter },
        offset: 0,
        operation: "add",
        order,
        scope: "device",
      });
      k.store(last, I(0), old);
    });
    barrier(k);
    if (fences) k.effect("fence", [], { scope: "device" });
    k.if(k.compare("equal", k.load(last, I(0)), I(3)), () => {
      const other = k.variable("other", i32);
      k.loop(I(0), I(4), I(1), (n) =>
        k.write(other, loadAt(k, 20, data, k.calculate("add", k.calculate("mul", n, I(32)), t))),
      );
    });
    return k.build();
  }
  it("a last block that acquires what others released", async () => {
    const args = { data: new Int32Array(128), counter: new Int32Array(1) };
    await run({ kernel: lastBlock("acquireRelease", false), grid: [4, 1, 1], args });
    expect(args.counter[0]).toBe(4);
  });
  it("a last block behind fences", async () => {
    // Every thread fences, and thread 0's atomic, behind a barrier, speaks for all.
    const args = { data: new Int32Array(128), counter: new Int32Array(1) };
    await run({ kernel: lastBlock("relaxed", true), grid: [4, 1, 1], args });
    expect(args.counter[0]).toBe(4);
  });
  it("a last block without order", async () => {
    const args = { data: new Int32Array(128), counter: new Int32Array(1) };
    await expect(run({ kernel: lastBlock("relaxed", false), grid: [4, 1, 1], args })).rejects.toMatchObject({
      fault: "race",
      details: { positions: [{ line: 20 }, { line: 10 }] },
    });
  });
});

describe("accesses", () => {
  const simple = (build: (k: KernelBuilder, t: IrValue) => void): KernelIr => {
    const k = new KernelBuilder();
    const t = k.builtin("threadIndexX");
    build(k, t);
    return k.build();
  };
  it("out of bounds, loads and stores, below and above", async () => {
    const x = new Float32Array(40);
    const out = (build: (k: KernelBuilder, t: IrValue) => void) => faultOf(simple(build), { x });
    expect(await out((k, t) => void loadAt(k, 7, k.buffer("x", f32), k.calculate("add", t, I(9))))).toEqual(
      fault("outOfBounds", 7),
    );
    expect(await out((k, t) => storeAt(k, 7, k.buffer("x", f32), k.calculate("sub", t, I(1)), F(0)))).toEqual(
      fault("outOfBounds", 7),
    );
    expect(await out((k, t) => storeAt(k, 7, k.shared("s", f32, 31), t, F(0)))).toEqual(
      fault("outOfBounds", 7),
    );
    expect(await out((k, t) => void loadAt(k, 7, k.table("c", f32, [1, 2]), t))).toEqual(
      fault("outOfBounds", 7),
    );
    expect(
      await out((k, t) => void loadAt(k, 7, k.buffer("x", f32), k.calculate("mul", t, I(2)), { lanes: 2 })),
    ).toEqual(fault("outOfBounds", 7));
    await expect(
      run({
        kernel: simple((k, t) => void k.load(k.buffer("x", f32), k.calculate("add", t, I(9)))),
        args: { x },
      }),
    ).rejects.toThrow(
      "kernel test, block (0, 0, 0): thread 31: element 40 of array x, which has 40 at kernel.ts:3:1",
    );
  });
  it("misaligned vectors", async () => {
    const x = new Float32Array(80);
    expect(
      await faultOf(
        simple((k, t) => void loadAt(k, 7, k.buffer("x", f32), k.calculate("mul", t, I(2)), { lanes: 4 })),
        { x },
      ),
    ).toEqual(fault("misaligned", 7));
    expect(
      await faultOf(simple((k, t) => storeAt(k, 7, k.shared("s", f32, 80), t, constant(f32, 1, 2)))),
    ).toEqual(fault("misaligned", 7));
  });
  it("shared memory that nobody wrote", async () => {
    expect(await faultOf(simple((k, t) => void loadAt(k, 7, k.shared("s", f32, 32), t)))).toEqual(
      fault("unwrittenShared", 7),
    );
  });
  it("variables that nobody assigned", async () => {
    const kernel = simple((k, t) => {
      const v = k.variable("v", f32);
      const y = k.buffer("y", f32);
      k.if(k.compare("less", t, I(30)), () => k.write(v, F(1)));
      k.store(y, t, k.at(7).read(v));
    });
    const y = new Float32Array(32);
    expect(await faultOf(kernel, { y })).toEqual(fault("uninitialisedRegister", 7));
    expect(y[29]).toBe(y[29]);
  });
  it("assertions", async () => {
    const kernel = simple((k, t) =>
      effectAt(k, 7, "assert", [k.compare("notEqual", t, I(5))], { message: "no five" }),
    );
    expect(await faultOf(kernel)).toEqual(fault("assert", 7));
    await expect(run({ kernel })).rejects.toThrow("thread 5: assertion failed: no five");
  });
  it("division by zero is reported, or an error", async () => {
    const kernel = simple((k, t) => {
      const y = k.buffer("y", i32);
      k.store(y, t, calculateAt(k, 7, "div", I(8), k.calculate("sub", t, I(3))));
    });
    const y = new Int32Array(32);
    const backend = await run({ kernel, args: { y } });
    expect(y[3]).toBe(8);
    expect(backend.reports).toHaveLength(1);
    expect(backend.reports[0]!.message).toContain("integer division of 8 by zero at kernel.ts:7:1");
    expect(await faultOf(kernel, { y }, { strictIntegers: true })).toEqual(fault("integerDivision", 7));
  });
});

describe("coming together", () => {
  it("a collective in one branch", async () => {
    const k = new KernelBuilder();
    const t = k.builtin("threadIndexX");
    ifAt(
      k,
      5,
      k.compare("less", t, I(16)),
      () => void k.at(7).op("shuffle", { element: i32, lanes: 1 }, [t, I(1)], { mode: "xor", width: 32 }),
    );
    const found = await faultOf(k.build());
    expect(found[0]).toBe("divergentCollective");
    expect(found[1]).toBe(7);
  });
  it("a collective that exited lanes need not reach", async () => {
    const k = new KernelBuilder();
    const y = k.buffer("y", i32);
    const t = k.builtin("threadIndexX");
    k.if(
      k.compare("less", t, I(16)),
      () => {
        const v = k.op("shuffle", { element: i32, lanes: 1 }, [t, I(1)], { mode: "xor", width: 32 });
        k.store(y, t, v);
      },
      () => k.jump("exit"),
    );
    const out = new Int32Array(32);
    expect(await faultOf(k.build(), { y: out })).toEqual(fault("none"));
    expect([...out.slice(0, 4)]).toEqual([1, 0, 3, 2]);
  });
  it("a barrier in one branch, and two barriers at once", async () => {
    const k = new KernelBuilder();
    const t = k.builtin("threadIndexX");
    k.if(k.compare("less", t, I(16)), () => k.at(7).effect("blockBarrier", [], {}));
    const found = await faultOf(k.build({ block: [64, 1, 1] }));
    expect(found.slice(0, 2)).toEqual(["divergentBarrier", 7]);
    const k2 = new KernelBuilder();
    const w = k2.builtin("subgroupIndex");
    k2.if(
      k2.compare("equal", w, I(0)),
      () => k2.at(7).effect("blockBarrier", [], {}),
      () => k2.at(9).effect("blockBarrier", [], {}),
    );
    expect(await faultOf(k2.build({ block: [64, 1, 1] }))).toEqual(fault("divergentBarrier", 9, 7));
  });
  it("a loop of different lengths around a barrier", async () => {
    const k = new KernelBuilder();
    const t = k.builtin("threadIndexX");
    loopAt(k, 5, I(0), k.calculate("and", t, I(3)), I(1), () => k.at(7).effect("blockBarrier", [], {}));
    expect(await faultOf(k.build())).toEqual(fault("divergentBarrier", 7, 5));
  });
  it("warps that have ended are not waited for", async () => {
    const k = new KernelBuilder();
    const w = k.builtin("subgroupIndex");
    k.if(k.compare("equal", w, I(1)), () => k.jump("exit"));
    barrier(k);
    expect(await faultOf(k.build({ block: [96, 1, 1] }))).toEqual(fault("none"));
  });
  it("a deadlock says who waits where", async () => {
    const k = new KernelBuilder();
    const w = k.builtin("subgroupIndex");
    k.if(k.compare("equal", w, I(0)), () =>
      k.at(7).effect("namedBarrier", [I(1)], { action: "sync", threads: 64 }),
    );
    expect(await faultOf(k.build({ block: [64, 1, 1] }))).toEqual(fault("deadlock", 7));
  });
  it("a loop that waits for memory that nobody changes", async () => {
    const k = new KernelBuilder();
    const flag = k.buffer("flag", i32);
    whileAt(
      k,
      7,
      () => k.compare("equal", k.load(flag, I(0), { cache: "volatile" }), I(0)),
      () => {},
    );
    expect(await faultOf(k.build(), { flag: new Int32Array(1) })).toEqual(fault("deadlock", 7));
  });
});

describe("loops without an end", () => {
  it("are found in single lanes, too", async () => {
    const k = new KernelBuilder();
    const t = k.builtin("threadIndexX");
    whileAt(
      k,
      7,
      () => k.compare("less", t, I(64)),
      () => {},
    );
    expect(await faultOf(k.build())).toEqual(fault("deadlock", 7));
  });
});

describe("named barriers", () => {
  /** Warp 0 writes and arrives, warp 1 waits and reads; warp 2 looks on. */
  function handOver(withBarrier: boolean): KernelIr {
    const k = new KernelBuilder();
    const s = k.shared("s", i32, 32);
    const w = k.builtin("subgroupIndex");
    const lane = k.builtin("lane");
    k.if(k.compare("equal", w, I(0)), () => {
      storeAt(k, 10, s, lane, lane);
      if (withBarrier) k.effect("namedBarrier", [I(2)], { action: "arrive", threads: 64 });
    });
    k.if(k.compare("equal", w, I(1)), () => {
      if (withBarrier) k.effect("namedBarrier", [I(2)], { action: "sync", threads: 64 });
      loadAt(k, 20, s, lane);
    });
    return k.build({ block: [96, 1, 1] });
  }
  it.each(schedules)("order what was before and after, %o", async (schedule) => {
    expect(await faultOf(handOver(true), {}, { schedule })).toEqual(fault("none"));
    expect((await faultOf(handOver(false), {}, { schedule }))[0]).toMatch(/race|unwritten/);
  });
  it("must agree on their threads", async () => {
    const k = new KernelBuilder();
    const w = k.builtin("subgroupIndex");
    k.if(k.compare("equal", w, I(0)), () =>
      k.at(7).effect("namedBarrier", [I(1)], { action: "arrive", threads: 64 }),
    );
    k.if(k.compare("equal", w, I(1)), () =>
      k.at(9).effect("namedBarrier", [I(1)], { action: "sync", threads: 96 }),
    );
    expect(await faultOf(k.build({ block: [96, 1, 1] }))).toEqual(fault("divergentBarrier", 9, 7));
  });
});
