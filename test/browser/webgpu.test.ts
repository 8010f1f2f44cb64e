/**
 * @file The conformance tables in a page: kernels of the language and matrix products, on the browser's WebGPU. Sizes are
 * small, since a page in a test has the processor for a GPU.
 */
import { type Device, f32, open } from "tilewright";
import { fmaOperator, gemm } from "tilewright/gemm";
import { arrayOver, gpuBufferOf, gpuDeviceOf, submit } from "tilewright/webgpu";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkGemm } from "../conformance/gemm-cases.ts";
import { compactTable } from "../conformance/gemm-compact.ts";
import { arithmeticCases } from "../conformance/kernels/arithmetic.ts";
import { collectiveCases } from "../conformance/kernels/collectives.ts";
import { controlCases } from "../conformance/kernels/control.ts";
import { memoryCases } from "../conformance/kernels/memory.ts";

let device: Device;
beforeAll(async () => {
  device = await open({ kind: "webgpu" });
});
afterAll(() => device?.dispose());

it("open() chooses WebGPU in a page and says why not CUDA", async () => {
  await using best = await open();
  expect(best.kind).toBe("webgpu");
  expect(best.missing.map(({ kind }) => kind)).toEqual(["cuda"]);
});

it("the width of a subgroup is what the adapter says", async () => {
  const adapter = await navigator.gpu.requestAdapter();
  const { subgroupMinSize, subgroupMaxSize } = adapter!.info as unknown as Record<string, number>;
  // SwiftShader's subgroups have four lanes.
  expect([subgroupMinSize, subgroupMaxSize, device.facts.subgroup.width]).toEqual([4, 4, 4]);
});

describe("kernels", () => {
  it.for([...arithmeticCases, ...controlCases, ...memoryCases, ...collectiveCases])(
    "$name",
    async ({ needs, run }, { skip }) => {
      skip(needs?.(device.facts) === false, "the target lacks what it needs");
      await run(device);
      await device.sync();
    },
  );
});

describe("gemm", () => {
  it("with few kernels in many sizes", { timeout: 120_000 }, async () => {
    for (const { cases } of compactTable(device.facts, 64, 2)) {
      for (const [seed, test] of cases.entries()) await checkGemm(device, test, seed + 1);
    }
  });
});

describe("a device of the caller's", () => {
  it("shares its buffers without copies, before and after other code's work", async () => {
    const adapter = await navigator.gpu.requestAdapter();
    const gpu = await adapter!.requestDevice();
    const own = await open({ kind: "webgpu", webgpu: { device: gpu } });
    expect(gpuDeviceOf(own)).toBe(gpu);
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const buffer = gpu.createBuffer({ size: 16, usage });
    gpu.queue.writeBuffer(buffer, 0, Float32Array.of(1, 2, 3, 4));
    using a = arrayOver(own, buffer, f32, [2, 2]);
    // Lanes exchange values through memory on a device without the subgroups feature; small tiles compile soon.
    const operator = fmaOperator({ laneRows: 4, laneColumns: 8, rows: 1, columns: 1 });
    const params = { block: { m: 4, n: 8, k: 4 }, warps: { m: 1, n: 1 }, groupRows: 1 };
    using d = await gemm(a, a, { operator, params });
    submit(own);
    const { buffer: result, offset } = gpuBufferOf(d);
    const landing = gpu.createBuffer({ size: 16, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
    const encoder = gpu.createCommandEncoder();
    encoder.copyBufferToBuffer(result, offset, landing, 0, 16);
    gpu.queue.submit([encoder.finish()]);
    await landing.mapAsync(GPUMapMode.READ);
    expect([...new Float32Array(landing.getMappedRange())]).toEqual([7, 10, 15, 22]);
    own.dispose();
    gpu.destroy();
  });

  it("that is lost is told of, and another takes its place", async () => {
    const doomed = await open("webgpu");
    const array = doomed.array(f32, [4], [1, 2, 3, 4]);
    gpuDeviceOf(doomed).destroy();
    await gpuDeviceOf(doomed).lost;
    await expect(array.read()).rejects.toThrow(/was lost \(destroyed\)[\s\S]*open a new device/);
    await using next = await open("webgpu");
    expect(await next.array(f32, [1], [5]).item(0)).toBe(5);
  });
});
