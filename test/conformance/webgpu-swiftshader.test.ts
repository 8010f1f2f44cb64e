/**
 * @file WebGPU executed: Dawn on SwiftShader, whose subgroups have 4 lanes. The conformance tables, the cases that WebGPU
 * alone can get wrong, and the backend's own duties.
 */
import { type DeviceArray, f16, f32, i8, i32, open, u8, u16, u32 } from "tilewright";
import { random } from "tilewright/array-ops";
import { complex, dot4Operator, dual, fmaOperator, gemm, planGemm, planGrouped } from "tilewright/gemm";
import {
  block,
  exit,
  grid,
  inout,
  input,
  kernel,
  output,
  select,
  shared,
  subgroup,
  thread,
  when,
} from "tilewright/lang";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Device } from "../../src/runtime/device.ts";
import {
  arrayOver,
  createWebgpuBackend,
  gpuBufferOf,
  gpuDeviceOf,
  submit,
  type WebgpuBackend,
} from "../../src/runtime/webgpu/index.ts";
import { deviceOf, openSwiftShaderBackend } from "../support/dawn.ts";
import { requirement } from "../support/require.ts";
import { checkAlgebra } from "./algebra-cases.ts";
import { checkGate, numbers } from "./gate-cases.ts";
import { checkGemm } from "./gemm-cases.ts";
import { compactTable } from "./gemm-compact.ts";
import { caseOf, multiplies, pairwiseTable, typeRows } from "./gemm-table.ts";
import { arithmeticCases } from "./kernels/arithmetic.ts";
import { collectiveCases } from "./kernels/collectives.ts";
import { controlCases } from "./kernels/control.ts";
import { memoryCases } from "./kernels/memory.ts";
import { checkStructured } from "./structured-cases.ts";
import { structures } from "./structures.ts";

const minutes = 60_000;
/** The processor compiles each shader in a second or several; the whole table is for those who can wait. */
const thorough = process.env.TILEWRIGHT_SOAK === "1";

const sumOfBlock = kernel("sum_of_block", {
  params: { x: input(f32), y: output(f32) },
  block: 64,
  body({ x, y }) {
    const total = block.sum(x.load(thread.index));
    when(thread.index.eq(0), () => y.store(0, total));
  },
});

