/**
 * @file How a GEMM is judged: random normal matrices inside larger poisoned buffers, a float64 product, a tolerance from
 * Σ|a||b|, and every element around D still what it was.
 */
import { byteSize, type Device, type DeviceArray, type ElementType, type StorageType } from "tilewright";
import { type GemmOptions, gemm } from "tilewright/gemm";
import { decode, encode } from "../../src/types/host.ts";
import { generator } from "../support/random.ts";

export { generator } from "../support/random.ts";

/** One multiplication. */
export interface GemmCase {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly a: StorageType;
  readonly b?: StorageType;
  readonly d?: StorageType;
  /** Majorness of A and B as BLAS writes it: n is row-major, t a transposed view. */
  readonly layout?: "nn" | "nt" | "tn" | "tt";
  readonly alpha?: number;
  readonly beta?: number;
  /** Extra elements of each leading dimension. */
  readonly padding?: number;
  /** Leading dimensions are multiples of it before the padding comes, so that all sizes have one alignment; 1 unless given. */
  readonly lineMultiple?: number;
  /** Values of A, B and C; random ones unless given. */
  readonly value?: () => number;
  /** Relative error of a product of two elements, of operators that do not make them exactly. */
  readonly inexact?: number;
  /** D in column-major order. */
  readonly columnMajorD?: boolean;
  readonly options?: Omit<GemmOptions, "alpha" | "beta" | "c" | "d" | "type">;
  /** What transforms make of A's, B's, C's and D's elements, for the oracle. */
  readonly mapA?: (x: number, row: number, column: number) => number;
  readonly mapB?: (x: number, row: number, column: number) => number;
  readonly mapC?: (x: number, row: number, column: number) => number;
  readonly mapD?: (x: number, row: number, column: number) => number;
}

/** A standard normal number (Box and Muller). */
export function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

function sample(type: StorageType, random: () => number): number {
  if (type.class === "float") return normal(random);
  const signed = type.class === "signed";
  const magnitude = type.bits === 8 ? 127 : 100;
  return Math.floor(random() * magnitude) * (signed && random() < 0.5 ? -1 : 1);
}

/** A matrix in a larger buffer: rows x columns values, and the array that shows them. */
interface Embedded {
  readonly values: Float64Array;
  readonly array: DeviceArray;
  readonly whole: DeviceArray;
  readonly at: (row: number, column: number) => number;
  /** Whether a position of the buffer belongs to the matrix. */
  readonly holds: (position: number) => boolean;
}

const guard = 3;

function embed(
  device: Device,
  type: StorageType,
  rows: number,
  columns: number,
  columnMajor: boolean,
  { padding = 0, lineMultiple = 1 }: Pick<GemmCase, "padding" | "lineMultiple">,
  fill: (row: number, column: number) => number,
): Embedded {
  const [lines, length] = columnMajor ? [columns, rows] : [rows, columns];
  const leading = Math.ceil(length / lineMultiple) * lineMultiple + padding;
  // Around the matrix lies poison: NaN, or a number that no case makes. The guard keeps the start aligned like the rest.
  const before = padding % 2 === 0 ? (16 / byteSize(type)) * guard : guard;
  const poison = type.class === "float" ? Number.NaN : 101;
  const host = new Float64Array(before + Math.max(lines, 1) * leading + guard).fill(poison);
  const at = (row: number, column: number): number =>
    before + (columnMajor ? column * leading + row : row * leading + column);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) host[at(row, column)] = fill(row, column);
  }
  const wide = type.bits === 64 && type.class !== "float";
  const raw = encode(type, wide ? Array.from(host, (x) => BigInt(x)) : host);
  const whole = device.arrayFromBits(type, [host.length], raw as never);
  const held = decode(type, raw as never);
  const values = new Float64Array(rows * columns);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++)
      values[row * columns + column] = Number(held[at(row, column)]);
  }
  const strides = columnMajor ? [1, leading] : [leading, 1];
  const holds = (position: number): boolean => {
    const within = position - before;
    return within >= 0 && within < lines * leading && within % leading < length;
  };
  return { values, array: whole.strided([rows, columns], strides, before), whole, at, holds };
}

