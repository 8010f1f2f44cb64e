import { expectTypeOf, test } from "vitest";
import { f16, f32, i64, index, input, kernel, output, type StorageType } from "../lang/index.ts";
import type { F16, F32 } from "../types/types.ts";
import type { Device, DeviceArray } from "./array.ts";

declare const device: Device;
const scaled = kernel("scaled", {
  params: { x: input(f16, 2), y: output(f32), factor: f32, wide: i64, at: index },
  block: 32,
  body() {},
});

test("a kernel's arguments are checked by name and element type", () => {
  const x = device.array(f16, [2, 2]);
  const y = device.array(f32, [2], [1, 2]);
  const good = { x, y, factor: 1, wide: 2n, at: 3 };
  void device.run(scaled, { blocks: 1, args: good });
  void device.run(scaled, { blocks: [1, 2], args: { ...good, x: x.transposed } });
  // @ts-expect-error f32 is no f16
  void device.run(scaled, { blocks: 1, args: { ...good, x: y } });
  // @ts-expect-error at is missing
  void device.run(scaled, { blocks: 1, args: { x, y, factor: 1, wide: 2 } });
  // @ts-expect-error f32 takes no bigint
  void device.run(scaled, { blocks: 1, args: { ...good, factor: 1n } });
  // @ts-expect-error a text is no number of blocks
  void device.run(scaled, { blocks: "1", args: good });
});

test("reading gives the typed array of the element type", () => {
  expectTypeOf(device.array(f16, [1]).read()).resolves.toEqualTypeOf<Float32Array>();
  expectTypeOf(device.array(f16, [1]).readBits()).resolves.toEqualTypeOf<Uint16Array>();
  expectTypeOf(device.array(i64, [1]).read()).resolves.toEqualTypeOf<BigInt64Array>();
  expectTypeOf(device.array(i64, [1]).item(0)).resolves.toEqualTypeOf<bigint>();
  expectTypeOf(device.array(f32, [1, 1]).transposed.slice([0])).toEqualTypeOf<DeviceArray<F32>>();
});

test("an array of one type is an array of any, not of another", () => {
  expectTypeOf<DeviceArray<F16>>().toExtend<DeviceArray>();
  expectTypeOf<DeviceArray<F16>>().toExtend<DeviceArray<StorageType>>();
  expectTypeOf<DeviceArray<F16>>().not.toExtend<DeviceArray<F32>>();
});
