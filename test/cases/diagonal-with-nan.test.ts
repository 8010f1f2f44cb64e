import { f32, open } from "tilewright";
import { diagonal, gemm } from "tilewright/gemm";
import { expect, it } from "vitest";
import { generator } from "../support/random.ts";

/**
 * Zeros and infinities on the diagonal, NaN and infinities in rows of B. A product that is skipped contributes nothing, so
 * D[i, j] may be NaN only where row i's own product is, or where column j of B has NaN or an infinity in a K step that the
 * tile of row i visits: with tiles of 32 rows and steps of 16, in B's rows of the same 32.
 */
it("a diagonal matrix times one with NaN: who may be NaN, and nobody else", async () => {
  await using device = await open("simulator");
  const [n, columns] = [100, 7];
  const random = generator(10);
  const whole = (): number => Math.floor(random() * 9) + 1;
  const v = Array.from({ length: n }, whole);
  const b = Array.from({ length: n * columns }, whole);
  v[3] = 0;
  v[5] = Number.POSITIVE_INFINITY;
  v[99] = 0;
  b[5 * columns + 6] = 0;
  b[40 * columns + 1] = Number.NaN;
  b[70 * columns + 2] = Number.NEGATIVE_INFINITY;
  const [diagonalArray, matrix] = [device.array(f32, [n], v), device.array(f32, [n, columns], b)];
  const options = { params: { block: { m: 32, n: 64, k: 16 }, warps: { m: 1, n: 1 }, groupRows: 8 } };
  const own = (i: number, j: number): number => v[i]! * b[i * columns + j]!;
  const visited = (i: number, j: number): boolean =>
    Array.from({ length: n }, (_, row) => row).some(
      (row) => Math.floor(row / 32) === Math.floor(i / 32) && !Number.isFinite(b[row * columns + j]),
    );
  const check = (value: unknown, i: number, j: number): void => {
    if (visited(i, j)) return;
    expect(value, `D[${i}, ${j}]`).toBe(own(i, j));
  };
  const left = await (await gemm(diagonal(diagonalArray), matrix, options)).read();
  left.forEach((value, at) => {
    check(value, Math.floor(at / columns), at % columns);
  });
  // Only three columns hold anything but numbers, in one tile each.
  const strange = [...left].filter((value) => !Number.isFinite(Number(value))).length;
  expect(strange).toBeLessThanOrEqual(32 + 32 + columns);
  expect(left[5 * columns + 6]).toBeNaN();
  expect(left[5 * columns]).toBe(Number.POSITIVE_INFINITY);

  // On the other side, B's transposed times the diagonal: tiles of 64 columns.
  const wide = { params: { block: { m: 32, n: 64, k: 32 }, warps: { m: 1, n: 1 }, groupRows: 8 } };
  const right = await (await gemm(matrix.transposed, diagonal(diagonalArray), wide)).read();
  right.forEach((value, at) => {
    const [j, i] = [Math.floor(at / n), at % n];
    const tile = Math.floor(i / 64);
    const near = Array.from({ length: n }, (_, row) => row).some(
      (row) => Math.floor(row / 64) === tile && !Number.isFinite(b[row * columns + j]),
    );
    if (!near) expect(value, `D[${j}, ${i}]`).toBe(own(i, j));
  });
});
