/**
 * @file `convert`: the same numbers in another element type.
 */
import type { Value } from "../lang/index.ts";
import type { DeviceArray } from "../runtime/array.ts";
import type { ElementType, StorageType } from "../types/types.ts";
import { type ElementFunction, runElementwise } from "./elementwise.ts";

/** Converted while stored: the kernel's target has the type. */
const same: ElementFunction = (x) => x as Value<ElementType>;

/**
 * A contiguous array of the same numbers in another type. Floats round to nearest even; float to integer truncates and
 * saturates, NaN gives 0; integers wrap; e4m3 and e5m2 saturate.
 */
export async function convert<T extends StorageType>(array: DeviceArray, type: T): Promise<DeviceArray<T>> {
  array.check("convert()");
  const target = array.device.empty(type, array.shape);
  await runElementwise(array.device, { compute: same, inputs: [array], target });
  return target;
}
