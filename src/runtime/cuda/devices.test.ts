import { describe, expect, it } from "vitest";
import { isUnavailable } from "./availability.ts";
import { CudaBackend, createCudaBackend } from "./backend.ts";
import { listCudaDevices } from "./devices.ts";
import { FakeDriver, type FakeSettings } from "./fake-driver-for-tests.ts";

const opened = (settings: FakeSettings, device?: number): Promise<unknown> =>
  createCudaBackend({ library: new FakeDriver(settings), device });

describe("the devices of a machine", () => {
  it("are listed with what the driver says", async () => {
    const devices = await listCudaDevices(new FakeDriver({ devices: 2 }));
    expect(devices).toHaveLength(2);
    expect((devices as readonly unknown[])[1]).toEqual({
      index: 1,
      name: "Fake H200",
      computeCapability: [9, 0],
      memoryBytes: 1 << 30,
      multiprocessors: 132,
      sharedBytesPerBlock: 232448,
      sharedBytesPerMultiprocessor: 233472,
      registersPerMultiprocessor: 65536,
      l2Bytes: 50 << 20,
      threadsPerBlock: 1024,
      driver: [13, 0],
    });
  });

  it("have facts of their own architecture", async () => {
    const backend = (await opened({})) as CudaBackend;
    expect(backend).toBeInstanceOf(CudaBackend);
    expect(backend.kind).toBe("cuda");
    expect(backend.name).toBe("Fake H200");
    expect(backend.facts.name).toBe("sm_90a");
    expect(backend.facts.limits.sharedBytes).toBe(232448);
    expect(backend.facts.machine.multiprocessors).toBe(132);
    backend.dispose();
  });
});

describe("a driver that cannot be used says why, and what would help", () => {
  it("without a device", async () => {
    const result = await opened({ initStatus: 100 });
    expect(result).toMatchObject({
      kind: "cuda",
      reason: "The NVIDIA driver does not start: CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected).",
      remedy: expect.stringContaining("--gpus all"),
    });
    expect(isUnavailable(result as object)).toBe(true);
  });

  it("with a status that the driver has no text for", async () => {
    expect(await opened({ initStatus: 4711 })).toMatchObject({
      reason: expect.stringContaining("CUDA_ERROR_4711"),
    });
  });

  it("when it is too old", async () => {
    expect(await opened({ driverVersion: 11040 })).toMatchObject({
      reason: "The NVIDIA driver supports CUDA 11.4; 12.0 is needed.",
      remedy: expect.stringContaining("newer NVIDIA driver"),
    });
  });

  it("when there is no such device", async () => {
    expect(await opened({ devices: 2 }, 2)).toMatchObject({
      reason: "CUDA device 2 was asked for; the driver shows 2 devices, counted from 0.",
      remedy: "Ask for one of 0 to 1.",
    });
    expect(await opened({ devices: 0 })).toMatchObject({
      remedy: expect.stringContaining("CUDA_VISIBLE_DEVICES"),
    });
  });

  it("when the device is older than anything generated here", async () => {
    expect(await opened({ computeCapability: [6, 1] })).toMatchObject({
      reason: expect.stringContaining("6.1"),
    });
  });
});
