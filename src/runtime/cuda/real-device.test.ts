/** On a real device, where there is one: what the fake driver takes on trust. */
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { CompileError } from "../../errors.ts";
import type { TensorMapParameter } from "../../ir/nodes.ts";
import { f32 } from "../../types/types.ts";
import type { ArgumentValue, BackendBuffer } from "../backend.ts";
import { CudaBackend, createCudaBackend, listCudaDevices } from "./index.ts";
import { clusterPtx, countPtx, echoPtx, tensorPtx, waitPtx } from "./ptx-for-tests.ts";

const opened = await createCudaBackend();
const hasDevice = opened instanceof CudaBackend;
afterAll(() => {
  if (hasDevice) opened.dispose();
});

const pointer = (buffer: BackendBuffer): ArgumentValue => ({
  kind: "pointer",
  buffer,
  byteOffset: 0,
  byteLength: buffer.bytes,
});
const number = (value: number | bigint): ArgumentValue => ({ kind: "number", value });

/** Bytes that differ everywhere within any 16 MiB. */
function pattern(bytes: number, seed = 0): Uint8Array {
  const words = new Uint32Array(Math.ceil(bytes / 4)).map((_, i) => Math.imul(i + 1, 2654435761) ^ seed);
  return new Uint8Array(words.buffer, 0, bytes);
}

/** vitest compares typed arrays element by element, which takes long for large ones. */
const equal = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