describe.skipIf(!requirement("swiftshader").available)("WebGPU on SwiftShader", () => {
  let backend: WebgpuBackend;
  let device: Device;
  beforeAll(async () => {
    backend = await openSwiftShaderBackend();
    device = deviceOf(backend);
  });
  afterAll(() => device?.dispose());

  it("has subgroups of 4 lanes", () => {
    expect(device.facts.subgroup.width).toBe(4);
    expect(backend.facts.wgsl.subgroups).toBe("native");
  });

  it.for([...arithmeticCases, ...controlCases, ...memoryCases, ...collectiveCases])(
    "$name",
    async ({ needs, run }, { skip }) => {
      skip(needs?.(device.facts) === false, "the target lacks what it needs");
      await run(device);
      await device.sync();
    },
  );

  describe("gemm", () => {
    it("with few kernels in many sizes", async () => {
      for (const { cases } of compactTable(device.facts, 129)) {
        for (const [seed, test] of cases.entries()) await checkGemm(device, test, seed + 1);
      }
    });

    it("of a matrix and few vectors, with native and emulated subgroups", { timeout: minutes }, async () => {
      const emulated = deviceOf(await openSwiftShaderBackend({ emulateSubgroups: true, subgroupWidth: 8 }));
      const options = { schedule: "matrix-vector" } as const;
      const rest = { k: 131, a: f32, lineMultiple: 16, beta: 1, options } as const;
      await checkGemm(emulated, { ...rest, m: 3, n: 37 });
      for (const layout of ["nn", "tt"] as const) await checkGemm(device, { ...rest, m: 37, n: 1, layout });
      await checkGemm(device, { m: 2, n: 21, k: 40, a: f16, d: f32, padding: 1, options });
      emulated.dispose();
    });

    it("in groups of several sizes", async () => {
      const operator = fmaOperator({ laneRows: 2, laneColumns: 2, rows: 2, columns: 2 });
      const params = { block: { m: 8, n: 8, k: 4 }, warps: { m: 2, n: 2 }, groupRows: 2 };
      const sizes = [3, 9, 17];
      const [a, b, d] = [200, 200, 500].map((length) =>
        device.array(
          f32,
          [length],
          Array.from({ length }, (_, i) => (i % 7) - 3),
        ),
      ) as [DeviceArray, DeviceArray, DeviceArray];
      const at = (i: number): number => sizes.slice(0, i).reduce((sum, m) => sum + m, 0);
      const products = sizes.map((m, i) => ({
        a: a.strided([m, 5], [6, 1], 6 * at(i) + 1),
        b: b.strided([5, m], [m, 1], 5 * at(i)),
        d: d.strided([m, m], [m, 1], 17 * at(i)),
      }));
      using plan = await planGrouped(products, { operator, params });
      expect(plan.launches).toBe(1);
      plan.run();
      for (const one of products) {
        const [left, right, got] = await Promise.all([one.a, one.b, one.d].map(numbers));
        const m = one.a.shape[0]!;
        for (let i = 0; i < m * m; i++) {
          const [row, column] = [Math.floor(i / m), i % m];
          let sum = 0;
          for (let k = 0; k < 5; k++) sum += left![row * 5 + k]! * right![k * m + column]!;
          expect(got![i]).toBe(sum);
        }
      }
    });

    it("with gates", async () => {
      await checkGate(device, { m: 5, n: 20, k: 9, options: { schedule: "matrix-vector" } });
      const operator = fmaOperator({ laneRows: 1, laneColumns: 4, rows: 2, columns: 8 });
      const params = { block: { m: 4, n: 32, k: 2 }, warps: { m: 2, n: 1 }, groupRows: 2 };
      await checkGate(device, { m: 13, n: 20, k: 9, options: { operator, params } });
    });

    it("over algebras", async () => {
      const operator = fmaOperator({ laneRows: 2, laneColumns: 2, rows: 2, columns: 2 });
      const params = { block: { m: 8, n: 8, k: 4 }, warps: { m: 2, n: 2 }, groupRows: 2 };
      const options = { operator, params };
      const row = { type: f32, transA: "C", transB: "N", size: [9, 7, 10], padding: 1, options } as const;
      await checkAlgebra(device, { ...row, algebra: complex, factors: "elements" });
      await checkAlgebra(device, { ...row, algebra: dual, storage: "split", transA: "N" });
    });

    it("of bytes by packed dot products", async () => {
      const operator = dot4Operator({ laneRows: 2, laneColumns: 2, rows: 2, columns: 2, depth: 4 });
      const params = { block: { m: 8, n: 8, k: 8 }, warps: { m: 2, n: 2 }, groupRows: 2 };
      for (const type of [i8, u8]) {
        for (const k of [1, 3, 4, 5, 17, 33, 64]) {
          const options = { operator, params };
          await checkGemm(device, { m: 9, n: 7, k, a: type, d: i32, padding: 1, lineMultiple: 16, options });
        }
      }
      const bytes = device.array(i8, [16, 16]);
      const usual = { block: { m: 16, n: 16, k: 8 }, warps: { m: 2, n: 2 }, groupRows: 2 };
      await expect(planGemm(bytes, bytes, { params: usual })).resolves.toMatchObject({
        kind: { operator: { name: "dot4" } },
      });
    });

    it("of structured matrices, whose bitmaps and tables decide uniformly which steps count", async () => {
      const operator = fmaOperator({ laneRows: 2, laneColumns: 2, rows: 2, columns: 2 });
      const params = { block: { m: 16, n: 8, k: 4 }, warps: { m: 2, n: 2 }, groupRows: 2 };
      const size = { rows: 33, columns: 20, other: 5, otherMajor: "row" } as const;
      const names = ["blocks 5 x 3 of a bitmap, row-major", "blocks 8 x 4 by table", "diagonal"];
      for (const structure of structures.filter(({ name }) => thorough || names.includes(name))) {
        const options = { operator, params };
        await checkStructured(device, { structure, side: "a", type: f32, ...size, options });
      }
    });

    it.for(thorough ? typeRows : [])("$name", { timeout: 5 * minutes }, async (types, { skip }) => {
      skip(!multiplies(types, device.facts), "the target has no arithmetic for it");
      const rows = pairwiseTable().get(types)!;
      for (const [seed, row] of rows.entries()) {
        await checkGemm(device, caseOf(row, device.facts), seed + 1);
      }
    });
  });

  describe("cases", () => {
    it.each([
      ["native subgroups of 4", {}],
      ["emulated subgroups of 4", { emulateSubgroups: true, subgroupWidth: 4 }],
      ["emulated subgroups of 8", { emulateSubgroups: true, subgroupWidth: 8 }],
      ["emulated subgroups of 16", { emulateSubgroups: true, subgroupWidth: 16 }],
      ["emulated subgroups of 32", { emulateSubgroups: true }],
      ["emulated subgroups of 64", { emulateSubgroups: true, subgroupWidth: 64 }],
    ])("the sum of 64 ones is 64 with %s", async (_name, options) => {
      const other = deviceOf(await openSwiftShaderBackend(options));
      const [x, y] = [other.array(f32, [64], Array(64).fill(1)), other.array(f32, [1])];
      await other.run(sumOfBlock, { blocks: 1, args: { x, y } });
      expect(await y.item(0)).toBe(64);
      other.dispose();
    });

    it.for(collectiveCases)("with emulated subgroups of 8: $name", async ({ needs, run }, { skip }) => {
      const other = deviceOf(await openSwiftShaderBackend({ emulateSubgroups: true, subgroupWidth: 8 }));
      try {
        skip(needs?.(other.facts) === false, "the target lacks what it needs");
        await run(other);
        await other.sync();
      } finally {
        other.dispose();
      }
    });

    it("counts that four does not divide lose no lane", async () => {
      for (const k of [1, 3, 5, 7, 33]) {
        const digits = Array.from({ length: k }, (_, i) => (i % 5) + 1);
        const weights = digits.map((_, i) => 10 ** (i % 5));
        const expected = digits.reduce((sum, digit, i) => sum + digit * weights[i]!, 0);
        const [a, b] = [device.array(f16, [1, k], digits), device.array(f32, [k, 1], weights)];
        const d = await gemm(a, b, { type: f32 });
        expect(await d.item(0, 0)).toBe(expected);
      }
    });

    it("tiles larger than the problem leave what is around it alone", async () => {
      for (const size of [1, 3, 8, 17, 33]) {
        const whole = device.array(
          f32,
          [size + 2, size + 3],
          Array((size + 2) * (size + 3)).fill(Number.NaN),
        );
        const part = whole.slice([1, size + 1], [1, size + 1]);
        const ones = device.array(f32, [size, size], Array(size * size).fill(1));
        await gemm(ones, ones, { d: part });
        const values = await whole.read();
        values.forEach((value, at) => {
          const [row, column] = [Math.floor(at / (size + 3)), at % (size + 3)];
          const inside = row >= 1 && row <= size && column >= 1 && column <= size;
          expect(value).toBe(inside ? size : Number.NaN);
        });
      }
    });

    it("NaN is found by its bits", async () => {
      const clean = kernel("clean", {
        params: { x: input(f32), y: output(f32) },
        block: 4,
        body({ x, y }) {
          const value = x.load(thread.index);
          y.store(thread.index, select(value.isNaN(), 0, value));
        },
      });
      const [x, y] = [device.array(f32, [4], [Number.NaN, 1, Number.NaN, 2]), device.array(f32, [4])];
      await device.run(clean, { blocks: 1, args: { x, y } });
      expect([...(await y.read())]).toEqual([0, 1, 0, 2]);
    });

    it("threads that end early leave the others' barriers alone", async () => {
      const reverse = kernel("reverse", {
        params: { x: input(f32), y: output(f32), n: i32 },
        block: 32,
        body({ x, y, n }) {
          const staged = shared(f32, 32);
          when(thread.index.ge(n), () => exit());
          staged.store(thread.index, x.load(thread.index));
          block.barrier();
          y.store(thread.index, staged.load(n.sub(1).sub(thread.index)));
        },
      });
      const values = Array.from({ length: 32 }, (_, i) => i + 1);
      const [x, y] = [device.array(f32, [32], values), device.array(f32, [32], Array(32).fill(-1))];
      await device.run(reverse, { blocks: 1, args: { x, y, n: 10 } });
      expect([...(await y.read())]).toEqual([10, 9, 8, 7, 6, 5, 4, 3, 2, 1, ...Array(22).fill(-1)]);
    });
  });

  describe("launches", () => {
    it("of more blocks than an axis has are folded over two", async () => {
      const mark = kernel("mark", {
        params: { y: inout(u32) },
        block: 4,
        body({ y }) {
          const at = block.id.x.mul(4).add(thread.index);
          when(at.lt(y.size()), () => y.store(at, y.load(at).add(grid.size.x.to(u32))));
        },
      });
      const blocks = 70_001;
      const y = device.array(u32, [4 * blocks - 1]);
      await device.run(mark, { blocks, args: { y } });
      const values = await y.read();
      expect(values.every((value) => value === blocks)).toBe(true);
    });

    it("take arrays that share a buffer, written ones too", async () => {
      const shift = kernel("shift", {
        params: { x: input(f32), y: output(f32) },
        block: 8,
        body: ({ x, y }) => y.store(thread.index, x.load(thread.index).add(1)),
      });
      const whole = device.array(
        f32,
        [19],
        Array.from({ length: 19 }, (_, i) => i),
      );
      await device.run(shift, { blocks: 1, args: { x: whole.slice([1, 9]), y: whole.slice([11, 19]) } });
      expect([...(await whole.read())].slice(9)).toEqual([9, 10, 2, 3, 4, 5, 6, 7, 8, 9]);
    });

    it("C may be D", async () => {
      const ones = device.array(f32, [9, 9], Array(81).fill(1));
      const c = device.array(f32, [9, 9], Array(81).fill(2));
      using plan = await planGemm(ones, ones, { c, d: c, beta: 10 });
      plan.run();
      expect(new Set(await c.read())).toEqual(new Set([29]));
    });

    it("of one plan may differ in their grids", async () => {
      const count = kernel("count", {
        params: { y: inout(u32) },
        block: 1,
        body: ({ y }) => void y.atomicAt("add", 0, grid.size.x.to(u32)),
      });
      const y = device.array(u32, [1]);
      const bound = (await device.compile(count)).bind({ y });
      for (const blocks of [1, 2, 3]) bound.launch(blocks);
      expect(await y.item(0)).toBe(1 + 4 + 9);
    });
  });

  describe("memory", () => {
    const bytes = (length: number): number[] => Array.from({ length }, (_, i) => (i * 7 + 1) & 0xff);

    it("is written, filled and copied byte by byte", () => {
      const reference = new Uint8Array(40);
      const buffer = backend.allocate(40);
      backend.fill(buffer, 0, 40, 0);
      const writes = [
        [0, 3],
        [5, 1],
        [6, 9],
        [17, 2],
        [37, 3],
      ] as const;
      for (const [offset, length] of writes) {
        reference.set(bytes(length), offset);
        backend.write(buffer, offset, Uint8Array.from(bytes(length)));
      }
      const pattern = 0x44332211;
      backend.fill(buffer, 21, 6, pattern);
      for (let i = 0; i < 6; i++) reference[21 + i] = (pattern >>> (8 * (i % 4))) & 0xff;
      const other = backend.allocate(40);
      backend.fill(other, 0, 40, 0xffffffff);
      const expected = new Uint8Array(40).fill(0xff);
      const copies = [
        [1, 2, 5],
        [3, 13, 1],
        [20, 19, 11],
        [8, 32, 8],
      ] as const;
      for (const [from, to, length] of copies) {
        backend.copy(buffer, from, other, to, length);
        expected.set(reference.subarray(from, from + length), to);
      }
      backend.copy(other, 3, other, 33, 6);
      expected.copyWithin(33, 3, 9);
      return Promise.all([readBack(buffer, reference), readBack(other, expected)]);
    });

    async function readBack(
      buffer: ReturnType<WebgpuBackend["allocate"]>,
      expected: Uint8Array,
    ): Promise<void> {
      const all = new Uint8Array(40);
      const part = new Uint8Array(11);
      await Promise.all([backend.read(buffer, 0, all), backend.read(buffer, 5, part)]);
      expect(all).toEqual(expected);
      expect(part).toEqual(expected.subarray(5, 16));
    }

    it("keeps bytes and halves that other threads write", async () => {
      for (const type of [u8, i8, u16, f16]) {
        const copy = kernel("copy_singly", {
          params: { x: input(type), y: output(type) },
          block: 64,
          body: ({ x, y }) => y.store(thread.index, x.load(thread.index)),
        });
        const values = Array.from({ length: 64 }, (_, i) => i);
        const [x, y] = [device.array(type, [64], values), device.array(type, [64])];
        await device.run(copy, { blocks: 1, args: { x, y } } as never);
        expect([...(await y.read())]).toEqual(values);
      }
    });

    it("can be a GPUBuffer of the caller's", async () => {
      const gpuBuffer = backend.device.createBuffer({ size: 64, usage: 0x80 | 0x4 | 0x8 });
      const adopted = backend.adopt(gpuBuffer);
      backend.write(adopted, 0, new Uint8Array(Float32Array.from([1, 2, 3, 4]).buffer));
      const read = new Uint8Array(16);
      await backend.read(adopted, 0, read);
      expect([...new Float32Array(read.buffer)]).toEqual([1, 2, 3, 4]);
      backend.free(adopted);
      const array = arrayOver(device, gpuBuffer, f32, [2, 2]);
      expect([...(await (await gemm(array, array)).read())]).toEqual([7, 10, 15, 22]);
      expect(gpuBufferOf(array.row(1))).toEqual({ buffer: gpuBuffer, offset: 8, size: 56 });
      expect(() => arrayOver(device, gpuBuffer, f32, [17])).toThrow(/64 bytes; the array takes 68/);
      expect(gpuDeviceOf(device)).toBe(backend.device);
      array.dispose();
      submit(device);
      gpuBuffer.destroy();
      const bare = backend.device.createBuffer({ size: 64, usage: 0x80 });
      expect(() => backend.adopt(bare)).toThrow(
        /without GPUBufferUsage.COPY_SRC and GPUBufferUsage.COPY_DST/,
      );
      const odd = backend.device.createBuffer({ size: 20, usage: 0x80 | 0x4 | 0x8 });
      expect(() => backend.adopt(odd)).toThrow(/multiple of 16/);
    });

    it("is refused where a buffer cannot hold it", () => {
      expect(() => backend.allocate(2 ** 40)).toThrow(/holds at most/);
    });
  });

  it("draws the simulator's random numbers, integers too", async () => {
    await using simulator = await open({ kind: "simulator", simulator: { checks: false } });
    for (const [type, options] of [
      [f32, { seed: 7 }],
      [i8, { seed: 2n ** 40n + 7n, low: -100, high: 100 }],
      [i32, { seed: 3, low: -(2 ** 31), high: 2 ** 31 }],
      [u16, { seed: 3, low: 9, high: 10_000 }],
    ] as const) {
      const [ours, theirs] = await Promise.all(
        [device, simulator].map(async (one) => (await random(one, type, [41], options)).read()),
      );
      expect(ours).toEqual(theirs);
    }
  });

  it("times work by the device's clock", async () => {
    const x = device.array(f32, [64], Array(64).fill(1));
    const y = device.array(f32, [1]);
    const bound = (await device.compile(sumOfBlock)).bind({ x, y });
    const seconds = await device.time(() => {
      for (let turn = 0; turn < 100; turn++) bound.launch(1);
    });
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThan(60);
  });

  it("tells of a lost device, and another takes its place", async () => {
    const doomed = await openSwiftShaderBackend();
    const lost = deviceOf(doomed);
    const array = lost.array(f32, [4], [1, 2, 3, 4]);
    doomed.device.destroy();
    await doomed.device.lost;
    await expect(array.read()).rejects.toThrow(/was lost \(destroyed\)[\s\S]*open a new device/);
    await expect(lost.sync()).rejects.toThrow(/was lost/);
    const next = deviceOf(await openSwiftShaderBackend());
    expect(await next.array(f32, [1], [5]).item(0)).toBe(5);
    next.dispose();
  });

  it("works on a device that the caller made, and leaves it", async () => {
    // Held to the end: devices do not outlive what they were made from.
    const gpu = (await import("webgpu")).create(["backend=vulkan"]);
    const gpuDevice = await (await gpu.requestAdapter())!.requestDevice();
    const adopted = await createWebgpuBackend({ device: gpuDevice as never });
    if ("reason" in adopted) throw new Error(adopted.reason);
    expect(adopted.facts.wgsl.subgroups).toBe("emulated");
    const own = deviceOf(adopted);
    const [x, y] = [own.array(f32, [64], Array(64).fill(1)), own.array(f32, [1])];
    await own.run(sumOfBlock, { blocks: 1, args: { x, y } });
    expect(await y.item(0)).toBe(64);
    // Its limits are those that it was made with: 128 MiB a binding, of which a slice is bound where the whole is not.
    const large = own.empty(f32, [2 ** 25 + 64]);
    const refused = own.run(sumOfBlock, { blocks: 1, args: { x: large, y } });
    await expect(refused).rejects.toThrow(
      /spans 134217984 bytes; .* at most 134217728 at once. Work on slices/,
    );
    await own.run(sumOfBlock, { blocks: 1, args: { x: large.slice([2 ** 25, 2 ** 25 + 64]), y } });
    expect(await y.item(0)).toBe(0);
    own.dispose();
    expect(await Promise.race([gpuDevice.lost, Promise.resolve("alive")])).toBe("alive");
    gpuDevice.destroy();
    expect(gpu).toBeDefined();
  });

  it("computes with all lanes of a subgroup whatever the block's shape", async () => {
    const square = kernel("square", {
      params: { y: output(i32) },
      block: [4, 4, 2],
      body({ y }) {
        const place = thread.z.mul(16).add(thread.y.mul(4)).add(thread.x);
        y.store(place, subgroup.reduce("add", place));
      },
    });
    const y = device.array(i32, [32]);
    await device.run(square, { blocks: 1, args: { y } });
    const first = (at: number): number => Math.floor(at / 4) * 4;
    expect([...(await y.read())]).toEqual(Array.from({ length: 32 }, (_, at) => 4 * first(at) + 6));
  });
});
