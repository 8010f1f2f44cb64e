import { expect, it } from "vitest";
import { block, f32, input, kernel, output, thread } from "../../lang/index.ts";
import { openSimulator } from "./open-simulator.ts";

const strided = kernel("strided", {
  params: { x: input(f32, 2), y: output(f32) },
  block: 32,
  body({ x, y }) {
    y.store(block.id.x.mul(32).add(thread.index), x.load(thread.index, block.id.x));
  },
});

it("counts the sectors that a kernel touches, of all blocks or of some", async () => {
  const { device, profile } = openSimulator();
  const x = device.array(f32, [32, 64]);
  const y = device.array(f32, [128]);
  const scattered = await profile(strided, { blocks: 4, args: { x, y } });
  expect([scattered.globalLoadSectors, scattered.globalStoreSectors]).toEqual([4 * 32, 4 * 4]);
  const dense = device.array(f32, [64, 32]).transposed;
  const together = await profile(strided, { blocks: 4, args: { x: dense, y } });
  expect(together.globalLoadSectors).toBe(4 * 4);
  const one = await profile(strided, { blocks: 4, args: { x, y }, only: [[2, 0, 0]] });
  expect(one.globalLoadSectors).toBe(32);
  await expect(profile(strided, { blocks: 4, args: { x: y, y } as never })).rejects.toThrow(/rank/);
});
