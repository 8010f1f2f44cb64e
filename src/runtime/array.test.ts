import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ArgumentError, DisposedError, ShapeError } from "../errors.ts";
import { bf16, e4m3, f16, f32, f64, i8, i32, i64, type StorageType, u8, u64 } from "../types/types.ts";
import { createDevice, type Device } from "./device.ts";
import { FakeBackend } from "./fake-backend-for-tests.ts";

function fake(): { readonly backend: FakeBackend; readonly device: Device } {
  const backend = new FakeBackend();
  const device = createDevice(backend, { compile: () => Promise.reject(new Error("no compiler")) });
  return { backend, device };
}

const count = (length: number): number[] => Array.from({ length }, (_, position) => position);

describe("device.array", () => {
  it("takes values and gives them back, rounded to the type", async () => {
    const { device } = fake();
    expect(await device.array(f32, [2, 2], [1, 2, 3, 4]).read()).toEqual(Float32Array.of(1, 2, 3, 4));
    expect(await device.array(f16, [2], [2049, -1e9]).read()).toEqual(Float32Array.of(2048, -Infinity));
    expect(await device.array(bf16, [1], [1.001]).read()).toEqual(Float32Array.of(1));
    expect(await device.array(e4m3, [1], [1e6]).read()).toEqual(Float32Array.of(448));
    expect(await device.array(i64, [2], [-1n, 2n ** 62n]).read()).toEqual(BigInt64Array.of(-1n, 2n ** 62n));
    expect(await device.array(i8, [2], new Int8Array([-128, 127])).read()).toEqual(Int8Array.of(-128, 127));
  });

  it("is all zeros without data, for every type", async () => {
    const { device } = fake();
    for (const type of [f16, e4m3, f64, i64, u8] as readonly StorageType[]) {
      const values = await device.array(type, [3]).read();
      expect(Array.from(values as ArrayLike<number | bigint>, Number)).toEqual([0, 0, 0]);
    }
  });

  it("takes and gives raw storage", async () => {
    const { device } = fake();
    const array = device.arrayFromBits(f16, [2], Uint16Array.of(0x3c00, 0xc000));
    expect(await array.read()).toEqual(Float32Array.of(1, -2));
    expect(await array.readBits()).toEqual(Uint16Array.of(0x3c00, 0xc000));
    expect(() => device.arrayFromBits(f16, [2], Float32Array.of(1, 2) as never)).toThrow(/Uint16Array/);
  });

  it("refuses shapes, data and types that are none, and keeps no memory for them", () => {
    const { backend, device } = fake();
    expect(() => device.array(f32, [2, 2], [1, 2, 3])).toThrow(ShapeError);
    expect(() => device.array(f32, [2, 2], [1, 2, 3])).toThrow(
      "f32[2, 2] has 4 elements; 3 values were given",
    );
    expect(() => device.array(i8, [1], [200])).toThrow(ArgumentError);
    expect(() => device.array(f32, [-1])).toThrow(ShapeError);
    expect(() => device.array(f32, [1.5])).toThrow(ShapeError);
    expect(() => device.array(f32, [2 ** 31])).toThrow(ShapeError);
    expect(() => device.array(f32, [1, 1, 1, 1, 1, 1, 1])).toThrow(/rank 7/);
    expect(() => device.array(f32, 3 as never)).toThrow(ShapeError);
    expect(() => device.array("f32" as never, [1])).toThrow(ArgumentError);
    expect(backend.liveBytes).toBe(0);
  });

  it("has arrays of no elements and of rank 0", async () => {
    const { device } = fake();
    const none = device.array(f32, [3, 0, 2], []);
    expect(none.size).toBe(0);
    expect(await none.transposed.read()).toEqual(new Float32Array(0));
    none.transposed.write([]);
    const one = device.array(u64, [], [7n]);
    expect([one.rank, one.size]).toEqual([0, 1]);
    expect(await one.item()).toBe(7n);
  });
});

