/**
 * @file Mutation test of the shipped schedules: every barrier, fence, wait and arrive is left out in turn. The simulator
 * must fail each mutant and name a line of the schedule. Listed here are those that the verifier refuses before they can
 * run. No mutant lives: no statement is known to be redundant, and none that is needed goes unmissed.
 */
import { e4m3, f16, f32, type SimulatorOptions, type StorageType, TraceError } from "tilewright";
import { fmaOperator, type GemmOptions, mmaSync, wmmaSync } from "tilewright/gemm";
import { select } from "tilewright/lang";
import { describe, expect, it } from "vitest";
import { finishingKernel } from "../../src/gemm/epilogues/finish.ts";
import { namedReductions } from "../../src/gemm/epilogues/reduction.ts";
import { kernelOf } from "../../src/gemm/identity.ts";
import { resolve } from "../../src/gemm/resolve.ts";
import { nvidiaTarget } from "../../src/target/nvidia.ts";
import { simulatorFacts } from "../../src/target/simulator.ts";
import { hopperGemm } from "../language/hopper-gemm.ts";
import { faultOf, mutantsOf, namesLineOf, type Prepare, traceOf } from "./mutants.ts";

/** A kernel to mutate. */
interface Subject {
  readonly name: string;
  readonly prepare: Prepare;
  readonly options: SimulatorOptions;
  /** Part of the paths of its source files. */
  readonly source: string;
  /** Operations of the kernel, by how many of them there are. */
  readonly holds: Readonly<Record<string, number>>;
  /** Names of mutants that the verifier refuses: no simulator sees them. */
  readonly refused?: readonly string[];
}

/** One multiprocessor: blocks that stay resident take several tiles, and meet their own earlier work. */
const machine = { ...simulatorFacts().machine, multiprocessors: 1 };

/** A product: m x k by k x n, B given as its transpose where `transposed`, C there where `addend`. */
function product(
  operands: StorageType,
  result: StorageType,
  [m, n, k]: readonly [number, number, number],
  options: GemmOptions,
  { transposed = false, addend = false } = {},
): Prepare {
  return (device) => {
    const b = transposed ? device.array(operands, [n, k]).transposed : device.array(operands, [k, n]);
    const c = addend ? { c: device.array(result, [m, n]), beta: 2 } : {};
    const problem = resolve(device.array(operands, [m, k]), b, { type: result, ...options, ...c });
    const { kind, schedule } = problem;
    const { kernel } = kernelOf(kind, schedule);
    const blocks = schedule.blocks(kind, problem, device.facts);
    const args = schedule.arguments(kind, problem) as never;
    return { kernel, launch: (mutant) => device.run(mutant, { blocks, args }) };
  };
}

/** Several K steps, remainders everywhere, two turns of the epilogue for each warp. */
const staged = {
  schedule: "register-staged",
  params: { block: { m: 64, n: 32, k: 16 }, warps: { m: 2, n: 2 }, groupRows: 8 },
} as const;
const lanes = fmaOperator({ laneRows: 4, laneColumns: 8, rows: 2, columns: 2 });
const small = {
  schedule: "register-staged",
  params: { block: { m: 32, n: 32, k: 4 }, warps: { m: 2, n: 2 }, groupRows: 8 },
} as const;

/** Three stages over ten K steps: loops with and without care at the edge, slices loaded ahead. */
const ring = {
  schedule: "multistage",
  operator: mmaSync,
  params: { block: { m: 32, n: 32, k: 32 }, warps: { m: 2, n: 1 }, groupRows: 8, stages: 3 },
} as const;

/** Products that nobody commits, or whose accumulators are read before they are done. */
const unfinishedProducts = ["warpgroupCommit: warpgroupCommit();", "warpgroupWait: warpgroupWait(0);"];

/** Tiles that both warpgroups of a block compute together. */
const shared = { block: { m: 128, n: 128, k: 64 }, warps: { m: 8, n: 1 }, groupRows: 16 };

