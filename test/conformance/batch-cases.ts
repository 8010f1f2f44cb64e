/**
 * @file How products of batches are judged: matrices with gaps between them in poisoned buffers, a float64 product of
 * each, and every element of D's buffer that belongs to no matrix still what it was.
 */
import type { Device, DeviceArray, StorageType } from "tilewright";
import { type GemmOptions, gemm } from "tilewright/gemm";
import { decode, encode } from "../../src/types/host.ts";
import { generator } from "../support/random.ts";
import { normal } from "./gemm-cases.ts";

/** One product of a batch. */
export interface BatchCase {
  readonly batch: readonly number[];
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly a: StorageType;
  readonly d?: StorageType;
  readonly layout?: "nn" | "nt" | "tn" | "tt";
  readonly columnMajorD?: boolean;
  /** Operands of which there is one matrix for all: without the batch's dimensions, or with a stride of 0. */
  readonly shared?: Readonly<Partial<Record<"a" | "b" | "c", "absent" | "repeated">>>;
  /** Lines of the matrices in turn, not one matrix after another. */
  readonly interleaved?: boolean;
  /** Elements between lines, and from one matrix to the next, beyond those that they hold. */
  readonly gaps?: readonly [line: number, matrix: number];
  readonly alpha?: number;
  readonly beta?: number;
  readonly options?: Omit<GemmOptions, "alpha" | "beta" | "c" | "d" | "type">;
  /** What transforms and epilogue make of elements, for the oracle. */
  readonly mapA?: (x: number, batch: number) => number;
  readonly mapD?: (x: number, row: number, column: number) => number;
}

interface Matrices {
  readonly array: DeviceArray;
  readonly whole: DeviceArray;
  value(batch: number, row: number, column: number): number;
  position(batch: number, row: number, column: number): number;
}

const start = 16;

/** Matrices of a type in a buffer of poison. */
function matricesOf(
  device: Device,
  type: StorageType,
  test: BatchCase,
  [rows, columns]: readonly [number, number],
  columnMajor: boolean,
  shared: "absent" | "repeated" | undefined,
  fill: () => number,
): Matrices {
  const { batch, interleaved = false, gaps = [0, 0] } = test;
  const count = shared === undefined ? batch.reduce((product, extent) => product * extent, 1) : 1;
  const [lines, length] = columnMajor ? [columns, rows] : [rows, columns];
  const line = length + gaps[0];
  const [leading, apart] = interleaved ? [line * Math.max(1, count), line] : [line, lines * line + gaps[1]];
  const position = (b: number, row: number, column: number): number =>
    start +
    (shared === undefined ? b * apart : 0) +
    (columnMajor ? column * leading + row : row * leading + column);
  const size = 2 * start + Math.max(1, lines) * leading + Math.max(1, count) * apart;
  const host = new Float64Array(size).fill(type.class === "float" ? Number.NaN : 101);
  for (let b = 0; b < count; b++)
    for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) host[position(b, i, j)] = fill();
  const raw = encode(type, host);
  const held = decode(type, raw as never);
  const whole = device.arrayFromBits(type, [size], raw as never);
  const outer = shared === "absent" ? [] : batch;
  const steps = outer.map((_, i) =>
    shared === "repeated" ? 0 : apart * outer.slice(i + 1).reduce((product, extent) => product * extent, 1),
  );
  const inner = columnMajor ? [1, leading] : [leading, 1];
  return {
    array: whole.strided([...outer, rows, columns], [...steps, ...inner], start),
    whole,
    value: (b, row, column) => Number(held[position(b, row, column)]),
    position,
  };
}

/** Runs one case. @throws Error that names the case and the first element that is wrong */
export async function checkBatch(device: Device, test: BatchCase, seed = 1): Promise<void> {
  const { batch, m, n, k, layout = "nn", alpha = 1, beta = 0, columnMajorD = false, shared = {} } = test;
  const random = generator(seed);
  const [type, dType] = [test.a, test.d ?? test.a];
  const fill = (): number => (type.class === "float" ? normal(random) : Math.floor(random() * 20) - 10);
  const poison = (): number => (dType.class === "float" ? Number.NaN : 103);
  const a = matricesOf(device, type, test, [m, k], layout[0] === "t", shared.a, fill);
  const b = matricesOf(device, type, test, [k, n], layout[1] === "t", shared.b, fill);
  const d = matricesOf(device, dType, test, [m, n], columnMajorD, undefined, poison);
  const c = beta === 0 ? undefined : matricesOf(device, dType, test, [m, n], columnMajorD, shared.c, fill);
  const count = batch.reduce((product, extent) => product * extent, 1);
  try {
    await gemm(a.array, b.array, {
      ...test.options,
      alpha,
      beta,
      d: d.array,
      ...(c === undefined ? {} : { c: c.array }),
    } as GemmOptions);
    const result = await d.whole.read();
    const epsilon =
      dType.name === "f16" || dType.name === "bf16" ? 2 ** -7 : dType.name === "f64" ? 1e-15 : 1e-6;
    const own = new Set<number>();
    const describe = (): string =>
      `${type.name} [${batch}] of ${m}x${n}x${k} ${layout} ${JSON.stringify({ ...test, options: undefined, a: undefined, d: undefined })}`;
    for (let t = 0; t < count; t++) {
      for (let i = 0; i < m; i++) {
        for (let j = 0; j < n; j++) {
          let [sum, magnitude] = [0, 0];
          for (let q = 0; q < k; q++) {
            const held = a.value(t, i, q);
            const product = (test.mapA?.(held, t) ?? held) * b.value(t, q, j);
            sum += product;
            magnitude += Math.abs(product);
          }
          const addend = c === undefined ? 0 : beta * c.value(t, i, j);
          const combined = alpha * sum + addend;
          const expected = test.mapD?.(combined, i, j) ?? combined;
          const at = d.position(t, i, j);
          own.add(at);
          const allowed =
            dType.class === "float"
              ? epsilon * (Math.abs(alpha) * magnitude + Math.abs(addend) + Math.abs(expected) + 1e-3)
              : 0;
          if (!(Math.abs(Number(result[at]) - expected) <= allowed)) {
            throw new Error(`${describe()}: D[${t}, ${i}, ${j}] is ${result[at]}, not ${expected}`);
          }
        }
      }
    }
    for (let at = 0; at < result.length; at++) {
      if (own.has(at)) continue;
      const intact = dType.class === "float" ? Number.isNaN(Number(result[at])) : Number(result[at]) === 101;
      if (!intact)
        throw new Error(`${describe()}: element ${at}, outside D, was overwritten with ${result[at]}`);
    }
  } finally {
    for (const one of [a, b, c, d]) one?.whole.dispose();
  }
}
