/**
 * Attention, softmax(Q · Kᵀ / √d) · V, without a softmax kernel. The first product reduces each row of the scores to its
 * maximum and Σ e^(x - maximum) while they leave; the second makes probabilities of scores while it loads them.
 */
import { f16, f32, open } from "tilewright";
import { columnVector, gemm, reduceRows, softmaxStatistics, uses } from "tilewright/gemm";
import { exp } from "tilewright/lang";

await using device = await open();
const [queries, keys, depth] = [40, 56, 32];
const numbers = (count: number, seed: number): number[] =>
  Array.from({ length: count }, (_, i) => 2 * Math.sin(seed * (i + 1) ** 1.5));

using q = device.array(f16, [queries, depth], numbers(queries * depth, 1));
using k = device.array(f16, [keys, depth], numbers(keys * depth, 2));
using v = device.array(f16, [keys, depth], numbers(keys * depth, 3));
using top = device.empty(f32, [queries]);
using sum = device.empty(f32, [queries]);

using scores = await gemm(q, k.transposed, {
  alpha: 1 / Math.sqrt(depth),
  type: f32,
  epilogue: [reduceRows([top, sum], softmaxStatistics)],
});
const probability = uses({ top: columnVector(top), sum: columnVector(sum) }, (x, used) =>
  exp(x.sub(used.top)).div(used.sum),
);
using result = await gemm(scores, v, { type: f32, transforms: { a: { globalToShared: probability } } });

// The same on the host.
const [a, b, c, got] = [await q.read(), await k.read(), await v.read(), await result.read()];
let largest = 0;
for (let i = 0; i < queries; i++) {
  const row = Array.from({ length: keys }, (_, j) => {
    let score = 0;
    for (let e = 0; e < depth; e++) score += a[i * depth + e] * b[j * depth + e];
    return Math.exp(score / Math.sqrt(depth));
  });
  const total = row.reduce((x, y) => x + y, 0);
  for (let e = 0; e < depth; e++) {
    const wanted = row.reduce((x, weight, j) => x + (weight / total) * c[j * depth + e], 0);
    largest = Math.max(largest, Math.abs(Number(got[i * depth + e]) - wanted));
  }
}
console.log(
  `${queries} queries, ${keys} keys; the largest error is ${largest < 1e-4 ? "below" : "ABOVE"} 1e-4`,
);
