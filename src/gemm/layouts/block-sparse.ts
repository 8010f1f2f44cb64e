/**
 * @file Block-sparse matrices: a dense matrix with a bitmap of the blocks that count, and blocks with a table of where
 * they are.
 */
import { ArgumentError, ShapeError, TypeMismatchError } from "../../errors.ts";
import {
  byteSize,
  type GlobalArray,
  type I32,
  type Index,
  i32,
  index,
  type U32,
  u32,
  type Value,
  type VectorLanes,
} from "../../lang/index.ts";
import type { DeviceArray } from "../../runtime/array.ts";
import { denseSource } from "../dense-source.ts";
import { commonAlignment, type ExtraArgument, type ExtraValue } from "../extras.ts";
import type { MatrixSource } from "../source.ts";
import { denseLayout, type Elements, firstElement, interned, type Layout, runOf } from "./layout.ts";
import { loadWhere, masked } from "./masked.ts";
import { flippedOccupancy, type Occupancy, powerOfTwoIn, stepsWhere } from "./occupied.ts";

type BlockSize = readonly [rows: number, columns: number];

function checkBlock(block: readonly number[], who: string): void {
  if (block.length === 2 && block.every((extent) => Number.isInteger(extent) && extent >= 1)) return;
  throw new ArgumentError(`${who} wants blocks of [rows, columns], not [${block.join(", ")}]`);
}

function checkGrid(grid: DeviceArray, what: string, who: string): void {
  if (grid.rank !== 2 || !grid.isContiguous)
    throw new ShapeError(
      `${who} wants ${what} as a contiguous matrix, one row for each row of blocks, not ${grid.label}`,
    );
}

// A bitmap over a dense matrix -----------------------------------------------------------------------------------------

/** Extras: the bitmap, words in a row of it, rows and columns of blocks. */
type BitmapExtras = readonly [GlobalArray<U32>, Value<I32>, Value<I32>, Value<I32>];

function bitmapOccupancy(block: BlockSize): Occupancy {
  return {
    block,
    count(extras) {
      const [, , down, across] = extras as unknown as BitmapExtras;
      return [down, across];
    },
    occupied(down, across, extras) {
      const [bitmap, words] = extras as unknown as BitmapExtras;
      const word = bitmap.loadAt(down.mul(words).add(across.floorDiv(32)));
      return word.shiftRight(across.floorMod(32).to(u32)).and(1).to(i32);
    },
  };
}

function maskedLayout(dense: Layout, block: BlockSize, flipped: boolean): Layout {
  const name = `blocks ${block.join("x")} of a bitmap${flipped ? ", transposed," : ""} ${dense.name}`;
  return interned(name, () => {
    const stored = bitmapOccupancy(block);
    const occupancy = flipped ? flippedOccupancy(stored) : stored;
    const [rows, columns] = occupancy.block;
    const mask = {
      counts: (row: Value<I32>, column: Value<I32>, extras: readonly ExtraValue[]) =>
        occupancy.occupied(row.floorDiv(rows), column.floorDiv(columns), extras).ne(0),
      wholly: true,
      steps: stepsWhere(occupancy),
    };
    // A run lies in one block.
    const widest = powerOfTwoIn(dense.major === "row" ? columns : rows);
    return masked(name, { ...dense, facts: { movement: "registers", widest } }, mask);
  });
}

/**
 * The blocks of a dense matrix that a bitmap names; the others count as zero and are never read, and K steps of a tile
 * without blocks are skipped. `bitmap` is u32, a row of words for each row of blocks: block (r, c) counts if bit c mod 32 of
 * word [r, ⌊c / 32⌋] is set. Blocks at the edges may be cut. Blocks as large as the K step (or tile) skip best.
 * @throws ShapeError, TypeMismatchError, ArgumentError
 */
export function blockMasked(matrix: DeviceArray, bitmap: DeviceArray, block: BlockSize): MatrixSource {
  checkBlock(block, "blockMasked()");
  checkGrid(bitmap, "the bitmap", "blockMasked()");
  if (bitmap.type !== u32)
    throw new TypeMismatchError(`blockMasked() wants a bitmap of u32 words, not ${bitmap.label}`);
  const [rows, columns] = matrix.shape;
  const [down, across] = [Math.ceil(rows / block[0]), Math.ceil(columns / block[1])];
  const words = Math.ceil(across / 32);
  if (matrix.rank === 2 && (bitmap.shape[0] !== down || bitmap.shape[1] !== words)) {
    throw new ShapeError(
      `blockMasked(): ${matrix.label} in blocks of ${block.join(" x ")} has ${down} x ${across}; the bitmap must be [${down}, ${words}] words, not ${bitmap.label}`,
    );
  }
  const extras = [bitmap, ...[words, down, across].map((value) => ({ type: i32, value }))];
  return blockMaskedSource(matrix, block, extras, false);
}

function blockMaskedSource(
  matrix: DeviceArray,
  block: BlockSize,
  extras: readonly ExtraArgument[],
  flipped: boolean,
): MatrixSource {
  return denseSource(matrix, {
    name: "block-masked",
    layout: (dense) => maskedLayout(dense, block, flipped),
    extras,
    transposed: () => blockMaskedSource(matrix.transposed, block, extras, !flipped),
  });
}

// Blocks and a table ---------------------------------------------------------------------------------------------------

/** Extras: the table, its rows and columns, elements between blocks. */
type TableExtras = readonly [GlobalArray<I32>, Value<I32>, Value<I32>, Value<Index>];

