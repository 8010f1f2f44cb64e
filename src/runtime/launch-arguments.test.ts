import { beforeEach, describe, expect, it } from "vitest";
import {
  ArgumentError,
  CompileError,
  DisposedError,
  ShapeError,
  TraceError,
  TypeMismatchError,
} from "../errors.ts";
import {
  bf16,
  block,
  f16,
  f32,
  i32,
  i64,
  index,
  inout,
  input,
  type Kernel,
  kernel,
  output,
  tensorMap,
  thread,
  u32,
  type WindowedImages,
  windowMap,
} from "../lang/index.ts";
import { nvidiaTarget } from "../target/nvidia.ts";
import { createCompiler } from "./compile.ts";
import { createDevice, type Device } from "./device.ts";
import { FakeBackend } from "./fake-backend-for-tests.ts";

const scaled = kernel("scaled", {
  params: { x: input(f32, 2), y: output(f32), factor: f32, times: i32 },
  block: 32,
  body({ x, y, factor, times }) {
    y.store(thread.index, x.load(block.id.x, thread.index).mul(factor).add(times.to(f32)));
  },
});

let backend: FakeBackend;
let device: Device;
beforeEach(() => {
  backend = new FakeBackend();
  device = createDevice(backend, createCompiler(backend));
});

const good = () => ({
  x: device.array(f32, [4, 32]),
  y: device.array(f32, [32]),
  factor: 2,
  times: 3,
});

