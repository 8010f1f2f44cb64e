import { describe, expect, it } from "vitest";
import { SimulationError } from "../../errors.ts";
import { constant, KernelBuilder } from "../../ir/builder-for-tests.ts";
import type { KernelIr, Operand, SharedArray, TensorMapParameter } from "../../ir/nodes.ts";
import type { SharedMatrix } from "../../ir/operations.ts";
import { f16FromBits, f16ToBits } from "../../types/bits.ts";
import { bool, f16, f32, i32, u64 } from "../../types/types.ts";
import type { Fault } from "./faults.ts";
import { run, type TestArgument } from "./harness-for-tests.ts";
import type { Schedule } from "./state.ts";

const I = (value: number): Operand => constant(i32, value);
const schedules: readonly (readonly [Schedule])[] = [
  ["forward"],
  ["reverse"],
  [{ seed: 1 }],
  [{ seed: 2 }],
  [{ seed: 3 }],
];
const halves = (count: number, seed = 0): Uint16Array =>
  Uint16Array.from({ length: count }, (_, n) => f16ToBits((((n + seed) * 29) % 17) - 8));

async function faultOf(
  kernel: KernelIr,
  args: Record<string, TestArgument>,
  schedule: Schedule = "forward",
  grid: readonly [number, number, number] = [1, 1, 1],
): Promise<string> {
  try {
    await run({ kernel, args, options: { schedule }, grid });
  } catch (error) {
    if (!(error instanceof SimulationError)) throw error;
    for (const position of error.details.positions) expect(position).toBeDefined();
    return error.fault;
  }
  return "none";
}

/** Every order of execution finds one of the faults. */
async function always(
  kernel: KernelIr,
  args: Record<string, TestArgument>,
  ...faults: readonly Fault[]
): Promise<void> {
  for (const [schedule] of schedules) expect(faults).toContain(await faultOf(kernel, args, schedule));
}

// cp.async --------------------------------------------------------------------------------------------------------------

interface CopySteps {
  readonly commit: boolean;
  readonly wait: number | undefined;
  readonly barrier: boolean;
}

/** Each thread copies 16 bytes; its neighbour reads them. */
function copies({ commit, wait, barrier }: CopySteps, validBytes = 16): KernelIr {
  const k = new KernelBuilder();
  const x = k.buffer("x", i32, "read");
  const y = k.buffer("y", i32);
  const s = k.shared("s", i32, 256);
  const t = k.builtin("threadIndexX");
  const at = k.calculate("mul", t, I(4));
  k.effect("copyAsync", [at, at, I(validBytes)], {
    target: s,
    targetOffset: 0,
    source: { kind: "buffer", parameter: x },
    sourceOffset: 0,
    bytes: 16,
  });
  if (commit) k.effect("copyAsyncCommit", [], {});
  if (wait !== undefined) k.effect("copyAsyncWait", [], { pending: wait });
  if (barrier) k.effect("blockBarrier", [], {});
  k.store(y, at, k.load(s, k.calculate("xor", at, I(128)), { lanes: 4 }));
  return k.build({ block: [64, 1, 1] });
}

const numbers = (): Int32Array => Int32Array.from({ length: 256 }, (_, n) => n + 1);

describe("asynchronous copies of threads", () => {
  const complete: CopySteps = { commit: true, wait: 0, barrier: true };
  it.each(schedules)("land at the wait, %o", async (schedule) => {
    const y = new Int32Array(256);
    await run({ kernel: copies(complete), args: { x: numbers(), y }, options: { schedule } });
    expect([...y]).toEqual([...y].map((_, n) => (n ^ 128) + 1));
  });
  it("fill up with zeros", async () => {
    const y = new Int32Array(256);
    await run({ kernel: copies(complete, 8), args: { x: numbers(), y } });
    expect([...y]).toEqual([...y].map((_, n) => (n % 4 < 2 ? (n ^ 128) + 1 : 0)));
  });
  it.each([
    ["no commit", { ...complete, commit: false }],
    ["no wait", { ...complete, wait: undefined }],
    ["a wait that leaves the group pending", { ...complete, wait: 1 }],
  ] as const)("%s is found", (_, steps) =>
    always(copies(steps), { x: numbers(), y: new Int32Array(256) }, "inFlight"),
  );
  it("no barrier is found", () =>
    always(
      copies({ ...complete, barrier: false }),
      { x: numbers(), y: new Int32Array(256) },
      "race",
      "unwrittenShared",
      "inFlight",
    ));
});

