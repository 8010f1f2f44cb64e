import {
  AbortedError,
  ArgumentError,
  type Device,
  f16,
  f32,
  i8,
  i32,
  open,
  UnsupportedError,
} from "tilewright";
import { fmaOperator, type GemmOptions, type GemmParams, planGemm, tuneGemm } from "tilewright/gemm";
import { memoryStore, usualStore } from "tilewright/tuning";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createPaperDevice } from "../cli/paper-device.ts";
import { nvidiaTarget } from "../target/nvidia.ts";
import { paramCandidates, textOf } from "./param-candidates.ts";
import { resolve } from "./resolve.ts";
import { decodeParams, deviceKey, encodeParams, subjectKey, tunedParams } from "./tuned-params.ts";

let device: Device;
beforeEach(async () => {
  device = await open({ kind: "simulator", simulator: { checks: false } });
});
afterEach(() => {
  vi.restoreAllMocks();
  usualStore().clear();
  device.dispose();
});

const operator = fmaOperator({ laneRows: 4, laneColumns: 8, rows: 2, columns: 2 });
const problem = { m: 24, n: 40, k: 17, a: f32, operator } as const;

/** The device's clock says these seconds for the candidates in their order, and again when the finalists are timed. */
function fakeClock(seconds: readonly number[]): void {
  const finals = seconds.toSorted((x, y) => x - y);
  let calls = 0;
  vi.spyOn(device, "time").mockImplementation(async (enqueue) => {
    enqueue();
    const call = calls++;
    return call < seconds.length ? seconds[call]! : finals[(call - seconds.length) % finals.length]!;
  });
}

describe("tuneGemm", () => {
  it("keeps the fastest shape, and later plans take it and say so", async () => {
    fakeClock([4, 3, 1, 2]);
    const progress = vi.fn();
    const tuning = await tuneGemm(device, problem, { most: 4, onProgress: progress });
    expect([tuning.seconds, tuning.usualSeconds, tuning.measured.length]).toEqual([1, 4, 4]);
    expect(progress.mock.lastCall).toEqual([{ done: 4, total: 4, seconds: 1 }]);
    const [a, b] = [device.array(f32, [24, 17]), device.array(f32, [17, 40])];
    using plan = await planGemm(a, b, { operator, schedule: "register-staged" });
    expect(plan.kind.params).toEqual(tuning.params);
    expect(plan.explain()).toContain("the fastest that tuneGemm found on this device");
    // Sizes of another magnitude are another subject.
    const large = device.array(f32, [300, 300]);
    using other = await planGemm(large, large, { operator, schedule: "register-staged" });
    expect(other.explain()).not.toContain("tuneGemm");
  });

  it("does not count shapes whose results are wrong", async () => {
    fakeClock([1, 2, 3]);
    const arrays = Object.getPrototypeOf(device.array(f32, [1]));
    vi.spyOn(arrays, "readBits").mockImplementationOnce(async function (this: {
      read(): Promise<Float32Array>;
    }) {
      const values = await this.read();
      values[5]! += 1;
      return values;
    });
    const tuning = await tuneGemm(device, problem, { most: 2, store: memoryStore() });
    expect(tuning.refused).toEqual([
      { params: expect.anything(), reason: "its result is wrong at row 0, column 5" },
    ]);
    expect(tuning.measured.length).toBe(1);
  });

  it.each([
    ["f16 summed in f32, B transposed", { a: f16, layout: "nt" }],
    ["bytes, A transposed", { a: i8, layout: "tn" }],
    ["bytes into bytes, which saturate", { a: i8, d: i8 }],
  ] as const)("verifies %s exactly", async (_name, types) => {
    fakeClock([2, 1]);
    const tuning = await tuneGemm(
      device,
      { ...problem, ...types, k: 300 },
      { most: 2, store: memoryStore() },
    );
    expect(tuning.refused).toEqual([]);
    expect(tuning.measured.length).toBe(2);
  });

  it("goes on where it was stopped, and plans take the fastest meanwhile", async () => {
    fakeClock([4, 1, 3, 2]);
    const store = memoryStore();
    const controller = new AbortController();
    const stopped = tuneGemm(device, problem, {
      most: 6,
      store,
      signal: controller.signal,
      onProgress: ({ done }) => done === 4 && controller.abort(),
    });
    await expect(stopped).rejects.toThrow(AbortedError);
    const [a, b] = [device.array(f32, [24, 17]), device.array(f32, [17, 40])];
    const { kind, schedule, ...launch } = resolve(a, b, { operator });
    const candidates = paramCandidates(schedule, kind, launch, 6);
    expect(tunedParams(schedule, kind, launch, store)).toEqual(candidates[1]);

    vi.mocked(device.time).mockReset();
    fakeClock([6, 5, 1, 2, 3, 4]);
    const timedAt: number[] = [];
    const onProgress = (): unknown => timedAt.push(vi.mocked(device.time).mock.calls.length);
    const tuning = await tuneGemm(device, problem, { most: 6, store, onProgress });
    expect(timedAt.slice(0, 6)).toEqual([0, 0, 0, 0, 0, 1]);
    expect(tuning.measured.length).toBe(6);
    // Nothing is left of the unfinished search: another begins anew.
    const place = `${subjectKey(schedule, kind, launch.problem)}, unfinished`;
    expect(store.get(deviceKey(launch.problem), place)).toBeUndefined();
  });

  it("stops when told, and refuses nonsense", async () => {
    const signal = AbortSignal.abort();
    await expect(tuneGemm(device, problem, { signal })).rejects.toThrow(AbortedError);
    await expect(tuneGemm(device, problem, { most: 0 })).rejects.toThrow(ArgumentError);
    await expect(tuneGemm(device, { ...problem, m: 0 })).rejects.toThrow(/m is a whole number from 1/);
    vi.spyOn(device, "compile").mockRejectedValue(new Error("no compiler"));
    await expect(tuneGemm(device, problem, { most: 2 })).rejects.toThrow(UnsupportedError);
    await expect(tuneGemm(device, problem, { most: 2 })).rejects.toThrow(/none of 2 candidates.*no compiler/);
  });
});

