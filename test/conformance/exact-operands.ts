/** @file Operands whose products are exact, for tests of what happens to products. */
import { generator, normal } from "./gemm-cases.ts";

/** Small multiples of 1/16, so that products are exact and sums nearly so: A is m x k, B k x n. */
export function operands(m: number, n: number, k: number, seed: number) {
  const random = generator(seed);
  const values = (count: number): number[] =>
    Array.from({ length: count }, () => Math.round(normal(random) * 8) / 16);
  const [x, y] = [values(m * k), values(k * n)];
  const product = Array.from({ length: m * n }, (_, at) => {
    let sum = 0;
    for (let i = 0; i < k; i++) sum += x[Math.floor(at / n) * k + i] * y[i * n + (at % n)];
    return sum;
  });
  return { x, y, product };
}