describe("barriers in shared memory and copies of threads", () => {
  function withBarrier(arrive: boolean, wait: boolean): KernelIr {
    const k = new KernelBuilder();
    const x = k.buffer("x", i32, "read");
    const y = k.buffer("y", i32);
    const s = k.shared("s", i32, 256);
    const bars = k.shared("bars", u64, 1, "barrier");
    const t = k.builtin("threadIndexX");
    k.if(k.compare("equal", t, I(0)), () =>
      k.effect("barrierInit", [I(0)], { array: bars, offset: 0, count: 64 }),
    );
    k.effect("blockBarrier", [], {});
    const at = k.calculate("mul", t, I(4));
    k.effect("copyAsync", [at, at], {
      target: s,
      targetOffset: 0,
      source: { kind: "buffer", parameter: x },
      sourceOffset: 0,
      bytes: 16,
    });
    if (arrive) k.effect("copyAsyncArrive", [I(0)], { array: bars, offset: 0 });
    if (wait) k.effect("barrierWait", [I(0), I(0)], { array: bars, offset: 0 });
    k.store(y, at, k.load(s, k.calculate("xor", at, I(128)), { lanes: 4 }));
    return k.build({ block: [64, 1, 1] });
  }
  it.each(schedules)("arrive when the copies are done, %o", async (schedule) => {
    const y = new Int32Array(256);
    await run({ kernel: withBarrier(true, true), args: { x: numbers(), y }, options: { schedule } });
    expect([...y]).toEqual([...y].map((_, n) => (n ^ 128) + 1));
  });
  it("a missing arrival is a deadlock, a missing wait a race", async () => {
    await always(withBarrier(false, true), { x: numbers(), y: new Int32Array(256) }, "deadlock");
    await always(
      withBarrier(true, false),
      { x: numbers(), y: new Int32Array(256) },
      "inFlight",
      "race",
      "unwrittenShared",
    );
  });
  it("one arrival too many", async () => {
    const k = new KernelBuilder();
    const bars = k.shared("bars", u64, 2, "barrier");
    const t = k.builtin("threadIndexX");
    k.if(k.compare("equal", t, I(0)), () => {
      k.effect("barrierInit", [I(1)], { array: bars, offset: 0, count: 2 });
      k.effect("barrierArriveExpect", [I(1), I(64)], { array: bars, offset: 0 });
      k.effect("barrierArrive", [I(1)], { array: bars, offset: 0 });
      k.effect("barrierArrive", [I(1)], { array: bars, offset: 0 });
    });
    expect(await faultOf(k.build(), {})).toBe("barrierPhase");
  });
  it("use without initialisation, and without order behind it", async () => {
    const build = (initialise: boolean): KernelIr => {
      const k = new KernelBuilder();
      const bars = k.shared("bars", u64, 1, "barrier");
      const t = k.builtin("threadIndexX");
      if (initialise)
        k.if(k.compare("equal", t, I(0)), () =>
          k.effect("barrierInit", [I(0)], { array: bars, offset: 0, count: 64 }),
        );
      k.effect("barrierArrive", [I(0)], { array: bars, offset: 0 });
      return k.build({ block: [64, 1, 1] });
    };
    expect(await faultOf(build(false), {})).toBe("barrierPhase");
    expect(await faultOf(build(true), {})).toBe("race");
  });
});

// Tensor copies and warpgroup products ----------------------------------------------------------------------------------

