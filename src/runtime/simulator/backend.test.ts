import { describe, expect, it } from "vitest";
import { serviceNames } from "../../codegen/javascript/services.ts";
import {
  AbortedError,
  ArgumentError,
  DeviceError,
  DisposedError,
  SimulationError,
  UnsupportedError,
} from "../../errors.ts";
import { constant, KernelBuilder } from "../../ir/builder-for-tests.ts";
import type { KernelIr, Operand } from "../../ir/nodes.ts";
import { scalar } from "../../ir/nodes.ts";
import { nvidiaTarget } from "../../target/nvidia.ts";
import { simulatorFacts } from "../../target/simulator.ts";
import { f32, i32, index } from "../../types/types.ts";
import { createSimulatorBackend } from "./backend.ts";
import { load, run } from "./harness-for-tests.ts";
import { loadProgram } from "./load-program.ts";
import { services } from "./services.ts";

const I = (value: number): Operand => constant(i32, value);

/** y[i] = y[i] + 1, `turns` times. */
function increment(turns = 1, threads = 32): KernelIr {
  const k = new KernelBuilder();
  const y = k.buffer("y", i32);
  const i = k.calculate(
    "add",
    k.builtin("threadIndexX"),
    k.calculate("mul", k.builtin("blockIndexX"), I(threads)),
  );
  k.loop(I(0), I(turns), I(1), () => k.store(y, i, k.calculate("add", k.load(y, i), I(1))));
  return k.build({ block: [threads, 1, 1] });
}

describe("the queue", () => {
  it("keeps writes, launches, copies, fills and reads in order", async () => {
    const y = new Int32Array(64);
    const { backend, executable, prepared } = await load({ kernel: increment(), args: { y } });
    const other = backend.allocate(256);
    backend.fill(other, 0, 256, 0x01010101);
    const values = (executable as unknown as { readonly module: unknown }) && prepared;
    backend.launch(executable, [2, 1, 1], values);
    backend.launch(executable, [2, 1, 1], prepared);
    const target = (prepared as unknown as { bindings: { buffer: never }[] }).bindings[0]!.buffer;
    backend.copy(target, 0, other, 0, 128);
    const bytes = new Uint8Array(4).fill(7);
    backend.write(target, 0, bytes);
    bytes.fill(9);
    backend.launch(executable, [2, 1, 1], prepared);
    const [first, second] = [new Int32Array(64), new Int32Array(64)];
    await Promise.all([
      backend.read(target, 0, new Uint8Array(first.buffer)),
      backend.read(other, 0, new Uint8Array(second.buffer)),
    ]);
    expect(first[0]).toBe(0x07070707 + 1);
    expect(first[1]).toBe(3);
    expect([...second.slice(30, 34)]).toEqual([2, 2, 0x01010101, 0x01010101]);
  });

  it("stays responsive, reports progress and obeys a signal", async () => {
    const progress: number[] = [];
    const { backend, executable, prepared } = await load({
      kernel: increment(20_000),
      args: { y: new Int32Array(3200) },
      options: {
        onProgress: ({ kernel, done, total }) => {
          expect([kernel, total]).toEqual(["test", 100]);
          progress.push(done);
        },
      },
    });
    backend.launch(executable, [100, 1, 1], prepared);
    let ticks = 0;
    const timer = setInterval(() => ticks++, 1);
    const controller = new AbortController();
    backend.setSignal(controller.signal);
    setTimeout(() => controller.abort(), 200);
    await expect(backend.sync()).rejects.toBeInstanceOf(AbortedError);
    clearInterval(timer);
    expect(ticks).toBeGreaterThan(0);
    expect(progress.length).toBeGreaterThan(0);
    backend.setSignal(undefined);
    await backend.sync();
  });

  it("rejects the next sync with a fault, and names it ever after", async () => {
    const { backend, executable, prepared } = await load({
      kernel: increment(),
      args: { y: new Int32Array(40) },
    });
    backend.launch(executable, [1, 1, 1], prepared);
    backend.launch(executable, [2, 1, 1], prepared);
    await expect(backend.sync()).rejects.toBeInstanceOf(SimulationError);
    await expect(backend.sync()).rejects.toThrow(
      /failed before, in launch 2 of kernel test: .*element 40 of array y/,
    );
    await expect(backend.read(backend.allocate(4), 0, new Uint8Array(4))).rejects.toBeInstanceOf(DeviceError);
  });

  it("refuses bad grids, ranges, foreign buffers and use after disposal at once", async () => {
    const { backend, executable, prepared } = await load({
      kernel: increment(),
      args: { y: new Int32Array(32) },
    });
    expect(() => backend.launch(executable, [0, 1, 1], prepared)).toThrow(ArgumentError);
    expect(() => backend.launch(executable, [1, 70000, 1], prepared)).toThrow(ArgumentError);
    const buffer = backend.allocate(16);
    expect(() => backend.write(buffer, 8, new Uint8Array(9))).toThrow(ArgumentError);
    expect(() => backend.write({ bytes: 16 }, 0, new Uint8Array(1))).toThrow(ArgumentError);
    expect(() => backend.allocate(2 ** 50)).toThrow(/out of memory/);
    backend.free(buffer);
    expect(() => backend.write(buffer, 0, new Uint8Array(1))).toThrow(DisposedError);
    prepared.dispose();
    expect(() => backend.launch(executable, [1, 1, 1], prepared)).toThrow(DisposedError);
    backend.dispose();
    expect(() => backend.allocate(1)).toThrow(DisposedError);
  });

  it("times what it is given", async () => {
    const { backend, executable, prepared } = await load({
      kernel: increment(1000),
      args: { y: new Int32Array(32) },
    });
    expect(await backend.time(() => backend.launch(executable, [1, 1, 1], prepared))).toBeGreaterThan(0);
  });
});

