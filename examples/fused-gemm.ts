/**
 * A layer of a neural network in one kernel: D = GELU(max(A, 0) · B + bias). The activation before the product and the
 * one after it are TypeScript functions of one element, compiled into the kernel.
 */
import { f16, f32, open } from "tilewright";
import { bias, gemm, type Transform } from "tilewright/gemm";
import { max, tanh } from "tilewright/lang";

/** On A's way from global to shared memory. */
const relu: Transform = (x) => max(x, 0);

/** On D's way out: GELU by its tanh approximation (Hendrycks and Gimpel, arXiv 1606.08415). `x` is in f32 here. */
const gelu: Transform = (x) => {
  const inner = x
    .mul(x)
    .fma(0.044715, 1)
    .mul(x)
    .mul(Math.sqrt(2 / Math.PI));
  return tanh(inner).add(1).mul(x).mul(0.5);
};

/** The same on the host, to compare. */
const geluOf = (x: number): number =>
  0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * x * (1 + 0.044715 * x * x)));

await using device = await open();
const [m, n, k] = [48, 40, 24];
const activations = Array.from({ length: m * k }, (_, i) => Math.sin(i));
const weights = Array.from({ length: k * n }, (_, i) => Math.cos(3 * i) / 4);
const offsets = Array.from({ length: n }, (_, i) => i / n - 0.5);

using a = device.array(f16, [m, k], activations);
using b = device.array(f16, [k, n], weights);
using v = device.array(f32, [n], offsets);
using d = await gemm(a, b, {
  type: f32,
  transforms: { a: { globalToShared: relu } },
  epilogue: [bias(v), gelu],
});

// The operands were rounded to f16 on their way to the device; what is left is the rounding of sums in f32.
const [left, right, result] = [await a.read(), await b.read(), (await d.read()) as Float32Array];
let largest = 0;
for (let row = 0; row < m; row++) {
  for (let column = 0; column < n; column++) {
    let sum = offsets[column];
    for (let i = 0; i < k; i++) sum += Math.max(left[row * k + i], 0) * right[i * n + column];
    largest = Math.max(largest, Math.abs(result[row * n + column] - geluOf(sum)));
  }
}
console.log(`${m} x ${n} fused elements; the largest error is ${largest < 1e-4 ? "below" : "ABOVE"} 1e-4`);
