import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, describe, expect, it } from "vitest";
import { AbortedError, ArgumentError, CompileError, DeviceError, DisposedError } from "../../errors.ts";
import { f16, f32, i32 } from "../../types/types.ts";
import type { ArgumentValue, BackendBuffer } from "../backend.ts";
import { CudaBackend, createCudaBackend } from "./backend.ts";
import { FakeDriver, type FakeSettings } from "./fake-driver-for-tests.ts";
import { moduleForTests } from "./kernel-module-for-tests.ts";
import type { StagingSizes } from "./staging.ts";

const openBackends: CudaBackend[] = [];

async function open(
  settings: FakeSettings = {},
  staging?: StagingSizes,
): Promise<{ readonly backend: CudaBackend; readonly driver: FakeDriver }> {
  const driver = new FakeDriver(settings);
  const backend = await createCudaBackend({ library: driver, staging });
  if (!(backend instanceof CudaBackend)) throw new Error(backend.reason);
  openBackends.push(backend);
  return { backend, driver };
}

afterEach(() => {
  for (const backend of openBackends.splice(0)) backend.dispose();
});

const sequence = (bytes: number, from = 0): Uint8Array =>
  Uint8Array.from({ length: bytes }, (_, i) => i + from);
const pointer = (buffer: BackendBuffer): ArgumentValue => ({
  kind: "pointer",
  buffer,
  byteOffset: 0,
  byteLength: buffer.bytes,
});
const number = (value: number): ArgumentValue => ({ kind: "number", value });
/** One round through the event loop's timers. */
const soon = (milliseconds = 1): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

function collectGarbage(): Promise<void> {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return soon();
}

describe("memory", () => {
  it.each([true, false])("is freed after the work enqueued before (pools: %s)", async (pools) => {
    const { backend, driver } = await open({ pools, stepsPerQuery: 1 });
    const buffer = backend.allocate(64);
    backend.write(buffer, 0, sequence(64));
    backend.free(buffer);
    backend.free(buffer);
    expect(driver.allocated).toBe(64);
    await backend.sync();
    expect(driver.allocated).toBe(0);
  });

  it("is not the driver's before disposal has run, and all of it is after", async () => {
    for (const pools of [true, false]) {
      const { backend, driver } = await open({ pools });
      backend.allocate(1000);
      backend.write(backend.allocate(100), 0, sequence(100));
      expect([driver.allocated > 0, driver.pinned > 0, driver.contextReferences]).toEqual([true, true, 1]);
      backend.dispose();
      backend.dispose();
      expect([driver.allocated, driver.pinned, driver.contextReferences]).toEqual([0, 0, 0]);
    }
  });

  it("sets up a pool of the device that keeps what it has", async () => {
    const { driver } = await open();
    expect(driver.calls).toContain("cuMemPoolCreate 1,0,1,0");
    expect(driver.calls).toContain(`cuMemPoolSetAttribute 4 ${2n ** 64n - 1n}`);
  });

  it("is collected with its last reference, after the work enqueued before", async () => {
    const { backend, driver } = await open();
    (() => backend.write(backend.allocate(4096), 0, sequence(4096)))();
    for (let round = 0; round < 20 && !driver.calls.includes("cuMemFreeAsync"); round++)
      await collectGarbage();
    expect(driver.calls).toContain("cuMemFreeAsync");
    expect(driver.calls.indexOf("cuMemFreeAsync")).toBeGreaterThan(
      driver.calls.indexOf("cuMemcpyHtoDAsync 4096"),
    );
    driver.advance();
    expect(driver.allocated).toBe(0);
  });

  it("tries again after giving back what is idle, then says how much there is", async () => {
    const { backend, driver } = await open({ memoryBytes: 1000 });
    const buffer = backend.allocate(900);
    backend.free(buffer);
    const next = backend.allocate(800);
    expect(driver.calls).toContain("cuMemPoolTrimTo");
    expect(() => backend.allocate(500)).toThrow(DeviceError);
    expect(() => backend.allocate(500)).toThrow("500 bytes were asked for");
    expect(next.bytes).toBe(800);
  });

  it("can be none at all", async () => {
    const { backend } = await open({ stepsPerQuery: 1 });
    const empty = backend.allocate(0);
    backend.write(empty, 0, new Uint8Array(0));
    await backend.read(empty, 0, new Uint8Array(0));
    backend.fill(empty, 0, 0, 0);
    backend.free(empty);
    expect(() => backend.allocate(-1)).toThrow(ArgumentError);
    expect(() => backend.allocate(0.5)).toThrow(ArgumentError);
  });

  it("counts as free what the pool holds without use", async () => {
    const { backend } = await open({ memoryBytes: 10_000, stepsPerQuery: 1 });
    backend.allocate(1000);
    expect(backend.memory()).toEqual({ free: 9000 + 4096, total: 10_000 });
  });
});

