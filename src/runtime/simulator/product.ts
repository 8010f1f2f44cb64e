/**
 * @file The arithmetic of matrix instructions.
 *
 * Float products are exact in a double; they are summed in double in the order of k, added to the accumulator's element
 * and rounded once to its type. Hardware sums in an order and with a width of its own (some align all products to the
 * largest and cut off), so last bits may differ there. f64 is a chain of fused multiply-adds. Integers are exact and wrap;
 * single bits are and-ed and counted. tf32 operands lose the low 13 bits of the f32 that they are.
 */
import { roundingTo } from "../../types/convert.ts";
import { fmaF64 } from "../../types/fma.ts";
import { truncateToTF32 } from "../../types/round.ts";
import { type ElementType, isFloat } from "../../types/types.ts";

/** D[m][n] = C[m][n] + Σ A[m][k]·B[n][k], in place in `c`. b1 operands are words: `k` counts those. */
export type Product = (
  a: Float64Array,
  b: Float64Array,
  c: Float64Array,
  m: number,
  n: number,
  k: number,
) => void;

/** The product of given element types. */
export function productOf(a: ElementType, accumulator: ElementType): Product {
  if (a.name === "b1") return bitProduct;
  if (!isFloat(a)) return integerProduct;
  if (a.name === "f64") return doubleProduct;
  return accumulator.name === "f32" ? singleProduct : roundedProduct(roundingTo(accumulator));
}

function singleProduct(
  a: Float64Array,
  b: Float64Array,
  c: Float64Array,
  m: number,
  n: number,
  k: number,
): void {
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) {
      let sum = 0;
      for (let x = i * k, y = j * k, end = x + k; x < end; x++, y++) sum += a[x]! * b[y]!;
      c[i * n + j] = Math.fround(c[i * n + j]! + sum);
    }
  }
}

function roundedProduct(round: (x: number) => number): Product {
  return (a, b, c, m, n, k) => {
    for (let i = 0; i < m; i++) {
      for (let j = 0; j < n; j++) {
        let sum = 0;
        for (let x = i * k, y = j * k, end = x + k; x < end; x++, y++) sum += a[x]! * b[y]!;
        c[i * n + j] = round(c[i * n + j]! + sum);
      }
    }
  };
}

function doubleProduct(
  a: Float64Array,
  b: Float64Array,
  c: Float64Array,
  m: number,
  n: number,
  k: number,
): void {
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) {
      let sum = c[i * n + j]!;
      for (let x = i * k, y = j * k, end = x + k; x < end; x++, y++) sum = fmaF64(a[x]!, b[y]!, sum);
      c[i * n + j] = sum;
    }
  }
}

function integerProduct(
  a: Float64Array,
  b: Float64Array,
  c: Float64Array,
  m: number,
  n: number,
  k: number,
): void {
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) {
      let sum = c[i * n + j]! | 0;
      for (let x = i * k, y = j * k, end = x + k; x < end; x++, y++)
        sum = (sum + Math.imul(a[x]!, b[y]!)) | 0;
      c[i * n + j] = sum;
    }
  }
}

function bitProduct(
  a: Float64Array,
  b: Float64Array,
  c: Float64Array,
  m: number,
  n: number,
  words: number,
): void {
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) {
      let sum = c[i * n + j]! | 0;
      for (let x = i * words, y = j * words, end = x + words; x < end; x++, y++)
        sum = (sum + ones(a[x]! & b[y]!)) | 0;
      c[i * n + j] = sum;
    }
  }
}

function ones(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555);
  const nibbles = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  return Math.imul((nibbles + (nibbles >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

/** What an operand's element is to the hardware. */
export function operandView(element: ElementType): ((x: number) => number) | undefined {
  return element.name === "tf32" ? truncateToTF32 : undefined;
}
