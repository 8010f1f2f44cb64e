/**
 * @file Which output tile a block computes.
 */
import { block, type I32, type Value } from "../../lang/index.ts";
import type { GemmParams } from "../params.ts";

/** First element of the block's output tile. Blocks walk down groups of tile rows before the next tile column. */
export function outputTile(
  params: GemmParams,
  m: Value<I32>,
  n: Value<I32>,
): { readonly row: Value<I32>; readonly column: Value<I32> } {
  const { block: extents, groupRows } = params;
  const tilesDown = m.ceilDiv(extents.m);
  const tilesAcross = n.ceilDiv(extents.n);
  const id = block.id.x;
  const perGroup = tilesAcross.mul(groupRows);
  const group = id.div(perGroup);
  const firstRow = group.mul(groupRows);
  const rows = tilesDown.sub(firstRow).min(groupRows);
  const within = id.sub(group.mul(perGroup));
  return {
    row: firstRow.add(within.rem(rows)).mul(extents.m),
    column: within.div(rows).mul(extents.n),
  };
}
