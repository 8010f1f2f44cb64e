/**
 * @file `fill`: one value everywhere.
 */
import type { DeviceArray } from "../runtime/array.ts";
import { decode, encode } from "../types/host.ts";
import type { StorageType } from "../types/types.ts";
import { scalarType } from "./element-types.ts";
import { type ElementFunction, runElementwise } from "./elementwise.ts";

const same: ElementFunction = (value) => value!;

/**
 * Gives every element of an array or view one value, rounded as {@link Device.array} rounds.
 * @throws ArgumentError for a value that the type cannot hold
 */
export async function fill<T extends StorageType>(
  array: DeviceArray<T>,
  value: number | bigint,
): Promise<DeviceArray<T>> {
  array.check("fill()");
  const rounded = decode(array.type, encode(array.type, [value] as number[]))[0]!;
  await runElementwise(array.device, {
    compute: same,
    inputs: [],
    scalars: [{ type: scalarType(array.type), value: rounded }],
    target: array,
  });
  return array;
}
