/**
 * @file Where an element is.
 */
import type { I32, Value } from "../lang/index.ts";

/** Coordinates of an element in its whole matrix. */
export interface ElementCoordinates {
  readonly row: Value<I32>;
  readonly column: Value<I32>;
}
