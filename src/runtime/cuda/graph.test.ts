import { afterEach, describe, expect, it } from "vitest";
import { ArgumentError, DeviceError, DisposedError, UnsupportedError } from "../../errors.ts";
import type { BackendBuffer, CapturedWork } from "../backend.ts";
import { CudaBackend, type CudaExecutable, createCudaBackend } from "./backend.ts";
import { FakeDriver } from "./fake-driver-for-tests.ts";
import { moduleForTests } from "./kernel-module-for-tests.ts";

interface Setting {
  readonly backend: CudaBackend;
  readonly driver: FakeDriver;
  readonly executable: CudaExecutable;
  readonly buffer: BackendBuffer;
  readonly launch: () => void;
}

const opened: CudaBackend[] = [];
afterEach(() => {
  for (const backend of opened.splice(0)) backend.dispose();
});

/** A kernel that adds 1 to the first byte of its buffer. */
async function setUp(driver: FakeDriver = new FakeDriver({ stepsPerQuery: 4 })): Promise<Setting> {
  const backend = await createCudaBackend({ library: driver });
  if (!(backend instanceof CudaBackend)) throw new Error(backend.reason);
  opened.push(backend);
  driver.kernels.set("bump", {
    parameterBytes: [8],
    run: ({ parameters }) => {
      const address = Number(new DataView(parameters[0]!.slice().buffer).getBigUint64(0, true));
      driver.memoryAt(address, 1)[0]!++;
      return undefined;
    },
  });
  const executable = await backend.load(moduleForTests("bump", [{ kind: "pointer", parameter: 0 }], {}));
  const buffer = backend.allocate(16);
  backend.write(buffer, 0, new Uint8Array(16));
  const launch = (): void => {
    const pointer = { kind: "pointer", buffer, byteOffset: 0, byteLength: 16 } as const;
    const prepared = backend.prepare(executable, [pointer]);
    backend.launch(executable, [1, 1, 1], prepared);
    prepared.dispose();
  };
  return { backend, driver, executable, buffer, launch };
}

async function first({ backend, buffer }: Setting): Promise<number> {
  const bytes = new Uint8Array(16);
  await backend.read(buffer, 0, bytes);
  return bytes[0]!;
}

describe("a graph", () => {
  it("does nothing until it is launched, then all of it each time", async () => {
    const setting = await setUp();
    const { backend, driver, launch } = setting;
    const graph = backend.capture(() => {
      launch();
      launch();
    });
    expect(await first(setting)).toBe(0);
    graph.launch();
    graph.launch();
    expect(await first(setting)).toBe(4);
    expect(driver.calls.filter((name) => name === "cuGraphLaunch")).toHaveLength(2);
    graph.dispose();
    graph.dispose();
    expect(driver.graphs).toBe(0);
    expect(() => graph.launch()).toThrow(DisposedError);
  });

  it("holds copies and fills", async () => {
    const setting = await setUp();
    const { backend, buffer } = setting;
    const other = backend.allocate(16);
    const graph = backend.capture(() => {
      backend.fill(other, 0, 16, 0x07070707);
      backend.copy(other, 0, buffer, 0, 16);
    });
    graph.launch();
    expect(await first(setting)).toBe(7);
    backend.free(other);
    expect(() => graph.launch()).toThrow("uses an array that was disposed");
  });

  it("refuses what it cannot hold, and leaves the stream usable", async () => {
    const setting = await setUp();
    const { backend, driver, buffer, launch } = setting;
    const refusals: readonly [string, () => unknown][] = [
      ["allocating memory", () => backend.allocate(4)],
      ["disposing memory", () => backend.free(buffer)],
      ["a write", () => backend.write(buffer, 0, new Uint8Array(1))],
      ["capture()", () => backend.capture(() => undefined)],
    ];
    for (const [what, act] of refusals) {
      const attempt = (): CapturedWork =>
        backend.capture(() => {
          launch();
          act();
        });
      expect(attempt).toThrow(ArgumentError);
      expect(attempt).toThrow(`${what} cannot be captured: a graph holds launches, copies and fills`);
    }
    expect(driver.graphs).toBe(0);
    launch();
    expect(await first(setting)).toBe(1);
  });

  it("names its kernels when the device fails", async () => {
    const { backend, driver, launch } = await setUp();
    const graph = backend.capture(launch);
    await backend.sync();
    driver.kernels.set("bump", { parameterBytes: [8], run: () => 700 });
    const failing = backend.capture(launch);
    graph.launch();
    failing.launch();
    await expect(backend.sync()).rejects.toThrow(/bump \(grid 1 x 1 x 1\), bump \(grid 1 x 1 x 1\)/);
    expect(() => graph.launch()).toThrow(DeviceError);
    graph.dispose();
  });

  it("needs a driver that has graphs", async () => {
    const driver = Object.assign(new FakeDriver(), { cuStreamBeginCapture: undefined }) as never;
    const { backend, launch } = await setUp(driver);
    expect(() => backend.capture(launch)).toThrow(UnsupportedError);
  });
});
