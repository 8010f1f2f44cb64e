import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { loadNpy } from "../../src/npy/node.ts";
import { decode, f16 } from "../../src/types/index.ts";
import { runProgram } from "./program.ts";

it("gemm.ts multiplies", async () => {
  expect(await runProgram("examples/gemm.ts")).toBe("[ 2, 2 ] Float32Array(4) [ 40, 20, 100, 50 ]\n");
});

it("fused-gemm.ts fuses a function", async () => {
  expect(await runProgram("examples/fused-gemm.ts")).toBe(
    "48 x 40 fused elements; the largest error is below 1e-4\n",
  );
});

it("attention.ts reduces scores and uses what they reduce to", async () => {
  expect(await runProgram("examples/attention.ts")).toBe(
    "40 queries, 56 keys; the largest error is below 1e-4\n",
  );
});

it("algebras.ts raises matrices of numbers of every kind to powers", async () => {
  expect(await runProgram("examples/algebras.ts")).toBe(
    "real        34 21 21 13\ncomplex     1 0\ndual        25.629 136.688\nquaternion  -0.5 -0.5 -0.5 -0.5\n",
  );
});

it("convolution.ts finds features and edges", async () => {
  expect(await runProgram("examples/convolution.ts")).toBe(
    "features 2 x 12 x 10 x 16\nacross   1 1 0 0\ndown     1 3 4 4\n",
  );
});

it("make-data.ts makes the shipped matrices", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tilewright-data-"));
  try {
    await runProgram("examples/make-data.ts", folder);
    for (const name of ["a.npy", "b.npy"]) {
      const shipped = fileURLToPath(new URL(`../../examples/data/${name}`, import.meta.url));
      const [made, kept] = [await loadNpy(join(folder, name)), await loadNpy(shipped)];
      expect(made.shape).toEqual(kept.shape);
      // Engines may differ in the last place of logarithm and cosine, and so in the last place of a half now and then.
      const [x, y] = [decode(f16, made.data as Uint16Array), decode(f16, kept.data as Uint16Array)];
      x.forEach((value, i) => {
        expect(Math.abs(value - y[i])).toBeLessThanOrEqual(2 ** -10 * Math.abs(y[i]));
      });
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
