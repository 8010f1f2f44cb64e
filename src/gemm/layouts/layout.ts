/**
 * @file Layouts: where the logical element (row, column) of a matrix lives in an array, global or shared.
 *
 * A layout reads and writes *tiles* of one row and several columns or the reverse: as many elements as one access moves.
 * A new layout is one object; the operands' sizes, bounds and vector widths are the business of those who call it.
 */
import {
  type AnyValue,
  type AnyVector,
  type Index,
  type LinearArray,
  type StorageType,
  Value,
  Vector,
  type VectorLanes,
} from "../../lang/index.ts";
import { type Coordinate, linearise, plus, type Stride, type Tile } from "../../tile/index.ts";

/** Rows R and columns C of a matrix. */
export type MatrixTile = Tile<"R" | "C">;

/** A matrix in an array: which element is first, and how far its lines are apart, in elements. */
export interface MatrixPlace {
  readonly origin: Coordinate;
  readonly leading: Stride;
}

/** One element or several as one access. */
export type Elements = AnyValue | AnyVector;

/** Where elements live. */
export interface Layout {
  /** Names the layout in `explain()` and in kinds. */
  readonly name: string;
  /** Along which direction neighbouring elements are neighbours in memory: "row" is row-major. */
  readonly major: "row" | "column";
  /** Elements between lines of a freshly laid out matrix (a shared tile). */
  leading(rows: number, columns: number): number;
  /** Elements that a freshly laid out matrix takes. */
  length(rows: number, columns: number): number;
  /** The elements of `tile`, as one access. */
  load(source: LinearArray<StorageType>, place: MatrixPlace, tile: MatrixTile): Elements;
  /** Stores to all elements of `tile`, as one access. */
  store(target: LinearArray<StorageType>, place: MatrixPlace, tile: MatrixTile, value: Elements): void;
}

/** A dense matrix whose lines follow each other at the leading dimension. */
function dense(major: "row" | "column"): Layout {
  const position = (place: MatrixPlace, tile: MatrixTile): Coordinate | Value<Index> => {
    const ordered = major === "row" ? tile.project("R", "C") : tile.project("C", "R");
    const within = linearise(ordered, place.leading);
    if (place.origin === 0) return within;
    if (within instanceof Value && within.type.name === "index") {
      throw new TypeError("a matrix with 64-bit positions begins at the array's first element");
    }
    return plus(place.origin, within as Coordinate);
  };
  return {
    name: `${major}-major`,
    major,
    leading: (rows, columns) => (major === "row" ? columns : rows),
    length: (rows, columns) => rows * columns,
    load(source, place, tile) {
      const lanes = tile.size.R * tile.size.C;
      const at = position(place, tile);
      return lanes === 1 ? source.loadAt(at) : source.loadVectorAt(lanes as VectorLanes, at);
    },
    store(target, place, tile, value) {
      const at = position(place, tile);
      if (value instanceof Vector) target.storeVectorAt(at, value);
      else target.storeAt(at, value);
    },
  };
}

/** Elements of one row are neighbours. */
export const rowMajor: Layout = dense("row");
/** Elements of one column are neighbours. */
export const columnMajor: Layout = dense("column");

/** The lines of `inner`, each followed by `padding` unused elements: rows apart land in different banks of shared memory. */
export function padded(inner: Layout, padding: number): Layout {
  const leading = (rows: number, columns: number): number => inner.leading(rows, columns) + padding;
  return {
    ...inner,
    name: `${inner.name}+${padding}`,
    leading,
    length: (rows, columns) => leading(rows, columns) * (inner.major === "row" ? rows : columns),
  };
}

/** The dense layout of a direction. */
export function denseLayout(major: "row" | "column"): Layout {
  return major === "row" ? rowMajor : columnMajor;
}
