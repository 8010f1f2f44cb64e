/**
 * @file The tables of a grouped product.
 */
import { i32, i64, input, type ParameterDescriptors } from "../../lang/index.ts";
import type { GemmKind } from "../kind.ts";

/** Entries of a product in the table of sizes: m, n, k, columns of D. */
export const sizeEntries = 4;
/** Entries of a product in the table of places: position and leading dimension of A, B, C, D. */
export const placeEntries = 8;

/** The tables of a grouped kind. Places are wider where arrays may lie in allocations of their own. */
export function groupParameters(kind: Pick<GemmKind, "places">): ParameterDescriptors {
  const place = kind.places === "near" ? i32 : i64;
  return { problems: i32, tiles: input(i32, 0), sizes: input(i32, 0), places: input(place, 0) };
}