describe.skipIf(!hasDevice)("a real CUDA device", () => {
  const backend = opened as CudaBackend;
  const target = hasDevice ? backend.facts.name : "";
  const bulkCopy = hasDevice && backend.facts.bulkCopy;
  const u32At = async (buffer: BackendBuffer, count: number): Promise<Uint32Array> => {
    const values = new Uint32Array(count);
    await backend.read(buffer, 0, new Uint8Array(values.buffer));
    return values;
  };

  beforeEach(() => backend.sync());

  it("is listed", async () => {
    expect(await listCudaDevices()).toContainEqual(backend.device);
    const { free, total } = backend.memory();
    expect(free).toBeGreaterThan(0);
    expect(total).toBeGreaterThanOrEqual(free);
  });

  it.each([0, 1, 3, 4096, 4 << 20, (4 << 20) + 1, 20 << 20, (48 << 20) + 5])(
    "gives back the %i bytes it was given",
    async (bytes) => {
      const buffer = backend.allocate(bytes + 3);
      const data = pattern(bytes, bytes);
      backend.write(buffer, 3, data);
      const back = new Uint8Array(bytes);
      await backend.read(buffer, 3, back);
      expect(equal(back, data)).toBe(true);
      backend.free(buffer);
    },
  );

  it("reads what was there at the call, in part through a copy on the device", async () => {
    for (const bytes of [1024, 40 << 20]) {
      const buffer = backend.allocate(bytes);
      const data = pattern(bytes);
      backend.write(buffer, 0, data);
      const back = new Uint8Array(bytes);
      const reading = backend.read(buffer, 0, back);
      backend.fill(buffer, 0, bytes, 0);
      backend.free(buffer);
      await reading;
      expect(equal(back, data)).toBe(true);
    }
  });

  it("fills any range with any word", async () => {
    const buffer = backend.allocate(64);
    for (const [offset, bytes, word] of [
      [0, 64, 0x04030201],
      [1, 61, 0x04030201],
      [2, 6, 0x02010201],
      [3, 9, 0xffffffff],
    ] as const) {
      backend.fill(buffer, 0, 64, 0);
      backend.fill(buffer, offset, bytes, word);
      const back = new Uint8Array(64);
      await backend.read(buffer, 0, back);
      const expected = back.map((_, i) =>
        i >= offset && i < offset + bytes ? word >>> (8 * ((i - offset) % 4)) : 0,
      );
      expect(back).toEqual(expected);
    }
    backend.free(buffer);
  });

  it("gives kernels the arguments they were given", async () => {
    const kernel = backend.loadPtx(echoPtx(target), "echo").kernel("echo", {
      parameters: ["pointer", "i32", "i64", "f16", "f32", "f64", "i8", "u64"],
      block: [1, 1, 1],
    });
    const out = backend.allocate(56);
    backend.fill(out, 0, 56, 0);
    const values = [-7, -(2 ** 40), 1.5, 0.1, Math.PI, -3, 2n ** 63n + 1n].map(number);
    kernel.launch([1, 1, 1], [pointer(out), ...values]);
    const back = new DataView(new ArrayBuffer(56));
    await backend.read(out, 0, new Uint8Array(back.buffer));
    expect(back.getInt32(0, true)).toBe(-7);
    expect(back.getBigInt64(8, true)).toBe(-(2n ** 40n));
    expect(back.getUint16(16, true)).toBe(0x3e00);
    expect(back.getFloat32(24, true)).toBe(Math.fround(0.1));
    expect(back.getFloat64(32, true)).toBe(Math.PI);
    expect(back.getInt16(40, true)).toBe(-3);
    expect(back.getBigUint64(48, true)).toBe(2n ** 63n + 1n);
    backend.free(out);
  });

  it("runs with as much shared memory as its facts say", async () => {
    const bytes = backend.facts.limits.sharedBytes;
    const program = backend.loadPtx(countPtx(target), "count");
    const out = backend.allocate(4 * 300);
    backend.fill(out, 0, 4 * 300, 0);
    for (const dynamicSharedBytes of [1024, 48 << 10, bytes]) {
      const kernel = program.kernel("count", {
        parameters: ["pointer", "u32"],
        block: [64, 1, 1],
        dynamicSharedBytes,
      });
      expect(kernel.function.blocksPerMultiprocessor).toBeGreaterThan(0);
      expect(kernel.function.registersPerThread).toBeGreaterThan(0);
      kernel.launch([300, 1, 1], [pointer(out), number(dynamicSharedBytes)]);
    }
    expect(new Set(await u32At(out, 300))).toEqual(new Set([3 * 64]));
    backend.free(out);
  });

  it.skipIf(!bulkCopy)("runs clusters", async () => {
    const kernel = backend.loadPtx(clusterPtx(target), "ranks").kernel("ranks", {
      parameters: ["pointer"],
      block: [32, 1, 1],
      cluster: [4, 1, 1],
    });
    const out = backend.allocate(4 * 12);
    kernel.launch([12, 1, 1], [pointer(out)]);
    expect([...(await u32At(out, 12))]).toEqual([0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]);
    backend.free(out);
  });

  it.skipIf(!bulkCopy)("loads boxes through tensor maps, zeros outside", async () => {
    const kernel = backend.loadPtx(tensorPtx(target), "box").kernel("box", {
      parameters: ["tensorMap", "pointer", "i32", "i32"],
      block: [256, 1, 1],
    });
    const [rows, columns, stride] = [20, 50, 52];
    const values = new Float32Array(rows * stride).map((_, i) => i + 1);
    const source = backend.allocate(16 + values.byteLength);
    backend.write(source, 16, new Uint8Array(values.buffer));
    const out = backend.allocate(1024);
    const map: TensorMapParameter = {
      kind: "tensorMap",
      id: 0,
      name: "map",
      element: f32,
      rank: 2,
      box: [32, 8],
      swizzle: 0,
    };
    const view = { buffer: source, byteOffset: 16, sizes: [columns, rows], strides: [1, stride] };
    for (const [column, row] of [
      [0, 0],
      [32, 16],
      [-4, -2],
    ] as const) {
      kernel.launch([1, 1, 1], [{ kind: "tensorMap", map, view }, pointer(out), number(column), number(row)]);
      const back = new Float32Array(256);
      await backend.read(out, 0, new Uint8Array(back.buffer));
      const expected = back.map((_, i) => {
        const [x, y] = [column + (i % 32), row + Math.floor(i / 32)];
        return x >= 0 && x < columns && y >= 0 && y < rows ? y * stride + x + 1 : 0;
      });
      expect(back).toEqual(expected);
    }
    backend.free(source);
    backend.free(out);
  });

  it("refuses wrong text with the compiler's own words", () => {
    const wrong = echoPtx(target).replace("%r0, [p1]", "%r0, [nowhere]");
    let error: unknown;
    try {
      backend.loadPtx(wrong, "echo");
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(CompileError);
    expect((error as CompileError).log).toContain("nowhere");
  });

  it("tells the device's time, waits without holding the thread, and orders frees after work", async () => {
    const kernel = backend
      .loadPtx(waitPtx(target), "wait")
      .kernel("wait", { parameters: ["u64"], block: [1, 1, 1] });
    const launch = (): void => kernel.launch([1, 1, 1], [number(20_000_000)]);
    await backend.time(launch);
    let turns = 0;
    const ticking = setInterval(() => turns++, 1);
    const one = await backend.time(launch);
    clearInterval(ticking);
    const three = await backend.time(() => {
      for (let i = 0; i < 3; i++) launch();
    });
    expect(one).toBeGreaterThan(1e-3);
    expect(three / one).toBeGreaterThan(2);
    expect(turns).toBeGreaterThan(0);
    const buffer = backend.allocate(1 << 20);
    launch();
    backend.fill(buffer, 0, 1 << 20, 0x01010101);
    backend.free(buffer);
    const other = backend.allocate(1 << 20);
    backend.fill(other, 0, 1 << 20, 0x02020202);
    const back = new Uint8Array(1 << 20);
    await backend.read(other, 0, back);
    expect(equal(back, new Uint8Array(1 << 20).fill(2))).toBe(true);
    backend.free(other);
  });

  it("survives the garbage collector", async () => {
    const program = backend.loadPtx(countPtx(target), "count");
    const kernel = program.kernel("count", {
      parameters: ["pointer", "u32"],
      block: [32, 1, 1],
      dynamicSharedBytes: 4096,
    });
    const out = backend.allocate(4 * 8);
    backend.fill(out, 0, 4 * 8, 0);
    const rounds = 20_000;
    let litter: unknown[] = [];
    for (let round = 0; round < rounds; round++) {
      const prepared = kernel.prepare([pointer(out), number(4096)]);
      if (round % 10 === 0) litter.push(new Array(1000).fill(round));
      if (round % 1000 === 0) litter = [];
      kernel.launch([8, 1, 1], prepared);
      // Every other launch leaves its memory to the collector, as do these allocations.
      if (round % 2 === 0) prepared.dispose();
      if (round % 20 === 0) backend.allocate(1 << 16);
    }
    expect(new Set(await u32At(out, 8))).toEqual(new Set([32 * rounds]));
    backend.free(out);
  });

  it("answers short waits quickly", async () => {
    const buffer = backend.allocate(4);
    const waits: number[] = [];
    for (let i = 0; i < 200; i++) {
      const start = performance.now();
      backend.fill(buffer, 0, 4, i);
      await backend.sync();
      waits.push(performance.now() - start);
    }
    const median = waits.sort((a, b) => a - b)[100]!;
    console.log(`a fill and a wait take ${(1000 * median).toFixed(1)} us`);
    expect(median).toBeLessThan(1);
    backend.free(buffer);
  });
});