const subjects: readonly Subject[] = [
  {
    name: "register-staged, mma",
    prepare: product(f16, f32, [72, 40, 72], { ...staged, operator: mmaSync }),
    options: { facts: { machine } },
    source: "/src/gemm/",
    holds: { blockBarrier: 2, subgroupBarrier: 3 },
  },
  {
    name: "register-staged, wmma, with C",
    prepare: product(f16, f32, [72, 40, 72], { ...staged, operator: wmmaSync }, { addend: true }),
    options: { facts: { machine } },
    source: "/src/gemm/",
    holds: { blockBarrier: 2, subgroupBarrier: 3 },
  },
  {
    name: "register-staged, plain operator",
    prepare: product(f32, f32, [36, 40, 18], { ...small, operator: lanes }),
    options: { facts: { machine } },
    source: "/src/gemm/",
    holds: { blockBarrier: 2, subgroupBarrier: 3 },
  },
  {
    name: "multistage",
    prepare: product(f16, f32, [40, 40, 168], ring),
    options: { facts: { machine } },
    source: "/src/gemm/",
    holds: { blockBarrier: 3, copyAsyncCommit: 3, copyAsyncWait: 3 },
  },
  {
    name: "multistage, A through registers, nothing ahead",
    prepare: product(f16, f32, [40, 40, 168], {
      ...ring,
      params: { ...ring.params, block: { m: 32, n: 32, k: 48 } },
      transforms: { a: { globalToShared: (x) => x.neg() } },
    }),
    options: { facts: { machine } },
    source: "/src/gemm/",
    holds: { blockBarrier: 2, copyAsyncCommit: 2, copyAsyncWait: 1 },
  },
  {
    name: "warpgroup, results of 16 bits",
    prepare: product(
      f16,
      f16,
      [256, 128, 448],
      { schedule: "warpgroup", params: shared },
      { transposed: true },
    ),
    options: { facts: { machine } },
    source: "/src/gemm/",
    holds: { barrierWait: 2, warpgroupWait: 2, warpgroupFence: 1 },
    refused: unfinishedProducts,
  },
  {
    name: "warpgroup, results of 32 bits, B along N",
    prepare: product(f16, f32, [256, 128, 640], { schedule: "warpgroup", params: shared }),
    options: { facts: { machine } },
    source: "/src/gemm/",
    holds: { barrierWait: 2, warpgroupWait: 2, warpgroupFence: 1 },
    refused: unfinishedProducts,
  },
  {
    name: "warpgroup, 8-bit floats, sums of each K step added in f32",
    prepare: product(
      e4m3,
      f16,
      [128, 64, 640],
      {
        schedule: "warpgroup",
        params: { block: { m: 64, n: 64, k: 128 }, warps: { m: 4, n: 1 }, groupRows: 2, splitK: 1 },
      },
      { transposed: true },
    ),
    options: { facts: { machine } },
    source: "/src/gemm/",
    holds: { barrierWait: 2, warpgroupWait: 1, warpgroupFence: 1 },
    refused: unfinishedProducts,
  },
  {
    name: "warpgroup, B rewritten in shared memory",
    prepare: product(f16, f16, [128, 64, 192], {
      schedule: "warpgroup",
      params: { block: { m: 64, n: 64, k: 64 }, warps: { m: 4, n: 1 }, groupRows: 2 },
      transforms: { b: { globalToShared: (x) => x.neg() } },
    }),
    // Few stages, so that they are filled again.
    options: { facts: { machine, limits: { ...simulatorFacts().limits, sharedBytes: 64 * 1024 } } },
    source: "/src/gemm/",
    holds: { barrierWait: 3, warpgroupWait: 2, proxyFence: 2, subgroupBarrier: 1 },
    refused: unfinishedProducts,
  },
  {
    name: "warpgroup, tiles in turn",
    prepare: product(f16, f16, [384, 64, 192], {
      schedule: "warpgroup",
      params: { block: { m: 128, n: 64, k: 64 }, warps: { m: 4, n: 1 }, groupRows: 2 },
    }),
    // Few stages, so that they are filled again.
    options: { facts: { machine, limits: { ...simulatorFacts().limits, sharedBytes: 100 * 1024 } } },
    source: "/src/gemm/",
    holds: { barrierInit: 6, barrierWait: 3, barrierArrive: 3 },
    refused: unfinishedProducts,
  },
  {
    name: "the kernel that finishes a reduction",
    prepare: (device) => {
      const { sum } = namedReductions;
      const kernel = finishingKernel(sum, f32, [f32], 32);
      const [partials, target0] = [device.array(f32, [9 * 40]), device.empty(f32, [40])];
      const args = { partials, parts: 9, lines: 40, target0 } as never;
      return { kernel, launch: (mutant) => device.run(mutant, { blocks: 2, args }) };
    },
    options: { facts: { machine } },
    source: "/src/gemm/",
    holds: { blockBarrier: 3 },
  },
  {
    name: "warpgroup, A through registers, some K steps left out",
    prepare: product(
      f16,
      f16,
      [256, 64, 640],
      {
        schedule: "warpgroup",
        transforms: { a: { sharedToRegister: (x) => x.neg() } },
        predicate: { name: "not the second", next: (_, step) => select(step.eq(1), 2, step) },
      },
      { transposed: true },
    ),
    options: { facts: { machine } },
    source: "/src/gemm/",
    holds: { barrierWait: 2, warpgroupWait: 1, warpgroupFence: 1 },
    refused: unfinishedProducts,
  },
  {
    name: "the Hopper kernel of the language's own tests",
    prepare: (device) => {
      const [m, n, k] = [256, 256, 384];
      const [a, b, d] = [device.array(f16, [m, k]), device.array(f16, [n, k]), device.array(f16, [m * n])];
      const args = { a, b, d, m, n, k } as never;
      return { kernel: hopperGemm as never, launch: (mutant) => device.run(mutant, { blocks: 1, args }) };
    },
    options: { imitate: nvidiaTarget("sm_90a") },
    source: "/test/language/",
    holds: { barrierWait: 2 },
    refused: unfinishedProducts,
  },
];

describe.each(subjects)("$name", ({ prepare, options, source, holds, refused = [] }) => {
  it("has no fault as it is", async () => {
    expect(await faultOf(prepare, options)).toBeUndefined();
  }, 300_000);

  it("has one without any of what orders it", async () => {
    const mutants = mutantsOf(await traceOf(prepare, options));
    const counts: Record<string, number> = {};
    for (const { operation } of mutants) counts[operation] = (counts[operation] ?? 0) + 1;
    expect(counts).toMatchObject(holds);
    const living: string[] = [];
    const stopped: string[] = [];
    for (const { ir, name } of mutants) {
      const fault = await faultOf(prepare, options, ir);
      if (fault === undefined) {
        living.push(name);
        continue;
      }
      if (fault instanceof TraceError) stopped.push(name);
      expect(namesLineOf(fault, source), `${name}: ${fault.message}`).toBe(true);
    }
    expect(stopped).toEqual(refused);
    expect(living).toEqual([]);
  }, 900_000);
});
