/**
 * @file The structured matrices of the table: how each is made, and what it stands for. What must not be read is poison.
 */
import { type DeviceArray, f32, i32, type StorageType, u32 } from "tilewright";
import {
  banded,
  bandedPacked,
  blockMasked,
  blockSparse,
  blockTable,
  diagonal,
  gathered,
  generated,
  type Half,
  symmetric,
  triangular,
} from "tilewright/gemm";
import type { AnyValue, I32, Value } from "tilewright/lang";
import type { Maker, StructureRow, Written } from "./structured-cases.ts";

/** Row-major values of a matrix given by a function. */
function written(
  rows: number,
  columns: number,
  value: (row: number, column: number) => number,
): Float64Array {
  return Float64Array.from({ length: rows * columns }, (_, i) => value(Math.floor(i / columns), i % columns));
}

type Stored = (row: number, column: number) => boolean;
const orders = ["row", "column"] as const;

/** A row for each order of the stored matrix; `make` receives it with what `stored` refuses poisoned. */
function inBothOrders(
  name: string,
  stored: Stored,
  square: boolean,
  make: (array: DeviceArray) => Written["source"],
  value: (values: (row: number, column: number) => number, row: number, column: number) => number,
): readonly StructureRow[] {
  return orders.map((major) => ({
    name: `${name}, ${major}-major`,
    make(maker, rows, width) {
      const columns = square ? rows : width;
      const { array, values } = maker.matrix(rows, columns, major, stored, rows % 2 === 0 ? 0 : 3);
      const at = (row: number, column: number): number => values[row * columns + column]!;
      const element = (row: number, column: number): number => value(at, row, column);
      return { source: make(array), dense: written(rows, columns, element) };
    },
  }));
}

const triangles = (["lower", "upper"] as const).flatMap((half: Half) =>
  [false, true].flatMap((unit) => {
    const within: Stored = (i, j) => (half === "lower" ? i >= j : i <= j) && !(unit && i === j);
    const name = `${unit ? "unit " : ""}${half} triangular`;
    return inBothOrders(
      name,
      within,
      false,
      (array) => triangular(array, half, { unit }),
      (at, i, j) => (within(i, j) ? at(i, j) : unit && i === j ? 1 : 0),
    );
  }),
);

const symmetrics = (["lower", "upper"] as const).flatMap((half) => {
  const within: Stored = (i, j) => (half === "lower" ? i >= j : i <= j);
  return inBothOrders(
    `symmetric, ${half} half stored`,
    within,
    true,
    (array) => symmetric(array, half),
    (at, i, j) => (within(i, j) ? at(i, j) : at(j, i)),
  );
});

const [below, above] = [2, 5];
const inBand: Stored = (i, j) => i - j <= below && j - i <= above;
const bands: readonly StructureRow[] = [
  ...inBothOrders(
    "banded",
    inBand,
    false,
    (array) => banded(array, below, above),
    (at, i, j) => (inBand(i, j) ? at(i, j) : 0),
  ),
  ...orders.map(
    (major): StructureRow => ({
      name: `packed band, ${major}-major`,
      make(maker, rows, columns) {
        // LAPACK leaves corners unused: those whose row would lie outside the matrix.
        const used: Stored = (d, j) => j + d - above >= 0 && j + d - above < rows;
        const { array, values } = maker.matrix(below + above + 1, columns, major, used);
        const element = (i: number, j: number): number =>
          inBand(i, j) ? values[(above + i - j) * columns + j]! : 0;
        return { source: bandedPacked(array, rows, below), dense: written(rows, columns, element) };
      },
    }),
  ),
];

/** About a third of the blocks, never all of a row. */
const isBlock: Stored = (down, across) => (down * 5 + across * 3) % 7 < 3 && (down + across) % 4 !== 1;

function bitmapOf(maker: Maker, down: number, across: number): DeviceArray {
  const words = Math.max(1, Math.ceil(across / 32));
  const bits = new Array<number>(down * words).fill(0);
  for (let row = 0; row < down; row++) {
    for (let column = 0; column < across; column++) {
      const at = row * words + Math.floor(column / 32);
      if (isBlock(row, column)) bits[at] = (bits[at]! | (1 << (column % 32))) >>> 0;
    }
  }
  return maker.array([down, words], (i) => bits[i]!, u32).array;
}