describe("copies", () => {
  const small: StagingSizes = { ring: 4096, piece: 1024 };

  it("to the device go in pieces and take the data at once", async () => {
    const { backend, driver } = await open({ stepsPerQuery: 1 }, small);
    const buffer = backend.allocate(2600);
    const data = sequence(2600);
    backend.write(buffer, 0, data);
    data.fill(0);
    expect(driver.calls.filter((call) => call.startsWith("cuMemcpyHtoD"))).toEqual([
      "cuMemcpyHtoDAsync 1024",
      "cuMemcpyHtoDAsync 1024",
      "cuMemcpyHtoDAsync 552",
    ]);
    const back = new Uint8Array(2600);
    await backend.read(buffer, 0, back);
    expect(back).toEqual(sequence(2600));
  });

  it("to the device wait for room in the ring without overwriting what is under way", async () => {
    const { backend, driver } = await open({}, small);
    const buffers = Array.from({ length: 10 }, () => backend.allocate(1024));
    for (const [i, buffer] of buffers.entries()) backend.write(buffer, 0, sequence(1024, i));
    expect(driver.calls).toContain("cuEventSynchronize");
    driver.advance();
    for (const [i, buffer] of buffers.entries()) {
      expect(driver.memoryAt(backend.addressOf(buffer), 1024)).toEqual(sequence(1024, i));
    }
  });

  it("from the device show what was there at the call", async () => {
    const { backend } = await open({ stepsPerQuery: 1 }, small);
    const buffer = backend.allocate(16);
    backend.write(buffer, 0, sequence(16));
    const first = new Uint8Array(16);
    const second = new Uint8Array(8);
    const reading = backend.read(buffer, 0, first);
    backend.write(buffer, 8, new Uint8Array(8).fill(7));
    const readingAgain = backend.read(buffer, 8, second);
    await Promise.all([reading, readingAgain]);
    expect(first).toEqual(sequence(16));
    expect(second).toEqual(new Uint8Array(8).fill(7));
  });

  it("from the device that are larger than the ring show what was there at the call too", async () => {
    const { backend, driver } = await open({ stepsPerQuery: 1 }, small);
    const buffer = backend.allocate(10_000);
    backend.write(buffer, 0, sequence(10_000));
    const back = new Uint8Array(10_000);
    const reading = backend.read(buffer, 0, back);
    backend.fill(buffer, 0, 10_000, 0);
    await reading;
    expect(back).toEqual(sequence(10_000));
    await backend.sync();
    expect(driver.allocated).toBe(10_000);
  });

  it("from the device block when there is no room even for that", async () => {
    const { backend, driver } = await open({ memoryBytes: 10_100 }, small);
    const buffer = backend.allocate(10_000);
    backend.write(buffer, 0, sequence(10_000));
    const back = new Uint8Array(10_000);
    await backend.read(buffer, 0, back);
    expect(back).toEqual(sequence(10_000));
    expect(driver.calls).toContain("cuMemcpyDtoH 10000");
  });

  it("many at once all arrive", async () => {
    const { backend } = await open({ stepsPerQuery: 1 }, small);
    const buffer = backend.allocate(6000);
    backend.write(buffer, 0, sequence(6000));
    const targets = [100, 3000, 4096, 6000, 1, 5000].map((bytes) => new Uint8Array(bytes));
    await Promise.all(targets.map((target) => backend.read(buffer, 0, target)));
    for (const target of targets) expect(target).toEqual(sequence(target.length));
  });

  it("into an array that was transferred away are an error of that read alone", async () => {
    const { backend } = await open({ stepsPerQuery: 1 });
    const buffer = backend.allocate(8);
    backend.write(buffer, 0, sequence(8));
    const gone = new Uint8Array(8);
    const reading = backend.read(buffer, 0, gone);
    structuredClone(gone, { transfer: [gone.buffer] });
    await expect(reading).rejects.toThrow();
    await backend.sync();
  });

  it("on the device happen in order", async () => {
    const { backend, driver } = await open();
    const [a, b] = [backend.allocate(16), backend.allocate(16)];
    backend.write(a, 0, sequence(16));
    backend.copy(a, 4, b, 0, 8);
    backend.fill(a, 0, 16, 0);
    driver.advance();
    expect(driver.memoryAt(backend.addressOf(b), 8)).toEqual(sequence(8, 4));
    expect(() => backend.copy(a, 0, a, 4, 8)).toThrow("overlaps itself");
  });

  it("outside an allocation or of another device's are refused", async () => {
    const { backend } = await open();
    const other = await open();
    const buffer = backend.allocate(16);
    expect(() => backend.write(buffer, 8, new Uint8Array(9))).toThrow(
      "A write reaches from byte 8 over 9 bytes, outside an allocation of 16 bytes.",
    );
    await expect(backend.read(buffer, -1, new Uint8Array(1))).rejects.toThrow(ArgumentError);
    expect(() => other.backend.write(buffer, 0, new Uint8Array(1))).toThrow("memory of another device");
    backend.free(buffer);
    expect(() => backend.write(buffer, 0, new Uint8Array(1))).toThrow(DisposedError);
  });

  it.each([
    [0, 16, 0x04030201],
    [0, 14, 0x04030201],
    [1, 13, 0x04030201],
    [2, 3, 0x04030201],
    [3, 1, 0x04030201],
    [2, 6, 0x02010201],
    [1, 6, 0x02010201],
    [1, 7, 0x05050505],
    [0, 16, -1],
  ])("fill from byte %i over %i bytes with %i repeat the word from there", async (offset, bytes, pattern) => {
    const { backend, driver } = await open();
    const buffer = backend.allocate(16);
    backend.fill(buffer, 0, 16, 0);
    backend.fill(buffer, offset, bytes, pattern);
    driver.advance();
    const expected = Uint8Array.from({ length: 16 }, (_, i) =>
      i >= offset && i < offset + bytes ? pattern >>> (8 * ((i - offset) % 4)) : 0,
    );
    expect(driver.memoryAt(backend.addressOf(buffer), 16)).toEqual(expected);
  });
});

