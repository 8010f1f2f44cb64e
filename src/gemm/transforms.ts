/**
 * @file Transforms: functions of elements and their coordinates on any of the eight streams of a GEMM.
 */
import {
  type AnyValue,
  type ElementType,
  type I32,
  type StorageType,
  Value,
  Vector,
  vector,
} from "../lang/index.ts";
import type { Elements } from "./layouts/layout.ts";

/** Coordinates of an element in its whole matrix. */
export interface ElementCoordinates {
  readonly row: Value<I32>;
  readonly column: Value<I32>;
}

/** A function of one element. It may change the element type. */
export type Transform = (x: AnyValue, at: ElementCoordinates) => AnyValue;

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

/** Values as one value or vector. */
export function joined(values: readonly AnyValue[]): Elements {
  return values.length === 1 ? values[0] : vector(...values);
}

/** The values of one value or vector. */
export function separate(held: Elements): readonly AnyValue[] {
  return held instanceof Vector ? held.elements() : [held];
}

/** Converts one element or each of a vector; the same object if the type is already right. */
export function converted(held: Elements, type: ElementType): Elements {
  if (held.type === type) return held;
  if (held instanceof Value) return held.to(type);
  // A conversion of the whole vector stays packed where the result fits one access.
  return type.bits * held.lanes <= 128
    ? held.to(type)
    : joined(held.elements().map((value) => value.to(type)));
}

/** Neighbouring elements converted, in as few values and vectors of at most 16 bytes as hold them. */
export function convertedRuns(values: readonly AnyValue[], type: StorageType): readonly Elements[] {
  const [first] = values;
  const together = Math.min(values.length, Math.floor(128 / Math.max(first.type.bits, type.bits)));
  const runs: Elements[] = [];
  for (let e = 0; e < values.length; e += together) {
    runs.push(converted(joined(values.slice(e, e + together)), type));
  }
  return runs;
}
