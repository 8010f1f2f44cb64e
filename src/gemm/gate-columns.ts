/**
 * @file Which columns of a product make one of a gated D.
 *
 * B holds the columns of B₁ and B₂ in turn, in groups of 16. So each tile of the product has both factors of its elements
 * of D, and with warpgroups so has each lane: its accumulators repeat every 8 columns.
 */
import type { Coordinate } from "../tile/index.ts";

/** Columns of B₁ before as many of B₂ follow. */
export const gateGroup = 16;
/** Columns of the product that make a group of D's. */
export const gatePair: number = 2 * gateGroup;

/** Columns of the product for each of D's. */
export function columnsPerResult({ gate }: { readonly gate: unknown }): 1 | 2 {
  return gate === undefined ? 1 : 2;
}

/** The column of A · B₁ that belongs to a column of D, both counted from the first of a group; A · B₂'s is a group further. */
export function gateColumn(column: Coordinate): Coordinate {
  return typeof column === "number" ? column + (column & -gateGroup) : column.add(column.and(-gateGroup));
}
