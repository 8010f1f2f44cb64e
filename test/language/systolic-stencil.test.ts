import { type Device, f32, open } from "tilewright";
import { describe, expect, it } from "vitest";
import { generatePtx } from "../../src/codegen/ptx/index.ts";
import { optimise } from "../../src/passes/index.ts";
import { nvidiaTarget } from "../../src/target/nvidia.ts";
import { expectClose, onEveryDevice, poisoned } from "../conformance/table.ts";
import { assemble } from "../support/ptxas.ts";
import { normals } from "../support/random.ts";
import { requirement } from "../support/require.ts";
import { type Boundary, systolicFilter, systolicGrid } from "./systolic-stencil.ts";

type Weights = readonly (readonly number[])[];

const filters: Readonly<Record<string, Weights>> = {
  "5-point": [
    [0, 0.2, 0],
    [0.3, -1, 0.4],
    [0, 0.5, 0],
  ],
  "3x3": [
    [1.5, 2, 3],
    [4, -5, 6],
    [7, 8, -9],
  ],
  "3 in a row": [[1, -2, 1.5]],
  "4 in a column": [[1], [2], [-3], [4]],
  "2x3": [
    [0, 1, 2],
    [0, 3, 4],
  ],
};

function oracle(
  x: readonly number[],
  height: number,
  width: number,
  weights: Weights,
  boundary: Boundary,
): Float64Array {
  const at = (row: number, column: number): number => {
    const [y, z] = [Math.min(Math.max(row, 0), height - 1), Math.min(Math.max(column, 0), width - 1)];
    return boundary === "zero" && (y !== row || z !== column) ? 0 : x[y * width + z]!;
  };
  const [up, left] = [Math.floor(weights.length / 2), Math.floor(weights[0]!.length / 2)];
  return Float64Array.from({ length: height * width }, (_, position) => {
    const [row, column] = [Math.floor(position / width), position % width];
    return weights.reduce(
      (sum, line, i) =>
        line.reduce((part, weight, j) => part + weight * at(row + i - up, column + j - left), sum),
      0,
    );
  });
}

async function check(
  device: Device,
  weights: Weights,
  boundary: Boundary,
  height: number,
  width: number,
): Promise<void> {
  const x = normals(height * width, 7).map(Math.fround);
  const source = device.array(f32, [height, width], x);
  const target = poisoned(device, f32, [height, width]);
  const blocks = systolicGrid(height, width, weights[0]!.length, device.facts.subgroup.width);
  await device.run(systolicFilter(weights, boundary), { blocks, args: { source, target } });
  expectClose((await target.read()) as Float32Array, oracle(x, height, width, weights, boundary), 1e-4);
}

const sizes = [
  [1, 1],
  [3, 2],
  [5, 7],
  [17, 31],
  [9, 130],
] as const;

describe.each([4, 8, 16, 32, 64])("the systolic filter on subgroups of %i lanes", (subgroupWidth) => {
  it.each(Object.entries(filters))("%s, edges and odd sizes", { timeout: 60_000 }, async (_, weights) => {
    await using device = await open({ kind: "simulator", simulator: { subgroupWidth } });
    for (const [height, width] of sizes) {
      for (const boundary of ["zero", "nearest"] as const)
        await check(device, weights, boundary, height, width);
    }
  });
});

describe("the systolic filter on every device", () => {
  onEveryDevice((device) => {
    it.each(Object.entries(filters))("%s", async (_, weights) => {
      await check(device(), weights, "nearest", 37, 211);
    });
  });
});

describe("the systolic filter's text", () => {
  const facts = nvidiaTarget("sm_90");

  it.skipIf(!requirement("ptxas").available).each([
    ["5-point", 4 * 2, 4 * 5],
    ["3x3", 4 * 2, 4 * 9],
  ] as const)("%s: %i shuffles, %i multiplications, a load for each row", (name, shuffles, products) => {
    const weights = filters[name]!;
    const { text } = generatePtx(optimise(systolicFilter(weights, "nearest").trace(facts), facts), facts);
    const count = (pattern: RegExp): number => text.match(pattern)?.length ?? 0;
    expect(count(/shfl\.sync\.up/g)).toBe(shuffles);
    expect(count(/(fma\.rn|mul(\.rn)?)\.f32/g)).toBe(products);
    expect(count(/ld\.global/g)).toBe(weights.length + 3);
    const { succeeded, spilledBytes, log } = assemble(text);
    expect(succeeded, log).toBe(true);
    expect(spilledBytes).toBe(0);
  });
});
