/**
 * @file How gated products are judged: B made of two matrices, D inside a larger array, against float64.
 */
import { type Device, type DeviceArray, f16, f32, f64, type StorageType } from "tilewright";
import { type GemmOptions, gemm, interleaveColumns, silu } from "tilewright/gemm";
import { expect } from "vitest";
import { normals } from "../support/random.ts";

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));
const swish = (x: number): number => x * sigmoid(x);

/** One gated product. */
export interface GateCase {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly type?: StorageType;
  readonly d?: StorageType;
  readonly batch?: number;
  /** A column-major, B transposed, D column-major. */
  readonly a?: "t";
  readonly b?: "t";
  readonly columnMajorD?: boolean;
  /** Elements of D's lines beyond D; 1 unless given. */
  readonly padding?: number;
  readonly alpha?: number;
  readonly beta?: number;
  readonly options?: GemmOptions;
}

/** The values of an array. */
export async function numbers(array: DeviceArray): Promise<readonly number[]> {
  return Array.from(await array.read(), Number);
}

/** Normal random numbers; "t" is a transposed view. */
export function randomMatrix(
  device: Device,
  type: StorageType,
  rows: number,
  columns: number,
  seed: number,
  order?: "t",
): DeviceArray {
  const values = normals(rows * columns, seed);
  return order === "t"
    ? device.array(type, [columns, rows], values).transposed
    : device.array(type, [rows, columns], values);
}

/** Runs a case; gives what was expected of D after it was compared. */
export async function checkGate(device: Device, test: GateCase): Promise<readonly number[]> {
  const {
    m,
    n,
    k,
    type = f32,
    d: result = type,
    batch,
    alpha = 1,
    beta = 0,
    options = {},
    padding = 1,
  } = test;
  const count = batch ?? 1;
  const a =
    batch === undefined
      ? randomMatrix(device, type, m, k, 1, test.a)
      : device.array(type, [count, m, k], normals(count * m * k, 1));
  const [gate, up] = [
    randomMatrix(device, type, k, n, 2, test.b),
    randomMatrix(device, type, k, n, 3, test.b),
  ];
  const b = await interleaveColumns(gate, up);
  expect(b.shape).toEqual([k, 32 * Math.ceil(n / 16)]);
  const c = device.array(result, [m, n], normals(m * n, 4));
  // Around D lies what must stay.
  const lines = test.columnMajorD === true ? [n, m] : [m, n];
  const whole = device.array(
    result,
    [count, lines[0]! + 1, lines[1]! + padding],
    Array(count * (lines[0]! + 1) * (lines[1]! + padding)).fill(77),
  );
  const inner = whole.slice([], [0, lines[0]], [0, lines[1]]);
  const oriented =
    test.columnMajorD === true
      ? inner.strided([count, m, n], [inner.strides[0], inner.strides[2], inner.strides[1]])
      : inner;
  const d = batch === undefined ? oriented.strided([m, n], oriented.strides.slice(1)) : oriented;
  await gemm(a, b, { ...options, gate: silu, alpha, d, ...(beta === 0 ? {} : { c, beta }) });
  const [left, first, second] = await Promise.all([a, gate, up].map(numbers));
  const added = await numbers(c);
  const got = await numbers(d);
  const all = await numbers(whole);
  expect(all.filter((x) => x === 77).length).toBeGreaterThanOrEqual(all.length - count * m * n);
  const epsilon = result === f16 ? 2e-3 : type === f64 ? 1e-12 : 1e-5;
  const expected: number[] = [];
  for (let t = 0; t < count; t++) {
    for (let i = 0; i < m; i++) {
      for (let j = 0; j < n; j++) {
        let [p, q, scale] = [0, 0, 1];
        for (let l = 0; l < k; l++) {
          const x = left![(t * m + i) * k + l]!;
          p += x * first![l * n + j]!;
          q += x * second![l * n + j]!;
          scale += Math.abs(x * first![l * n + j]!) + Math.abs(x * second![l * n + j]!);
        }
        const value = swish(alpha * p) * (alpha * q) + beta * added[i * n + j]!;
        expected.push(value);
        if (options.epilogue !== undefined) continue;
        const at = (t * m + i) * n + j;
        const allowed =
          epsilon * scale * (1 + Math.abs(alpha * p) + Math.abs(alpha * q)) * Math.max(1, alpha * alpha);
        if (!(Math.abs(got[at]! - value) <= allowed))
          throw new Error(
            `D[${t}, ${i}, ${j}] of ${JSON.stringify({ ...test, options: undefined, type: type.name })} is ${got[at]}, not ${value}`,
          );
      }
    }
  }
  for (const array of [a, b, gate, up, c, whole]) array.dispose();
  return options.epilogue === undefined ? expected : got;
}
