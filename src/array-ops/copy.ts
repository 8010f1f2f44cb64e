/**
 * @file `copy`, `copyInto`, `slice`: the same elements in another place.
 */
import { ArgumentError, ShapeError, TypeMismatchError } from "../errors.ts";
import type { DeviceArray, SliceRange } from "../runtime/array.ts";
import type { StorageType } from "../types/types.ts";
import { type ElementFunction, runElementwise } from "./elementwise.ts";
import { canTranspose, runTranspose } from "./transpose.ts";

const same: ElementFunction = (x) => x!;

/** A contiguous copy of an array or view. */
export async function copy<T extends StorageType>(array: DeviceArray<T>): Promise<DeviceArray<T>> {
  array.check("copy()");
  const target = array.device.empty(array.type, array.shape);
  await copyInto(array, target);
  return target;
}

/**
 * Copies elements into an array or view of the same type; the source is repeated to its shape. Source and target must
 * not overlap.
 * @throws ShapeError, TypeMismatchError
 */
export async function copyInto<T extends StorageType>(
  source: DeviceArray<T>,
  target: DeviceArray<T>,
): Promise<void> {
  source.check("copyInto(): the source");
  target.check("copyInto(): the target");
  if (source.type !== target.type) {
    throw new TypeMismatchError(
      `copyInto() keeps the element type, and ${source.label} goes to ${target.label}; convert() converts`,
    );
  }
  if (source.device !== target.device) {
    throw new ArgumentError("copyInto() works within one device; read on the one and write on the other");
  }
  const from = source.broadcast(target.shape);
  if (overlaps(from, target)) {
    throw new ShapeError(
      `copyInto(): ${source.label} and ${target.label} share memory; copy() the source first`,
    );
  }
  const { device } = target;
  if (from.isContiguous && target.isContiguous) device.copy(from, target);
  else if (canTranspose(from, target)) await runTranspose(from, target);
  else await runElementwise(device, { compute: same, inputs: [from], target });
}

/** The part of an array in the given ranges (see {@link DeviceArray.slice}), as a contiguous array of its own. */
export function slice<T extends StorageType>(
  array: DeviceArray<T>,
  ...ranges: readonly (SliceRange | undefined)[]
): Promise<DeviceArray<T>> {
  return copy(array.slice(...ranges));
}

/** Whether the memory that two arrays span has a part in common. */
function overlaps(a: DeviceArray, b: DeviceArray): boolean {
  if (a.allocation !== b.allocation || a.size === 0 || b.size === 0) return false;
  const [first, second] = [spanOf(a), spanOf(b)];
  return first.from < second.to && second.from < first.to;
}

function spanOf({ shape, strides, offset }: DeviceArray): { readonly from: number; readonly to: number } {
  const reached = shape.reduce((sum, extent, dimension) => sum + (extent - 1) * strides[dimension]!, 1);
  return { from: offset, to: offset + reached };
}
