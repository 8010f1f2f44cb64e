/**
 * @file Blocks that stay and take one tile after another, alone or with two warpgroups in turn. The simulator has one
 * multiprocessor here, so that one block computes everything; GPUs are given more rows than they have multiprocessors for.
 */
import { ArgumentError, type Device, type DeviceKind, e4m3, f16, f32, open } from "tilewright";
import { bias, type GemmOptions, geluTanh, planGemm, reduceRows, type Transform } from "tilewright/gemm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { simulatorFacts } from "../../src/target/simulator.ts";
import { checkBatch } from "./batch-cases.ts";
import { checkGemm, type GemmCase } from "./gemm-cases.ts";
import { deviceKinds, expectClose } from "./table.ts";

const together = { block: { m: 64, n: 64, k: 64 }, warps: { m: 4, n: 1 }, groupRows: 2 };
const inTurn = { ...together, block: { m: 128, n: 64, k: 64 } };
const tall = { ...together, block: { m: 256, n: 64, k: 64 }, warps: { m: 8, n: 1 } };
const negated: Transform = (x) => x.neg();
const negative = (x: number): number => -x;

type Row = Omit<GemmCase, "options"> & { readonly name: string; readonly options: GemmOptions };

const rows: readonly Row[] = [
  { name: "results of 16 bits", m: 130, n: 70, k: 136, a: f16, options: { params: together } },
  {
    name: "A changed in registers and B in shared memory",
    m: 130,
    n: 40,
    k: 200,
    a: f16,
    d: f32,
    mapA: negative,
    mapB: negative,
    options: {
      params: together,
      transforms: { a: { globalToShared: negated }, b: { globalToShared: negated } },
    },
  },
  {
    name: "sums in two levels",
    m: 130,
    n: 40,
    k: 272,
    a: e4m3,
    d: f16,
    layout: "nt",
    options: { params: { ...together, block: { m: 64, n: 64, k: 128 } } },
  },
  {
    name: "four tiles in turn",
    m: 200,
    n: 70,
    k: 200,
    a: f16,
    d: f32,
    beta: 1,
    options: { params: inTurn },
  },
  {
    name: "three tiles in turn, with a single K step",
    m: 300,
    n: 40,
    k: 56,
    a: f16,
    layout: "tt",
    options: { params: inTurn },
  },
  {
    name: "tiles of 256 rows",
    m: 300,
    n: 70,
    k: 136,
    a: f16,
    beta: 1,
    options: { params: tall },
  },
  {
    name: "tiles of 256 rows, both operands across K, B changed in shared memory",
    m: 200,
    n: 70,
    k: 72,
    a: f16,
    d: f32,
    layout: "tn",
    mapB: negative,
    options: { params: { ...tall, splitK: 2 }, transforms: { b: { globalToShared: negated } } },
  },
  {
    name: "one tile in turn",
    m: 20,
    n: 8,
    k: 330,
    a: f16,
    d: f32,
    layout: "nt",
    options: { params: inTurn },
  },
];

/** The kind's device; a simulator with one multiprocessor, and memory for few stages. */
function opened(kind: DeviceKind): Promise<Device> {
  if (kind !== "simulator") return open(kind);
  const { machine, limits } = simulatorFacts();
  const facts = {
    machine: { ...machine, multiprocessors: 1 },
    limits: { ...limits, sharedBytes: 116 * 1024 },
  };
  return open({ kind: "simulator", simulator: { facts } });
}

describe.each(deviceKinds())("%s: a resident block computes", (kind) => {
  let device: Device;
  beforeAll(async () => {
    device = await opened(kind);
  });
  afterAll(async () => {
    await device[Symbol.asyncDispose]();
  });
  const lacking = (): boolean => device.facts.warpgroupMma.length === 0;
  const why = "the target has no warpgroup products";
  const more = kind === "simulator" ? 0 : 128 * 200;

  it.for(rows)("$name", async ({ name: _, options, ...row }, { skip }) => {
    skip(lacking(), why);
    const whole = { ...options, schedule: "warpgroup" } as const;
    await checkGemm(device, { ...row, m: row.m + more, lineMultiple: 16, options: whole });
  });

  it("tiles of a batch in turn", async ({ skip }) => {
    skip(lacking(), why);
    const options = { schedule: "warpgroup", params: inTurn } as const;
    await checkBatch(device, { batch: [3], m: 136, n: 40, k: 72, a: f16, gaps: [8, 16], options });
  });

  it("tiles in turn with an epilogue that reduces rows", async ({ skip }) => {
    skip(lacking(), why);
    const [m, n, k] = [140, 72, 16];
    const value = (row: number, column: number): number => (((row * 7 + column * 3) % 13) - 6) / 4;
    const filled = (height: number, width: number) =>
      Array.from({ length: height * width }, (_, at) => value(Math.floor(at / width), at % width));
    using a = device.array(f16, [m, k], filled(m, k));
    using b = device.array(f16, [k, n], filled(k, n));
    using v = device.array(f32, [n], filled(1, n));
    using sums = device.empty(f32, [m]);
    const epilogue: GemmOptions["epilogue"] = [bias(v), geluTanh, reduceRows(sums, "sum")];
    using plan = await planGemm(a, b, { schedule: "warpgroup", params: inTurn, type: f32, epilogue });
    expect(plan.explain()).toMatch(/2 consumer warpgroups with tiles in turn \(ping-pong\)/);
    plan.run();
    const expected = Array.from({ length: m * n }, (_, at) => {
      const [row, column] = [Math.floor(at / n), at % n];
      let x = value(0, column);
      for (let depth = 0; depth < k; depth++) x += value(row, depth) * value(depth, column);
      return (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
    });
    expectClose((await plan.d.read()) as Float32Array, expected, 1e-4);
    const ofRows = Array.from({ length: m }, (_, row) =>
      expected.slice(row * n, (row + 1) * n).reduce((sum, x) => sum + x, 0),
    );
    expectClose((await sums.read()) as Float32Array, ofRows, 1e-2);
    plan.d.dispose();
  });

  it("no tiles in turn, nor of 256 rows, where that cannot be", async ({ skip }) => {
    skip(lacking(), why);
    using a = device.array(f16, [256, 256]);
    const cases: readonly (readonly [GemmOptions, RegExp])[] = [
      [{ params: { ...inTurn, splitK: 2 } }, /all of K for every tile/],
      [{ transforms: { b: { globalToShared: negated } } }, /operands straight from memory/],
      [{ params: { ...inTurn, block: { m: 128, n: 256, k: 64 } } }, /block.n is at most 128/],
      [{ params: { ...inTurn, warps: { m: 2, n: 1 } } }, /8 x 1 with warpgroups and 128 rows, or 4 x 1/],
      [{ params: { ...tall, block: { m: 256, n: 192, k: 64 } } }, /m = 256: block.n is at most 128/],
      [{ params: tall, transforms: { a: { globalToShared: negated } } }, /m = 256: wants A straight from/],
      [{ params: { ...tall, block: { m: 192, n: 64, k: 64 } } }, /block.m is 64, 128 or 256/],
      [{ params: { ...tall, warps: { m: 16, n: 1 } } }, /8 x 1 with warpgroups and 256 rows; not 16/],
    ];
    for (const [options, message] of cases) {
      const plan = planGemm(a, a, { schedule: "warpgroup", params: inTurn, ...options });
      await expect(plan).rejects.toThrow(message);
      await expect(plan).rejects.toThrow(ArgumentError);
    }
  });
});
