import { expect, it } from "vitest";

it("Chromium finds a WebGPU adapter and runs a shader on it", async () => {
  const adapter = await navigator.gpu?.requestAdapter();
  expect(adapter, "an adapter").toBeTruthy();
  const device = await adapter!.requestDevice();
  const size = 4 * Uint32Array.BYTES_PER_ELEMENT;
  const data = device.createBuffer({ size, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC });
  const landing = device.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
  const module = device.createShaderModule({
    code: /* wgsl */ `
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) index: u32) { data[index] = index * index; }`,
  });
  const pipeline = device.createComputePipeline({ layout: "auto", compute: { module } });
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
  expect(new Uint32Array(landing.getMappedRange())).toEqual(Uint32Array.of(0, 1, 4, 9));
  device.destroy();
});