describe("views", () => {
  it("transpose, slice, pick rows and columns without moving anything", async () => {
    const { backend, device } = fake();
    const a = device.array(i32, [3, 4], count(12));
    const { writes } = backend;
    expect(await a.transposed.read()).toEqual(Int32Array.of(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11));
    expect(await a.slice([1], [0, undefined, 2]).read()).toEqual(Int32Array.of(4, 6, 8, 10));
    expect(await a.slice([-1], [-3, -1]).read()).toEqual(Int32Array.of(9, 10));
    expect(await a.slice([], [1, 1]).read()).toEqual(new Int32Array(0));
    expect(await a.row(1).read()).toEqual(Int32Array.of(4, 5, 6, 7));
    expect(await a.column(2).read()).toEqual(Int32Array.of(2, 6, 10));
    expect(await a.transposed.row(2).read()).toEqual(Int32Array.of(2, 6, 10));
    expect(await a.row(2).broadcast([2, 4]).read()).toEqual(Int32Array.of(8, 9, 10, 11, 8, 9, 10, 11));
    expect(await a.strided([2], [5], 3).read()).toEqual(Int32Array.of(3, 8));
    expect(await a.transposed.item(3, 1)).toBe(7);
    expect(backend.writes).toBe(writes);
  });

  it("know whether they are contiguous", () => {
    const { device } = fake();
    const a = device.array(f32, [3, 4]);
    expect(a.isContiguous).toBe(true);
    expect(a.transposed.isContiguous).toBe(false);
    expect(a.slice([1, 2]).isContiguous).toBe(true);
    expect(a.slice([], [0, 2]).isContiguous).toBe(false);
    expect(a.slice([0, 1], [1, 3]).isContiguous).toBe(true);
    expect(a.slice([], [2, 3]).isContiguous).toBe(false);
    expect(device.array(f32, [5, 1]).transposed.isContiguous).toBe(true);
  });

  it("write through, leaving what lies between", async () => {
    const { device } = fake();
    const a = device.array(i32, [3, 4]);
    a.transposed.slice([1, 3]).write([1, 2, 3, 4, 5, 6]);
    expect(await a.read()).toEqual(Int32Array.of(0, 1, 4, 0, 0, 2, 5, 0, 0, 3, 6, 0));
    expect(() => a.row(0).broadcast([2, 4]).write(count(8))).toThrow(/more than once/);
  });

  it("write a permuted whole in one piece", async () => {
    const { backend, device } = fake();
    const a = device.array(i32, [2, 3, 4]);
    const { writes } = backend;
    a.permute([2, 0, 1]).write(count(24));
    expect(backend.writes).toBe(writes + 1);
    expect(await a.permute([2, 0, 1]).read()).toEqual(Int32Array.from(count(24)));
  });

  it("any chain of views reads as the same chain of index functions, and takes what is written", async () => {
    const { device } = fake();
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.nat(5), { maxLength: 4 }),
        fc.array(fc.nat(1000), { minLength: 12, maxLength: 12 }),
        async (shape, choices) => {
          const size = shape.reduce((product, extent) => product * extent, 1);
          let view = device.array(i32, shape, count(size));
          let next = 0;
          const choose = (below: number): number => choices[next++ % choices.length]! % below;
          for (let step = 0; step < 3; step++) {
            if (choose(2) === 0) {
              const order = count(view.rank);
              for (let at = order.length - 1; at > 0; at--) {
                const other = choose(at + 1);
                [order[at], order[other]] = [order[other]!, order[at]!];
              }
              view = view.permute(order);
            } else {
              view = view.slice(
                ...view.shape.map((extent) => {
                  const from = choose(extent + 1);
                  return [from, from + choose(extent - from + 1), 1 + choose(3)] as const;
                }),
              );
            }
          }
          const values = count(view.size).map((value) => value + 1000);
          const before = await view.read();
          expect(new Set(before).size).toBe(view.size);
          view.write(values);
          expect(Array.from(await view.read())).toEqual(values);
        },
      ),
      { numRuns: 200, seed: 1 },
    );
  });

  it("refuse what they cannot be", () => {
    const { device } = fake();
    const a = device.array(f32, [3, 4]);
    expect(() => a.reshape([5])).toThrow(ShapeError);
    expect(() => a.transposed.reshape([12])).toThrow(/copy/);
    expect(() => a.slice([0, 4])).toThrow(ShapeError);
    expect(() => a.slice([2, 1])).toThrow(ShapeError);
    expect(() => a.slice([0, 1, 0])).toThrow(/step/);
    expect(() => a.slice([0], [0], [0])).toThrow(ShapeError);
    expect(() => a.permute([0, 0])).toThrow(ShapeError);
    expect(() => a.row(3)).toThrow(/no row 3/);
    expect(() => a.row(0).transposed).toThrow(ShapeError);
    expect(() => a.broadcast([3, 5])).toThrow(ShapeError);
    expect(() => a.strided([13], [1])).toThrow(/reaches/);
    expect(() => a.strided([2], [-1])).toThrow(/from 0 on/);
    expect(() => a.strided([2], [1, 1])).toThrow(ShapeError);
  });
});

describe("disposal", () => {
  it("of an array ends its views and names them", async () => {
    const { backend, device } = fake();
    const a = device.array(f32, [2, 3]);
    const view = a.transposed;
    a.dispose();
    a.dispose();
    expect(backend.liveBytes).toBe(0);
    expect([a.disposed, view.disposed]).toEqual([true, true]);
    await expect(view.read()).rejects.toThrow(DisposedError);
    await expect(a.read()).rejects.toThrow("read(): the array f32[2, 3] was disposed");
    expect(() => view.transposed).toThrow(DisposedError);
  });

  it("of a view leaves the array alone", async () => {
    const { device } = fake();
    const a = device.array(f32, [2, 3]);
    {
      using view = a.transposed;
      expect(view.size).toBe(6);
    }
    expect((await a.read()).length).toBe(6);
  });

  it("of the device ends everything", async () => {
    const { backend, device } = fake();
    const a = device.array(f32, [1]);
    await device[Symbol.asyncDispose]();
    expect(backend.disposed).toBe(true);
    await expect(a.read()).rejects.toThrow(DisposedError);
    expect(() => device.array(f32, [1])).toThrow(DisposedError);
    await expect(device.sync()).rejects.toThrow(DisposedError);
    a.dispose();
  });
});
