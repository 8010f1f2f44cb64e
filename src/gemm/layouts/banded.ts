/**
 * @file Banded matrices, dense or packed as LAPACK packs them.
 */
import { ArgumentError } from "../../errors.ts";
import { type I32, i32, type Value } from "../../lang/index.ts";
import type { DeviceArray } from "../../runtime/array.ts";
import { denseSource } from "../dense-source.ts";
import type { ExtraArgument, ExtraValue } from "../extras.ts";
import type { MatrixSource } from "../source.ts";
import { stepsWithin } from "./interval.ts";
import { elementAt, firstElement, interned, type Layout } from "./layout.ts";
import { type Mask, masked } from "./masked.ts";

/** Diagonals below and above the main one. */
const widths = (extras: readonly ExtraValue[]): readonly [below: Value<I32>, above: Value<I32>] =>
  extras as never;

const band: Mask = {
  counts(row, column, extras) {
    const [below, above] = widths(extras);
    return row.sub(column).le(below).and(column.sub(row).le(above));
  },
  allCount({ row, column, rows, columns }, extras) {
    const [below, above] = widths(extras);
    const lowest = row.add(rows - 1).sub(column);
    const highest = column.add(columns - 1).sub(row);
    return lowest.le(below).and(highest.le(above));
  },
  steps: stepsWithin(
    "within the band",
    (first, extent, extras) => {
      const [below, above] = widths(extras);
      return { from: first.sub(below), to: first.add(extent).add(above) };
    },
    (first, extent, extras) => {
      const [below, above] = widths(extras);
      return { from: first.sub(above), to: first.add(extent).add(below) };
    },
  ),
};

/** Element (i, j) lies at (above + i - j, j) of the dense matrix; of a transposed one, where (j, i) of the original does. */
function packedLayout(dense: Layout, flipped: boolean): Layout {
  return interned(`packed band ${flipped ? "transposed " : ""}${dense.name}`, (name) => {
    const single: Layout = {
      ...dense,
      facts: { movement: "registers", widest: 1 },
      load(source, place, tile) {
        const { row, column } = firstElement(tile);
        const [below, above] = widths(place.extras ?? []);
        const [i, j, over] = flipped ? [column, row, below] : [row, column, above];
        return dense.load(source, place, elementAt(over.add(i).sub(j), j));
      },
    };
    return masked(name, single, band);
  });
}

function checkWidth(value: unknown, name: string, who: string): void {
  if (Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 30) return;
  throw new ArgumentError(
    `${who} wants the number of diagonals ${name} the main one, an integer from 0 on, not ${String(value)}`,
  );
}

const numbers = (...values: readonly number[]): readonly ExtraArgument[] =>
  values.map((value) => ({ type: i32, value }));

/**
 * The part of a dense matrix that lies up to `below` diagonals below and `above` above the main one. What lies outside
 * the band is never read and K steps outside it are skipped; band widths are arguments, one kernel serves all.
 * @throws ShapeError, ArgumentError
 */
export function banded(matrix: DeviceArray, below: number, above: number): MatrixSource {
  checkWidth(below, "below", "banded()");
  checkWidth(above, "above", "banded()");
  return denseSource(matrix, {
    name: "banded",
    layout: (dense) => interned(`banded ${dense.name}`, (name) => masked(name, dense, band)),
    extras: numbers(below, above),
    transposed: () => banded(matrix.transposed, above, below),
  });
}

/**
 * A banded matrix of `rows` rows in LAPACK's band storage: `bands` has a row for each diagonal, the uppermost first, and
 * a column for each column of the matrix; element (i, j) is bands[above + i - j, j], with `below` diagonals below the main
 * one and above = bands' rows - 1 - below. LAPACK's own arrays are column-major: `array.transposed` of this library's.
 * @throws ShapeError, ArgumentError
 */
export function bandedPacked(bands: DeviceArray, rows: number, below: number): MatrixSource {
  checkWidth(below, "below", "bandedPacked()");
  const [diagonals, columns] = bands.shape;
  if (bands.rank === 2 && below >= diagonals) {
    throw new ArgumentError(
      `bandedPacked(): ${below} diagonals below the main one and that one need ${below + 1} rows; ${bands.label} has ${diagonals}`,
    );
  }
  if (!Number.isInteger(rows) || rows < 0)
    throw new ArgumentError(`bandedPacked() wants the number of rows, not ${String(rows)}`);
  return packed(bands, [rows, columns], [below, diagonals - 1 - below], false);
}

function packed(
  bands: DeviceArray,
  [rows, columns]: readonly [number, number],
  [below, above]: readonly [number, number],
  flipped: boolean,
): MatrixSource {
  return denseSource(bands, {
    name: "packed band",
    layout: (dense) => packedLayout(dense, flipped),
    extras: numbers(below, above),
    shape: [rows, columns],
    transposed: () => packed(bands, [columns, rows], [above, below], !flipped),
  });
}