describe("params from a store", () => {
  const params: GemmParams = { block: { m: 16, n: 32, k: 8 }, warps: { m: 2, n: 1 }, groupRows: 4 };
  const subject = () => {
    const [a, b] = [device.array(f32, [24, 17]), device.array(f32, [17, 40])];
    return resolve(a, b, { operator, schedule: "register-staged" });
  };

  it("are read back as written", () => {
    expect(decodeParams(JSON.parse(JSON.stringify(encodeParams(params))))).toEqual(params);
    const store = memoryStore();
    const { kind, schedule, ...launch } = subject();
    store.put(deviceKey(launch.problem), subjectKey(schedule, kind, launch.problem), encodeParams(params));
    expect(tunedParams(schedule, kind, launch, store)).toEqual(params);
  });

  it.each([
    ["nothing", null],
    ["text", "16x16"],
    ["no block", { warps: { m: 1, n: 1 }, groupRows: 1 }],
    ["a fraction", { block: { m: 16.5, n: 16, k: 8 }, warps: { m: 1, n: 1 }, groupRows: 1 }],
    ["a negative size", { block: { m: -16, n: 16, k: 8 }, warps: { m: 1, n: 1 }, groupRows: 1 }],
    ["too large a size", { block: { m: 2 ** 20, n: 16, k: 8 }, warps: { m: 1, n: 1 }, groupRows: 1 }],
    [
      "more threads than a block has",
      { block: { m: 1024, n: 512, k: 8 }, warps: { m: 32, n: 32 }, groupRows: 1 },
    ],
    [
      "what the operator does not divide",
      { block: { m: 20, n: 16, k: 8 }, warps: { m: 2, n: 1 }, groupRows: 1 },
    ],
    [
      "more shared memory than there is",
      { block: { m: 1024, n: 1024, k: 1024 }, warps: { m: 1, n: 1 }, groupRows: 1 },
    ],
  ])("are ignored if they are %s", (_name, value) => {
    const store = memoryStore();
    const { kind, schedule, ...launch } = subject();
    store.put(deviceKey(launch.problem), subjectKey(schedule, kind, launch.problem), value);
    expect(tunedParams(schedule, kind, launch, store)).toBeUndefined();
  });
});

it("candidates begin with the usual shape, fit the device, and differ", () => {
  const a = device.array(i32, [512, 512]);
  const { kind, schedule, ...launch } = resolve(a, a, { schedule: "register-staged" });
  const candidates = paramCandidates(schedule, kind, launch, 60);
  expect(candidates.length).toBe(60);
  expect(candidates[0]).toEqual(kind.params);
  expect(new Set(candidates.map(textOf)).size).toBe(60);
  for (const { block, warps } of candidates) {
    expect(warps.m * warps.n * 32).toBeLessThanOrEqual(1024);
    expect((block.m * block.n) / (warps.m * warps.n * 32)).toBeLessThanOrEqual(128);
  }
});

describe("on paper", () => {
  const hopper = createPaperDevice(nvidiaTarget("sm_90a"));
  const candidatesOf = (size: number, options: GemmOptions = {}): readonly GemmParams[] => {
    const a = hopper.empty(f16, [size, size]);
    const { kind, schedule, ...launch } = resolve(a, a, options);
    return paramCandidates(schedule, kind, launch, 40);
  };
  const has = (candidates: readonly GemmParams[], wanted: object): void =>
    expect(candidates).toContainEqual(expect.objectContaining(wanted));

  it("warpgroups offer wide tiles, tiles in turn, and orders", () => {
    const candidates = candidatesOf(8192);
    has(candidates, { block: { m: 128, n: 256, k: 64 }, groupRows: 8 });
    has(candidates, { block: { m: 256, n: 128, k: 64 }, warps: { m: 8, n: 1 }, groupRows: 32 });
    has(candidates, { block: { m: 128, n: 128, k: 64 }, warps: { m: 4, n: 1 } });
    expect(candidates.every(({ splitK }) => splitK === undefined)).toBe(true);
  });

  it("warpgroups offer parts of K where tiles are few", () => {
    const a = hopper.empty(f16, [128, 16384]);
    const { kind, schedule, ...launch } = resolve(a, a.transposed, { schedule: "warpgroup" });
    expect(paramCandidates(schedule, kind, launch, 12).some(({ splitK = 1 }) => splitK > 1)).toBe(true);
  });

  it("multistage offers rings of several lengths", () => {
    const candidates = candidatesOf(4096, { schedule: "multistage" });
    expect(new Set(candidates.map(({ stages }) => stages)).size).toBeGreaterThan(1);
  });
});