type Omitted =
  | "none"
  | "initFence"
  | "initBarrier"
  | "expect"
  | "fullWait"
  | "emptyWait"
  | "emptyArrive"
  | "warpgroupFence"
  | "commit"
  | "wait"
  | "proxyFence"
  | "storeBarrier"
  | "storeCommit"
  | "storeWait"
  | "lastWait"
  | "halfExpect";

const [M, N, K, stages] = [64, 64, 64, 2] as const;

/**
 * The pipeline of Hopper in small: a producer warp fills a ring of stages by tensor loads, a warpgroup multiplies them,
 * puts the tile into shared memory and stores it by a tensor store, for two tiles one after another.
 */
function pipeline(steps: number, omitted: Omitted, swizzle: 0 | 128 = 128): KernelIr {
  const k = new KernelBuilder();
  const box = swizzle === 128 ? [64, 64] : [8, 64];
  const A = k.tensorMap("a", f16, box, swizzle);
  const B = k.tensorMap("b", f16, box, swizzle);
  const D = k.tensorMap("d", f16, [64, 64]);
  const align = (array: SharedArray, byteOffset: number): SharedArray => ({ ...array, byteOffset });
  const tile = 64 * 64 * 2;
  const sa = align(k.shared("sa", f16, stages * M * K), 0);
  const sb = align(k.shared("sb", f16, stages * N * K), stages * tile);
  const out = align(k.shared("out", f16, M * N), 2 * stages * tile);
  const full = align(k.shared("full", u64, stages, "barrier"), 2 * stages * tile + tile);
  const empty = align(k.shared("empty", u64, stages, "barrier"), 2 * stages * tile + tile + 64);
  const arena = {
    shared: [sa, sb, out, full, empty],
    sharedBytes: 2 * stages * tile + tile + 128,
    sharedAlignment: 1024,
  };
  const t = k.builtin("threadIndexX");
  const lane = k.builtin("lane");
  const elected = (body: () => void): void =>
    k.if(k.op("electOne", { element: bool, lanes: 1 }, [], {}), body);
  k.if(k.compare("equal", t, I(0)), () => {
    for (let s = 0; s < stages; s++) {
      k.effect("barrierInit", [I(s)], { array: full, offset: 0, count: 1 });
      k.effect("barrierInit", [I(s)], { array: empty, offset: 0, count: 1 });
    }
    if (omitted !== "initFence") k.effect("barrierInitFence", [], {});
  });
  if (omitted !== "initBarrier") k.effect("blockBarrier", [], {});
  const tiles = 2;
  const produce = (): void =>
    elected(() => {
      k.loop(I(0), I(tiles * steps), I(1), (step) => {
        const stage = k.calculate("rem", step, I(stages));
        const turn = k.calculate("and", k.calculate("div", step, I(stages)), I(1));
        if (omitted !== "emptyWait")
          k.effect("barrierWait", [stage, k.calculate("xor", turn, I(1))], { array: empty, offset: 0 });
        if (omitted !== "expect")
          k.effect("barrierArriveExpect", [stage, I(omitted === "halfExpect" ? tile : 2 * tile)], {
            array: full,
            offset: 0,
          });
        const target = k.calculate("mul", stage, I(M * K));
        const depth = k.calculate("mul", k.calculate("rem", step, I(steps)), I(K));
        const row = k.calculate("mul", k.calculate("div", step, I(steps)), I(M));
        const load = (map: TensorMapParameter, array: SharedArray, y: Operand): void => {
          for (let part = 0; part < 64 / box[0]!; part++) {
            k.effect("tensorLoad", [target, stage, k.calculate("add", depth, I(part * box[0]!)), y], {
              map,
              target: array,
              targetOffset: part * box[0]! * 64,
              barrier: full,
              barrierOffset: 0,
              multicast: false,
            });
          }
        };
        load(A, sa, row);
        load(B, sb, I(0));
      });
    });
  const sum = k.variable("sum", f32, (M * N) / 128);
  const consume = (): void => {
    const range = { variable: sum, offset: 0, count: sum.count, access: "readwrite" } as const;
    k.loop(I(0), I(tiles), I(1), (number) => {
      k.loop(I(0), I(steps), I(1), (inner) => {
        const step = k.calculate("add", k.calculate("mul", number, I(steps)), inner);
        const stage = k.calculate("rem", step, I(stages));
        const turn = k.calculate("and", k.calculate("div", step, I(stages)), I(1));
        if (omitted !== "fullWait") k.effect("barrierWait", [stage, turn], { array: full, offset: 0 });
        if (omitted !== "warpgroupFence") k.effect("warpgroupFence", [], {});
        const target = k.calculate("mul", stage, I(M * K));
        for (let part = 0; part < 4; part++) {
          const matrix = (array: SharedArray): SharedMatrix =>
            swizzle === 128
              ? { array, offset: 16 * part, swizzle, major: "k", leadingBytes: 16, strideBytes: 1024 }
              : { array, offset: 16 * part * 64, swizzle, major: "k", leadingBytes: 1024, strideBytes: 128 };
          const accumulate = part > 0 ? constant(bool, true) : k.compare("greater", inner, I(0));
          k.effect(
            "warpgroupMma",
            [target, target, accumulate],
            {
              shape: { m: 64, n: N, k: 16 },
              a: f16,
              b: f16,
              accumulator: f32,
              sharedA: matrix(sa),
              sharedB: matrix(sb),
              negateA: false,
              negateB: false,
            },
            [range],
          );
        }
        if (omitted !== "commit") k.effect("warpgroupCommit", [], {});
        if (omitted !== "wait") k.effect("warpgroupWait", [], { pending: 0 });
        if (omitted !== "emptyArrive")
          k.if(k.compare("equal", t, I(0)), () =>
            k.effect("barrierArrive", [stage], { array: empty, offset: 0 }),
          );
      });
      // The last tile's store must have been read.
      if (omitted !== "storeWait")
        k.if(k.compare("equal", t, I(0)), () => k.effect("tensorStoreWait", [], { pending: 0, read: true }));
      k.effect("namedBarrier", [I(1)], { action: "sync", threads: 128 });
      const [group, quad] = [k.calculate("shiftRight", lane, I(2)), k.calculate("and", lane, I(3))];
      const warp = k.builtin("subgroupIndex");
      const base = k.calculate(
        "add",
        k.calculate("mul", k.calculate("add", k.calculate("mul", warp, I(16)), group), I(N)),
        k.calculate("mul", quad, I(2)),
      );
      for (let i = 0; i < sum.count; i++) {
        k.store(out, base, k.convert(k.read(sum, i), f16), 8 * ((i >> 1) % 2) * N + 8 * (i >> 2) + (i & 1));
      }
      if (omitted !== "proxyFence") k.effect("proxyFence", [], {});
      if (omitted !== "storeBarrier") k.effect("namedBarrier", [I(1)], { action: "sync", threads: 128 });
      k.if(k.compare("equal", t, I(0)), () => {
        k.effect("tensorStore", [I(0), I(0), k.calculate("mul", number, I(M))], {
          map: D,
          source: out,
          sourceOffset: 0,
        });
        if (omitted !== "storeCommit") k.effect("tensorStoreCommit", [], {});
      });
    });
    if (omitted !== "lastWait")
      k.if(k.compare("equal", t, I(0)), () => k.effect("tensorStoreWait", [], { pending: 0, read: true }));
  };
  k.roles([
    { name: "consumer", firstWarp: 0, warps: 4, body: consume },
    { name: "producer", firstWarp: 4, warps: 1, body: produce },
  ]);
  return k.build({ block: [160, 1, 1], ...arena });
}

