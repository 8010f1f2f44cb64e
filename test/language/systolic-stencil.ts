/**
 * @file Two-dimensional correlation in the manner of a systolic array, after Chen et al., "A Versatile Software Systolic
 * Execution Model for GPU Memory-Bound Kernels" (SC '19): each lane holds a column of the image in registers, and partial
 * sums, not inputs, move between lanes.
 */
import {
  block,
  type F32,
  f32,
  type I32,
  input,
  kernel,
  output,
  select,
  subgroup,
  type Value,
  when,
} from "tilewright/lang";

/** What lies outside the image. */
export type Boundary = "zero" | "nearest";

/**
 * target(y, x) = Σ weights[i][j] · source(y + i - ⌊rows/2⌋, x + j - ⌊columns/2⌋). Zero weights cost nothing.
 *
 * A subgroup yields `width - columns + 1` columns of `outputs` rows: {@link systolicGrid} says how many blocks that takes.
 */
export function systolicFilter(weights: readonly (readonly number[])[], boundary: Boundary, outputs = 4) {
  const rows = weights.length;
  const columns = weights[0]!.length;
  return kernel("systolic_filter", {
    params: { source: input(f32, 2), target: output(f32, 2) },
    block: ({ subgroup }) => 4 * subgroup.width,
    body({ source, target }) {
      const [height, width] = [source.size(0), source.size(1)];
      const { lane } = subgroup;
      const warp = block.id.x.mul(subgroup.count).add(subgroup.index);
      const left = warp.mul(subgroup.size - columns + 1).add(lane);
      const top = block.id.y.mul(outputs);

      const read = (y: Value<I32>, x: Value<I32>): Value<F32> => {
        const nearest = source.load(y.max(0).min(height.sub(1)), x.max(0).min(width.sub(1)));
        if (boundary === "nearest") return nearest;
        return select(y.ge(0).and(y.lt(height)).and(x.ge(0)).and(x.lt(width)), nearest, 0);
      };
      const x = left.sub(Math.floor(columns / 2));
      const column = Array.from({ length: rows + outputs - 1 }, (_, i) =>
        read(top.add(i - Math.floor(rows / 2)), x),
      );

      // A sum that has passed all columns of weights has gone columns - 1 lanes to the right.
      const xOut = left.sub(columns - 1);
      for (let i = 0; i < outputs; i++) {
        let sum: Value<F32> | undefined;
        for (let j = 0; j < columns; j++) {
          if (sum !== undefined) sum = subgroup.shuffleUp(sum, 1);
          for (const [k, row] of weights.entries()) {
            const held = column[i + k]!;
            if (row[j] !== 0) sum = sum === undefined ? held.mul(row[j]!) : held.fma(row[j]!, sum);
          }
        }
        const yOut = top.add(i);
        const isWhole = lane
          .ge(columns - 1)
          .and(xOut.lt(width))
          .and(yOut.lt(height));
        when(isWhole, () => target.store(yOut, xOut, sum ?? 0));
      }
    },
  });
}

/** Blocks along x and y for an image. */
export function systolicGrid(
  height: number,
  width: number,
  columns: number,
  subgroupWidth: number,
  outputs = 4,
): readonly [number, number] {
  return [Math.ceil(width / (4 * (subgroupWidth - columns + 1))), Math.ceil(height / outputs)];
}
