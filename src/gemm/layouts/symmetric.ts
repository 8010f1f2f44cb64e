/**
 * @file Symmetric matrices of which one half is stored.
 */
import { ShapeError } from "../../errors.ts";
import type { AnyValue } from "../../lang/index.ts";
import { variables, when } from "../../lang/index.ts";
import type { DeviceArray } from "../../runtime/array.ts";
import { checkHalf, denseSource, type Half } from "../dense-source.ts";
import type { MatrixSource } from "../source.ts";
import { joined, separate } from "../transforms.ts";
import {
  elementAt,
  elementOf,
  factsOf,
  firstElement,
  interned,
  type Layout,
  type MatrixTile,
  runOf,
} from "./layout.ts";

function symmetricLayout(dense: Layout, half: Half): Layout {
  return interned(`symmetric ${half} ${dense.name}`, (name) => ({
    ...dense,
    name,
    facts: { ...factsOf(dense), movement: "registers" },
    position: undefined,
    load(source, place, tile) {
      // The larger of the coordinates is the row of what is stored below the diagonal, the smaller above it.
      const single = (at: MatrixTile): AnyValue => {
        const { row, column } = firstElement(at);
        const [large, small] = [row.max(column), row.min(column)];
        const stored = half === "lower" ? elementAt(large, small) : elementAt(small, large);
        return dense.load(source, place, stored) as AnyValue;
      };
      const { count } = runOf(tile);
      if (count === 1) return single(tile);
      const held = variables(source.type, count, 0);
      const assign = (values: readonly AnyValue[]): void => {
        values.forEach((value, e) => {
          held[e].value = value;
        });
      };
      const [first, last] = [0, count - 1].map((e) => firstElement(elementOf(tile, e)));
      const [below, above] = half === "lower" ? (["row", "column"] as const) : (["column", "row"] as const);
      const stored = first[below].ge(first[above]).and(last[below].ge(last[above]));
      when(stored, () => assign(separate(dense.load(source, place, tile)))).otherwise(() => {
        assign(held.map((_, e) => single(elementOf(tile, e))));
      });
      return joined(held.map(({ value }) => value));
    },
  }));
}

/**
 * The symmetric matrix of which `matrix` holds the lower or the upper half, diagonal included. The other half of `matrix`
 * is never read.
 * @throws ShapeError unless it is square; ArgumentError
 */
export function symmetric(matrix: DeviceArray, stored: Half): MatrixSource {
  checkHalf(stored, "symmetric()");
  const [rows, columns] = matrix.shape;
  if (matrix.rank === 2 && rows !== columns)
    throw new ShapeError(`symmetric() takes a square matrix, not ${matrix.label}`);
  const source: MatrixSource = denseSource(matrix, {
    name: `symmetric, ${stored} half stored,`,
    layout: (dense) => symmetricLayout(dense, stored),
    transposed: () => source,
  });
  return source;
}