describe("modules", () => {
  it("are loaded once per hash", async () => {
    const { backend, driver } = await open();
    const module = moduleForTests("scale", []);
    const [a, b] = await Promise.all([backend.load(module), backend.load(module)]);
    expect(a).toBe(b);
    expect(driver.modules).toBe(1);
    expect(a).toMatchObject({ registersPerThread: 32, spilledBytes: 0, blocksPerMultiprocessor: 2 });
    expect(a.log).toBe("ptxas info : Used 32 registers");
  });

  it("are unloaded with their last reference, after the work enqueued before", async () => {
    const { backend, driver } = await open({ stepsPerQuery: 1 });
    await (async () => {
      const executable = await backend.load(moduleForTests("scale", []));
      backend.launch(executable, [1, 1, 1], backend.prepare(executable, []));
    })();
    for (let round = 0; round < 20 && driver.queued < 2; round++) await collectGarbage();
    expect(driver.modules).toBe(1);
    await backend.sync();
    expect(driver.modules).toBe(0);
  });

  it("that the driver refuses are a CompileError with its log", async () => {
    const { backend } = await open();
    const error = await backend.load(moduleForTests("scale", [], {}, "wrong")).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(CompileError);
    expect((error as CompileError).message).toBe(
      "The driver refused kernel scale: CUDA_ERROR_INVALID_PTX (a PTX JIT compilation failed). ptxas application ptx input, line 3; error   : Unknown symbol 'wrong'",
    );
    expect((error as CompileError).log).toContain("line 3");
    await expect(backend.load(moduleForTests("scale", [], {}, "newer"))).rejects.toThrow(
      "The text is PTX 7.8; install a newer NVIDIA driver.",
    );
  });

  it("are not loaded once their signal is aborted", async () => {
    const { backend, driver } = await open();
    const aborter = new AbortController();
    const loading = backend.load(moduleForTests("scale", []), { signal: aborter.signal });
    aborter.abort();
    await expect(loading).rejects.toThrow(AbortedError);
    expect(driver.modules).toBe(0);
  });

  it("get more shared memory than 48 KiB when they ask, and no more than there is", async () => {
    const { backend, driver } = await open();
    await backend.load(moduleForTests("some", [], { sharedBytes: 48 << 10 }));
    expect(driver.attributesSet).toEqual([]);
    await backend.load(moduleForTests("much", [], { sharedBytes: 200_000 }));
    expect(driver.attributesSet).toEqual([[8, 200_000]]);
    await expect(backend.load(moduleForTests("more", [], { sharedBytes: 232_449 }))).rejects.toThrow(
      "Kernel more needs 232449 bytes of shared memory per block; the device has 232448.",
    );
  });

  it("with blocks larger than their registers allow are refused", async () => {
    const { backend, driver } = await open();
    driver.kernels.set("wide", { parameterBytes: [], attributes: { 0: 512, 4: 128 } });
    await expect(backend.load(moduleForTests("wide", [], { block: [1024, 1, 1] }))).rejects.toThrow(
      "Kernel wide has blocks of 1024 threads; compiled with 128 registers per thread it can have 512.",
    );
  });
});

