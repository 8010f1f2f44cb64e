/** @file Products over algebras on the warpgroup schedule: planes of components as they lie, and taken apart before. */
import { ArgumentError, bf16, f16, f32, i8, tf32 } from "tilewright";
import {
  type Algebra,
  algebraMatrix,
  complex,
  complex3m,
  defineAlgebra,
  dual,
  type GemmParams,
  gemm,
  planGemm,
  type Transform,
} from "tilewright/gemm";
import { afterAll, describe, expect, it } from "vitest";
import { createPaperDevice } from "../../src/cli/paper-device.ts";
import { nvidiaTarget } from "../../src/target/nvidia.ts";
import { checkAlgebra, productOf } from "./algebra-cases.ts";
import { pairwise } from "./gemm-cases.ts";
import { onEveryDevice } from "./table.ts";

const quaternion: Algebra = defineAlgebra({
  name: "quaternion",
  basis: "1 i j k",
  table: ["1 i j k", "i -1 k -j", "j -k -1 i", "k j -i -1"],
  conjugate: "1 -i -j -k",
});
/** No product has the component z, and none reads A's. */
const lacking: Algebra = defineAlgebra({
  name: "lacking",
  basis: "x y z",
  table: ["x -y y", "y 0 -x", "0 0 0"],
});

/** The least tile: one consumer warpgroup. */
const small = (k: number): GemmParams => ({
  block: { m: 64, n: 64, k },
  warps: { m: 4, n: 1 },
  groupRows: 2,
});
const tall: GemmParams = { ...small(64), block: { m: 128, n: 64, k: 64 }, warps: { m: 8, n: 1 } };

onEveryDevice((device) => {
  const hasWarpgroups = (): boolean => device().facts.warpgroupMma.length > 0;

  describe("algebras on warpgroups", () => {
    const rows = pairwise({
      algebra: [complex, dual, quaternion],
      type: [f16, bf16],
      transA: ["N", "T", "C"],
      transB: ["N", "T", "C"],
      size: [
        [67, 70, 131],
        [3, 65, 64],
        [130, 5, 9],
      ],
      storage: ["interleaved", "split"],
      storageC: ["interleaved", "split"],
      padding: [0, 1, 8],
      factors: ["plain", "numbers", "elements"],
    } as const);
    it.for(["complex", "dual", "quaternion"])("%s, copied to planes", async (name, { skip }) => {
      skip(!hasWarpgroups(), "the target has no warpgroup products");
      const every = process.env.TILEWRIGHT_SOAK === "1" ? 1 : 3;
      const own = rows.filter(({ algebra }) => algebra.name === name).filter((_, i) => i % every === 0);
      for (const [seed, row] of own.entries()) {
        const params = seed % 3 === 0 ? tall : small(64);
        await checkAlgebra(device(), { ...row, options: { pack: true, params } }, seed + 1);
      }
    });

    it("f32 in tf32, along K where it was not", async ({ skip }) => {
      skip(!hasWarpgroups(), "the target has no warpgroup products");
      const options = { compute: tf32, pack: true, params: small(32) };
      for (const [transA, transB] of [
        ["N", "N"],
        ["C", "T"],
      ] as const)
        for (const storage of ["interleaved", "split"] as const)
          await checkAlgebra(device(), {
            algebra: complex,
            type: f32,
            transA,
            transB,
            size: [65, 33, 40],
            storage,
            options,
          });
    });

    it("integers, where the table negates nothing", async ({ skip }) => {
      skip(!hasWarpgroups(), "the target has no warpgroup products");
      const options = { pack: true, params: small(128) };
      const [transA, transB] = ["T", "N"] as const;
      const size = [65, 19, 130] as const;
      await checkAlgebra(device(), {
        algebra: dual,
        type: i8,
        transA,
        transB,
        size,
        factors: "elements",
        options,
      });
      const x = device()
        .array(i8, [2, 64, 64], new Int8Array(2 * 64 * 64))
        .permute([1, 2, 0]);
      const gauss = algebraMatrix(complex, x);
      const refused = planGemm(gauss, gauss.transposed, { schedule: "warpgroup" });
      await expect(refused).rejects.toThrow(/no sign for those of i8/);
    });

    it("a component that no product has is zero", async ({ skip }) => {
      skip(!hasWarpgroups(), "the target has no warpgroup products");
      for (const size of [
        [66, 9, 70],
        [65, 130, 7],
      ] as const)
        await checkAlgebra(device(), {
          algebra: lacking,
          type: f16,
          transA: "N",
          transB: "T",
          size,
          storageC: "split",
          factors: "elements",
          options: { pack: true },
        });
    });

    it("aligned planes as they lie, a batch of them, functions of components", async ({ skip }) => {
      skip(!hasWarpgroups(), "the target has no warpgroup products");
      const [count, m, n, k] = [3, 40, 24, 72];
      const values = (length: number, step: number) => Array.from({ length }, (_, i) => ((i * step) % 7) - 3);
      const [left, right] = [values(count * 2 * m * k, 5), values(2 * n * k, 3)];
      const a = algebraMatrix(complex, device().array(f16, [count, 2, m, k], left).permute([0, 2, 3, 1]));
      const b = algebraMatrix(complex, device().array(f16, [2, k, n], right).permute([1, 2, 0]));
      const moved: Transform = (x, { row }) => x.add(row.to(f32));
      using plan = await planGemm(a, b.conjugate, { type: f32, epilogue: [moved], params: small(64) });
      expect(plan.explain()).toMatch(/complex wgmma m64n64k16\n.*\n.*2 planes of A and of B, 4 products/);
      expect(plan.explain()).not.toContain("before");
      plan.run();
      const got = await plan.d.read();
      for (let at = 0; at < count * m * n; at++) {
        const [matrix, i, j] = [Math.floor(at / (m * n)), Math.floor(at / n) % m, at % n];
        const sum = [i, i];
        for (let l = 0; l < k; l++) {
          const x = [0, 1].map((p) => left[((matrix * 2 + p) * m + i) * k + l]!);
          const y = [0, 1].map((p) => right[(p * k + l) * n + j]! * (p === 1 ? -1 : 1));
          productOf(complex, x, y).forEach((value, p) => {
            sum[p]! += value;
          });
        }
        expect([got[2 * at], got[2 * at + 1]], `element ${at}`).toEqual(sum);
      }
    });
  });
});

