import { type Device, type DeviceArray, f16, f32, i8, open, type StorageType, u32 } from "tilewright";
import {
  amax,
  applyMask,
  auxiliary,
  backward,
  bias,
  derivative,
  type EpilogueStep,
  gelu,
  moments,
  positiveMask,
  quantise,
  reduceColumns,
  reduceRows,
  relu,
  rowVector,
  softmaxStatistics,
  type Transform,
} from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { assemble } from "../../../test/support/ptxas.ts";
import { requirement } from "../../../test/support/require.ts";
import { generatePtx } from "../../codegen/ptx/index.ts";
import { optimise } from "../../passes/index.ts";
import { nvidiaTarget } from "../../target/nvidia.ts";
import { kernelOf } from "../identity.ts";
import { resolve } from "../resolve.ts";

const facts = nvidiaTarget("sm_90a");
const [m, n, k] = [256, 512, 64];

interface Case {
  readonly name: string;
  readonly type?: StorageType;
  readonly steps: (
    array: (type: StorageType, ...shape: number[]) => DeviceArray,
  ) => readonly (EpilogueStep | Transform)[];
}

const usual: readonly Case[] = [
  { name: "sums of columns", steps: (array) => [reduceColumns(array(f32, n), "sum")] },
];

/** Whatever holds many registers at once. */
const others: readonly Case[] = [
  { name: "bias and gelu", steps: (array) => [bias(array(f32, n)), gelu] },
  { name: "auxiliary output", steps: (array) => [auxiliary(array(f16, m, n)), relu] },
  { name: "backward", steps: (array) => [backward(derivative(gelu), array(f16, m, n))] },
  { name: "bits", steps: (array) => [positiveMask(array(u32, m, n / 32)), relu] },
  { name: "masked", steps: (array) => [applyMask(array(u32, m, n / 32))] },
  {
    name: "quantised",
    type: i8,
    steps: (array) => [amax(array(f32)), quantise(rowVector(array(f32, n)), i8)],
  },
  {
    name: "softmax statistics",
    steps: (array) => [reduceRows([array(f32, m), array(f32, m)], softmaxStatistics)],
  },
  { name: "moments of columns", steps: (array) => [reduceColumns([array(f32, n), array(f32, n)], moments)] },
];

function textOf(device: Device, { type = f16, steps }: Case): string {
  const { kind, schedule } = resolve(device.empty(f16, [m, k]), device.empty(f16, [n, k]).transposed, {
    type,
    schedule: "warpgroup",
    params: { block: { m: 128, n: 256, k: 64 }, warps: { m: 8, n: 1 }, groupRows: 16 },
    epilogue: steps((of, ...shape) => device.empty(of, shape)),
  });
  return generatePtx(optimise(kernelOf(kind, schedule).kernel.trace(facts), facts), facts).text;
}

describe.skipIf(!requirement("ptxas").available)("epilogues of 128 x 256 accumulators, by ptxas", () => {
  it.each(process.env.TILEWRIGHT_SOAK === "1" ? [...usual, ...others] : usual)(
    "$name: no spills, no serialised products",
    async (one) => {
      await using device = await open({ kind: "simulator", simulator: { imitate: facts } });
      const { succeeded, spilledBytes, warnings, log } = assemble(textOf(device, one));
      expect(succeeded, log).toBe(true);
      expect(spilledBytes).toBe(0);
      expect(warnings).toEqual([]);
    },
  );
});