interface Problem {
  readonly args: Record<string, TestArgument>;
  readonly d: Uint16Array;
  readonly expected: readonly number[];
}

function problem(steps: number, rows = 2 * M): Problem {
  const depth = K * steps;
  const [a, b, d] = [halves(rows * depth), halves(N * depth, 5), new Uint16Array(rows * N)];
  const expected = Array.from({ length: rows * N }, (_, e) => {
    const [row, column] = [Math.floor(e / N), e % N];
    let sum = 0;
    for (let k = 0; k < depth; k++)
      sum += f16FromBits(a[row * depth + k]!) * f16FromBits(b[column * depth + k]!);
    return f16FromBits(f16ToBits(sum));
  });
  const tensor = (array: Uint16Array, inner: number, outer: number): TestArgument => ({
    array,
    sizes: [inner, outer],
    strides: [1, inner],
  });
  return { args: { a: tensor(a, depth, rows), b: tensor(b, depth, N), d: tensor(d, N, rows) }, d, expected };
}

describe("a ring of tensor loads, warpgroup products and tensor stores", () => {
  it.each(schedules)("multiplies, %o", async (schedule) => {
    for (const swizzle of [128, 0] as const) {
      const { args, d, expected } = problem(3);
      await run({ kernel: pipeline(3, "none", swizzle), args, options: { schedule } });
      expect([...d].map(f16FromBits)).toEqual(expected);
    }
  });
  it("multiplies without checks", async () => {
    const { args, d, expected } = problem(3);
    await run({ kernel: pipeline(3, "none"), args, options: { checks: false } });
    expect([...d].map(f16FromBits)).toEqual(expected);
  });
  it("reads zeros outside the tensor and stores nothing there", async () => {
    const { args, d, expected } = problem(3, 100);
    await run({ kernel: pipeline(3, "none"), args });
    expect([...d].map(f16FromBits)).toEqual(expected);
  });
  it.each([
    ["initFence", ["proxy"]],
    ["initBarrier", ["barrierPhase", "race"]],
    ["expect", ["deadlock", "expectedBytes"]],
    ["halfExpect", ["expectedBytes", "race", "inFlight"]],
    ["fullWait", ["inFlight", "race", "unwrittenShared"]],
    ["emptyWait", ["race", "inFlight", "barrierPhase", "expectedBytes"]],
    ["emptyArrive", ["deadlock"]],
    ["warpgroupFence", ["missingFence"]],
    ["commit", ["inFlight", "race"]],
    ["wait", ["inFlight", "race"]],
    ["proxyFence", ["proxy"]],
    ["storeBarrier", ["race", "proxy", "unwrittenShared"]],
    ["storeCommit", ["race"]],
    ["storeWait", ["race"]],
    ["lastWait", ["inFlight"]],
  ] as const)("without %s it fails as %o", (omitted, faults) =>
    always(pipeline(3, omitted), problem(3).args, ...faults),
  );
});

