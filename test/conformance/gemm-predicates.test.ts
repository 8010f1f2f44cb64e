import { type Device, f16, f32 } from "tilewright";
import { everyStep, type GemmOptions, type Predicate } from "tilewright/gemm";
import { select } from "tilewright/lang";
import { openSimulator } from "tilewright/simulator";
import { describe, expect, it } from "vitest";
import { kernelOf } from "../../src/gemm/identity.ts";
import { resolve } from "../../src/gemm/resolve.ts";
import { checkGemm, type GemmCase } from "./gemm-cases.ts";
import { operatorsFor } from "./gemm-table.ts";
import { onEveryDevice } from "./table.ts";

/** The K step of these tests. */
const depth = 16;
const params = { block: { m: 32, n: 32, k: depth }, warps: { m: 2, n: 1 }, groupRows: 2 };
const beyond = 2 ** 20;

/** A predicate, and which elements of A count under it. */
interface PredicateRow {
  readonly name: string;
  readonly predicate: Predicate;
  readonly counts: (row: number, column: number) => boolean;
  /** The part of all steps of 96 x 64 x 96 that is left. */
  readonly part: number;
}

const predicates: readonly PredicateRow[] = [
  { name: "every step", predicate: everyStep, counts: () => true, part: 1 },
  {
    name: "every other step",
    predicate: { name: "even steps", next: (_, step) => step.add(1).floorDiv(2).mul(2) },
    counts: (_, column) => Math.floor(column / depth) % 2 === 0,
    part: 1 / 2,
  },
  {
    name: "steps up to the diagonal of A",
    predicate: {
      name: "lower triangle",
      next: (tile, step) => select(step.mul(tile.depth).lt(tile.row.add(tile.rows)), step, beyond),
    },
    counts: (row, column) => column <= row,
    part: (2 + 4 + 6) / 18,
  },
  {
    name: "no step before the third",
    predicate: { name: "from the third", next: (_, step) => step.max(3) },
    counts: (_, column) => column >= 3 * depth,
    part: 1 / 2,
  },
  {
    name: "no step at all",
    predicate: { name: "none", next: (_, step) => step.mul(0).add(beyond) },
    counts: () => false,
    part: 0,
  },
  {
    name: "nothing in the first row of tiles",
    predicate: { name: "not the top", next: (tile, step) => select(tile.row.eq(0), beyond, step) },
    counts: (row) => row >= 32,
    part: 2 / 3,
  },
];

onEveryDevice((device) => {
  describe("a predicate", () => {
    it.each(predicates)("$name", async ({ predicate, counts }) => {
      // Transforms zero what the predicate skips inside a step as well, as components for triangles do.
      const mapA = (x: number, row: number, column: number): number => (counts(row, column) ? x : 0);
      const triangle = {
        a: {
          globalToShared: (x, { row, column }) =>
            predicate.name === "lower triangle" ? select(column.le(row), x, x.mul(0)) : x,
        },
      } satisfies GemmOptions["transforms"];
      for (const operator of Object.values(operatorsFor({ a: f16, b: f16 }, device().facts))) {
        const test: Omit<GemmCase, "m" | "n" | "k"> = {
          a: f16,
          d: f32,
          beta: 0.5,
          mapA,
          options: { operator, predicate, params, transforms: triangle },
        };
        await checkGemm(device(), { ...test, m: 96, n: 64, k: 96 });
        await checkGemm(device(), { ...test, m: 75, n: 33, k: 89 });
      }
    });
  });
});

describe("what a predicate skips is not done", () => {
  async function count(
    device: Device,
    profile: ReturnType<typeof openSimulator>["profile"],
    predicate: Predicate,
  ) {
    using a = device.array(f16, [96, 96]);
    using b = device.array(f16, [96, 64]);
    const resolved = resolve(a, b, { type: f32, schedule: "register-staged", predicate, params });
    const { kind, schedule } = resolved;
    const { kernel } = kernelOf(kind, schedule);
    // The operands live until the count is there.
    return await profile(kernel, {
      blocks: schedule.blocks(kind, resolved, device.facts),
      args: schedule.arguments(kind, resolved) as never,
    });
  }

  it.each(predicates)("$name", async ({ predicate, part }) => {
    const { device, profile } = openSimulator();
    const all = await count(device, profile, everyStep);
    const counters = await count(device, profile, predicate);
    const products = (matrix: Readonly<Record<string, number>>): number =>
      matrix["mma.m16n8k16.f16.f32"] ?? 0;
    expect(products(all.matrix)).toBe((96 / 16) * (64 / 8) * (96 / 16));
    expect(products(counters.matrix)).toBe(part * products(all.matrix));
    expect(counters.globalLoadSectors).toBe(part * all.globalLoadSectors);
    expect(counters.globalStoreSectors).toBe(all.globalStoreSectors);
    device.dispose();
  });
});
