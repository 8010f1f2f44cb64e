/**
 * A layer of a neural network in one kernel: D = GELU(A · B + C), where C is a bias row repeated downward, and the
 * activation is a TypeScript function that runs on each element on its way out.
 */
import { f16, f32, open } from "tilewright";
import { gemm, type Transform } from "tilewright/gemm";
import { tanh } from "tilewright/lang";

/** GELU by its tanh approximation (Hendrycks and Gimpel, arXiv 1606.08415). `x` is one element, in f32. */
const gelu: Transform = (x) => {
  const inner = x.mul(x).fma(0.044715, 1).mul(x).mul(Math.sqrt(2 / Math.PI));
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
using bias = device.array(f32, [m, n], Array.from({ length: m }, () => offsets).flat());
using d = await gemm(a, b, { c: bias, type: f32, transforms: { d: { registerToShared: gelu } } });

// The operands were rounded to f16 on their way to the device; what is left is the rounding of sums in f32.
const [left, right, result] = [await a.read(), await b.read(), (await d.read()) as Float32Array];
let largest = 0;
for (let row = 0; row < m; row++) {
  for (let column = 0; column < n; column++) {
    let sum = offsets[column];
    for (let i = 0; i < k; i++) sum += left[row * k + i] * right[i * n + column];
    largest = Math.max(largest, Math.abs(result[row * n + column] - geluOf(sum)));
  }
}
console.log(`${m} x ${n} fused elements; the largest error is ${largest < 1e-4 ? "below" : "ABOVE"} 1e-4`);