const unit: Readonly<Record<string, number>> = {
  f16: 2 ** -11,
  bf16: 2 ** -8,
  f32: 2 ** -24,
  f64: 2 ** -53,
  e4m3: 2 ** -4,
  e5m2: 2 ** -3,
  tf32: 2 ** -11,
};

/** Runs one case. @throws Error that names the case and the first element that is wrong */
export async function checkGemm(device: Device, test: GemmCase, seed = 1): Promise<void> {
  const { m, n, k, layout = "nn", alpha = 1, beta = 0, columnMajorD = false } = test;
  const b = test.b ?? test.a;
  const random = generator(seed);
  const fill = (type: StorageType): (() => number) =>
    test.value ?? sampler(type, random, m * n + m * k + n * k);
  const left = embed(device, test.a, m, k, layout[0] === "t", test, fill(test.a));
  const right = embed(device, b, k, n, layout[1] === "t", test, fill(b));
  const dType = test.d ?? test.a;
  const poison = dType.class === "float" ? Number.NaN : 103;
  const target = embed(device, dType, m, n, columnMajorD, test, () => poison);
  const addend = beta === 0 ? undefined : embed(device, dType, m, n, columnMajorD, test, fill(dType));
  try {
    await gemm(left.array, right.array, {
      ...test.options,
      alpha,
      beta,
      d: target.array,
      ...(addend === undefined ? {} : { c: addend.array }),
    } as GemmOptions);
    const result = await target.whole.read();
    const lost = narrowSums(test) && device.kind === "cuda" ? 2 ** -13 : 0;
    compare(test, result as ArrayLike<number | bigint>, left, right, target, addend, dType, lost);
  } finally {
    for (const embedded of [left, right, target, addend]) embedded?.whole.dispose();
  }
}

/** Whether hardware may sum what one K step has with some 14 bits: 8-bit floats as they are. */
function narrowSums({ a, b = a }: GemmCase): boolean {
  return [a, b].every((type) => type.class === "float" && type.bits === 8);
}

/** Random numbers of a type. Large matrices take them from a list of a prime length, over and over. */
function sampler(type: StorageType, random: () => number, elements: number): () => number {
  const primeLength = 100_003;
  if (elements < primeLength) return () => sample(type, random);
  const list = Float64Array.from({ length: primeLength }, () => sample(type, random));
  let next = 0;
  return () => {
    next = next + 1 === primeLength ? 0 : next + 1;
    return list[next];
  };
}

/** Products beyond which a few rows are judged and not all: the oracle makes some hundred million products a second. */
const mostProducts = 2 ** 25;

/** All rows, or where that would take too long the first, the last, those around tile edges and a few at random. */
function judgedRows({ m, n, k }: GemmCase): readonly number[] {
  if (m * n * k <= mostProducts) return Array.from({ length: m }, (_, row) => row);
  const random = generator(m + 31 * n + 17 * k);
  const anywhere = Array.from({ length: 3 }, () => Math.floor(random() * m));
  const rows = [0, 63, 64, Math.floor(m / 128) * 128, m - 1, ...anywhere];
  return [...new Set(rows.filter((row) => row < m))];
}

