/**
 * @file Every kernel of the conformance table as WGSL, judged by Dawn's null backend: natively, with a pinned subgroup
 * size, and with subgroups emulated through workgroup memory.
 */
import { f16, f32, i8, i32 } from "tilewright";
import { fma, fmaOperator, gemm, type OperatorFactory, planGemm } from "tilewright/gemm";
import {
  block,
  exit,
  inout,
  input,
  kernel,
  loop,
  output,
  shared,
  subgroup,
  thread,
  variable,
  when,
  wmma,
  wmmaFragment,
  wmmaLoad,
  wmmaStore,
} from "tilewright/lang";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createPaperDevice } from "../../src/cli/paper-device.ts";
import { emit } from "../../src/runtime/compile.ts";
import type { Device } from "../../src/runtime/device.ts";
import type { WebgpuBackend } from "../../src/runtime/webgpu/index.ts";
import { commonAdapter, webGpuFacts } from "../../src/target/webgpu.ts";
import { judgedSimulator, openNullBackend, validate } from "../support/dawn.ts";
import { requirement } from "../support/require.ts";
import { checkGemm } from "./gemm-cases.ts";
import { caseOf, multiplies, pairwiseTable, typeRows } from "./gemm-table.ts";
import { arithmeticCases } from "./kernels/arithmetic.ts";
import { collectiveCases } from "./kernels/collectives.ts";
import { controlCases } from "./kernels/control.ts";
import { memoryCases } from "./kernels/memory.ts";

/** The whole lists for each way of subgroups; else they take turns. */
const thorough = process.env.TILEWRIGHT_SOAK === "1";

const cases = [...arithmeticCases, ...controlCases, ...memoryCases, ...collectiveCases];