describe("warpgroup products", () => {
  /** B of 16 x N and A of 64 x 16 in shared memory, as generic stores put them there. */
  function single(majorB: "k" | "mn", fence: boolean, registersA = false, negate = false): KernelIr {
    const k = new KernelBuilder();
    const a = k.buffer("a", f16, "read");
    const b = k.buffer("b", f16, "read");
    const d = k.buffer("d", f32);
    const sa = k.shared("sa", f16, 64 * 16);
    const sb = k.shared("sb", f16, 16 * 16);
    const t = k.builtin("threadIndexX");
    const lane = k.builtin("lane");
    const warp = k.builtin("subgroupIndex");
    const table = (name: string, length: number, value: (n: number) => number) =>
      k.table(
        name,
        i32,
        Array.from({ length }, (_, n) => value(n)),
      );
    // Core matrices of 8 x 16 bytes without swizzle: neighbours along the contiguous dimension first.
    const placeA = table("placeA", 1024, (n) => {
      const [row, column] = [n >> 4, n & 15];
      return ((row >> 3) * 2 + (column >> 3)) * 64 + (row & 7) * 8 + (column & 7);
    });
    const placeB = table("placeB", 256, (n) => {
      const [depth, column] = [n >> 4, n & 15];
      return majorB === "k"
        ? ((column >> 3) * 2 + (depth >> 3)) * 64 + (column & 7) * 8 + (depth & 7)
        : ((depth >> 3) * 2 + (column >> 3)) * 64 + (depth & 7) * 8 + (column & 7);
    });
    for (let e = 0; e < 8; e++) {
      const from = k.calculate("add", t, I(128 * e));
      k.store(sa, k.load(placeA, from), k.load(a, from));
    }
    for (let e = 0; e < 2; e++) {
      const from = k.calculate("add", t, I(128 * e));
      k.store(sb, k.load(placeB, from), k.load(b, from));
    }
    const [group, quad] = [k.calculate("shiftRight", lane, I(2)), k.calculate("and", lane, I(3))];
    const row = k.calculate("add", k.calculate("mul", warp, I(16)), group);
    const [sum, fragment] = [k.variable("sum", f32, 8), k.variable("fragment", f16, 8)];
    if (registersA) {
      const base = k.calculate("add", k.calculate("mul", row, I(16)), k.calculate("mul", quad, I(2)));
      for (let i = 0; i < 8; i++)
        k.write(fragment, k.load(a, base, { offset: 8 * ((i >> 1) % 2) * 16 + (i % 2) + 8 * (i >> 2) }), i);
    }
    for (let i = 0; i < 8; i++) k.write(sum, constant(f32, 1), i);
    if (fence) k.effect("proxyFence", [], {});
    k.effect("blockBarrier", [], {});
    k.effect("warpgroupFence", [], {});
    const right: SharedMatrix =
      majorB === "k"
        ? { array: sb, offset: 0, swizzle: 0, major: "k", leadingBytes: 128, strideBytes: 256 }
        : { array: sb, offset: 0, swizzle: 0, major: "mn", leadingBytes: 256, strideBytes: 128 };
    const left: SharedMatrix = {
      array: sa,
      offset: 0,
      swizzle: 0,
      major: "k",
      leadingBytes: 128,
      strideBytes: 256,
    };
    k.effect(
      "warpgroupMma",
      registersA ? [I(0), constant(bool, true)] : [I(0), I(0), constant(bool, true)],
      {
        shape: { m: 64, n: 16, k: 16 },
        a: f16,
        b: f16,
        accumulator: f32,
        sharedA: registersA ? undefined : left,
        sharedB: right,
        negateA: negate,
        negateB: false,
      },
      [
        { variable: sum, offset: 0, count: 8, access: "readwrite" },
        ...(registersA ? [{ variable: fragment, offset: 0, count: 8, access: "read" } as const] : []),
      ],
    );
    k.effect("warpgroupCommit", [], {});
    k.effect("warpgroupWait", [], { pending: 0 });
    const base = k.calculate("add", k.calculate("mul", row, I(16)), k.calculate("mul", quad, I(2)));
    for (let i = 0; i < 8; i++)
      k.store(d, base, k.read(sum, i), 8 * ((i >> 1) % 2) * 16 + 8 * (i >> 2) + (i & 1));
    return k.build({ block: [128, 1, 1] });
  }
  const [a, b] = [halves(64 * 16), halves(256, 3)];
  const expected = (sign: number): readonly number[] =>
    Array.from({ length: 1024 }, (_, e) => {
      let sum = 1;
      for (let k = 0; k < 16; k++)
        sum += sign * f16FromBits(a[(e >> 4) * 16 + k]!) * f16FromBits(b[k * 16 + (e & 15)]!);
      return sum;
    });

  it.each([
    ["k", false],
    ["mn", false],
    ["k", true],
    ["mn", true],
  ] as const)("of B %s-major, A in registers: %s", async (major, registers) => {
    for (const negate of [false, true]) {
      const d = new Float32Array(1024);
      await run({ kernel: single(major, true, registers, negate), args: { a, b, d } });
      expect([...d]).toEqual(expected(negate ? -1 : 1));
    }
  });
  it("need the writers' proxy fences", () =>
    always(single("k", false), { a, b, d: new Float32Array(1024) }, "proxy"));
});

