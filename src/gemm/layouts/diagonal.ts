/**
 * @file Diagonal matrices: a vector, and zeros that are nowhere.
 */
import { ShapeError } from "../../errors.ts";
import { constant, index, select, type Value, variable, when } from "../../lang/index.ts";
import type { DeviceArray } from "../../runtime/array.ts";
import type { MatrixSource } from "../source.ts";
import { joined } from "../transforms.ts";
import { type IntervalOf, stepsWithin } from "./interval.ts";
import { firstElement, type Layout, rowMajor, runOf } from "./layout.ts";

const near: IntervalOf = (first, extent) => ({ from: first, to: first.add(extent) });

const diagonalLayout: Layout = {
  ...rowMajor,
  name: "diagonal",
  facts: { movement: "registers", thin: true },
  counts: (row, column) => row.eq(column),
  steps: stepsWithin("near the diagonal", near, near),
  load(source, { leading, zero = 0 }, tile) {
    const { row, column } = firstElement(tile);
    const { count, along } = runOf(tile);
    const [line, first] = along === "C" ? [row, column] : [column, row];
    const offset = line.sub(first);
    const held = variable(source.type, zero);
    when(offset.ge(0).and(offset.lt(count)), () => {
      held.value = source.loadAt(line.to(index).mul(leading as Value<typeof index>));
    });
    const outside = constant(source.type, zero);
    return joined(Array.from({ length: count }, (_, e) => select(offset.eq(e), held.value, outside)));
  },
};

/**
 * The n x n matrix with `vector` (n elements of any type and stride) on its diagonal, as A or B. Nothing but the vector
 * is read, and of K only the steps that meet the diagonal in a tile of D.
 *
 * A product that is skipped contributes nothing: D[i, j] of diagonal · B is NaN or infinite only if row i's own product is,
 * or if column j of B holds NaN or an infinity in a K step that the tile of row i visits (those steps are the multiples of
 * `params.block.k` that overlap the tile's rows). Whatever lies in B's other rows leaves D[i, j] alone. The same holds for
 * A · diagonal with rows and columns exchanged.
 * @throws ShapeError unless the array has rank 1
 */
export function diagonal(vector: DeviceArray): MatrixSource {
  const { shape, strides, type, device } = vector;
  if (shape.length !== 1) {
    throw new ShapeError(
      `diagonal() takes a vector (rank 1); ${vector.label} has rank ${shape.length}, and matrix.strided([n], [leading + 1]) is a matrix's diagonal`,
    );
  }
  const source: MatrixSource = {
    label: `diagonal ${vector.label}`,
    device,
    type,
    shape: [shape[0], shape[0]],
    layout: diagonalLayout,
    array: vector,
    leading: strides[0],
    alignment: 16,
    extras: [],
    get transposed() {
      return source;
    },
  };
  return source;
}