const blockMasks = (
  [
    [8, 8],
    [4, 16],
    [5, 3],
    [1, 1],
  ] as const
).flatMap((block) => {
  const [height, width] = block;
  const within: Stored = (i, j) => isBlock(Math.floor(i / height), Math.floor(j / width));
  return orders.map(
    (major): StructureRow => ({
      name: `blocks ${block.join(" x ")} of a bitmap, ${major}-major`,
      make(maker, rows, columns) {
        const { array, values } = maker.matrix(rows, columns, major, within);
        const bitmap = bitmapOf(maker, Math.ceil(rows / height), Math.ceil(columns / width));
        const element = (i: number, j: number): number => (within(i, j) ? values[i * columns + j]! : 0);
        return { source: blockMasked(array, bitmap, block), dense: written(rows, columns, element) };
      },
    }),
  );
});

const blockTables = (
  [
    [16, 16],
    [8, 4],
    [3, 5],
  ] as const
).map(
  ([height, width]): StructureRow => ({
    name: `blocks ${height} x ${width} by table`,
    make(maker, rows, columns) {
      const [down, across] = [Math.ceil(rows / height), Math.ceil(columns / width)];
      const offsets = [0];
      const places: number[] = [];
      for (let row = 0; row < down; row++) {
        for (let column = 0; column < across; column++) if (isBlock(row, column)) places.push(column);
        offsets.push(places.length);
      }
      const numbers = blockTable(offsets, places, across);
      const table = maker.array([down, across], (i) => numbers[i]!, i32).array;
      const { array, held } = maker.array([places.length, height, width], () => maker.number());
      const element = (i: number, j: number): number => {
        const block = numbers[Math.floor(i / height) * across + Math.floor(j / width)]!;
        return block < 0 ? 0 : held[(block * height + (i % height)) * width + (j % width)]!;
      };
      return {
        source: blockSparse(array, table),
        dense: written(down * height, across * width, element),
      };
    },
  }),
);

/** Small whole numbers, which every type of the table holds. */
const checkered = (i: Value<I32>, j: Value<I32>): AnyValue => i.mul(3).add(j.mul(5)).floorMod(7);
const scaledRows = (i: Value<I32>, j: Value<I32>, [v, two]: readonly [never, never]): AnyValue =>
  (v as { loadAt(at: Value<I32>): AnyValue }).loadAt(i).to(f32).mul(j.add(two).to(f32));

const generators: readonly StructureRow[] = [
  {
    name: "generated",
    make: (maker, rows, columns) => ({
      source: generated([rows, columns], maker.type, checkered),
      dense: written(rows, columns, (i, j) => (3 * i + 5 * j) % 7),
    }),
  },
  {
    name: "generated with a vector and a number",
    make(maker, rows, columns) {
      const factors = maker.array([rows], (i) => (i % 2 === 0 ? 0 : 1)).array;
      const two = { type: i32, value: 2 };
      const wide = columns % 4;
      const modest = (i: number, j: number): number => (i % 2 === 0 ? 0 : j + 2);
      const source = generated([rows, wide + 1], maker.type, scaledRows as never, factors, two);
      return { source, dense: written(rows, wide + 1, modest) };
    },
  },
];

const gathers = ([i32, u32] as readonly StorageType[]).flatMap((type) =>
  orders.map(
    (major): StructureRow => ({
      name: `gathered by ${type.name}, ${major}-major`,
      make(maker, rows, columns) {
        // Rows nobody asks for are poison.
        const named = (row: number): number => 2 * ((row * 5) % (rows + 1));
        const asked = new Set(Array.from({ length: rows }, (_, row) => named(row)));
        const { array, values } = maker.matrix(2 * rows + 2, columns, major, (i) => asked.has(i));
        const numbers = maker.array([rows], named, type).array;
        const element = (i: number, j: number): number => values[named(i) * columns + j]!;
        return { source: gathered(array, numbers), dense: written(rows, columns, element) };
      },
    }),
  ),
);

/** The same, transposed. */
export function transposed({ name, make }: StructureRow): StructureRow {
  return {
    name: `${name}, transposed`,
    make(maker, rows, columns) {
      const { source, dense } = make(maker, rows, columns);
      const [height, width] = source.shape;
      return { source: source.transposed, dense: written(width, height, (i, j) => dense[j * width + i]!) };
    },
  };
}

/** Every structure. */
export const structures: readonly StructureRow[] = [
  {
    name: "diagonal",
    make(maker, n) {
      const { array, held } = maker.array([n], () => maker.number());
      return { source: diagonal(array), dense: written(n, n, (i, j) => (i === j ? held[i]! : 0)) };
    },
  },
  {
    name: "diagonal of a matrix",
    make(maker, n) {
      const { array, values } = maker.matrix(n, n, "row", (i, j) => i === j);
      const source = diagonal(array.strided([n], [n + 1]));
      return { source, dense: written(n, n, (i, j) => (i === j ? values[i * n + i]! : 0)) };
    },
  },
  ...triangles,
  ...symmetrics,
  ...bands,
  ...blockMasks,
  ...blockTables,
  ...generators,
  ...gathers,
];
