import { open } from "tilewright";
import { f16 } from "tilewright/lang";
import { describe, expect, it } from "vitest";
import { generatePtx } from "../../src/codegen/ptx/index.ts";
import { verify } from "../../src/ir/verifier.ts";
import { optimise } from "../../src/passes/index.ts";
import { nvidiaTarget } from "../../src/target/nvidia.ts";
import { roundToF16 } from "../../src/types/round.ts";
import { expectClose, poisoned } from "../conformance/table.ts";
import { assemble } from "../support/ptxas.ts";
import { normals } from "../support/random.ts";
import { requirement } from "../support/require.ts";
import { hopperGemm } from "./hopper-gemm.ts";

/** A·Bᵀ in f64, and Σ|a||b| for the tolerance. */
function oracle(
  a: readonly number[],
  b: readonly number[],
  m: number,
  n: number,
  k: number,
): { d: Float64Array; size: Float64Array } {
  const d = new Float64Array(m * n);
  const size = new Float64Array(m * n);
  for (let row = 0; row < m; row++) {
    for (let column = 0; column < n; column++) {
      let [sum, magnitude] = [0, 0];
      for (let i = 0; i < k; i++) {
        const product = a[row * k + i]! * b[column * k + i]!;
        sum += product;
        magnitude += Math.abs(product);
      }
      d[row * n + column] = sum;
      size[row * n + column] = magnitude;
    }
  }
  return { d, size };
}

describe("the Hopper GEMM", () => {
  const facts = nvidiaTarget("sm_90a");

  it.skipIf(!requirement("ptxas").available)(
    "assembles without serialised products, spills or more registers than there are",
    () => {
      const traced = hopperGemm.trace(facts);
      verify(traced);
      const { text } = generatePtx(optimise(traced, facts), facts);
      const { succeeded, warnings, spilledBytes, registers, log } = assemble(text);
      expect(succeeded, log).toBe(true);
      expect(warnings).toEqual([]);
      expect(spilledBytes).toBe(0);
      expect(registers).toBeLessThanOrEqual(168);
      expect(text.match(/wgmma\.mma_async/g)).toHaveLength(4);
      expect(text.match(/setmaxnreg\.dec\.sync\.aligned\.u32 40;/g)).toHaveLength(1);
      expect(text.match(/setmaxnreg\.inc\.sync\.aligned\.u32 232;/g)).toHaveLength(1);
    },
  );

  it.for([
    { m: 128, n: 256, k: 64, blocks: 1 },
    { m: 128, n: 256, k: 384, blocks: 1 },
    { m: 256, n: 256, k: 128, blocks: 2 },
    { m: 256, n: 512, k: 64, blocks: 1 },
  ])(
    "multiplies $m x $n x $k on the simulator with $blocks blocks",
    { timeout: 120_000 },
    async ({ m, n, k, blocks }) => {
      await using device = await open({ kind: "simulator", simulator: { imitate: facts } });
      const a = normals(m * k, 1).map(roundToF16);
      const b = normals(n * k, 2).map(roundToF16);
      const d = poisoned(device, f16, [m * n]);
      await device.run(hopperGemm, {
        blocks,
        args: { a: device.array(f16, [m, k], a), b: device.array(f16, [n, k], b), d, m, n, k },
      });
      const expected = oracle(a, b, m, n, k);
      expectClose((await d.read()) as Float32Array, expected.d, (at) => 2 ** -10 * expected.size[at]!);
    },
  );
});
