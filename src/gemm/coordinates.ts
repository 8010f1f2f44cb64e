/**
 * @file Where an element is.
 */
import type { I32, Value } from "../lang/index.ts";

/** Coordinates of an element in its whole matrix. */
export interface ElementCoordinates {
  readonly row: Value<I32>;
  readonly column: Value<I32>;
  /** Number of its matrix, counted through all dimensions of the batch; undefined where there is no batch. */
  readonly batch?: Value<I32> | undefined;
}
