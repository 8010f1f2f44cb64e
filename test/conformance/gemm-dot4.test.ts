/**
 * @file The packed operator: bytes multiplied four at a time, for every depth, majorness and edge of K, and taken by
 * itself where there is no matrix instruction.
 */
import { type Device, i8, i32, type StorageType, u8 } from "tilewright";
import { dot4Operator, dot4Packed, type OperatorFactory, planGemm } from "tilewright/gemm";
import { constant } from "tilewright/lang";
import { describe, expect, it } from "vitest";
import { emit } from "../../src/runtime/compile.ts";
import { createDevice } from "../../src/runtime/device.ts";
import { createSimulatorBackend } from "../../src/runtime/simulator/index.ts";
import { nvidiaTarget } from "../../src/target/nvidia.ts";
import { openNullBackend, validate } from "../support/dawn.ts";
import { assemble } from "../support/ptxas.ts";
import { requirement } from "../support/require.ts";
import { checkGemm } from "./gemm-cases.ts";
import { layouts } from "./gemm-table.ts";
import { onEveryDevice } from "./table.ts";

/** A small lane block for the subgroup, of one depth. */
function packed(device: Device, depth: 4 | 8 | 16): OperatorFactory {
  const { width } = device.facts.subgroup;
  const laneRows = 2 ** Math.floor(Math.log2(width) / 2);
  return dot4Operator({ laneRows, laneColumns: width / laneRows, rows: 2, columns: 2, depth });
}

function small(device: Device, depth: 4 | 8 | 16) {
  const operator = packed(device, depth);
  const { width } = device.facts.subgroup;
  const laneRows = 2 ** Math.floor(Math.log2(width) / 2);
  const block = { m: 4 * laneRows, n: (4 * width) / laneRows, k: Math.max(depth, 8) };
  return { operator, params: { block, warps: { m: 2, n: 1 }, groupRows: 2 } };
}

const pairs: readonly (readonly [StorageType, StorageType])[] = [
  [i8, i8],
  [u8, u8],
  [u8, i8],
  [i8, u8],
];

const depths = [4, 8, 16] as const;

onEveryDevice((device) => {
  const has = ([a, b]: readonly [StorageType, StorageType]): boolean =>
    device().facts.packedDot.some(([left, right]) => left === a.name && right === b.name);

  describe("packed dot products", () => {
    it.for(pairs)("multiply $0.name by $1.name and leave no element of K out", async ([a, b], { skip }) => {
      skip(!has([a, b]), "the target has no packed dot product for it");
      for (const [turn, k] of [0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 33, 65].entries()) {
        await checkGemm(device(), {
          m: 7 + turn,
          n: 19 - turn,
          k,
          a,
          b,
          d: i32,
          layout: layouts[turn % 4]!,
          padding: [0, 1, 3, 16][(turn >> 1) % 4]!,
          columnMajorD: turn % 3 === 1,
          options: small(device(), depths[turn % 3]!),
        });
      }
    });

    it("see elements one by one where a function changes them on the way to registers", async ({ skip }) => {
      skip(!has([i8, i8]), "the target has no packed dot product for it");
      await checkGemm(device(), {
        m: 9,
        n: 10,
        k: 21,
        a: i8,
        d: i32,
        value: numbers(40),
        options: {
          ...small(device(), 4),
          transforms: {
            a: { sharedToRegister: (x, { column }) => x.to(i32).add(column.floorMod(5)) },
            b: { sharedToRegister: (x, { row }) => x.to(i32).sub(row.floorMod(3)).add(constant(i32, 1)) },
          },
        },
        mapA: (x, _row, column) => x + (column % 5),
        mapB: (x, row) => x - (row % 3) + 1,
      });
    });

    it("are exact at the ends of the range", async ({ skip }) => {
      skip(!has([i8, i8]), "the target has no packed dot product for it");
      const a = device().array(i8, [2, 4096], Array(2 * 4096).fill(-128));
      const b = device().array(i8, [4096, 1], Array(4096).fill(-128));
      using plan = await planGemm(a, b, { ...small(device(), 16) });
      plan.run();
      expect([...(await plan.d.read())]).toEqual([4096 * 16384, 4096 * 16384]);
    });

    it("refuse what they cannot multiply, and shapes that do not fit", async () => {
      const bytes = device().array(i8, [8, 8]);
      const words = device().array(i32, [8, 8]);
      await expect(planGemm(words, words, { operator: dot4Packed })).rejects.toThrow(
        /no packed dot product for i32·i32→i32; the plain operator \(fma\)/,
      );
      const shape = { laneRows: 3, laneColumns: 5, rows: 1, columns: 1, depth: 4 } as const;
      const refused = planGemm(bytes, bytes, { operator: dot4Operator(shape) });
      await expect(refused).rejects.toThrow(has([i8, i8]) ? /lane grid 3x5 must have/ : /no packed dot/);
      expect(dot4Operator(shape)).toBe(dot4Operator({ ...shape }));
    });
  });
});

function numbers(below: number): () => number {
  let next = 0;
  return () => ((next++ * 37) % (2 * below)) - below;
}

describe("where there is no matrix instruction", () => {
  it("products of bytes take packed dot products", async () => {
    const kernels: string[] = [];
    const facts = { ...nvidiaTarget("sm_75"), mma: [], wmma: [], warpgroupMma: [] };
    const backend = createSimulatorBackend({ imitate: facts, checks: false });
    const device = createDevice(backend, {
      async compile(kernel) {
        kernels.push(emit(kernel, facts).text);
        throw new Error("emitted");
      },
    });
    const a = device.array(i8, [300, 300]);
    await expect(planGemm(a, a)).rejects.toThrow("emitted");
    expect(kernels[0]).toContain("dp4a.s32.s32");
    if (!requirement("ptxas").available) return;
    const { succeeded, spilledBytes, warnings, log } = assemble(kernels[0]!);
    expect(succeeded, log).toBe(true);
    expect([spilledBytes, warnings]).toEqual([0, []]);
  });

  it.skipIf(!requirement("dawn-null").available)("nor in WGSL, which Dawn accepts", async () => {
    const backend = await openNullBackend();
    const texts: string[] = [];
    const simulator = createSimulatorBackend({ imitate: backend.facts, checks: false });
    const device = createDevice(simulator, {
      async compile(kernel) {
        await validate(backend, kernel);
        texts.push(emit(kernel, backend.facts).text);
        throw new Error("judged");
      },
    });
    for (const [type, name] of [
      [i8, "dot4I8Packed"],
      [u8, "dot4U8Packed"],
    ] as const) {
      // Odd leading dimensions: bytes are loaded singly and words are built in shared memory.
      for (const size of type === i8 ? [64, 65] : [65]) {
        const a = device.array(type, [size, size]);
        await expect(planGemm(a, a)).rejects.toThrow("judged");
        expect(texts.at(-1)).toContain(name);
      }
    }
    const [signed, unsigned] = [device.array(i8, [64, 64]), device.array(u8, [64, 64])];
    await expect(planGemm(signed, unsigned)).rejects.toThrow("judged");
    expect(texts.at(-1)).not.toContain("Packed(");
    backend.dispose();
  });
});
