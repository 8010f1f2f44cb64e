/**
 * @file Triangular matrices: half of a dense one.
 */
import { constant, select } from "../../lang/index.ts";
import type { DeviceArray } from "../../runtime/array.ts";
import { checkHalf, denseSource, type Half } from "../dense-source.ts";
import type { MatrixSource } from "../source.ts";
import { joined, separate } from "../transforms.ts";
import { type IntervalOf, stepsWithin } from "./interval.ts";
import { elementOf, factsOf, firstElement, interned, type Layout } from "./layout.ts";
import { type Mask, masked } from "./masked.ts";

const upTo: IntervalOf = (first, extent) => ({ to: first.add(extent) });
const from: IntervalOf = (first) => ({ from: first });

const steps = {
  lower: stepsWithin("up to the diagonal", upTo, from, "a"),
  upper: stepsWithin("from the diagonal on", from, upTo, "b"),
};

function triangularLayout(dense: Layout, half: Half, unit: boolean): Layout {
  return interned(`${unit ? "unit " : ""}${half} triangular ${dense.name}`, (name) => {
    const counts: Mask["counts"] = (row, column) => (half === "lower" ? row.ge(column) : row.le(column));
    const allCount: Mask["allCount"] = ({ row, column, rows, columns }) =>
      half === "lower" ? row.ge(column.add(columns - 1)) : row.add(rows - 1).le(column);
    if (!unit) return masked(name, dense, { counts, allCount, steps: steps[half] });
    const strict: Mask["counts"] = (row, column) => (half === "lower" ? row.gt(column) : row.lt(column));
    const inside = masked(name, dense, { counts: strict, steps: steps[half] });
    return {
      ...inside,
      // The diagonal is not what lies in memory.
      facts: { ...factsOf(inside), maskedBox: false, ones: true },
      counts,
      load(source, place, tile) {
        const values = separate(inside.load(source, place, tile)).map((value, e) => {
          const { row, column } = firstElement(elementOf(tile, e));
          return select(row.eq(column), constant(value.type, 1), value);
        });
        return joined(values);
      },
    };
  });
}

/**
 * The lower or upper triangle of a matrix, diagonal included; with `unit` ones stand on the diagonal. What lies in the other
 * half (and with `unit` on the diagonal) counts for nothing, and K steps without stored elements are skipped. Rows and columns
 * may differ in number.
 * @throws ShapeError, ArgumentError
 */
export function triangular(
  matrix: DeviceArray,
  half: Half,
  options: { readonly unit?: boolean } = {},
): MatrixSource {
  checkHalf(half, "triangular()");
  return denseSource(matrix, {
    name: `${half} triangular`,
    layout: (dense) => triangularLayout(dense, half, options.unit === true),
    transposed: () => triangular(matrix.transposed, half === "lower" ? "upper" : "lower", options),
  });
}
