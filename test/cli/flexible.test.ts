/** @file The command's epilogues, algebras and contractions, against float64. */
import { describe, expect, it } from "vitest";
import { loadNpy, saveNpy } from "../../src/npy/node.ts";
import { decode, encode, f32 } from "../../src/types/index.ts";
import { load, product, randomMatrix, save } from "./matrices.ts";
import { temporaryFolder, tilewright } from "./run.ts";

const folder = temporaryFolder();
const judge = ["--device", "simulator"];

async function saveArray(name: string, shape: readonly number[], values: readonly number[]): Promise<string> {
  const path = folder.path(name);
  await saveNpy(path, { type: f32, shape, order: "row-major", data: encode(f32, values) });
  return path;
}

async function loadArray(
  name: string,
): Promise<{ readonly shape: readonly number[]; readonly values: number[] }> {
  const { shape, type, data } = await loadNpy(folder.path(name));
  return { shape, values: Array.from(decode(type, data), Number) };
}

const series = (count: number): number[] => Array.from({ length: count }, (_, i) => ((i * 7) % 11) - 5);

describe("tilewright gemm, in one kernel", () => {
  it("adds a bias, activates, adds a residual", async () => {
    const [a, b, r] = [
      randomMatrix(f32, 9, 14, 1),
      randomMatrix(f32, 14, 10, 2),
      randomMatrix(f32, 9, 10, 3),
    ];
    const paths = ["a.npy", "b.npy", "r.npy"].map((name) => folder.path(name));
    for (const [i, matrix] of [a, b, r].entries()) await save(paths[i]!, f32, matrix);
    const offsets = series(10);
    const bias = await saveArray("v.npy", [10], offsets);
    const steps = ["--bias", bias, "--activation", "relu", "--residual", paths[2]!];
    const outcome = await tilewright(
      "gemm",
      paths[0]!,
      paths[1]!,
      "-o",
      folder.path("d.npy"),
      ...steps,
      ...judge,
    );
    expect(outcome).toMatchObject({ status: 0, error: "" });
    const { values } = product(a, b);
    const d = await load(folder.path("d.npy"));
    d.values.forEach((value, i) => {
      const wanted = Math.max(0, values[i]! + offsets[i % 10]!) + r.values[i]!;
      expect(Math.abs(value - wanted)).toBeLessThan(1e-4);
    });
  });

  it("multiplies complex numbers", async () => {
    const [a, b] = [series(2 * 3 * 2), series(3 * 2 * 2).reverse()];
    const paths = [await saveArray("a.npy", [2, 3, 2], a), await saveArray("b.npy", [3, 2, 2], b)];
    const out = folder.path("d.npy");
    const outcome = await tilewright("gemm", ...paths, "-o", out, "--algebra", "complex", ...judge);
    expect(outcome).toMatchObject({ status: 0, error: "" });
    const expected: number[] = [];
    for (let i = 0; i < 2; i++)
      for (let j = 0; j < 2; j++) {
        let [re, im] = [0, 0];
        for (let l = 0; l < 3; l++) {
          const [x, y] = [a[(i * 3 + l) * 2]!, a[(i * 3 + l) * 2 + 1]!];
          const [u, v] = [b[(l * 2 + j) * 2]!, b[(l * 2 + j) * 2 + 1]!];
          re += x * u - y * v;
          im += x * v + y * u;
        }
        expected.push(re, im);
      }
    expect(await loadArray("d.npy")).toEqual({ shape: [2, 2, 2], values: expected });
  });

  it("multiplies by a semiring", async () => {
    const [a, b] = [series(6), series(12)];
    const paths = [await saveArray("a.npy", [2, 3], a), await saveArray("b.npy", [3, 4], b)];
    const out = folder.path("d.npy");
    const outcome = await tilewright("gemm", ...paths, "-o", out, "--algebra", "max-plus", ...judge);
    expect(outcome).toMatchObject({ status: 0, error: "" });
    const expected = Array.from({ length: 8 }, (_, at) => {
      const [i, j] = [Math.floor(at / 4), at % 4];
      return Math.max(...[0, 1, 2].map((l) => a[i * 3 + l]! + b[l * 4 + j]!));
    });
    expect((await loadArray("d.npy")).values).toEqual(expected);
  });

  it.each([
    [["--bias", "short"], /has 3 elements; the product has 4 columns/],
    [["--bias", "a"], /holds an array of rank 2, shape \[2, 3\]; a vector has rank 1/],
    [["--residual", "a"], /is 2 x 3; the product is 2 x 4, and the residual must be too/],
    [["--activation", "swash"], /Known are relu, leaky-relu, gelu/],
    [["--algebra", "octonion"], /Known are complex, complex3m, dual, max-plus/],
    [["--algebra", "complex"], /elements with 2 components has the shape \[rows, columns, 2\]/],
    [["--algebra", "max-plus", "--operator", "fma"], /max-plus has an operator of its own/],
  ])("says in one line what is wrong with %j", async (given, message) => {
    const paths = [await saveArray("a.npy", [2, 3], series(6)), await saveArray("b.npy", [3, 4], series(12))];
    await saveArray("short.npy", [3], series(3));
    const files: Record<string, string> = { short: folder.path("short.npy"), a: paths[0]! };
    const steps = given.map((word) => files[word] ?? word);
    const { status, error } = await tilewright(
      "gemm",
      ...paths,
      "-o",
      folder.path("d.npy"),
      ...steps,
      ...judge,
    );
    expect(status).not.toBe(0);
    expect(error).toMatch(message);
    expect(error.trim().split("\n")).toHaveLength(1);
  });
});

describe("tilewright contract", () => {
  it("contracts arrays of any rank", async () => {
    const [a, b] = [series(2 * 3 * 4), series(3 * 5)];
    const paths = [await saveArray("a.npy", [2, 3, 4], a), await saveArray("b.npy", [3, 5], b)];
    const out = folder.path("d.npy");
    const outcome = await tilewright("contract", "bda,dc->abc", ...paths, "-o", out, "--json", ...judge);
    expect(outcome).toMatchObject({ status: 0, error: "" });
    expect(JSON.parse(outcome.out)).toMatchObject({ specification: "bda,dc->abc", d: { shape: [4, 2, 5] } });
    const expected = Array.from({ length: 40 }, (_, at) => {
      const [i, j, k] = [Math.floor(at / 10), Math.floor(at / 5) % 2, at % 5];
      return [0, 1, 2].reduce((sum, l) => sum + a[(j * 3 + l) * 4 + i]! * b[l * 5 + k]!, 0);
    });
    expect(await loadArray("d.npy")).toEqual({ shape: [4, 2, 5], values: expected });
  });

  it("says in one line what is wrong", async () => {
    const paths = [await saveArray("a.npy", [2, 3], series(6)), await saveArray("b.npy", [4, 5], series(20))];
    const run = (specification: string) =>
      tilewright("contract", specification, ...paths, "-o", folder.path("d.npy"), ...judge);
    for (const [specification, message] of [
      ["ab,bc->ac", /index b is 3 in A .* and 4 in B/],
      ["abc,cd->abd", /gives A 3 indices .* has rank 2/],
      ["ab", /contract/],
    ] as const) {
      const { status, error } = await run(specification);
      expect(status).not.toBe(0);
      expect(error).toMatch(message);
      expect(error.trim().split("\n")).toHaveLength(1);
    }
  });
});