describe("launches", () => {
  const slots = [
    { kind: "pointer", parameter: 0 },
    { kind: "size", parameter: 0, dimension: 0 },
    { kind: "stride", parameter: 0, dimension: 0 },
    { kind: "scalar", parameter: 1, element: f16 },
    { kind: "scalar", parameter: 2, element: f32 },
  ] as const;

  it("hand over each argument's bytes, grid, block and shared memory", async () => {
    const { backend, driver } = await open();
    driver.kernels.set("scale", { parameterBytes: [8, 4, 8, 2, 4] });
    const executable = await backend.load(
      moduleForTests("scale", slots, { block: [32, 4, 2], sharedBytes: 1024 }),
    );
    const buffer = backend.allocate(256);
    const prepared = backend.prepare(executable, [
      { kind: "pointer", buffer, byteOffset: 16, byteLength: 64 },
      number(3),
      number(-5),
      number(1.5),
      number(0.1),
    ]);
    backend.launch(executable, [7, 2, 3], prepared);
    const launch = driver.launches[0]!;
    expect(launch).toMatchObject({
      kernel: "scale",
      grid: [7, 2, 3],
      block: [32, 4, 2],
      dynamicSharedBytes: 1024,
    });
    const [address, size, stride, half, single] = launch.parameters.map((p) => Buffer.from(p));
    expect(Number(address!.readBigUInt64LE())).toBe(backend.addressOf(buffer) + 16);
    expect(size!.readInt32LE()).toBe(3);
    expect(Number(stride!.readBigInt64LE())).toBe(-5);
    expect(half!.toString("hex")).toBe("003e");
    expect(single!.readFloatLE()).toBe(Math.fround(0.1));
  });

  it("with clusters go through cuLaunchKernelEx", async () => {
    const { backend, driver } = await open();
    driver.kernels.set("pair", { parameterBytes: [4] });
    const module = moduleForTests("pair", [{ kind: "scalar", parameter: 0, element: i32 }], {
      cluster: [2, 1, 1],
      sharedBytes: 64,
    });
    const executable = await backend.load(module);
    const prepared = backend.prepare(executable, [number(9)]);
    backend.launch(executable, [4, 1, 1], prepared);
    backend.launch(executable, [2, 3, 1], prepared);
    expect(driver.calls.filter((call) => call.startsWith("cuLaunch"))).toEqual([
      "cuLaunchKernelEx",
      "cuLaunchKernelEx",
    ]);
    expect(driver.launches[1]).toEqual({
      kernel: "pair",
      grid: [2, 3, 1],
      block: [128, 1, 1],
      cluster: [2, 1, 1],
      dynamicSharedBytes: 64,
      parameters: [Uint8Array.of(9, 0, 0, 0)],
    });
    expect(() => backend.launch(executable, [3, 1, 1], prepared)).toThrow("runs in clusters of 2 x 1 x 1");
  });

  it("encode tensor maps where the driver can read them", async () => {
    const { backend, driver } = await open();
    const map = {
      kind: "tensorMap",
      id: 0,
      name: "a",
      element: f16,
      rank: 2,
      box: [64, 32],
      swizzle: 128,
    } as const;
    driver.kernels.set("load", { parameterBytes: [128] });
    const executable = await backend.load(moduleForTests("load", [{ kind: "tensorMap", parameter: 0, map }]));
    const buffer = backend.allocate(65536);
    const view = { buffer, byteOffset: 4096, sizes: [128, 64], strides: [1, 256] };
    backend.launch(executable, [1, 1, 1], backend.prepare(executable, [{ kind: "tensorMap", map, view }]));
    expect(driver.launches[0]!.parameters[0]).toEqual(new Uint8Array(128).fill(0xab));
    expect(driver.maps[0]).toEqual([
      6,
      2,
      backend.addressOf(buffer) + 4096,
      BigUint64Array.of(128n, 64n),
      BigUint64Array.of(512n),
      Uint32Array.of(64, 32),
      Uint32Array.of(1, 1),
      0,
      3,
      2,
      0,
    ]);
  });

  it("keep what the driver reads, and the buffers, for as long as they are prepared", async () => {
    const { backend, driver } = await open();
    driver.kernels.set("scale", { parameterBytes: [8] });
    const executable = await backend.load(moduleForTests("scale", [{ kind: "pointer", parameter: 0 }]));
    const prepared = (() => backend.prepare(executable, [pointer(backend.allocate(64))]))();
    for (let round = 0; round < 5; round++) await collectGarbage();
    backend.launch(executable, [1, 1, 1], prepared);
    expect(driver.calls).not.toContain("cuMemFreeAsync");
    expect(driver.launches).toHaveLength(1);
  });

  it("need a grid of whole numbers within the limits", async () => {
    const { backend, driver } = await open();
    const executable = await backend.load(moduleForTests("scale", []));
    const prepared = backend.prepare(executable, []);
    for (const grid of [
      [0, 1, 1],
      [1, -1, 1],
      [1, 1, 65536],
      [2 ** 31, 1, 1],
      [1.5, 1, 1],
      [Number.NaN, 1, 1],
    ] as const) {
      expect(() => backend.launch(executable, grid, prepared)).toThrow(ArgumentError);
    }
    expect(() => backend.launch(executable, [0, 1, 1], prepared)).toThrow("a grid of 0 x 1 x 1 blocks");
    expect(driver.launches).toEqual([]);
  });

  it("need the right number and kinds of arguments", async () => {
    const { backend } = await open();
    const executable = await backend.load(moduleForTests("scale", slots));
    expect(() => backend.prepare(executable, [])).toThrow(
      "Kernel scale takes 5 native arguments; 0 were given.",
    );
    expect(() => backend.prepare(executable, [1, 2, 3, 4, 5].map(number))).toThrow(
      "Argument 0 of kernel scale is a pointer; a number was given.",
    );
  });

  it("of something disposed are refused", async () => {
    const { backend, driver } = await open();
    driver.kernels.set("scale", { parameterBytes: [8] });
    const executable = await backend.load(moduleForTests("scale", [{ kind: "pointer", parameter: 0 }]));
    const buffer = backend.allocate(64);
    const first = backend.prepare(executable, [pointer(buffer)]);
    first.dispose();
    expect(() => backend.launch(executable, [1, 1, 1], first)).toThrow(DisposedError);
    const second = backend.prepare(executable, [pointer(buffer)]);
    backend.free(buffer);
    expect(() => backend.launch(executable, [1, 1, 1], second)).toThrow(DisposedError);
    expect(() => backend.prepare(executable, [pointer(buffer)])).toThrow(DisposedError);
  });

  it("that ask too much say what they ask", async () => {
    const { backend, driver } = await open();
    const executable = await backend.load(moduleForTests("scale", []));
    driver.launchStatus = 701;
    expect(() => backend.launch(executable, [1, 1, 1], backend.prepare(executable, []))).toThrow(
      "Launching kernel scale with a grid of 1 x 1 x 1 failed: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (too many resources requested for launch). It has 128 threads per block, 32 registers per thread, 0 bytes of shared memory.",
    );
    driver.launchStatus = 0;
    backend.launch(executable, [1, 1, 1], backend.prepare(executable, []));
  });

  it("work when another library made its own context current", async () => {
    const { backend, driver } = await open({ stepsPerQuery: 1 });
    const executable = await backend.load(moduleForTests("scale", []));
    const prepared = backend.prepare(executable, []);
    driver.current = 0xbad;
    backend.launch(executable, [1, 1, 1], prepared);
    driver.current = 0xbad;
    const waiting = backend.sync();
    driver.current = 0xbad;
    await waiting;
  });
});

