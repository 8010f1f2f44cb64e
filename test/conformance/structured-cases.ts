/**
 * @file How products with structured matrices are judged: the structure written out in float64, everything that must not
 * be read poisoned, D poisoned and inside a larger buffer.
 */
import { type Device, type DeviceArray, i32, type StorageType } from "tilewright";
import { type GemmOptions, gemm, type MatrixSource } from "tilewright/gemm";
import { decode, encode } from "../../src/types/host.ts";
import { generator } from "../support/random.ts";
import { normal } from "./gemm-cases.ts";

/** A structured matrix and what it stands for. */
export interface Written {
  readonly source: MatrixSource;
  /** Row-major. */
  readonly dense: Float64Array;
}

/** How a kind of structured matrix is made. */
export interface StructureRow {
  readonly name: string;
  /** A matrix of about `rows` x `columns`: square kinds take `rows` for both. */
  make(maker: Maker, rows: number, columns: number): Written;
}

/** One product. */
export interface StructuredCase {
  readonly structure: StructureRow;
  readonly side: "a" | "b";
  readonly type: StorageType;
  /** Extents of the structured matrix as asked for, and the one that the other matrix adds. */
  readonly rows: number;
  readonly columns: number;
  readonly other: number;
  readonly otherMajor: "row" | "column";
  readonly options?: GemmOptions;
}

/** Makes arrays and remembers them. */
export class Maker {
  readonly arrays: DeviceArray[] = [];
  readonly random: () => number;

  constructor(
    readonly device: Device,
    readonly type: StorageType,
    seed: number,
  ) {
    this.random = generator(seed);
  }

  number(): number {
    if (this.type.class === "float") return normal(this.random);
    return Math.floor(this.random() * 19) - (this.type.class === "signed" ? 9 : 0);
  }

  /** An array of values and poison (undefined), and what the type made of the values. */
  array(
    shape: readonly number[],
    value: (position: number) => number | undefined,
    type: StorageType = this.type,
  ): { readonly array: DeviceArray; readonly held: Float64Array } {
    const size = shape.reduce((product, extent) => product * extent, 1);
    const poison = type.class === "float" ? Number.NaN : 113;
    const host = Array.from({ length: size }, (_, i) => value(i) ?? poison);
    const wide = type.bits === 64 && type.class !== "float";
    const raw = encode(type, wide ? host.map(BigInt) : host);
    const array = this.device.arrayFromBits(type, shape, raw as never);
    this.arrays.push(array);
    return { array, held: Float64Array.from(decode(type, raw as never) as ArrayLike<number>, Number) };
  }

  /** A matrix in either order; what `stored` refuses is poison. Values are row-major. */
  matrix(
    rows: number,
    columns: number,
    major: "row" | "column",
    stored: (row: number, column: number) => boolean = () => true,
    padding = 0,
  ): { readonly array: DeviceArray; readonly values: Float64Array } {
    const [lines, length] = major === "row" ? [rows, columns] : [columns, rows];
    const leading = length + padding;
    const { array, held } = this.array([lines, leading], (i) => {
      const [line, at] = [Math.floor(i / leading), i % leading];
      const [row, column] = major === "row" ? [line, at] : [at, line];
      return at < length && stored(row, column) ? this.number() : undefined;
    });
    const values = Float64Array.from({ length: rows * columns }, (_, i) => {
      const [row, column] = [Math.floor(i / columns), i % columns];
      return held[major === "row" ? row * leading + column : column * leading + row]!;
    });
    const view = array.slice([], [0, length]);
    return { array: major === "row" ? view : view.transposed, values };
  }
}

const unit: Readonly<Record<string, number>> = { f16: 2 ** -11, bf16: 2 ** -8, f32: 2 ** -24, f64: 2 ** -53 };

/** Runs one case. @throws Error that names it and the first element that is wrong */
export async function checkStructured(device: Device, test: StructuredCase, seed = 1): Promise<void> {
  const { structure, side, type, rows, columns, other, otherMajor, options } = test;
  const maker = new Maker(device, type, seed);
  const { source, dense } = structure.make(maker, rows, columns);
  const [height, width] = source.shape;
  const [m, n, k] = side === "a" ? [height, other, width] : [other, width, height];
  const full = side === "a" ? maker.matrix(k, n, otherMajor) : maker.matrix(m, k, otherMajor);
  const output = type.class !== "float" && type.bits < 32 ? i32 : type;
  const guard = 5;
  const { array: whole } = maker.array([m + 2, n + guard], () => undefined, output);
  const d = whole.slice([1, m + 1], [guard - 2, n + guard - 2]);
  try {
    const [a, b] = side === "a" ? [source, full.array] : [full.array, source];
    await gemm(a, b, { ...options, d } as GemmOptions);
    const result = Float64Array.from((await whole.read()) as ArrayLike<number>, Number);
    const [left, right] = side === "a" ? [dense, full.values] : [full.values, dense];
    const name = `${structure.name} as ${side}, ${type.name}, ${m}x${n}x${k}, other ${otherMajor}`;
    compare(name, result, n + guard, guard - 2, { m, n, k, left, right, output });
  } finally {
    for (const array of maker.arrays) array.dispose();
  }
}

interface Product {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly left: Float64Array;
  readonly right: Float64Array;
  readonly output: StorageType;
}

function compare(
  name: string,
  result: Float64Array,
  leading: number,
  offset: number,
  { m, n, k, left, right, output }: Product,
): void {
  const integer = output.class !== "float";
  const epsilon = unit[output.name === "f64" ? "f64" : "f32"]!;
  for (let position = 0; position < result.length; position++) {
    const [row, column] = [Math.floor(position / leading) - 1, (position % leading) - offset];
    const got = result[position]!;
    if (row < 0 || row >= m || column < 0 || column >= n) {
      if (integer ? got !== 113 : !Number.isNaN(got))
        throw new Error(`${name}: element ${position} outside D became ${got}`);
      continue;
    }
    let sum = 0;
    let magnitude = 0;
    for (let inner = 0; inner < k; inner++) {
      const product = left[row * k + inner]! * right[inner * n + column]!;
      sum += product;
      magnitude += Math.abs(product);
    }
    // Halves below 2^-14 have an absolute step of 2^-24.
    const rounding = (unit[output.name] ?? 0) * Math.abs(sum) + (output.name === "f16" ? 2 ** -25 : 0);
    const allowed = integer ? 0 : 2 * ((4 * Math.sqrt(k) + 8) * epsilon * magnitude + rounding);
    if (!(Math.abs(got - sum) <= allowed))
      throw new Error(`${name}: D[${row}, ${column}] is ${got}, not ${sum} (allowed ${allowed})`);
  }
}