describe.skipIf(!requirement("dawn-null").available)("WGSL by Dawn's judgement", () => {
  describe.each([
    ["pinned subgroups of 32", {}, 0],
    ["pinned subgroups of 8", { subgroupWidth: 8 }, 1],
    ["emulated subgroups of 32", { emulateSubgroups: true }, 2],
  ] as const)("%s", (_name, options, turn) => {
    let backend: WebgpuBackend;
    let device: Device;
    beforeAll(async () => {
      backend = await openNullBackend(options);
      device = judgedSimulator(backend);
    });
    afterAll(() => {
      device?.dispose();
      backend?.dispose();
    });

    it.for(cases)("$name", async ({ needs, run }, { skip }) => {
      skip(needs?.(device.facts) === false, "the target lacks what it needs");
      await run(device);
      await device.sync();
    });

    it.for(typeRows)("gemm: $name", async (types, { skip }) => {
      skip(!multiplies(types, device.facts), "the target has no arithmetic for it");
      // The simulator works through small ones in reasonable time; the shaders are the same ones.
      const rows = pairwiseTable()
        .get(types)!
        .filter(({ m, n, k }) => m * n * k <= 40_000);
      const judged = thorough ? rows.slice(0, 3) : rows.slice(turn, turn + 1);
      for (const row of judged) await checkGemm(device, caseOf(row, device.facts));
    });
  });

  describe("subgroup matrices", () => {
    const configurations = [
      { componentType: "f16", resultComponentType: "f32", M: 16, N: 16, K: 16 },
      { componentType: "i8", resultComponentType: "i32", M: 16, N: 16, K: 32 },
    ];
    let backend: WebgpuBackend;
    beforeAll(async () => {
      backend = await openNullBackend();
    });
    afterAll(() => backend?.dispose());

    it("multiply tiles from global and shared memory", async () => {
      const [instruction] = configurations.map((one) => ({
        a: one.componentType as "f16",
        b: one.componentType as "f16",
        accumulator: one.resultComponentType as "f32",
        m: one.M,
        n: one.N,
        k: one.K,
      }));
      const facts = { ...backend.facts, wmma: [instruction!] };
      const product = kernel("product", {
        params: { a: input(f16), b: input(f16), d: output(f32) },
        block: 32,
        body({ a, b, d }) {
          const staged = shared(f16, 256);
          loop({ from: thread.index, to: 32, step: 32 }, (at) => {
            staged.storeVectorAt(at.mul(8), a.loadVectorAt(8, at.mul(8)));
          });
          block.barrier();
          const [left, right, sum] = [
            wmmaFragment(instruction!, "a"),
            wmmaFragment(instruction!, "b"),
            wmmaFragment(instruction!, "accumulator"),
          ];
          sum.fill(0);
          wmmaLoad(instruction!, "a", left, staged, 0, 16, "row");
          wmmaLoad(instruction!, "b", right, b, 0, 16, "column");
          wmma(instruction!, sum, left, right, "row", "column");
          wmmaStore(instruction!, sum, d, 0, 16, "row");
        },
      });
      const { text } = emit(product, facts);
      expect(text).toContain("enable chromium_experimental_subgroup_matrix;");
      expect(text).toMatch(/subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>\(&s0, /);
      await validate(backend, product, facts);
    });
  });

  describe("gemm on an adapter with subgroup matrices", () => {
    const matrix = (a: "f16" | "i8", accumulator: "f16" | "f32" | "i32") =>
      ({ a, b: a, accumulator, m: 16, n: 16, k: 16 }) as const;
    const matrices = [matrix("f16", "f16"), matrix("f16", "f32"), matrix("i8", "i32")];
    let backend: WebgpuBackend;
    let device: Device;
    beforeAll(async () => {
      backend = await openNullBackend();
      device = judgedSimulator(backend, { ...backend.facts, wmma: matrices });
    });
    afterAll(() => {
      device?.dispose();
      backend?.dispose();
    });

    const params = { block: { m: 32, n: 32, k: 16 }, warps: { m: 1, n: 1 }, groupRows: 8 };
    const multiplied = typeRows.filter(({ a, b, accumulate }) => {
      const names = [a, b].map(({ name, bits }) => (bits === 8 && name[0] === "e" ? "f16" : name));
      return matrices.some(
        (one) =>
          one.a === names[0] &&
          one.b === names[1] &&
          (accumulate === undefined ? one.accumulator !== "f16" : one.accumulator === accumulate.name),
      );
    });

    // Lines that begin anywhere in a word, read along it and across.
    it.for(multiplied)("unaligned $name", async ({ a, b, d, accumulate }) => {
      for (const layout of ["nn", "tt"] as const) {
        const options = { params, ...(accumulate === undefined ? {} : { accumulate }) };
        await checkGemm(device, { a, b, d, m: 35, n: 37, k: 33, layout, padding: 1, options });
      }
    });

    it.each([
      ["aligned f16", f16, [64, 64]],
      ["f16 with odd leading dimensions", f16, [33, 35]],
      ["aligned i8", i8, [64, 64]],
      ["i8 with odd leading dimensions", i8, [33, 35]],
    ] as const)("takes the matrices by itself: %s", async (_name, type, [m, k]) => {
      const [a, b] = [device.array(type, [m, k]), device.array(type, [k, m])];
      using plan = await planGemm(a, b);
      expect(plan.operator).toMatch(/^wmma/);
    });
  });

  it.each([
    [48, "block 128 x 128 x 16, 4 x 2 warps"],
    [16, "block 64 x 128 x 8, 2 x 2 warps"],
  ] as const)("the plain operator widens halves once, in tiles for %i KiB", async (kibibytes, tiles) => {
    const limits = { ...commonAdapter.limits, maxComputeWorkgroupStorageSize: kibibytes * 1024 };
    const info = { ...commonAdapter.info, vendor: "nvidia" };
    using device = createPaperDevice(webGpuFacts({ ...commonAdapter, limits, info }));
    using plan = await planGemm(device.empty(f16, [1024, 1024]), device.empty(f16, [1024, 1024]));
    expect(plan.explain()).toContain(`${tiles}, operator 16 x 32 x 1`);
    expect(/var<workgroup> s0: .*,/.exec(plan.compiled!.text)?.[0]).toBe(
      "var<workgroup> s0: array<vec4<f32>,",
    );
  });

  it("tiles that shared memory has no room to leave are refused before anything is compiled", async () => {
    using device = createPaperDevice(webGpuFacts(commonAdapter));
    const [a, b] = [device.empty(f32, [256, 256]), device.empty(f32, [256, 256])];
    const planned = (operator: OperatorFactory, k: number) =>
      planGemm(a, b, {
        operator,
        params: { block: { m: 64, n: 128, k }, warps: { m: 2, n: 2 }, groupRows: 8 },
      });
    const large = fmaOperator({ laneRows: 4, laneColumns: 8, rows: 8, columns: 8 });
    await expect(planned(large, 8)).rejects.toThrow(
      /D's tiles on their way out take 34816 bytes of shared memory/,
    );
    await expect(planned(fma, 16)).rejects.toThrow(
      /2 stages take \d+ bytes of shared memory, .* smaller tiles/,
    );
  });

  describe("refusals in our own words", () => {
    let backend: WebgpuBackend;
    beforeAll(async () => {
      backend = await openNullBackend();
    });
    afterAll(() => backend?.dispose());

    it("a barrier in a loop whose bound comes from writable memory", () => {
      const steps = kernel("steps", {
        params: { bounds: input(i32), own: output(i32) },
        block: 64,
        body({ bounds, own }) {
          loop(bounds.load(0), () => block.barrier());
          own.store(thread.index, 1);
        },
      });
      // A read-only bound is the same for all threads.
      expect(() => emit(steps, backend.facts)).not.toThrow();
      const writable = kernel("writable", {
        params: { bounds: inout(i32) },
        block: 64,
        body({ bounds }) {
          loop(bounds.load(0), () => block.barrier());
        },
      });
      expect(() => emit(writable, backend.facts)).toThrow(
        /barrier[\s\S]*not provably reached by all threads[\s\S]*webgpu-null/,
      );
    });

    it("an exit before a barrier is no obstacle", async () => {
      const early = kernel("early", {
        params: { x: input(f32), y: output(f32), n: i32 },
        block: 64,
        body({ x, y, n }) {
          const sum = variable(f32, 0);
          when(thread.index.ge(n), () => exit());
          sum.value = subgroup.sum(x.load(thread.index));
          block.barrier();
          y.store(thread.index, sum.value);
        },
      });
      await validate(backend, early);
    });

    it("types and instructions that WGSL has not", async () => {
      const device = judgedSimulator(backend);
      const { f64 } = await import("tilewright");
      const wide = kernel("wide", {
        params: { y: output(f64) },
        block: 1,
        body: ({ y }) => y.store(0, 1),
      });
      expect(() => emit(wide, backend.facts)).toThrow(/WGSL has no f64: f32 serves/);
      const a = device.array(f32, [4, 4]);
      await expect(gemm(a, a, { accumulate: f64 })).rejects.toThrow(/f64/);
      device.dispose();
    });
  });
});
