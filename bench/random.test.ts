import { describe, expect, it } from "vitest";
import { FakeDriver } from "../src/runtime/cuda/fake-driver-for-tests.ts";
import { CudaBackend, createCudaBackend } from "../src/runtime/cuda/index.ts";
import { f32, i8, u64 } from "../src/types/types.ts";
import { normalValues, randomBuffer } from "./random.ts";

describe("inputs", () => {
  it("are normal and the same on every run", () => {
    const values = normalValues(100_001, 7);
    const mean = values.reduce((sum, x) => sum + x, 0) / values.length;
    const variance = values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / values.length;
    expect(Math.abs(mean)).toBeLessThan(0.02);
    expect(Math.abs(variance - 1)).toBeLessThan(0.02);
    expect(normalValues(5, 7)).toEqual(values.slice(0, 5).map((x, i) => (i < 5 ? x : 0)));
    expect(normalValues(2, 8)).not.toEqual(values.slice(0, 2));
  });

  it("fill a whole array", async () => {
    const driver = new FakeDriver();
    const backend = await createCudaBackend({ library: driver });
    if (!(backend instanceof CudaBackend)) throw new Error(backend.reason);
    const count = 2_500_000;
    const buffer = randomBuffer(backend, f32, count, 1);
    const bytes = randomBuffer(backend, i8, 1000, 1);
    const wide = randomBuffer(backend, u64, 10, 1);
    driver.advance();
    const floats = new Float32Array(driver.memoryAt(backend.addressOf(buffer), 4 * count).slice().buffer);
    expect(floats[1_000_003]).toBe(floats[0]);
    expect(floats[count - 1]).toBe(floats[(count - 1) % 1_000_003]);
    const small = new Int8Array(driver.memoryAt(backend.addressOf(bytes), 1000).slice().buffer);
    expect(new Set(small).size).toBeGreaterThan(100);
    expect(driver.memoryAt(backend.addressOf(wide), 80).some((x) => x !== 0)).toBe(true);
    backend.dispose();
  });
});