function compare(
  test: GemmCase,
  result: ArrayLike<number | bigint>,
  left: Embedded,
  right: Embedded,
  target: Embedded,
  addend: Embedded | undefined,
  dType: StorageType,
  lost: number,
): void {
  const { n, k, alpha = 1, beta = 0, mapA, mapB, mapC, mapD } = test;
  const a = mapA === undefined ? left.values : left.values.map((x, i) => mapA(x, Math.floor(i / k), i % k));
  const b = mapB === undefined ? right.values : right.values.map((x, i) => mapB(x, Math.floor(i / n), i % n));
  const accumulator: ElementType | undefined = test.options?.accumulate;
  const integer = dType.class !== "float";
  const epsilon = unit[accumulator?.name ?? (dType.name === "f64" ? "f64" : "f32")];
  const mapped = mapA !== undefined || mapB !== undefined;
  const rounded = test.options?.compute?.name === "tf32" ? unit.tf32 : mapped ? (unit[test.a.name] ?? 0) : 0;
  const inputs = test.inexact ?? 2 * rounded;
  const sums = new Float64Array(n);
  const magnitudes = new Float64Array(n);
  for (const row of judgedRows(test)) {
    sums.fill(0);
    magnitudes.fill(0);
    for (let inner = 0; inner < k; inner++) {
      const factor = a[row * k + inner];
      for (let column = 0; column < n; column++) {
        const product = factor * b[inner * n + column];
        sums[column] += product;
        magnitudes[column] += Math.abs(product);
      }
    }
    for (let column = 0; column < n; column++) {
      const loaded = addend === undefined ? 0 : addend.values[row * n + column];
      const c = mapC === undefined ? loaded : mapC(loaded, row, column);
      const combined = alpha * sums[column] + beta * c;
      const expected = mapD === undefined ? combined : mapD(combined, row, column);
      const got = Number(result[target.at(row, column)]);
      const scale = Math.abs(alpha) * magnitudes[column] + Math.abs(beta * c);
      const steps = 4 * Math.sqrt(k) + 8;
      const allowed = integer
        ? 0
        : (steps * epsilon + inputs + lost) * scale * 2 +
          (unit[dType.name] ?? 0) * Math.abs(expected) * 2 +
          1e-7 * (dType.name === "f16" ? 1 : 0);
      if (!(Math.abs(got - expected) <= allowed)) {
        throw new Error(
          `${describeCase(test)}: D[${row}, ${column}] is ${got}, not ${expected} (allowed ${allowed})`,
        );
      }
    }
  }
  for (let position = 0; position < result.length; position++) {
    if (target.holds(position)) continue;
    const value = Number(result[position]);
    const intact = integer ? value === 101 : Number.isNaN(value);
    if (!intact)
      throw new Error(`${describeCase(test)}: element ${position}, outside D, was overwritten with ${value}`);
  }
}

/** A case in one line. */
export function describeCase(test: GemmCase): string {
  const {
    m,
    n,
    k,
    a,
    b = a,
    d = a,
    layout = "nn",
    alpha = 1,
    beta = 0,
    padding = 0,
    columnMajorD,
    options,
  } = test;
  const operator = options?.operator?.name ?? "default";
  return `${a.name}·${b.name}→${d.name} ${m}x${n}x${k} ${layout}${columnMajorD ? " D column-major" : ""} ld+${padding} alpha ${alpha} beta ${beta} ${operator}${options?.accumulate ? ` sum ${options.accumulate.name}` : ""}${options?.compute ? ` ${options.compute.name}` : ""}`;
}

/** Rows in which every pair of values of every two columns occurs: a greedy pairwise cover, the same for a seed. */
export function pairwise<T extends Record<string, readonly unknown[]>>(
  columns: T,
  seed = 7,
): { [K in keyof T]: T[K][number] }[] {
  const names = Object.keys(columns) as (keyof T & string)[];
  const random = generator(seed);
  const left = new Set<string>();
  const pair = (i: number, x: number, j: number, y: number): string => `${i}:${x}|${j}:${y}`;
  names.forEach((_, i) => {
    for (let j = i + 1; j < names.length; j++) {
      for (let x = 0; x < columns[names[i]].length; x++) {
        for (let y = 0; y < columns[names[j]].length; y++) left.add(pair(i, x, j, y));
      }
    }
  });
  const rows: number[][] = [];
  while (left.size > 0) {
    let best: number[] = [];
    let most = -1;
    const [first] = left;
    const [[i, x], [j, y]] = first.split("|").map((part) => part.split(":").map(Number));
    for (let attempt = 0; attempt < 30; attempt++) {
      const row = names.map((name) => Math.floor(random() * columns[name].length));
      row[i] = x;
      row[j] = y;
      const covered = pairsOf(row).filter((key) => left.has(key)).length;
      if (covered > most) [best, most] = [row, covered];
    }
    for (const key of pairsOf(best)) left.delete(key);
    rows.push(best);
  }
  return rows.map((row) => Object.fromEntries(row.map((x, i) => [names[i], columns[names[i]][x]]))) as never;

  function pairsOf(row: readonly number[]): string[] {
    return row.flatMap((x, i) => row.slice(i + 1).map((y, o) => pair(i, x, i + 1 + o, y)));
  }
}
