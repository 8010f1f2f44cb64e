import { expectTypeOf, test } from "vitest";
import { max, type Value } from "../lang/index.ts";
import type { Device, DeviceArray } from "../runtime/array.ts";
import { type F16, type F32, f16, f32, type I8, type I32, i8, i32, type U8 } from "../types/types.ts";
import { convert, copy, map, random, reduce } from "./index.ts";

declare const device: Device;
declare const a: DeviceArray<F32>;
declare const b: DeviceArray<I8>;

test("map infers elements and result", () => {
  expectTypeOf(map(a, (x) => max(x, 0).add(1))).resolves.toEqualTypeOf<DeviceArray<F32>>();
  expectTypeOf(map([a, b], (x, y) => x.lt(y.to(f32)))).resolves.toEqualTypeOf<DeviceArray<U8>>();
  expectTypeOf(map([a, b], (x, y) => y.to(i32).add(x.to(i32)))).resolves.toEqualTypeOf<DeviceArray<I32>>();
  expectTypeOf(map(a, (x) => x.mul(2), { type: f16 })).resolves.toEqualTypeOf<DeviceArray<F16>>();
  // @ts-expect-error i8 has no arithmetic
  void map(b, (x) => x.add(1));
  // @ts-expect-error f32 and i8 do not add
  void map([a, b], (x, y) => x.add(y));
  // @ts-expect-error a number is no value of the language
  void map(a, () => 1);
});

test("reduce gives the type that sums are kept in, or the array's own", () => {
  expectTypeOf(reduce(a, "sum")).resolves.toEqualTypeOf<DeviceArray<F32>>();
  expectTypeOf(reduce(b, "sum")).resolves.toEqualTypeOf<DeviceArray<I32>>();
  expectTypeOf(reduce(b, "max", { axis: 0 })).resolves.toEqualTypeOf<DeviceArray<I8>>();
  expectTypeOf(reduce(b, "sum", { type: i8 })).resolves.toEqualTypeOf<DeviceArray<I8>>();
  const squares = {
    accumulator: f32,
    identity: 0,
    map: (x: Value<F32>) => x.mul(x),
    combine: (x: Value<F32>, y: Value<F32>) => x.add(y),
  };
  expectTypeOf(reduce(a, squares)).resolves.toEqualTypeOf<DeviceArray<F32>>();
  // @ts-expect-error the reducer takes f32
  void reduce(b, squares);
});

test("copy, convert and random have the types they say", () => {
  expectTypeOf(copy(b)).resolves.toEqualTypeOf<DeviceArray<I8>>();
  expectTypeOf(convert(a, f16)).resolves.toEqualTypeOf<DeviceArray<F16>>();
  expectTypeOf(random(device, f16, [3])).resolves.toEqualTypeOf<DeviceArray<F16>>();
});
