/**
 * @file Layouts: where the logical element (row, column) of a matrix lives in an array, global or shared.
 *
 * A layout reads and writes *tiles* of one row and several columns or the reverse: as many elements as one access moves.
 * A new layout is one object; the operands' sizes, bounds and vector widths are the business of those who call it.
 */
import {
  type AnyValue,
  type AnyVector,
  type Bool,
  type I32,
  type IndexOperand,
  type LinearArray,
  type StorageType,
  Value,
  Vector,
  type VectorLanes,
} from "../../lang/index.ts";
import {
  type Coordinate,
  linearise,
  plus,
  type Stride,
  type Tile,
  tile as tileOf,
  translate,
} from "../../tile/index.ts";
import type { ElementCoordinates } from "../coordinates.ts";
import type { ExtraValue } from "../extras.ts";
import { type Interner, interner } from "../interner.ts";
import type { Predicate } from "../predicate.ts";

/** Rows R and columns C of a matrix. */
export type MatrixTile = Tile<"R" | "C">;

/** A matrix in an array: which element is first, and how far its lines are apart, in elements. */
export interface MatrixPlace {
  readonly origin: Coordinate;
  readonly leading: Stride;
  /** What the layout takes at run time beside the array, in its own order. */
  readonly extras?: readonly ExtraValue[];
  /** What elements that are not stored count as: the operator's zero. 0 unless given. */
  readonly zero?: number;
}

/** What can be done with a layout's elements. What is left unsaid is the cautious answer. */
export interface LayoutFacts {
  /**
   * Which machinery can move them to shared memory: "box", lines at one distance, as tensor maps and asynchronous copies
   * read them; "run", the elements of an access follow each other in memory from {@link Layout.position} on, as
   * asynchronous copies read them; "registers", they must pass through registers.
   */
  readonly movement: "box" | "run" | "registers";
  /**
   * Lines along K of so many elements, at multiples of as many, are windows of images, which tensor maps of windows read;
   * {@link Layout.window} says where.
   */
  readonly windowLine?: number;
  /**
   * All of the matrix lies in memory as a box, and loads may bring elements that do not count, if those are then replaced
   * by zero.
   */
  readonly maskedBox?: boolean;
  /** Most elements of one access along the major direction; what alignment allows unless given. */
  readonly widest?: number;
  /** Of a line only an element or a few count: products are bound by memory, and tiles that are small hide its latency. */
  readonly thin?: boolean;
  /** Some elements are the number 1 without being stored: for operators whose sums are sums. */
  readonly ones?: boolean;
  /** As C or D: some elements are not there, and stores leave what lies in their place. */
  readonly keepsOthers?: boolean;
  /** There is no array: loads are functions of coordinates and extras. */
  readonly pure?: boolean;
}

/** Numbers that lie together as a matrix: all components of each element, one after another, or one component alone. */
export interface ComponentStream {
  /** Where the numbers lie, of a matrix that is as many times longer along the major direction as there are components here. */
  readonly layout: Layout;
  /** Which components follow each other. */
  readonly components: readonly number[];
}

/** What `WindowMap.load` takes. */
export interface WindowPlace {
  readonly place: Readonly<Record<"channel" | "x" | "y" | "image", Value<I32>>>;
  readonly offset: Readonly<Record<"x" | "y", Value<I32>>>;
}

/** Several rows and columns of a matrix. */
export interface MatrixArea {
  /** The first element's. */
  readonly row: Value<I32>;
  readonly column: Value<I32>;
  readonly rows: number;
  readonly columns: number;
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
  /** Elements pass through registers one by one unless said otherwise. */
  readonly facts?: LayoutFacts;
  /** Where the first element of an access lies; given by layouts whose movement is "box" or "run". */
  position?(place: MatrixPlace, tile: MatrixTile): IndexOperand;
  /** Where a map of windows finds the lines from (row, column) on. */
  window?(row: Value<I32>, column: Value<I32>, extras: readonly ExtraValue[]): WindowPlace;
  /** Which elements there are, of a layout that leaves some out: the others count as nothing, whatever transforms make of them. */
  counts?(row: Value<I32>, column: Value<I32>, extras: readonly ExtraValue[]): Value<Bool>;
  /** Whether all elements of an area count, for a layout that leaves some out; it may say no where they do. */
  allCount?(area: MatrixArea, extras: readonly ExtraValue[]): Value<Bool>;
  /** Which K steps count with such a matrix as A and as B; `extras` are the layout's. Every step unless given. */
  readonly steps?: { readonly a: Predicate; readonly b: Predicate };
  /** How the numbers of elements with several components lie; elements are single numbers unless given. */
  readonly streams?: readonly ComponentStream[];
}

/** The facts of a layout. */
export function factsOf(layout: Layout): LayoutFacts {
  return layout.facts ?? { movement: "registers", widest: 1 };
}

/** The matrices of numbers that a layout is made of: itself, unless its elements have several components. */
export function streamsOf(layout: Layout): readonly ComponentStream[] {
  return layout.streams ?? [{ layout, components: [0] }];
}

/** Coordinates of a tile's first element. */
export function firstElement(tile: MatrixTile): ElementCoordinates {
  return { row: tile.origin("R") as Value<I32>, column: tile.origin("C") as Value<I32> };
}

/** The tile that is one element. */
export function elementAt(row: Coordinate, column: Coordinate): MatrixTile {
  return translate(tileOf({ R: 1, C: 1 }), { R: row, C: column });
}

/** Elements of a tile that is one access, and the direction in which they are neighbours. */
export function runOf(tile: MatrixTile): { readonly count: number; readonly along: "R" | "C" } {
  return { count: tile.size.R * tile.size.C, along: tile.size.C > 1 ? "C" : "R" };
}

/** Element `e` of a tile that is one access. */
export function elementOf(tile: MatrixTile, e: number): MatrixTile {
  return translate(tile, { [runOf(tile).along]: e } as never).resize({ R: 1, C: 1 }) as MatrixTile;
}

/** A layout all of whose accesses go to consecutive elements from a position on. */
export function layoutAt(
  description: Pick<Layout, "name" | "major" | "leading" | "length" | "facts">,
  position: NonNullable<Layout["position"]>,
): Layout {
  return {
    ...description,
    position,
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

/** A dense matrix whose lines follow each other at the leading dimension. */
function dense(major: "row" | "column"): Layout {
  return layoutAt(
    {
      name: `${major}-major`,
      major,
      leading: (rows, columns) => (major === "row" ? columns : rows),
      length: (rows, columns) => rows * columns,
      facts: { movement: "box" },
    },
    (place, tile) => {
      const ordered = major === "row" ? tile.project("R", "C") : tile.project("C", "R");
      const within = linearise(ordered, place.leading);
      if (place.origin === 0) return within;
      if (within instanceof Value && within.type.name === "index") {
        throw new TypeError("a matrix with 64-bit positions begins at the array's first element");
      }
      return plus(place.origin, within as Coordinate);
    },
  );
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

/** The one layout with this name: components are found by identity, and equal parameters must give the same object. */
export const interned: Interner<Layout> = interner();

/** The dense layout of a direction. */
export function denseLayout(major: "row" | "column"): Layout {
  return major === "row" ? rowMajor : columnMajor;
}
