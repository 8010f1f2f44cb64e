/**
 * @file Results of which one half is written: on and below the diagonal, or on and above it. What lies in the other half is
 * neither read nor changed.
 */
import { type Bool, type I32, select, type Value, when } from "../../lang/index.ts";
import type { DeviceArray } from "../../runtime/array.ts";
import { denseSource, type Half } from "../dense-source.ts";
import type { Predicate } from "../predicate.ts";
import type { MatrixSource } from "../source.ts";
import { separate } from "../transforms.ts";
import {
  type Elements,
  elementOf,
  firstElement,
  interned,
  type Layout,
  type MatrixTile,
  runOf,
} from "./layout.ts";
import { loadWhere } from "./masked.ts";

function halfLayout(dense: Layout, half: Half): Layout {
  return interned(`${half} half ${dense.name}`, (name) => {
    const within = (at: MatrixTile): Value<Bool> => {
      const { row, column } = firstElement(at);
      return half === "lower" ? row.ge(column) : row.le(column);
    };
    return {
      ...dense,
      name,
      facts: { movement: "registers", keepsOthers: true },
      position: undefined,
      load: (source, place, tile) =>
        loadWhere(source.type, tile, 0, within, (at) => dense.load(source, place, at), false),
      store(target, place, tile, value) {
        const { count } = runOf(tile);
        const values = separate(value as Elements);
        const singly = (e: number): void => {
          const at = elementOf(tile, e);
          when(within(at), () => dense.store(target, place, at, values[e]));
        };
        if (count === 1) {
          singly(0);
          return;
        }
        const ends = within(elementOf(tile, 0)).and(within(elementOf(tile, count - 1)));
        when(ends, () => dense.store(target, place, tile, value)).otherwise(() => {
          for (let e = 0; e < count; e++) singly(e);
        });
      },
    };
  });
}

/** One half of a matrix as C or D of a product. */
export function halfOf(matrix: DeviceArray, half: Half): MatrixSource {
  return denseSource(matrix, {
    name: `${half} half of`,
    layout: (dense) => halfLayout(dense, half),
    transposed: () => halfOf(matrix.transposed, half === "lower" ? "upper" : "lower"),
  });
}

function tilesOf(half: Half): Predicate {
  return {
    name: `tiles of the ${half} half`,
    contiguous: true,
    next({ row, column, rows, columns, steps }, step): Value<I32> {
      const [first, last] = half === "lower" ? [column, row.add(rows - 1)] : [row, column.add(columns - 1)];
      return select(first.le(last), step, steps);
    },
  };
}

/** K steps of tiles that meet a half of D: the other tiles have none. */
export const stepsOfHalf: Readonly<Record<Half, Predicate>> = {
  lower: tilesOf("lower"),
  upper: tilesOf("upper"),
};
