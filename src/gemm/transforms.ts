/**
 * @file Transforms: functions of elements and their coordinates on any of the eight streams of a GEMM.
 */
import { type ElementType, type I32, type StorageType, Value, Vector, vector } from "../lang/index.ts";

/** Coordinates of an element in its whole matrix. */
export interface ElementCoordinates {
  readonly row: Value<I32>;
  readonly column: Value<I32>;
}

/** A function of one element. It may change the element type. */
// biome-ignore lint/suspicious/noExplicitAny: a transform's types are those of the streams it is put on
export type Transform = (x: Value<any>, at: ElementCoordinates) => Value<any>;

/**
 * The eight streams. Transforms run in the order in which data moves: `globalToShared`, then `sharedToRegister` for the
 * operands A, B, C; `registerToShared`, then `sharedToGlobal` for the result D. A schedule that keeps a stream in registers
 * still applies both.
 */
export interface Transforms {
  readonly a?: { readonly globalToShared?: Transform; readonly sharedToRegister?: Transform };
  readonly b?: { readonly globalToShared?: Transform; readonly sharedToRegister?: Transform };
  readonly c?: { readonly globalToShared?: Transform; readonly sharedToRegister?: Transform };
  readonly d?: { readonly registerToShared?: Transform; readonly sharedToGlobal?: Transform };
}

/** Applies a transform to one element or to each of a vector. `at(lane)` gives coordinates when they are asked for. */
export function applyTransform<T extends ElementType>(
  transform: Transform,
  held: Value<T> | Vector<T>,
  at: (lane: number) => ElementCoordinates,
): Value<StorageType> | Vector<StorageType> {
  if (held instanceof Vector) return joined(held.elements().map((value, lane) => transform(value, at(lane))));
  return transform(held, at(0));
}

/** Values as one value or vector. */
export function joined<T extends ElementType>(values: readonly Value<T>[]): Value<T> | Vector<T> {
  return values.length === 1 ? values[0] : vector(...values);
}

/** The values of one value or vector. */
export function separate<T extends ElementType>(held: Value<T> | Vector<T>): readonly Value<T>[] {
  return held instanceof Vector ? held.elements() : [held];
}

/** Converts one element or each of a vector; the same object if the type is already right. */
export function converted<T extends ElementType, U extends ElementType>(held: Value<T> | Vector<T>, type: U): Value<U> | Vector<U> {
  if ((held.type as ElementType) === type) return held as unknown as Value<U> | Vector<U>;
  if (held instanceof Value) return held.to(type);
  // A conversion of the whole vector stays packed where the result fits one access.
  return type.bits * held.lanes <= 128 ? held.to(type) : joined(held.elements().map((value) => value.to(type)));
}
