/**
 * @file Gathered matrices: rows (or columns) of another, in any order and as often as wanted.
 */
import { ShapeError, TypeMismatchError } from "../../errors.ts";
import { type GlobalArray, type I32, i32, type StorageType, type Value } from "../../lang/index.ts";
import type { DeviceArray } from "../../runtime/array.ts";
import { tile as tileOf, translate } from "../../tile/index.ts";
import { denseSource } from "../dense-source.ts";
import type { MatrixSource } from "../source.ts";
import { firstElement, interned, type Layout, type MatrixPlace, type MatrixTile } from "./layout.ts";

/** Rows (R) or columns (C) of a dense matrix as an index vector names them. */
function gatheredLayout(dense: Layout, dimension: "R" | "C"): Layout {
  return interned(`gathered ${dimension === "R" ? "rows" : "columns"} ${dense.name}`, (name) => {
    const moved = (place: MatrixPlace, tile: MatrixTile): MatrixTile => {
      const { row, column } = firstElement(tile);
      const [indices] = place.extras as readonly [GlobalArray<StorageType>];
      const named = indices.loadAt(dimension === "R" ? row : column).to(i32) as Value<I32>;
      const at = dimension === "R" ? { R: named, C: column } : { R: row, C: named };
      return translate(tileOf({ R: tile.size.R, C: tile.size.C }), at);
    };
    // Elements of one line are neighbours still where lines are what is gathered.
    const lines = (dense.major === "row") === (dimension === "R");
    return {
      ...dense,
      name,
      facts: lines ? { movement: "run" } : { movement: "registers", widest: 1 },
      position: (place, tile) => dense.position?.(place, moved(place, tile)) ?? 0,
      load: (source, place, tile) => dense.load(source, place, moved(place, tile)),
    };
  });
}

function checkIndices(indices: DeviceArray): void {
  const { type, rank, isContiguous, label } = indices;
  if (type.name !== "i32" && type.name !== "u32")
    throw new TypeMismatchError(`gathered() takes row numbers as i32 or u32, not ${label}`);
  if (rank !== 1 || !isContiguous)
    throw new ShapeError(`gathered() takes a contiguous vector of row numbers; ${label} is none`);
}

/**
 * The matrix whose row i is row `rows[i]` of `matrix`: a selection, a permutation or with repetitions. The numbers are
 * read on the device and are not checked there: they must lie in the matrix (the simulator finds those that do not). For
 * columns gather the rows of `matrix.transposed` and take the result's `transposed`.
 * @throws ShapeError, TypeMismatchError
 */
export function gathered(matrix: DeviceArray, rows: DeviceArray): MatrixSource {
  checkIndices(rows);
  return source(matrix, rows, "R");
}

function source(matrix: DeviceArray, indices: DeviceArray, dimension: "R" | "C"): MatrixSource {
  const [rows, columns] = matrix.shape;
  return denseSource(matrix, {
    name: "gathered",
    layout: (dense) => gatheredLayout(dense, dimension),
    extras: [indices],
    shape: dimension === "R" ? [indices.size, columns] : [rows, indices.size],
    transposed: () => source(matrix.transposed, indices, dimension === "R" ? "C" : "R"),
  });
}
