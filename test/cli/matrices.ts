/** @file Matrices for tests of the command: made, saved as `.npy`, loaded, multiplied in float64. */
import type { AxisOrder, NpyWriteOptions } from "../../src/npy/index.ts";
import { loadNpy, saveNpy } from "../../src/npy/node.ts";
import { decode, encode, integerRange, isFloat, type StorageType } from "../../src/types/index.ts";

/** A matrix as plain numbers, row by row. */
export interface Matrix {
  readonly rows: number;
  readonly columns: number;
  readonly values: readonly number[];
}

/** Numbers that the type holds exactly: normal random ones rounded to it, or small integers. */
export function randomMatrix(type: StorageType, rows: number, columns: number, seed: number): Matrix {
  const next = mulberry(seed);
  const least = integerRange(type)?.least === 0n ? 0 : -4;
  const values = Array.from({ length: rows * columns }, () => {
    if (!isFloat(type)) return least + Math.floor(next() * (5 - least));
    return Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
  });
  return { rows, columns, values: Array.from(decode(type, encode(type, values)), Number) };
}

/** Uniform numbers in [0, 1). */
function mulberry(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function transposed({ rows, columns, values }: Matrix): Matrix {
  const turned = Array.from(
    { length: values.length },
    (_, i) => values[(i % rows) * columns + Math.floor(i / rows)],
  );
  return { rows: columns, columns: rows, values: turned };
}

/** alpha · A · B + beta · C, and the sum of the absolute values of its terms. */
export function product(
  a: Matrix,
  b: Matrix,
  { alpha = 1, beta = 0, c }: { readonly alpha?: number; readonly beta?: number; readonly c?: Matrix } = {},
): { readonly values: readonly number[]; readonly sizes: readonly number[] } {
  const [values, sizes]: [number[], number[]] = [[], []];
  for (let row = 0; row < a.rows; row++) {
    for (let column = 0; column < b.columns; column++) {
      let [sum, size] = [0, 0];
      for (let k = 0; k < a.columns; k++) {
        const term = a.values[row * a.columns + k] * b.values[k * b.columns + column];
        sum += term;
        size += Math.abs(term);
      }
      const addend = beta * (c?.values[row * b.columns + column] ?? 0);
      values.push(alpha * sum + addend);
      sizes.push(Math.abs(alpha) * size + Math.abs(addend));
    }
  }
  return { values, sizes };
}

export interface SaveChoices extends NpyWriteOptions {
  readonly order?: AxisOrder;
}

export async function save(
  path: string,
  type: StorageType,
  matrix: Matrix,
  choices: SaveChoices = {},
): Promise<void> {
  const { order = "row-major", ...options } = choices;
  const stored = order === "row-major" ? matrix : transposed(matrix);
  const shape = [matrix.rows, matrix.columns];
  const values = isFloat(type) ? stored.values : stored.values.map(BigInt);
  await saveNpy(path, { type, shape, order, data: encode(type, values as readonly number[]) }, options);
}

export async function load(
  path: string,
  opaqueAs?: StorageType,
): Promise<Matrix & { readonly type: StorageType }> {
  const { type, shape, order, data } = await loadNpy(path, opaqueAs === undefined ? {} : { opaqueAs });
  if (order !== "row-major") throw new Error(`${path} is not row-major`);
  return { type, rows: shape[0], columns: shape[1], values: Array.from(decode(type, data), Number) };
}