describe("PTX by hand", () => {
  it("is launched with plain native arguments", async () => {
    const { backend, driver } = await open();
    driver.kernels.set("axpy", { parameterBytes: [8, 4, 4] });
    const program = backend.loadPtx(".visible .entry axpy()");
    const kernel = program.kernel("axpy", {
      parameters: ["pointer", "u32", "f32"],
      block: [256, 1, 1],
      dynamicSharedBytes: 100_000,
    });
    const buffer = backend.allocate(16);
    kernel.launch([3, 1, 1], [pointer(buffer), number(4_000_000_000), number(2)]);
    expect(driver.launches[0]).toMatchObject({
      grid: [3, 1, 1],
      block: [256, 1, 1],
      dynamicSharedBytes: 100_000,
    });
    expect(Buffer.from(driver.launches[0]!.parameters[1]!).readUInt32LE()).toBe(4_000_000_000);
    expect(kernel.function.registersPerThread).toBe(32);
    expect(() => program.kernel("nothing", { parameters: [], block: [1, 1, 1] })).toThrow(
      "Finding kernel nothing failed: CUDA_ERROR_NOT_FOUND (named symbol not found).",
    );
  });
});

describe("waiting", () => {
  it("ends when the work enqueued before is done, not what came after", async () => {
    const { backend, driver } = await open();
    const buffer = backend.allocate(16);
    backend.write(buffer, 0, sequence(16));
    let done = false;
    const waiting = backend.sync().then(() => {
      done = true;
    });
    backend.write(buffer, 0, sequence(16));
    await soon(5);
    expect(done).toBe(false);
    driver.advance(3);
    await waiting;
    expect(driver.queued).toBeGreaterThan(0);
  });

  it("leaves the event loop free for long", async () => {
    const { backend, driver } = await open();
    backend.fill(backend.allocate(16), 0, 16, 0);
    const waiting = backend.sync();
    let turns = 0;
    const ticking = setInterval(() => turns++, 1);
    await soon(30);
    clearInterval(ticking);
    expect(turns).toBeGreaterThan(5);
    driver.advance();
    await waiting;
  });

  it("reuses events", async () => {
    const { backend, driver } = await open({ stepsPerQuery: 10 });
    for (let round = 0; round < 20; round++) await backend.sync();
    expect(driver.calls.filter((call) => call.startsWith("cuEventCreate"))).toHaveLength(1);
  });

  it("tells the device's own time", async () => {
    const { backend } = await open({ stepsPerQuery: 1 });
    const buffer = backend.allocate(16);
    const seconds = await backend.time(() => {
      for (let i = 0; i < 4; i++) backend.fill(buffer, 0, 16, i * 0x01010101);
    });
    // The fake's clock: one millisecond for each piece of work.
    expect(seconds).toBeCloseTo(0.005);
  });
});

