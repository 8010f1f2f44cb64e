import { describe, expect, it } from "vitest";
import { f16, f32, i8 } from "../../types/types.ts";
import type { TensorView } from "../backend.ts";
import { type TensorMapShape, tensorMapDataType, tensorMapExtents } from "./tensor-map.ts";

const map: TensorMapShape = { name: "a", element: f16, rank: 2, box: [64, 128], swizzle: 128 };
const view: TensorView = { buffer: { bytes: 0 }, byteOffset: 0, sizes: [100, 50], strides: [1, 104] };
const base = 0x7f_0000_0000;
const bytes = 2 * 104 * 50;

const refused =
  (
    m: Partial<TensorMapShape>,
    v: Partial<TensorView> = {},
    address: number = base,
    room: number = bytes,
  ): (() => unknown) =>
  () =>
    tensorMapExtents({ ...map, ...m }, { ...view, ...v }, address, room);

describe("extents of a tensor map", () => {
  it("have sizes in elements and strides in bytes, the innermost left out", () => {
    const extents = tensorMapExtents(map, view, base, bytes);
    expect(extents.sizes).toEqual(BigUint64Array.of(100n, 50n));
    expect(extents.byteStrides).toEqual(BigUint64Array.of(208n));
  });

  it("take any stride along an extent of 1", () => {
    const extents = tensorMapExtents(map, { ...view, sizes: [100, 1], strides: [1, 3] }, base, bytes);
    expect(extents.byteStrides).toEqual(BigUint64Array.of(16n));
  });

  it("need not fill the last row", () => {
    expect(refused({}, {}, base, 2 * (104 * 49 + 100))).not.toThrow();
    expect(refused({}, {}, base, 2 * (104 * 49 + 100) - 1)).toThrow(
      "the array reaches to byte 10392 of an allocation of 10391 bytes",
    );
  });
});

describe("data types of tensor maps", () => {
  it("are those of the elements, or TFLOAT32", () => {
    expect(tensorMapDataType(map)).toBe(6);
    expect(tensorMapDataType({ ...map, element: f32 })).toBe(7);
    expect(tensorMapDataType({ ...map, element: f32, rounding: "tf32" })).toBe(11);
    expect(tensorMapDataType({ ...map, element: i8 })).toBe(0);
  });
});

describe("what the copy engine cannot do is said before the driver is asked", () => {
  it("misaligned memory", () => {
    expect(refused({}, {}, base + 8)).toThrow(
      "Tensor map a of f16 cannot be made: the array must begin at a multiple of 16 bytes; its address is 8 past one.",
    );
  });

  it("strides", () => {
    expect(refused({}, { strides: [2, 104] })).toThrow(
      "the innermost dimension must be contiguous; its stride is 2 elements",
    );
    expect(refused({}, { strides: [1, 100] })).toThrow(
      "the stride of dimension 1 is 200 bytes; it must be a multiple of 16",
    );
    expect(refused({}, { strides: [1, -104] })).toThrow("the stride of dimension 1 is -208 bytes");
  });

  it("extents and ranks", () => {
    expect(refused({}, { sizes: [0, 50] })).toThrow("the extent of dimension 0 is 0");
    expect(refused({}, { sizes: [100] })).toThrow("it has rank 2, the array has 1 sizes and 2 strides");
    expect(refused({ rank: 6, box: [64, 1, 1, 1, 1, 1] })).toThrow("it has rank 6; 1 to 5 exist");
  });

  it("boxes", () => {
    const windows = { rank: 4, windows: true } as const;
    const images: Partial<TensorView> = { sizes: [64, 5, 5, 2], strides: [1, 64, 320, 1600] };
    expect(refused({ ...windows, box: [64, 1024] }, images, base, 6400)).not.toThrow();
    expect(refused({ ...windows, box: [64, 1025] }, images)).toThrow(
      "its box has extent 1025 in dimension 1; 1 to 1024",
    );
    expect(refused({ ...windows, box: [64, 8, 1] }, images)).toThrow("its box has 3 extents for rank 4");
    expect(refused({ box: [64, 257] })).toThrow("its box has extent 257 in dimension 1; 1 to 256");
    expect(refused({ box: [64] })).toThrow("its box has 1 extents for rank 2");
    expect(refused({ box: [4, 8], swizzle: 0 })).toThrow(
      "its box has rows of 8 bytes; they must be a multiple of 16",
    );
    expect(refused({ element: f32, box: [64, 8] })).toThrow(
      "rows of 256 bytes, more than the 128 of its swizzle",
    );
    expect(refused({ element: i8, box: [128, 8] }, { strides: [1, 208] })).not.toThrow();
  });
});