describe("blocks that wait for each other through memory", () => {
  /** Block b waits until block b + 1 has written its turn. */
  function chain(fence: boolean): KernelIr {
    const k = new KernelBuilder();
    const turn = k.buffer("turn", i32);
    const data = k.buffer("data", i32);
    const b = k.builtin("blockIndexX");
    const t = k.builtin("threadIndexX");
    const last = k.calculate("sub", k.builtin("gridSizeX"), I(1));
    k.if(k.compare("equal", t, I(0)), () => {
      k.if(
        k.compare("less", b, last),
        () => {
          k.while(
            () =>
              k.compare("notEqual", k.load(turn, I(0), { cache: "volatile" }), k.calculate("sub", last, b)),
            () => {},
          );
          if (fence) k.effect("fence", [], { scope: "device" });
          k.store(data, b, k.calculate("add", k.load(data, k.calculate("add", b, I(1))), I(1)));
        },
        () => k.store(data, b, I(100)),
      );
      if (fence) k.effect("fence", [], { scope: "device" });
      k.effect("store", [I(0), k.calculate("add", k.calculate("sub", last, b), I(1))], {
        array: { kind: "buffer", parameter: turn },
        offset: 0,
        cache: "volatile",
      });
    });
    return k.build();
  }
  it("all get their turn", async () => {
    const data = new Int32Array(20);
    await run({ kernel: chain(true), grid: [20, 1, 1], args: { turn: new Int32Array(1), data } });
    expect([...data]).toEqual([...data].map((_, n) => 119 - n));
  });
  it("need fences for their data", async () => {
    await expect(
      run({
        kernel: chain(false),
        grid: [20, 1, 1],
        args: { turn: new Int32Array(1), data: new Int32Array(20) },
      }),
    ).rejects.toMatchObject({ fault: "race" });
  });
});

describe("parameters", () => {
  it("give scalars, sizes and strides", async () => {
    const k = new KernelBuilder();
    const x = k.buffer("x", f32, "read", 2);
    const y = k.buffer("y", f32);
    const factor = k.scalarParameter("factor", f32);
    const t = k.builtin("threadIndexX");
    const at = k.calculate("mul", k.convert(t, index), k.stride(x, 0));
    k.if(k.compare("less", t, k.size(x, 0)), () =>
      k.store(y, t, k.calculate("mul", k.load(x, at), k.parameter(factor))),
    );
    const y0 = new Float32Array(32).fill(-1);
    await run({
      kernel: k.build(),
      args: { x: Float32Array.from({ length: 100 }, (_, n) => n), y: y0, factor: 0.1 },
      shapes: { x: { sizes: [20, 5], strides: [5, 1] } },
    });
    expect([...y0]).toEqual(
      Array.from({ length: 32 }, (_, n) => (n < 20 ? Math.fround(5 * n * Math.fround(0.1)) : -1)),
    );
  });
});