function tableOccupancy(block: BlockSize): Occupancy {
  return {
    block,
    count(extras) {
      const [, down, across] = extras as unknown as TableExtras;
      return [down, across];
    },
    occupied(down, across, extras) {
      const [table, , columns] = extras as unknown as TableExtras;
      // The sign says whether there is a block.
      return table.loadAt(down.mul(columns).add(across)).shiftRight(31).add(1);
    },
  };
}

function tableLayout([rows, columns]: BlockSize, flipped: boolean): Layout {
  return interned(`blocks ${rows}x${columns} by table${flipped ? ", transposed" : ""}`, (name) => {
    const stored = tableOccupancy([rows, columns]);
    const occupancy = flipped ? flippedOccupancy(stored) : stored;
    return {
      ...denseLayout(flipped ? "column" : "row"),
      name,
      facts: { movement: "registers", widest: powerOfTwoIn(columns) },
      position: undefined,
      steps: stepsWhere(occupancy),
      counts: (row, column, extras) =>
        occupancy
          .occupied(row.floorDiv(occupancy.block[0]), column.floorDiv(occupancy.block[1]), extras)
          .ne(0),
      load(source, { leading, extras = [], zero = 0 }, tile) {
        const { row, column } = firstElement(tile);
        const [i, j] = flipped ? [column, row] : [row, column];
        const [table, , across, distance] = extras as unknown as TableExtras;
        const number = table.loadAt(i.floorDiv(rows).mul(across).add(j.floorDiv(columns)));
        const position = (): Value<Index> =>
          number
            .to(index)
            .mul(distance)
            .add(
              i
                .floorMod(rows)
                .to(index)
                .mul(leading as Value<Index>),
            )
            .add(j.floorMod(columns).to(index));
        const { count } = runOf(tile);
        const load = (): Elements =>
          count === 1 ? source.loadAt(position()) : source.loadVectorAt(count as VectorLanes, position());
        return loadWhere(source.type, tile, zero, () => number.ge(0), load, true);
      },
    };
  });
}

/**
 * The matrix made of `blocks` ([count, rows, columns], each block's rows contiguous) where `table`, an i32 matrix with an
 * entry for each place of a block, names them by number; places with a negative number are zero. Nothing is read there, and
 * K steps of a tile without blocks are skipped. A block may stand in several places. {@link blockTable} makes a table of the
 * arrays of the BSR format. Numbers are not checked on the device (the simulator finds those beyond the blocks).
 * @throws ShapeError, TypeMismatchError
 */
export function blockSparse(blocks: DeviceArray, table: DeviceArray): MatrixSource {
  const { shape, strides, type, rank, label } = blocks;
  if (rank !== 3 || (shape[2] > 1 && strides[2] !== 1)) {
    throw new ShapeError(
      `blockSparse() wants blocks of shape [count, rows, columns] with contiguous rows, not ${label}`,
    );
  }
  checkGrid(table, "the table", "blockSparse()");
  if (table.type !== i32)
    throw new TypeMismatchError(`blockSparse() wants a table of i32 numbers, not ${table.label}`);
  const [, rows, columns] = shape;
  checkBlock([rows, columns], "blockSparse()");
  return blockSparseSource(blocks, table, [rows, columns], type, false);
}

function blockSparseSource(
  blocks: DeviceArray,
  table: DeviceArray,
  block: BlockSize,
  type: DeviceArray["type"],
  flipped: boolean,
): MatrixSource {
  const [down, across] = table.shape;
  const [distance, leading] = blocks.strides;
  const shape = [down * block[0], across * block[1]] as const;
  const size = byteSize(type);
  return {
    label: `block-sparse ${blocks.label}`,
    device: blocks.device,
    type,
    shape: flipped ? [shape[1], shape[0]] : shape,
    layout: tableLayout(block, flipped),
    array: blocks,
    leading,
    alignment: Math.max(
      size,
      commonAlignment([blocks.offset, distance, leading].map((count) => count * size)),
    ),
    extras: [
      table,
      { type: i32, value: down },
      { type: i32, value: across },
      { type: index, value: distance },
    ],
    get transposed() {
      return blockSparseSource(blocks, table, block, type, !flipped);
    },
  };
}

/**
 * The table of {@link blockSparse} for a matrix in BSR form: `offsets` has an entry more than there are rows of blocks,
 * `columns` the block column of each block, in order of rows. Row-major numbers, -1 where there is no block.
 * @throws ArgumentError for arrays that contradict each other
 */
export function blockTable(
  offsets: ArrayLike<number>,
  columns: ArrayLike<number>,
  across: number,
): Int32Array {
  const down = offsets.length - 1;
  const table = new Int32Array(Math.max(down, 0) * across).fill(-1);
  for (let row = 0; row < down; row++) {
    const [from, to] = [offsets[row], offsets[row + 1]];
    if (!(from >= 0 && from <= to && to <= columns.length))
      throw new ArgumentError(`blockTable(): row ${row} has blocks ${from} to ${to} of ${columns.length}`);
    for (let block = from; block < to; block++) {
      const column = columns[block];
      if (!Number.isInteger(column) || column < 0 || column >= across)
        throw new ArgumentError(`blockTable(): block ${block} is in column ${column} of ${across}`);
      if (table[row * across + column] >= 0)
        throw new ArgumentError(`blockTable(): row ${row} has two blocks in column ${column}`);
      table[row * across + column] = block;
    }
  }
  return table;
}
