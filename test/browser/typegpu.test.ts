/**
 * @file Interop: TypeGPU owns the device and the typed buffers, this library multiplies in them. Nothing is copied between
 * the two, and each sees the other's work in order.
 */
import { f32, open } from "tilewright";
import { fmaOperator, gemm } from "tilewright/gemm";
import { arrayOver, gpuBufferOf, submit } from "tilewright/webgpu";
import tgpu from "typegpu";
import { arrayOf, f32 as gpuF32 } from "typegpu/data";
import { expect, it } from "vitest";

it("TypeGPU's buffers are operands and result of a product, without copies", async () => {
  const adapter = await navigator.gpu.requestAdapter();
  const features = ["subgroups"].filter((name) => adapter!.features.has(name)) as GPUFeatureName[];
  const gpu = await adapter!.requestDevice({ requiredFeatures: features });
  const root = tgpu.initFromDevice({ device: gpu });
  const device = await open({ kind: "webgpu", webgpu: { device: gpu } });

  const [rows, inner, columns] = [4, 8, 4];
  const left = root.createBuffer(arrayOf(gpuF32, rows * inner)).$usage("storage");
  const right = root.createBuffer(arrayOf(gpuF32, inner * columns)).$usage("storage");
  const product = root.createBuffer(arrayOf(gpuF32, rows * columns)).$usage("storage");
  const x = Array.from({ length: rows * inner }, (_, i) => (i % 5) - 2);
  const y = Array.from({ length: inner * columns }, (_, i) => (i % 7) - 3);
  left.write(x);
  right.write(y);

  using a = arrayOver(device, root.unwrap(left), f32, [rows, inner]);
  using b = arrayOver(device, root.unwrap(right), f32, [inner, columns]);
  using d = arrayOver(device, root.unwrap(product), f32, [rows, columns]);
  const { width } = device.facts.subgroup;
  const operator = fmaOperator({ laneRows: 2, laneColumns: width / 2, rows: 2, columns: 1 });
  const params = { block: { m: 4, n: width / 2, k: 4 }, warps: { m: 1, n: 1 }, groupRows: 1 };
  await gemm(a, b, { d, operator, params });
  // What was enqueued goes off before TypeGPU reads.
  submit(device);
  const values = await product.read();

  const expected = Array.from({ length: rows * columns }, (_, at) => {
    const [row, column] = [Math.floor(at / columns), at % columns];
    let sum = 0;
    for (let k = 0; k < inner; k++) sum += x[row * inner + k]! * y[k * columns + column]!;
    return sum;
  });
  expect([...values]).toEqual(expected);
  expect(gpuBufferOf(d).buffer).toBe(root.unwrap(product));

  // And the other way: TypeGPU writes, the library reads what was written after its own work.
  left.write(x.map((value) => 2 * value));
  await gemm(a, b, { d, operator, params });
  expect([...(await d.read())]).toEqual(expected.map((value) => 2 * value));
  device.dispose();
  root.destroy();
});
