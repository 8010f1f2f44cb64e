/**
 * @file How products over algebras are judged: the table written out in float64, everything around the matrices poisoned.
 */
import { type Device, type DeviceArray, i32, type StorageType } from "tilewright";
import { type Algebra, algebraMatrix, blas } from "tilewright/gemm";
import { decode, encode } from "../../src/types/host.ts";
import { generator } from "../support/random.ts";
import { normal } from "./gemm-cases.ts";

type Storage = "interleaved" | "split";

/** One product C = alpha · op(A) · op(B) + beta · C. */
export interface AlgebraCase {
  readonly algebra: Algebra;
  readonly type: StorageType;
  readonly transA: blas.Operation;
  readonly transB: blas.Operation;
  readonly size: readonly [m: number, n: number, k: number];
  readonly storage?: Storage;
  readonly storageC?: Storage;
  readonly padding?: number;
  readonly factors?: "plain" | "numbers" | "elements";
  readonly columnMajorC?: boolean;
  readonly options?: blas.BlasOptions;
}

/** The product of two elements. */
export function productOf(
  { table, dimension }: Algebra,
  x: readonly number[],
  y: readonly number[],
): number[] {
  return Array.from({ length: dimension }, (_, k) =>
    table.reduce((sum, row, i) => row.reduce((partial, c, j) => partial + c[k]! * x[i]! * y[j]!, sum), 0),
  );
}

export function conjugateOf({ conjugation }: Algebra, x: readonly number[]): number[] {
  return x.map((value, i) => value * conjugation![i]!);
}

const unit: Readonly<Record<string, number>> = { f16: 2 ** -11, bf16: 2 ** -8, f32: 2 ** -24, f64: 2 ** -53 };

interface Stored {
  readonly array: DeviceArray;
  readonly whole: DeviceArray;
  element(row: number, column: number): number[];
  /** Position in the whole buffer. */
  at(row: number, column: number, component: number): number;
}

/** Runs one case. @throws Error that names the first number that is wrong */
export async function checkAlgebra(device: Device, test: AlgebraCase, seed = 1): Promise<void> {
  const { algebra, type, transA, transB, size, storage = "interleaved", storageC = storage, options } = test;
  const { padding = 0, factors = "plain", columnMajorC = false } = test;
  const [m, n, k] = size;
  const random = generator(seed);
  const float = type.class === "float";
  const poison = float ? Number.NaN : 113;
  const number = (): number => (float ? normal(random) : Math.floor(random() * 19) - 9);
  const guard = 4;
  const store = (
    rows: number,
    columns: number,
    how: Storage,
    columnMajor: boolean,
    held: StorageType,
  ): Stored => {
    const c = algebra.dimension;
    const [lines, length] = columnMajor ? [columns, rows] : [rows, columns];
    const leading = (how === "split" ? length : length * c) + padding * (how === "split" ? 1 : c);
    const plane = how === "split" ? lines * leading + padding : 1;
    const total = 2 * guard + (how === "split" ? plane * c : lines * leading);
    const [along, down] = [how === "split" ? 1 : c, leading];
    const at = (row: number, column: number, component: number): number =>
      guard + (columnMajor ? column * down + row * along : row * down + column * along) + component * plane;
    const host = new Array<number>(total).fill(poison);
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++)
        for (let p = 0; p < c; p++) host[at(row, column, p)] = number();
    const raw = encode(held, host);
    const values = Array.from(decode(held, raw as never) as ArrayLike<number>);
    const whole = device.arrayFromBits(held, [total], raw as never);
    const array = whole.strided(
      [rows, columns, c],
      columnMajor ? [along, down, plane] : [down, along, plane],
      guard,
    );
    const element = (row: number, column: number): number[] =>
      Array.from({ length: c }, (_, p) => values[at(row, column, p)]!);
    return { array, whole, element, at };
  };
  const typeC = !float && type.bits < 32 ? i32 : type;
  const a = transA === "N" ? store(m, k, storage, false, type) : store(k, m, storage, false, type);
  const b = transB === "N" ? store(k, n, storage, false, type) : store(n, k, storage, false, type);
  const c = store(m, n, storageC, columnMajorC, typeC);
  const element = (scale: number): number[] =>
    Array.from({ length: algebra.dimension }, (_, p) => (float ? scale * (p - 0.75) : p + 1));
  const [alpha, beta] = (
    { plain: [1, 0], numbers: [float ? -1.5 : 3, 2], elements: [element(1), element(-0.5)] } as const
  )[factors];
  const operated = (matrix: Stored, operation: string, row: number, column: number): number[] => {
    const held = operation === "N" ? matrix.element(row, column) : matrix.element(column, row);
    return operation === "C" ? conjugateOf(algebra, held) : held;
  };
  const times = (factor: number | readonly number[], x: number[]): number[] =>
    typeof factor === "number" ? x.map((value) => factor * value) : productOf(algebra, factor, x);
  const sizeOf = (x: readonly number[]): number => x.reduce((sum, value) => sum + Math.abs(value), 0);
  const magnitude = (factor: number | readonly number[]): number =>
    typeof factor === "number" ? Math.abs(factor) : sizeOf(factor);
  try {
    const [left, right, result] = [a, b, c].map(({ array }) => algebraMatrix(algebra, array));
    await blas.gemmEx(transA, transB, alpha, left!, right!, beta, result!, options);
    const got = Array.from((await c.whole.read()) as ArrayLike<number>);
    const visited = new Set<number>();
    for (let i = 0; i < m; i++) {
      for (let j = 0; j < n; j++) {
        const sum: number[] = new Array(algebra.dimension).fill(0);
        let sizes = 0;
        for (let l = 0; l < k; l++) {
          const [x, y] = [operated(a, transA, i, l), operated(b, transB, l, j)];
          productOf(algebra, x, y).forEach((value, p) => {
            sum[p]! += value;
          });
          sizes += sizeOf(x) * sizeOf(y);
        }
        const old = beta === 0 ? sum.map(() => 0) : times(beta, c.element(i, j));
        const expected = times(alpha, sum).map((value, p) => value + old[p]!);
        sizes = sizes * magnitude(alpha) + (beta === 0 ? 0 : sizeOf(c.element(i, j)) * magnitude(beta));
        // Sums of components (three products) are rounded to the operands' type; tf32 has f16's unit.
        const narrow = options?.compute !== undefined ? unit.f16! : 0;
        const summed = algebra.algorithm === undefined ? narrow : Math.max(narrow, unit[type.name] ?? 0);
        const sums = unit[type.name === "f64" ? "f64" : "f32"]! * (4 * Math.sqrt(k) + 16);
        expected.forEach((value, p) => {
          const position = c.at(i, j, p);
          visited.add(position);
          const rounding = (unit[typeC.name] ?? 0) * Math.abs(value) + (type.name === "f16" ? 2 ** -25 : 0);
          const allowed = float ? (sums + 4 * summed) * sizes + 2 * rounding : 0;
          if (!(Math.abs(got[position]! - value) <= allowed)) {
            throw new Error(
              `${algebra.name} ${JSON.stringify({ ...test, algebra: undefined, type: type.name, options: undefined })}: C[${i}, ${j}, ${p}] is ${got[position]}, not ${value} (allowed ${allowed})`,
            );
          }
        });
      }
    }
    got.forEach((value, position) => {
      if (!visited.has(position) && (float ? !Number.isNaN(value) : value !== 113))
        throw new Error(
          `${algebra.name} ${type.name} ${storageC}: element ${position} outside C became ${value}`,
        );
    });
  } finally {
    for (const { whole } of [a, b, c]) whole.dispose();
  }
}