describe("print", () => {
  it("shows values between texts", async () => {
    const k = new KernelBuilder();
    const t = k.builtin("threadIndexX");
    k.if(k.compare("equal", t, I(3)), () =>
      k.effect("print", [t, k.op("compose", { element: i32, lanes: 2 }, [t, I(8)], {})], {
        parts: ["t = ", ", v = ", "!"],
      }),
    );
    const texts: string[] = [];
    await run({ kernel: k.build(), options: { onPrint: (text) => texts.push(text) } });
    expect(texts).toEqual(["t = 3, v = (3, 8)!"]);
  });
});

describe("counters", () => {
  it("count sectors, conflicts, instructions and barriers of chosen blocks", async () => {
    const k = new KernelBuilder();
    const [x, y] = [k.buffer("x", f32, "read"), k.buffer("y", f32)];
    const s = k.shared("s", f32, 1024);
    const t = k.builtin("threadIndexX");
    k.store(s, k.calculate("mul", t, I(32)), k.load(x, t));
    k.effect("blockBarrier", [], {});
    k.store(y, k.calculate("mul", t, I(8)), k.load(s, k.calculate("mul", t, I(32))));
    k.op("shuffle", scalar(i32), [t, I(1)], { mode: "xor", width: 32 });
    const { backend, executable, prepared } = await load({
      kernel: k.build(),
      args: { x: new Float32Array(32), y: new Float32Array(256) },
      options: { counters: true },
    });
    const counters = await backend.profile(executable, [4, 1, 1], prepared, { blocks: [[2, 0, 0]] });
    expect(counters).toMatchObject({
      globalLoadSectors: 4,
      globalStoreSectors: 32,
      globalTransactions: 1 + 8,
      sharedWavefronts: 64,
      sharedBankConflicts: 62,
      barriers: 1,
      shuffles: 1,
      blocks: 1,
    });
    expect(counters.instructions).toMatchObject({ memory: 128, synchronisation: 32 });
  });
  it("need text that counts", async () => {
    const { backend, executable, prepared } = await load({
      kernel: increment(),
      args: { y: new Int32Array(32) },
    });
    await expect(backend.profile(executable, [1, 1, 1], prepared)).rejects.toBeInstanceOf(ArgumentError);
  });
});

describe("generated text", () => {
  it("finds every service it names", () => {
    for (const name of serviceNames) expect(services[name], name).toBeDefined();
  });
  it("cannot be loaded where a policy forbids functions from text", () => {
    const { Function: original } = globalThis;
    globalThis.Function = class {
      constructor() {
        throw new EvalError("Refused to evaluate a string as JavaScript");
      }
    } as unknown as FunctionConstructor;
    try {
      expect(() => loadProgram({ name: "test", text: "", hash: "", ir: increment(), slots: [] })).toThrow(
        UnsupportedError,
      );
    } finally {
      globalThis.Function = original;
    }
  });
});

describe("facts", () => {
  it("follow the width, imitate a target, take replacements", () => {
    expect(simulatorFacts().mma.length).toBeGreaterThan(0);
    expect(simulatorFacts({ subgroupWidth: 8 })).toMatchObject({
      subgroup: { width: 8 },
      mma: [],
      language: "javascript",
    });
    expect(simulatorFacts({ imitate: nvidiaTarget("sm_80") })).toMatchObject({
      bulkCopy: false,
      language: "javascript",
      name: "simulator (sm_80)",
    });
    expect(simulatorFacts({ facts: { asyncCopy: false } }).asyncCopy).toBe(false);
    expect(() => simulatorFacts({ subgroupWidth: 12 })).toThrow(ArgumentError);
    expect(createSimulatorBackend({ checks: false }).mode).toEqual({ checks: false, counters: false });
  });
});
