/** @file Batches and divided K on the warpgroup schedule: one launch, whichever matrices the operands share. */
import { ArgumentError, f16, f32, type StorageType } from "tilewright";
import { amax, type GemmOptions, planGemm } from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { normals } from "../support/random.ts";
import { type BatchCase, checkBatch } from "./batch-cases.ts";
import { expectClose, onEveryDevice } from "./table.ts";

const tile = { block: { m: 64, n: 64, k: 64 }, warps: { m: 4, n: 1 }, groupRows: 2 };

type Row = Omit<BatchCase, "a" | "options"> & { readonly name: string; readonly splitK?: number };

/** Lines of a multiple of 16 bytes, as tensor maps want them, with gaps between lines and matrices. */
const rows: readonly Row[] = [
  { name: "matrices with gaps", batch: [3], m: 65, n: 72, k: 72, gaps: [8, 16], beta: 2 },
  {
    name: "B for all, lines interleaved",
    batch: [2],
    m: 16,
    n: 40,
    k: 136,
    shared: { b: "absent" },
    interleaved: true,
  },
  {
    name: "A and C for all, both transposed",
    batch: [2, 2],
    m: 72,
    n: 8,
    k: 8,
    layout: "tt",
    shared: { a: "repeated", c: "absent" },
    beta: -1,
    alpha: 0.5,
  },
  { name: "results of 32 bits, unaligned", batch: [3], m: 5, n: 7, k: 24, layout: "nt", d: f32 },
  {
    name: "K in parts, more of them than steps",
    batch: [],
    m: 65,
    n: 40,
    k: 200,
    splitK: 5,
    d: f32,
    beta: 1,
  },
  {
    name: "a batch with K in parts",
    batch: [2],
    m: 8,
    n: 72,
    k: 200,
    splitK: 3,
    layout: "nt",
    shared: { a: "absent" },
    beta: -0.5,
  },
];

onEveryDevice((device) => {
  const lacking = (): boolean => device().facts.warpgroupMma.length === 0;
  const why = "the target has no warpgroup products";

  describe("on warpgroups", () => {
    it.for(rows)("$name", async ({ name: _, splitK, ...row }, { skip }) => {
      skip(lacking(), why);
      const params = splitK === undefined ? tile : { ...tile, splitK };
      await checkBatch(device(), { ...row, a: f16, options: { schedule: "warpgroup", params } });
    });

    it("transforms and epilogues are told the number of the matrix", async ({ skip }) => {
      skip(lacking(), why);
      const scaled: NonNullable<GemmOptions["transforms"]> = {
        a: { sharedToRegister: (x, { batch }) => x.mul(batch!.add(1).to(f16)) },
        d: { registerToShared: (x, { batch }) => x.sub(batch!.to(f32)) },
      };
      using a = device().array(f16, [2, 8, 8], normals(128, 3));
      using b = device().array(f16, [8, 8], normals(64, 4));
      const plain = await product(a, b, f32, {});
      const changed = await product(a, b, f32, { transforms: scaled });
      expect(changed.slice(0, 64)).toEqual(plain.slice(0, 64));
      expectClose(
        changed.slice(64),
        plain.slice(64).map((x) => 2 * x - 1),
        1e-4,
      );
    });

    it("the same bits each time, and one launch for a batch", async ({ skip }) => {
      skip(lacking(), why);
      using a = device().array(f16, [2, 16, 512], normals(2 * 16 * 512, 1));
      using b = device().array(f16, [2, 512, 16], normals(2 * 16 * 512, 2));
      using plan = await planGemm(a, b, { schedule: "warpgroup", params: { ...tile, splitK: 3 } });
      plan.run();
      const first = await plan.d.readBits();
      plan.run();
      expect(await plan.d.readBits()).toEqual(first);
      expect(plan.explain()).toMatch(/K in 3 parts, added in order/);
      expect(plan.explain()).toMatch(/2 products \[2\]/);
      plan.d.dispose();
    });

    it("steps that gather what blocks hold want K whole", async ({ skip }) => {
      skip(lacking(), why);
      using a = device().array(f16, [8, 8]);
      using most = device().array(f32, []);
      const params = { ...tile, splitK: 2 };
      const plan = planGemm(a, a, { schedule: "warpgroup", params, epilogue: [amax(most)] });
      await expect(plan).rejects.toThrow(ArgumentError);
    });
  });

  async function product(
    a: Parameters<typeof planGemm>[0],
    b: Parameters<typeof planGemm>[1],
    type: StorageType,
    options: GemmOptions,
  ): Promise<readonly number[]> {
    using plan = await planGemm(a, b, { type, schedule: "warpgroup", params: tile, ...options });
    plan.run();
    const values = [...(await plan.d.read())].map(Number);
    plan.d.dispose();
    return values;
  }
});