describe("the warpgroup schedule for elements with several components", () => {
  const paper = createPaperDevice(nvidiaTarget("sm_90a"));
  afterAll(() => paper[Symbol.dispose]());
  const operand = (algebra: Algebra, size: number, type = f16) =>
    algebraMatrix(algebra, paper.empty(type, [algebra.dimension, size, size]).permute([1, 2, 0]));

  it.each([
    [complex, 4, 128],
    [dual, 3, 128],
    [quaternion, 16, 64],
  ] as const)("issues the table's products for $name", async (algebra, times, n) => {
    const x = operand(algebra, 4096);
    using plan = await planGemm(x, x);
    expect(plan.kind.params.block).toEqual({ m: 128, n, k: 64 });
    // Four slices of K, in a loop that is written once.
    expect(plan.compiled!.text.match(/wgmma\.mma_async/g)).toHaveLength(4 * times);
  });

  it("takes interleaved matrices apart first where that is asked for", async () => {
    const large = algebraMatrix(complex, paper.empty(f16, [1024, 1024, 2]));
    using plan = await planGemm(large, large.adjoint, { pack: true });
    expect(plan.kind.schedule).toBe("warpgroup");
    expect(plan.explain()).toMatch(
      /before +components of A taken apart.*pack_planes\)\n.*components of B taken apart/,
    );
    using kept = await planGemm(large, large, { pack: false });
    expect(kept.kind.schedule).toBe("register-staged");
    expect(kept.explain()).toMatch(/not taken {2}warpgroup: the components of A's elements lie side by side/);
  });

  it("is refused in words", async () => {
    const schedule = "warpgroup" as const;
    const x = operand(complex, 64);
    const sums = operand(complex3m, 64);
    await expect(gemm(sums, sums, { schedule })).rejects.toThrow(/multiplies sums of components/);
    const many = defineAlgebra({
      name: "six",
      basis: "a b c d e f",
      table: Array.from({ length: 6 }, () => "a b c d e f"),
      conjugate: undefined as never,
    });
    const wide = operand(many, 64);
    await expect(gemm(wide, wide, { schedule })).rejects.toThrow(
      /6 components, whose sums and planes fit no/,
    );
    const halved: Transform = (v) => v.mul(0.5);
    const transforms = { a: { globalToShared: halved } };
    await expect(gemm(x, x, { schedule, transforms })).rejects.toThrow(/changed on their way/);
    const params = { block: { m: 128, n: 192, k: 64 }, warps: { m: 8, n: 1 }, groupRows: 8 };
    await expect(gemm(x, x, { schedule, params })).rejects.toThrow(ArgumentError);
    await expect(gemm(x, x, { schedule, params })).rejects.toThrow(
      /192 registers of a lane, and at most 168/,
    );
  });
});
