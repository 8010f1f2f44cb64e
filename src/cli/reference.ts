/** @file The judge of the demonstration: the product in float64, and how far rounding may lead from it. */
import type { StorageType } from "../types/index.ts";

/** A dense row-major matrix of numbers on the host. */
export interface HostMatrix {
  readonly rows: number;
  readonly columns: number;
  readonly values: ArrayLike<number>;
}

/** How far a result is from the truth. */
export interface Deviation {
  /** Largest |D - reference|. */
  readonly largest: number;
  /** Largest |D - reference| in units of what rounding allows at that element; at most 1 for a correct result. */
  readonly worst: number;
}

/**
 * Compares D with A · B in float64. Allowed at each element: one rounding to D's type, and K + 1 roundings of partial
 * sums in f32 (toward zero, as some tensor cores do), |sum| at most Σ|a||b|. Higham, Accuracy and Stability of Numerical
 * Algorithms, section 3.5.
 */
export function deviation(a: HostMatrix, b: HostMatrix, d: ArrayLike<number>, type: StorageType): Deviation {
  const rounding = 2 ** -type.precision;
  const summing = (a.columns + 1) * 2 ** -23;
  let [largest, worst] = [0, 0];
  for (let row = 0; row < a.rows; row++) {
    for (let column = 0; column < b.columns; column++) {
      let [sum, size] = [0, 0];
      for (let k = 0; k < a.columns; k++) {
        const product = a.values[row * a.columns + k]! * b.values[k * b.columns + column]!;
        sum += product;
        size += Math.abs(product);
      }
      const error = Math.abs(d[row * b.columns + column]! - sum);
      const allowed = rounding * Math.abs(sum) + summing * size;
      largest = worse(largest, error);
      worst = worse(worst, error === 0 ? 0 : error / allowed);
    }
  }
  return { largest, worst };
}

/** The larger; NaN wins, so that it is noticed. */
function worse(a: number, b: number): number {
  return Number.isNaN(b) || b > a ? b : a;
}
