/**
 * @file `map`: any function of elements.
 */
import { ArgumentError, ShapeError } from "../errors.ts";
import type { Value } from "../lang/index.ts";
import { commonShape, DeviceArray } from "../runtime/array.ts";
import type { ElementType, StorageType } from "../types/types.ts";
import type { Stored } from "./element-types.ts";
import { type ElementFunction, resultType, runElementwise } from "./elementwise.ts";

/** Options of {@link map}. */
export interface MapOptions<V extends StorageType> {
  /** Element type of the result; values are converted to it. The function's own type unless given. */
  readonly type?: V;
  /** An array to put the result into, in place of a new one. */
  readonly into?: DeviceArray<V>;
}

/** Arrays of several types. */
export type Arrays<A extends readonly StorageType[]> = { readonly [K in keyof A]: DeviceArray<A[K]> };
/** An element of each of several arrays. */
export type Elements<A extends readonly StorageType[]> = { readonly [K in keyof A]: Value<A[K]> };

/**
 * Applies a function to every element of an array, or to the elements of several arrays at the same place:
 *
 *     await map(a, (x) => max(x, 0));
 *     await map([a, b], (x, y) => x.fma(2, y));
 *
 * The function is traced: it takes and returns values of the kernel language, of the arrays' own types. Arrays of
 * different shapes are repeated to the common one, as in NumPy. A function kept in a constant is traced once.
 * @throws ShapeError, TypeMismatchError, TraceError
 */
export function map<T extends StorageType, R extends ElementType, V extends StorageType = Stored<R>>(
  array: DeviceArray<T>,
  compute: (element: Value<T>) => Value<R>,
  options?: MapOptions<V>,
): Promise<DeviceArray<V>>;
export function map<
  const A extends readonly StorageType[],
  R extends ElementType,
  V extends StorageType = Stored<R>,
>(
  arrays: Arrays<A>,
  compute: (...elements: Elements<A>) => Value<R>,
  options?: MapOptions<V>,
): Promise<DeviceArray<V>>;
export async function map(
  given: DeviceArray | readonly DeviceArray[],
  compute: (...elements: never[]) => unknown,
  { type, into }: MapOptions<StorageType> = {},
): Promise<DeviceArray<never>> {
  const arrays = given instanceof DeviceArray ? [given] : given;
  const [first] = arrays;
  if (first === undefined) throw new ArgumentError("map() takes an array, or a list of at least one");
  for (const array of arrays) array.check("map()");
  const { device } = first;
  const shape = commonShape(arrays.map((array) => array.shape));
  if (
    into !== undefined &&
    (into.rank !== shape.length || into.shape.some((extent, at) => extent !== shape[at]))
  ) {
    throw new ShapeError(`map() gives the shape [${shape.join(", ")}] and cannot put it into ${into.label}`);
  }
  // The function's parameters are the arrays' types, which the overloads have checked.
  const untyped = compute as unknown as ElementFunction;
  const wanted =
    into?.type ??
    type ??
    resultType(
      device,
      untyped,
      arrays.map((array) => array.type),
    );
  const target = into ?? device.empty(wanted, shape);
  await runElementwise(device, {
    compute: untyped,
    inputs: arrays.map((array) => array.broadcast(shape)),
    target,
  });
  return target as DeviceArray<never>;
}