describe("a device fault", () => {
  async function faulting(): Promise<{
    readonly backend: CudaBackend;
    readonly driver: FakeDriver;
    readonly launch: (name: string) => Promise<void>;
  }> {
    const { backend, driver } = await open({ stepsPerQuery: 1 });
    driver.kernels.set("bad", { parameterBytes: [], run: () => 700 });
    const launch = async (name: string): Promise<void> => {
      const executable = await backend.load(moduleForTests(name, []));
      backend.launch(executable, [5, 1, 1], backend.prepare(executable, []));
    };
    return { backend, driver, launch };
  }

  it("rejects the next wait, naming the launch", async () => {
    const { backend, launch } = await faulting();
    await launch("good");
    await backend.sync();
    await launch("bad");
    const error = await backend.sync().catch((e: unknown) => e);
    expect(error).toBeInstanceOf(DeviceError);
    expect((error as DeviceError).status).toBe("CUDA_ERROR_ILLEGAL_ADDRESS");
    expect((error as DeviceError).message).toBe(
      "The device stopped with CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered); kernel bad (grid 5 x 1 x 1).",
    );
  });

  it("names all launches that can have caused it", async () => {
    const { backend, launch } = await faulting();
    await launch("good");
    await launch("bad");
    await expect(backend.sync()).rejects.toThrow(
      "one of the 2 launches since the device was last seen well: good (grid 5 x 1 x 1), bad (grid 5 x 1 x 1); CUDA_LAUNCH_BLOCKING=1",
    );
  });

  it("is what every later call tells, and disposal is silent", async () => {
    const { backend, driver, launch } = await faulting();
    const buffer = backend.allocate(64);
    await launch("bad");
    const read = backend.read(buffer, 0, new Uint8Array(64));
    const sync = backend.sync();
    await expect(read).rejects.toThrow("kernel bad");
    await expect(sync).rejects.toThrow("kernel bad");
    for (const later of [
      () => backend.allocate(1),
      () => backend.write(buffer, 0, new Uint8Array(1)),
      () => backend.memory(),
    ]) {
      expect(later).toThrow("cannot be used since an earlier fault, and the process must be restarted");
      expect(later).toThrow("kernel bad");
    }
    await expect(backend.sync()).rejects.toThrow("kernel bad");
    await expect(backend.read(buffer, 0, new Uint8Array(1))).rejects.toThrow("kernel bad");
    backend.free(buffer);
    backend.dispose();
    expect(driver.contextReferences).toBe(0);
  });

  it("found in a launch is thrown there", async () => {
    const { driver, launch } = await faulting();
    await launch("bad");
    driver.advance();
    await expect(launch("good")).rejects.toThrow("kernel bad");
  });
});

describe("a disposed device", () => {
  it("finishes what was under way and refuses the rest", async () => {
    const { backend } = await open();
    const buffer = backend.allocate(16);
    backend.write(buffer, 0, sequence(16));
    const target = new Uint8Array(16);
    const reading = backend.read(buffer, 0, target);
    backend.dispose();
    await reading;
    expect(target).toEqual(sequence(16));
    expect(() => backend.allocate(1)).toThrow(DisposedError);
    expect(() => backend.loadPtx("")).toThrow(DisposedError);
    await expect(backend.sync()).rejects.toThrow(DisposedError);
    backend.free(buffer);
  });

  it("gives up reads that were still to be copied in parts", async () => {
    const { backend } = await open({}, { ring: 1024, piece: 512 });
    const buffer = backend.allocate(8192);
    const reading = backend.read(buffer, 0, new Uint8Array(8192));
    backend.dispose();
    await expect(reading).rejects.toThrow(DisposedError);
  });
});
