/**
 * @file Which output tile a block computes.
 */
import type { I32, Value } from "../../lang/index.ts";
import type { GemmKind } from "../kind.ts";
import type { GemmParams } from "../params.ts";

/** Tiles of one matrix. */
export function tileCount({ block }: GemmParams, m: Value<I32>, n: Value<I32>): Value<I32> {
  return m.ceilDiv(block.m).mul(n.ceilDiv(block.n));
}

/**
 * First element of the output tile with a number: numbers walk down groups of tile rows before the next tile column, so
 * that neighbouring blocks share columns of B and a few rows of A in the cache. Where tiles further on have more K steps
 * they walk backwards: the longest tiles come first, and what is left at the end is short.
 */
export function tilePlace(
  { params, a, b }: Pick<GemmKind, "params" | "a" | "b">,
  m: Value<I32>,
  n: Value<I32>,
  id: Value<I32>,
): { readonly row: Value<I32>; readonly column: Value<I32> } {
  const { block: extents, groupRows } = params;
  const tilesDown = m.ceilDiv(extents.m);
  const tilesAcross = n.ceilDiv(extents.n);
  const perGroup = tilesAcross.mul(groupRows);
  const backwards = a.layout.steps?.a.growing === true || b.layout.steps?.b.growing === true;
  const number = backwards ? tilesDown.mul(tilesAcross).sub(1).sub(id) : id;
  const group = number.div(perGroup);
  const firstRow = group.mul(groupRows);
  const rows = tilesDown.sub(firstRow).min(groupRows);
  const within = number.sub(group.mul(perGroup));
  return {
    row: firstRow.add(within.rem(rows)).mul(extents.m),
    column: within.div(rows).mul(extents.n),
  };
}
