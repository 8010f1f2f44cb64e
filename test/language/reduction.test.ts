import { type Device, f16, f32, f64, open, u32 } from "tilewright";
import { describe, expect, it } from "vitest";
import { generatePtx } from "../../src/codegen/ptx/index.ts";
import { optimise } from "../../src/passes/index.ts";
import { nvidiaTarget } from "../../src/target/nvidia.ts";
import { onEveryDevice, poisoned } from "../conformance/table.ts";
import { assemble } from "../support/ptxas.ts";
import { integers } from "../support/random.ts";
import { requirement } from "../support/require.ts";
import { blockSums, totalSum } from "./reduction.ts";

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

/** Small whole numbers add up exactly in any order. */
const wholeNumbers = (count: number): number[] => integers(count, count, -50, 50);

/** In the widest float that the device computes in. */
async function checkBlocks(device: Device, width: number): Promise<void> {
  const type = device.facts.arithmetic.has("f64") ? f64 : f32;
  for (const threads of [width, 4 * width, 256]) {
    const kernel = blockSums(type, threads);
    for (const count of [1, threads - 1, threads, threads + 1, 3 * threads + 5, 1000]) {
      const x = wholeNumbers(count);
      const partial = poisoned(device, type, [3]);
      await device.run(kernel, { blocks: 3, args: { x: device.array(type, [count], x), partial } });
      const total = poisoned(device, type, [1]);
      await device.run(kernel, { blocks: 1, args: { x: partial, partial: total } });
      expect([...(await total.read())], `${count} elements, ${threads} threads`).toEqual([sum(x)]);
    }
  }
}

async function checkTotal(device: Device): Promise<void> {
  for (const [count, blocks] of [
    [1, 1],
    [127, 2],
    [5000, 7],
    [900, 150],
  ] as const) {
    const x = wholeNumbers(count);
    const total = poisoned(device, f32, [1]);
    const args = {
      x: device.array(f32, [count], x),
      partial: poisoned(device, f32, [blocks]),
      arrived: device.array(u32, [1], [0]),
      total,
    };
    await device.run(totalSum, { blocks, args });
    expect(await total.read(), `${count} elements, ${blocks} blocks`).toEqual(Float32Array.of(sum(x)));
  }
}

describe.each([4, 8, 16, 32, 64, 128])("sums on subgroups of %i lanes", (subgroupWidth) => {
  it("of one block, and of many in two launches", { timeout: 120_000 }, async () => {
    await using device = await open({ kind: "simulator", simulator: { subgroupWidth } });
    await checkBlocks(device, subgroupWidth);
  });

  it("of many blocks in one launch", async () => {
    await using device = await open({ kind: "simulator", simulator: { subgroupWidth } });
    await checkTotal(device);
  });
});

describe("sums on every device", () => {
  onEveryDevice((device) => {
    it("are right", { timeout: 120_000 }, async () => {
      await checkBlocks(device(), device().facts.subgroup.width);
      // The last block can only add up what the others left where a fence orders it.
      const total = checkTotal(device());
      if (device().facts.language === "wgsl") await expect(total).rejects.toThrow("WGSL has no fence");
      else await total;
    });
  });
});

describe("the sums' text", () => {
  const facts = nvidiaTarget("sm_80");

  // Five steps within each subgroup and five among the subgroups' results; f64 moves in two halves.
  it.skipIf(!requirement("ptxas").available).each([
    ["of f16", blockSums(f16, 256), 10],
    ["of f64", blockSums(f64, 1024), 20],
    ["in one launch", totalSum, 20],
  ] as const)("%s: %3$i shuffles", (_, kernel, shuffles) => {
    const { text } = generatePtx(optimise(kernel.trace(facts), facts), facts);
    expect(text.match(/shfl\.sync\.bfly/g)).toHaveLength(shuffles);
    const { succeeded, spilledBytes, log } = assemble(text);
    expect(succeeded, log).toBe(true);
    expect(spilledBytes).toBe(0);
  });
});
