import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { AbortedError, ArgumentError, DeviceError, SimulationError } from "../errors.ts";
import { f32, i32, inout, kernel, loop, output, thread } from "../lang/index.ts";
import { FakeBackend } from "./fake-backend-for-tests.ts";

const cuda = vi.hoisted(() => ({ createCudaBackend: vi.fn(), listCudaDevices: vi.fn() }));
vi.mock("#cuda", () => ({ ...cuda, isUnavailable: (found: object) => "reason" in found }));

// Whatever WebGPU this machine has, these tests go without.
vi.mock("./webgpu/index.ts", () => {
  const missing = { kind: "webgpu", reason: "No adapter.", remedy: "None." };
  return { createWebgpuBackend: async () => missing, findWebgpuAdapter: async () => missing };
});

const { open, devices } = await import("./open.ts");

const absent = { kind: "cuda", reason: "No driver.", remedy: "Install one." };
const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
beforeEach(() => {
  cuda.createCudaBackend.mockResolvedValue(absent);
  cuda.listCudaDevices.mockResolvedValue(absent);
});
afterEach(() => void warn.mockClear());

const outside = kernel("outside", {
  params: { x: output(i32) },
  block: 8,
  body: ({ x }) => x.store(thread.index, 1),
});

describe("open", () => {
  it("falls to the simulator without its checks, warns once, and says what is missing", async () => {
    const device = await open();
    expect([device.kind, device.missing.map(({ kind }) => kind)]).toEqual(["simulator", ["cuda", "webgpu"]]);
    expect(device.missing[0]).toEqual(absent);
    await open();
    expect(warn.mock.calls.map(([text]) => text)).toEqual([
      expect.stringMatching(/cuda: No driver\. Install one\./),
    ]);
    const { text } = await device.compile(outside);
    expect(text).not.toBe((await (await open("simulator")).compile(outside)).text);
  });

  it("opens the simulator with its checks when asked for it, without a word", async () => {
    await using device = await open("simulator");
    expect(device.missing).toEqual([]);
    await device.run(outside, { blocks: 1, args: { x: device.array(i32, [4]) } });
    await expect(device.sync()).rejects.toThrow(SimulationError);
    expect(warn).not.toHaveBeenCalled();
  });

  it("takes a GPU where there is one", async () => {
    cuda.createCudaBackend.mockResolvedValue(new FakeBackend());
    const device = await open({ device: 2, require: "gpu" });
    expect([device.name, device.missing]).toEqual(["a fake", []]);
    expect(cuda.createCudaBackend).toHaveBeenCalledWith({ device: 2 });
  });

  it("throws, with reasons and remedies, for what must be there and is not", async () => {
    await expect(open("cuda")).rejects.toThrow(DeviceError);
    await expect(open("cuda")).rejects.toThrow(
      /no cuda device can be used here\n {2}cuda: No driver\. Install one\./,
    );
    await expect(open("webgpu")).rejects.toThrow(/no webgpu device can be used here\n {2}webgpu: /);
    await expect(open({ require: "gpu" })).rejects.toThrow(
      /no GPU can be used here\n {2}cuda: .*\n {2}webgpu: /,
    );
    await expect(open("gpu" as never)).rejects.toThrow(ArgumentError);
    await expect(open({ require: "cpu" as never })).rejects.toThrow(ArgumentError);
    await expect(open({ kind: "simulator", require: "gpu" })).rejects.toThrow(ArgumentError);
    await expect(open({ device: -1 })).rejects.toThrow(ArgumentError);
  });

  it("stops the simulator by a signal and tells how far it is", async () => {
    const long = kernel("long", {
      params: { x: inout(f32) },
      block: 32,
      body: ({ x }) => loop(2000, () => x.store(thread.index, x.load(thread.index).add(1))),
    });
    const controller = new AbortController();
    const seen: number[] = [];
    const device = await open({
      kind: "simulator",
      simulator: { checks: false },
      signal: controller.signal,
      onProgress: ({ kernel: name, done, total }) => {
        expect([name, total]).toEqual(["long", 100000]);
        seen.push(done);
        controller.abort();
      },
    });
    await device.run(long, { blocks: 100000, args: { x: device.array(f32, [32]) } });
    await expect(device.sync()).rejects.toThrow(AbortedError);
    expect(seen.length).toBe(1);
  });
});

describe("devices", () => {
  it("lists what is here and what is missing", async () => {
    expect(await devices()).toEqual({
      found: [{ kind: "simulator", device: 0, name: "simulator", memoryBytes: undefined }],
      missing: [absent, expect.objectContaining({ kind: "webgpu" })],
    });
    cuda.listCudaDevices.mockResolvedValue([{ index: 0, name: "A GPU", memoryBytes: 5 }]);
    const { found, missing } = await devices();
    expect(found[0]).toEqual({ kind: "cuda", device: 0, name: "A GPU", memoryBytes: 5 });
    expect(missing.map(({ kind }) => kind)).toEqual(["webgpu"]);
    cuda.listCudaDevices.mockResolvedValue([]);
    expect((await devices()).missing[0]).toMatchObject({
      kind: "cuda",
      reason: "The NVIDIA driver shows no device.",
    });
  });
});
