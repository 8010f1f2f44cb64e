/**
 * One function, written against `blas.gemmEx` alone, for numbers of every kind: powers of matrices of real, complex and dual
 * numbers, and of quaternions, which this file defines by their multiplication table.
 */
import { f32, open } from "tilewright";
import { type Algebra, algebraMatrix, blas, complex, defineAlgebra, dual } from "tilewright/gemm";

/** Hamilton's quaternions: row i, column j of the table is i times j. */
const quaternion: Algebra = defineAlgebra({
  name: "quaternion",
  basis: "1 i j k",
  table: ["1 i j k", "i -1 k -j", "j -k -1 i", "k j -i -1"],
  conjugate: "1 -i -j -k",
});

/** x to the 2^times, by squaring. */
async function power(x: blas.BlasMatrix, times: number): Promise<blas.BlasMatrix> {
  const [rows, columns] = x.shape;
  const buffers = [0, 1].map(() => blas.emptyLike(x, [rows!, columns!]));
  let result = x;
  for (let i = 0; i < times; i++) {
    const next = buffers[i % 2]!;
    await blas.gemmEx("N", "N", 1, result, result, 0, next);
    result = next;
  }
  return result;
}

await using device = await open("simulator");
const show = async (name: string, x: blas.BlasMatrix, times: number): Promise<void> => {
  const values = await (await power(x, times)).read();
  console.log(
    name.padEnd(11),
    Array.from(values as Float32Array, (value) => Math.round(value * 1000) / 1000).join(" "),
  );
};

// Fibonacci numbers.
await show("real", device.array(f32, [2, 2], [1, 1, 1, 0]), 3);
// A turn by 45 degrees, as a 1 x 1 matrix: its eighth power is a whole turn.
await show("complex", algebraMatrix(complex, device.array(f32, [1, 1, 2], [Math.SQRT1_2, Math.SQRT1_2])), 3);
// The derivative of x^8 at 1.5 comes along: 8 · 1.5^7.
await show("dual", algebraMatrix(dual, device.array(f32, [1, 1, 2], [1.5, 1])), 3);
// A turn by 90 degrees about (1, 1, 1) twice; the fourth power of a quaternion turns by four times as much.
await show("quaternion", algebraMatrix(quaternion, device.array(f32, [1, 1, 4], [0.5, 0.5, 0.5, 0.5])), 2);
