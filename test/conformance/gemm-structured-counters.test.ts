/**
 * @file What structure saves, counted: sectors of memory and matrix operations of sample blocks.
 */
import { type DeviceArray, f16, f32, u32 } from "tilewright";
import {
  blockMasked,
  diagonal,
  type GemmOptions,
  gemm,
  type MatrixSource,
  triangular,
} from "tilewright/gemm";
import { openSimulator } from "tilewright/simulator";
import { afterAll, describe, expect, it } from "vitest";
import { kernelOf } from "../../src/gemm/identity.ts";
import { resolve } from "../../src/gemm/resolve.ts";

const { device, profile } = openSimulator();
afterAll(() => device.dispose());

const params = { block: { m: 64, n: 64, k: 32 }, warps: { m: 2, n: 2 }, groupRows: 1 };

/** Counts of some blocks; with groups of one tile row, block t · (tiles across) is the first of tile row t. */
async function counted(
  a: DeviceArray | MatrixSource,
  b: DeviceArray,
  blocks: readonly number[],
  options: GemmOptions = {},
): Promise<{ readonly products: number; readonly sectors: number }> {
  const resolved = resolve(a, b, { type: f32, schedule: "register-staged", params, ...options });
  const { kind, schedule } = resolved;
  const { kernel } = kernelOf(kind, schedule);
  const counters = await profile(kernel, {
    blocks: schedule.blocks(kind, resolved, device.facts),
    args: schedule.arguments(kind, resolved) as never,
    only: blocks.map((block) => [block, 0, 0] as const),
  });
  if (resolved.ownD) resolved.d.array.dispose();
  return {
    products: counters.matrix["mma.m16n8k16.f16.f32"] ?? 0,
    sectors: counters.globalLoadSectors + counters.globalStoreSectors,
  };
}

/** Matrix operations of one K step of a block. */
const perStep = (64 / 16) * (64 / 8) * (32 / 16);

describe("a product with a structured matrix", () => {
  it("diagonal at 4096: at least 89 % fewer sectors and 95 % fewer matrix operations than dense", async () => {
    const n = 4096;
    const b = device.empty(f16, [n, n]);
    const vector = device.array(f16, [n]);
    const tiles = n / 64;
    // All tiles are one class: each has 64 rows of the diagonal, whole. The corners and one in between stand for it.
    const sample = [0, 31 * tiles + 17, tiles * tiles - 1];
    const dense = await counted(b, b, [0]);
    expect(dense.products).toBe((n / 32) * perStep);
    for (const block of sample) {
      const sparse = await counted(diagonal(vector), b, [block]);
      expect(sparse.products).toBe(2 * perStep);
      expect(sparse.products).toBeLessThanOrEqual(0.05 * dense.products);
      expect(sparse.sectors).toBeLessThanOrEqual(0.11 * dense.sectors);
    }
    b.dispose();
  }, 300_000);

  it("triangular: each tile row has the steps up to its diagonal, and no more", async () => {
    const [n, columns] = [512, 64];
    const a = device.array(f16, [n, n]);
    const b = device.array(f16, [n, columns]);
    const rows = [0, 4, 7];
    let steps = 0;
    for (const row of rows) {
      // Blocks walk from the longest row of tiles to the shortest.
      const { products } = await counted(triangular(a, "lower"), b, [7 - row]);
      expect(products).toBe((row + 1) * 2 * perStep);
      const upper = await counted(triangular(a, "upper"), b, [row]);
      expect(upper.products).toBe((8 - row) * 2 * perStep);
      steps += products;
    }
    expect(steps / (rows.length * (n / 32) * perStep)).toBeCloseTo(14 / 24, 5);
  }, 300_000);

  it("in blocks: tiles visit the steps that have one, and those without leave by their epilogue", async () => {
    const n = 256;
    const whole = device.array(f16, [n, n], blockedOnes(n));
    const b = device.array(f16, [n, 64], new Array(n * 64).fill(1));
    const c = device.array(f32, [n, 64], new Array(n * 64).fill(5));
    // Of the blocks of 64 x 32, (1, 1) and (1, 6) count.
    const bitmap = device.array(u32, [4, 1], [0, 0b1000010, 0, 0]);
    const matrix = blockMasked(whole, bitmap, [64, 32]);
    for (const [row, steps] of [0, 2, 0, 0].entries()) {
      const { products } = await counted(matrix, b, [row]);
      expect(products).toBe(steps * perStep);
    }
    const d = await gemm(matrix, b, { c, beta: 2, type: f32, params });
    const values = await d.read();
    for (let row = 0; row < n; row++) expect(values[row * 64]).toBe(row >= 64 && row < 128 ? 10 + 64 : 10);
  }, 300_000);
});

/** Ones in the blocks (1, 1) and (1, 6) of 64 x 32, NaN elsewhere. */
function blockedOnes(n: number): number[] {
  return Array.from({ length: n * n }, (_, i) => {
    const [down, across] = [Math.floor(i / n / 64), Math.floor((i % n) / 32)];
    return down === 1 && (across === 1 || across === 6) ? 1 : Number.NaN;
  });
}