describe("clusters", () => {
  /** Block 0 loads a box into all blocks of the cluster; each copies it out and tells block 0. */
  function multicast(omitted: "none" | "clusterBarrier" | "wait" | "mask"): KernelIr {
    const k = new KernelBuilder();
    const x = k.tensorMap("x", i32, [64]);
    const y = k.buffer("y", i32);
    const s = { ...k.shared("s", i32, 64), byteOffset: 0 };
    const bars = { ...k.shared("bars", u64, 2, "barrier"), byteOffset: 256 };
    const t = k.builtin("threadIndexX");
    const rank = k.builtin("clusterRank");
    k.if(k.compare("equal", t, I(0)), () => {
      k.effect("barrierInit", [I(0)], { array: bars, offset: 0, count: 1 });
      k.effect("barrierInit", [I(1)], { array: bars, offset: 0, count: 2 });
      k.effect("barrierInitFence", [], {});
      k.effect("barrierArriveExpect", [I(0), I(256)], { array: bars, offset: 0 });
    });
    if (omitted !== "clusterBarrier") {
      k.effect("clusterBarrier", [], { action: "arrive" });
      k.effect("clusterBarrier", [], { action: "wait" });
    } else k.effect("blockBarrier", [], {});
    k.if(k.calculate("and", k.compare("equal", t, I(0)), k.compare("equal", rank, I(0))), () => {
      k.effect(
        "tensorLoad",
        [
          I(0),
          I(0),
          I(0),
          constant({ ...i32, name: "u32", class: "unsigned" } as never, omitted === "mask" ? 1 : 3),
        ],
        {
          map: x,
          target: s,
          targetOffset: 0,
          barrier: bars,
          barrierOffset: 0,
          multicast: true,
        },
      );
    });
    if (omitted !== "wait") k.effect("barrierWait", [I(0), I(0)], { array: bars, offset: 0 });
    k.store(y, k.calculate("add", k.calculate("mul", rank, I(64)), t), k.load(s, t));
    k.effect("subgroupBarrier", [], {});
    k.if(k.compare("equal", k.builtin("lane"), I(0)), () =>
      k.if(k.compare("less", t, I(32)), () =>
        k.effect("barrierArrive", [I(1), I(0)], { array: bars, offset: 0 }),
      ),
    );
    k.if(k.compare("equal", rank, I(0)), () =>
      k.effect("barrierWait", [I(1), I(0)], { array: bars, offset: 0 }),
    );
    k.effect("clusterBarrier", [], { action: "arrive" });
    k.effect("clusterBarrier", [], { action: "wait" });
    return k.build({ block: [64, 1, 1], cluster: [2, 1, 1], shared: [s, bars], sharedBytes: 272 });
  }
  const input = (): TestArgument => ({
    array: Int32Array.from({ length: 64 }, (_, n) => n + 1),
    sizes: [64],
    strides: [1],
  });

  it.each(schedules)("multicast to all blocks, %o", async (schedule) => {
    const y = new Int32Array(128);
    await run({ kernel: multicast("none"), grid: [2, 1, 1], args: { x: input(), y }, options: { schedule } });
    expect([...y]).toEqual([...y].map((_, n) => (n % 64) + 1));
  });
  it.each([
    ["clusterBarrier", ["race", "barrierPhase", "proxy"]],
    ["wait", ["race", "inFlight", "unwrittenShared"]],
    ["mask", ["expectedBytes", "deadlock"]],
  ] as const)("without %s: %o", async (omitted, faults) => {
    for (const [schedule] of schedules) {
      expect(faults).toContain(
        await faultOf(multicast(omitted), { x: input(), y: new Int32Array(128) }, schedule, [2, 1, 1]),
      );
    }
  });
});