describe("device.run", () => {
  it("passes pointers, strides and rounded numbers in the order of the argument slots", async () => {
    const x = device.array(f32, [8, 64]).slice([1, 5], [32]);
    await device.run(scaled, { blocks: [2, 3], args: { ...good(), x, factor: 0.1 } });
    const [{ grid, values, kernel: name }] = backend.launches as [(typeof backend.launches)[0]];
    expect([name, grid]).toEqual(["scaled", [2, 3, 1]]);
    expect(values).toEqual([
      {
        kind: "pointer",
        buffer: x.allocation.buffer,
        byteOffset: 4 * (64 + 32),
        byteLength: 4 * (3 * 64 + 32),
      },
      { kind: "number", value: 64 },
      { kind: "number", value: 1 },
      expect.objectContaining({ kind: "pointer", byteOffset: 0, byteLength: 128 }),
      { kind: "number", value: Math.fround(0.1) },
      { kind: "number", value: 3 },
    ]);
  });

  it("takes any view for bare storage, from its first to its last element", async () => {
    const bare = kernel("bare", {
      params: { x: inout(i32, 0) },
      block: 1,
      body: ({ x }) => x.storeAt(0, x.loadAt(1)),
    });
    const x = device.array(i32, [4, 8]).slice([1], [2, undefined, 3]);
    await device.run(bare, { blocks: 1, args: { x } });
    expect(backend.launches[0]!.values).toEqual([
      { kind: "pointer", buffer: x.allocation.buffer, byteOffset: 4 * 10, byteLength: 4 * (2 * 8 + 3 + 1) },
    ]);
  });

  it("gives maps of windows their places, and says what those can be", async () => {
    const mapped = kernel("mapped", {
      params: { map: windowMap(f16, { channels: 64, pixels: 128 }, 128) },
      block: 32,
      body: ({ map }) => map.prefetch(),
    });
    const images = device.array(f16, [2, 5, 7, 64]);
    const map: WindowedImages<typeof f16> = { images, lower: [-1, -1], upper: [-1, -2], strides: [1, 2] };
    await device.run(mapped, { blocks: 1, args: { map } });
    const { images: _, ...windows } = map;
    expect(backend.launches[0]!.values).toEqual([
      {
        kind: "tensorMap",
        map: expect.objectContaining({ rank: 4, box: [64, 128], windows: true }),
        view: expect.objectContaining({ sizes: [64, 7, 5, 2], strides: [1, 64, 448, 2240], windows }),
      },
    ]);
    const wrong = async (args: unknown, message: RegExp): Promise<void> => {
      await expect(device.run(mapped, { blocks: 1, args: { map: args } as never })).rejects.toThrow(message);
    };
    await wrong(images, /images with the places of a filter/);
    await wrong({ ...map, images: device.array(f16, [5, 7, 64]) }, /map.images has rank 4, and .* rank 3/);
    await wrong({ ...map, lower: [-129, 0] }, /lower is two whole numbers, along x and y, from -128 to 127/);
    await wrong({ ...map, strides: [0, 1] }, /strides is two whole numbers, along x and y, from 1 to 8/);
  });
  it("gives tensor maps innermost first", async () => {
    const mapped = kernel("mapped", {
      params: { map: tensorMap(f16, [8, 4]) },
      block: 32,
      body: ({ map }) => map.prefetch(),
    });
    const map = device.array(f16, [10, 64]).slice([2, 6], [16, 48]);
    await device.run(mapped, { blocks: 1, args: { map } });
    expect(backend.launches[0]!.values).toEqual([
      expect.objectContaining({
        kind: "tensorMap",
        view: {
          buffer: map.allocation.buffer,
          byteOffset: 2 * (2 * 64 + 16),
          sizes: [32, 4],
          strides: [1, 64],
        },
      }),
    ]);
    await expect(device.run(mapped, { blocks: 1, args: { map: map.transposed } })).rejects.toThrow(/dense/);
    await expect(device.run(mapped, { blocks: 1, args: { map: map.row(0) } })).rejects.toThrow(/rank 2/);
  });

  it("launches nothing for no blocks", async () => {
    await device.run(scaled, { blocks: 0, args: good() });
    await device.run(scaled, { blocks: [4, 0], args: good() });
    expect(backend.launches).toEqual([]);
  });

  it.each<[string, (args: ReturnType<typeof good>) => object, new (...args: never[]) => Error, RegExp]>([
    [
      "a missing one",
      ({ x, y, factor }) => ({ x, y, factor }),
      ArgumentError,
      /kernel scaled: argument times is not given/,
    ],
    [
      "an unknown one",
      (args) => ({ ...args, z: 1 }),
      ArgumentError,
      /no parameter z; it has x, y, factor, times/,
    ],
    [
      "another element type",
      (args) => ({ ...args, x: device.array(f16, [4, 32]) }),
      TypeMismatchError,
      /argument x wants f32, got f16\[4, 32\]; `convert/,
    ],
    [
      "another rank",
      (args) => ({ ...args, x: device.array(f32, [32]) }),
      ShapeError,
      /argument x has rank 2, and f32\[32\] has rank 1/,
    ],
    [
      "another rank that reshape gives",
      (args) => ({ ...args, y: args.x }),
      ShapeError,
      /\.reshape\(\[128\]\)/,
    ],
    [
      "a strided array of rank 1",
      (args) => ({ ...args, y: args.x.column(0) }),
      ShapeError,
      /contiguous array, and f32\[4\] has stride 32; `copy\(view\)`/,
    ],
    ["no array", (args) => ({ ...args, x: [1, 2] }), ArgumentError, /argument x is an array of f32/],
    ["null", (args) => ({ ...args, x: null }), ArgumentError, /null was given/],
    [
      "a repeated target",
      (args) => ({ ...args, y: args.y.slice([0, 1]).broadcast([32]) }),
      ShapeError,
      /is written/,
    ],
    [
      "a text for a number",
      (args) => ({ ...args, factor: "2" }),
      ArgumentError,
      /argument factor is a number that f32 can hold; the string 2/,
    ],
    ["too large a float", (args) => ({ ...args, factor: 1e300 }), ArgumentError, /1e\+300 is none/],
    [
      "too large an integer",
      (args) => ({ ...args, times: 2 ** 31 }),
      ArgumentError,
      /from -2147483648 to 2147483647/,
    ],
    ["a fraction", (args) => ({ ...args, times: 0.5 }), ArgumentError, /0.5 is none/],
  ])("refuses %s", async (_, change, error, message) => {
    const failing = device.run(scaled, { blocks: 1, args: change(good()) as never });
    await expect(failing).rejects.toThrow(error);
    await expect(failing).rejects.toThrow(message);
    expect([backend.launches, backend.loaded]).toEqual([[], []]);
  });

  it.each<[unknown, RegExp]>([
    [-1, /from 0 on/],
    [0.5, /from 0 on/],
    [Number.NaN, /from 0 on/],
    [[], /from 0 on/],
    [[1, 1, 1, 1], /from 0 on/],
    [[1, 65536], /at most 2147483647 x 65535 x 65535/],
  ])("refuses a grid of %j", async (blocks, message) => {
    await expect(device.run(scaled, { blocks: blocks as number, args: good() })).rejects.toThrow(message);
    expect(backend.launches).toEqual([]);
  });

  it("refuses disposed arrays, and arrays of another device", async () => {
    const args = good();
    const other = createDevice(backend, createCompiler(backend));
    await expect(
      device.run(scaled, { blocks: 1, args: { ...args, y: other.array(f32, [32]) } }),
    ).rejects.toThrow(/lives on/);
    args.y.dispose();
    await expect(device.run(scaled, { blocks: 1, args })).rejects.toThrow(DisposedError);
    await expect(device.run(scaled, { blocks: 1, args })).rejects.toThrow(
      "kernel scaled: argument y: the array f32[32] was disposed",
    );
  });

  it("takes 64-bit numbers as number or bigint", async () => {
    const wide = kernel("wide", {
      params: { y: output(i64, 0), a: i64, b: index, c: u32 },
      block: 1,
      body: ({ y, a, b, c }) => y.storeAt(b, a.add(c.to(i64))),
    });
    await device.run(wide, { blocks: 1, args: { y: device.array(i64, [1]), a: 5, b: 2n ** 40n, c: 7 } });
    expect(backend.launches[0]!.values.slice(1)).toEqual([
      { kind: "number", value: 5n },
      { kind: "number", value: 2 ** 40 },
      { kind: "number", value: 7 },
    ]);
  });
});

describe("device.compile", () => {
  it("compiles a kernel once, for concurrent callers as well", async () => {
    const [first, second] = await Promise.all([device.compile(scaled), device.compile(scaled)]);
    expect(first).toBe(second);
    expect(backend.loaded.length).toBe(1);
    expect(first).toMatchObject({ name: "scaled", registersPerThread: 32, spilledBytes: 0 });
    expect(first.text.length).toBeGreaterThan(100);
  });

  it("shares the executable of kernels with the same text, where the text says all", async () => {
    const ptx = Object.assign(new FakeBackend(), { facts: nvidiaTarget("sm_80") });
    const device = createDevice(ptx, createCompiler(ptx));
    const make = (): Kernel<never> =>
      kernel("twin", { params: {}, block: 32, body() {} }) as unknown as Kernel<never>;
    const [first, second] = [await device.compile(make()), await device.compile(make())];
    expect(first).not.toBe(second);
    expect(first.executable).toBe(second.executable);
    const taking = (type: typeof f16 | typeof bf16): Kernel<never> =>
      kernel("taking", {
        params: { y: output(type as typeof f16, 0), value: type as typeof f16 },
        block: 1,
        body: ({ y, value }) => y.storeAt(0, value),
      }) as unknown as Kernel<never>;
    const [half, brain] = [await device.compile(taking(f16)), await device.compile(taking(bf16))];
    expect(half.text).toBe(brain.text);
    expect(half.executable).not.toBe(brain.executable);
  });

  it("forgets a failure", async () => {
    backend.refusal = new CompileError("ptxas is not pleased", "line 3");
    const refused = device.compile(scaled);
    await expect(refused).rejects.toThrow(CompileError);
    await expect(refused).rejects.toThrow("kernel scaled: ptxas is not pleased");
    await expect(device.compile(scaled)).resolves.toBeDefined();
  });

  it("names the kernel whose body throws", async () => {
    const broken = kernel("broken", {
      params: {},
      block: 1,
      body() {
        throw new RangeError("no such tile");
      },
    });
    await expect(device.compile(broken)).rejects.toThrow(TraceError);
    await expect(device.compile(broken)).rejects.toThrow(
      "kernel broken: its body threw while being traced: no such tile",
    );
  });

  it("stops when told so", async () => {
    await expect(device.compile(scaled, { signal: AbortSignal.abort() })).rejects.toThrow(/stopped/);
    await expect(device.compile(scaled)).resolves.toBeDefined();
  });
});

describe("a bound launch", () => {
  it("launches again and again, until an array is gone", async () => {
    const compiled = await device.compile(scaled);
    const args = good();
    using bound = compiled.bind(args);
    bound.launch(1);
    bound.launch([2]);
    expect(backend.launches.map(({ grid }) => grid)).toEqual([
      [1, 1, 1],
      [2, 1, 1],
    ]);
    args.x.dispose();
    expect(() => bound.launch(1)).toThrow("kernel scaled: argument x: the array f32[4, 32] was disposed");
  });

  it("belongs to its device", async () => {
    const compiled = await device.compile(scaled);
    const other = createDevice(new FakeBackend(), createCompiler(backend));
    expect(() => other.launch(compiled, { blocks: 1, args: good() })).toThrow(/not compiled for this device/);
  });
});
