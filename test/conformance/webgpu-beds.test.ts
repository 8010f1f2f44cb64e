import { describe, expect, it } from "vitest";
import { requirement } from "../support/require.ts";

/**
 * The two WebGPU implementations that need no GPU, as far as later tests lean on them: Dawn's null backend judges any
 * WGSL and runs nothing; SwiftShader runs a part of WGSL on the CPU.
 */

const doubling = /* wgsl */ `
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&data)) { data[id.x] = 2u * data[id.x] + 1u; }
}`;

async function complaints(device: GPUDevice, code: string): Promise<readonly string[]> {
  device.pushErrorScope("validation");
  const { messages } = await device.createShaderModule({ code }).getCompilationInfo();
  await device.popErrorScope();
  return messages.map((message) => `${message.lineNum}:${message.linePos} ${message.message}`);
}

const dawnNull = requirement("dawn-null");

describe.skipIf(!dawnNull.available)("Dawn's null backend", () => {
  const open = async (): Promise<GPUDevice> => {
    const { create } = await import("webgpu");
    const gpu = create(["backend=null", "enable-dawn-features=allow_unsafe_apis"]);
    const adapter = await gpu.requestAdapter();
    return adapter!.requestDevice({ requiredFeatures: ["shader-f16", "subgroups"] });
  };

  it("accepts a correct shader, half precision and subgroups included", async () => {
    const device = await open();
    expect(await complaints(device, doubling)).toEqual([]);
    const halves = /* wgsl */ `
enable f16;
enable subgroups;
@group(0) @binding(0) var<storage, read_write> data: array<f16>;
@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) index: u32) { data[index] = subgroupAdd(data[index]); }`;
    expect(await complaints(device, halves)).toEqual([]);
    device.destroy();
  });

  it("names the place of a mistake", async () => {
    const device = await open();
    expect(await complaints(device, doubling.replace("+ 1u", "+ 1.5"))).toEqual([
      expect.stringMatching(/^6:\d+ .*no matching overload/s),
    ]);
    device.destroy();
  });
});

const swiftshader = requirement("swiftshader");

describe.skipIf(!swiftshader.available)("Dawn on SwiftShader", () => {
  it("runs a shader and returns what it wrote", async () => {
    Object.assign(process.env, swiftshader.environment);
    const { create } = await import("webgpu");
    const gpu = create(["backend=vulkan"]);
    const adapter = await gpu.requestAdapter();
    expect(adapter!.info.device + adapter!.info.description).toMatch(/swiftshader/i);
    const device = await adapter!.requestDevice();
    expect(await run(device, doubling, Uint32Array.of(0, 1, 2, 3, 1000))).toEqual(
      Uint32Array.of(1, 3, 5, 7, 2001),
    );
    device.destroy();
  });
});

async function run(device: GPUDevice, code: string, input: Uint32Array<ArrayBuffer>): Promise<Uint32Array> {
  const { globals } = await import("webgpu");
  const { GPUBufferUsage, GPUMapMode } = globals as unknown as typeof globalThis;
  const size = input.byteLength;
  const data = device.createBuffer({
    size,
    usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST,
  });
  const landing = device.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
  device.queue.writeBuffer(data, 0, input);

  const pipeline = device.createComputePipeline({
    layout: "auto",
    compute: { module: device.createShaderModule({ code }) },
  });
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(
    0,
    device.createBindGroup({
      layout: pipeline.getBindGroupLayout(0),
      entries: [{ binding: 0, resource: { buffer: data } }],
    }),
  );
  pass.dispatchWorkgroups(1);
  pass.end();
  encoder.copyBufferToBuffer(data, 0, landing, 0, size);
  device.queue.submit([encoder.finish()]);

  await landing.mapAsync(GPUMapMode.READ);
  return new Uint32Array(landing.getMappedRange().slice(0));
}
