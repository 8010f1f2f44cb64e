import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it, vi } from "vitest";
import { saveNpy } from "../../src/npy/node.ts";
import {
  bf16,
  e4m3,
  e5m2,
  encode,
  f16,
  f32,
  f64,
  i8,
  i32,
  isFloat,
  isStorage,
  rawArray,
  type StorageType,
  types,
  u8,
} from "../../src/types/index.ts";
import { load, product, randomMatrix, save, transposed } from "./matrices.ts";
import { temporaryFolder, tilewright } from "./run.ts";

const folder = temporaryFolder();
const storageTypes = Object.values(types).filter(isStorage);
const opaqueTypes: readonly StorageType[] = [bf16, e4m3, e5m2];

/** The options that make files of a type readable. */
const reading = (type: StorageType): readonly string[] =>
  opaqueTypes.includes(type) ? ["--opaque-as", type.name] : [];

const judge = ["--device", "simulator"];

/** Largest error that sums in f32 and one rounding to `type` allow. */
function allowed(type: StorageType, value: number, size: number, depth: number): number {
  if (!isFloat(type)) return 0;
  return 2 ** -type.precision * Math.abs(value) + (depth + 3) * 2 ** -23 * size + 2 ** -24;
}

describe("tilewright gemm", () => {
  it.each(storageTypes.map((type) => [type.name, type] as const))(
    "multiplies matrices of %s",
    async (_, type) => {
      const a = randomMatrix(type, 19, 23, 1);
      const b = randomMatrix(type, 23, 17, 2);
      await save(folder.path("a.npy"), type, a);
      await save(folder.path("b.npy"), type, b);
      const { status, error, out } = await tilewright(
        "gemm",
        folder.path("a.npy"),
        folder.path("b.npy"),
        "-o",
        folder.path("d.npy"),
        ...reading(type),
        ...judge,
      );
      expect({ status, error }).toEqual({ status: 0, error: "" });
      const d = await load(folder.path("d.npy"), opaqueTypes.includes(type) ? type : undefined);
      expect(out).toContain(`${d.type.name} [19, 17]`);
      expect([d.rows, d.columns]).toEqual([19, 17]);
      const { values, sizes } = product(a, b);
      d.values.forEach((value, i) => {
        expect(Math.abs(value - values[i])).toBeLessThanOrEqual(allowed(d.type, values[i], sizes[i], 23));
      });
    },
  );

  it.each(storageTypes.filter(isFloat).map((type) => [type.name, type] as const))(
    "gives D as %s",
    async (_, type) => {
      const a = randomMatrix(f16, 5, 8, 3);
      const b = randomMatrix(f16, 8, 6, 4);
      await save(folder.path("a.npy"), f16, a);
      await save(folder.path("b.npy"), f16, b);
      const { status, error } = await tilewright(
        "gemm",
        folder.path("a.npy"),
        folder.path("b.npy"),
        "-o",
        folder.path("d.npy"),
        "--type",
        type.name,
        ...judge,
      );
      expect({ status, error }).toEqual({ status: 0, error: "" });
      const d = await load(folder.path("d.npy"), type);
      expect(d.type).toBe(type);
      const { values, sizes } = product(a, b);
      d.values.forEach((value, i) => {
        // 8-bit floats are subnormal from 2^-6 (e4m3) on: steps of 2^-9 there.
        const step = type.bits === 8 ? 2 ** -9 : 0;
        expect(Math.abs(value - values[i])).toBeLessThanOrEqual(allowed(type, values[i], sizes[i], 8) + step);
      });
    },
  );

  it.each(storageTypes.filter((type) => !isFloat(type)).map((type) => [type.name, type] as const))(
    "gives D as %s",
    async (_, type) => {
      // Sums of seven products of numbers up to 4 fit every integer type.
      const operand = type.class === "signed" ? i8 : u8;
      const a = randomMatrix(operand, 4, 7, 5);
      const b = randomMatrix(operand, 7, 5, 6);
      await save(folder.path("a.npy"), operand, a);
      await save(folder.path("b.npy"), operand, b);
      const { status, error } = await tilewright(
        "gemm",
        folder.path("a.npy"),
        folder.path("b.npy"),
        "-o",
        folder.path("d.npy"),
        "--type",
        type.name,
        ...judge,
      );
      expect({ status, error }).toEqual({ status: 0, error: "" });
      const d = await load(folder.path("d.npy"));
      expect(d.type).toBe(type);
      expect(d.values).toEqual(product(a, b).values);
    },
  );

  it("takes C, alpha, beta, transposed operands and any order and byte order of the file", async () => {
    const a = randomMatrix(f32, 21, 12, 7);
    const b = randomMatrix(f32, 12, 15, 8);
    const c = randomMatrix(f32, 21, 15, 9);
    await save(folder.path("a.npy"), f32, transposed(a), { order: "column-major" });
    await save(folder.path("b.npy"), f32, transposed(b), { byteOrder: "big" });
    await save(folder.path("c.npy"), f32, c, { order: "column-major", byteOrder: "big" });
    const { status, error, out } = await tilewright(
      "gemm",
      folder.path("a.npy"),
      folder.path("b.npy"),
      "--output",
      folder.path("d.npy"),
      "--c",
      folder.path("c.npy"),
      "--alpha",
      "-1.5",
      "--beta",
      "0.25",
      "--transpose-a",
      "--transpose-b",
      "--explain",
      ...judge,
    );
    expect({ status, error }).toEqual({ status: 0, error: "" });
    expect(out).toContain("operator");
    const { values, sizes } = product(a, b, { alpha: -1.5, beta: 0.25, c });
    (await load(folder.path("d.npy"))).values.forEach((value, i) => {
      expect(Math.abs(value - values[i])).toBeLessThanOrEqual(allowed(f32, values[i], sizes[i], 12));
    });
  });

  it("takes the operator and the type of sums that are asked for", async () => {
    await save(folder.path("a.npy"), f16, randomMatrix(f16, 16, 16, 1));
    for (const [operator, sums] of [
      ["fma", "f32"],
      ["mma", "f16"],
      ["wmma", "f32"],
    ] as const) {
      const { status, error, out } = await tilewright(
        "gemm",
        folder.path("a.npy"),
        folder.path("a.npy"),
        "-o",
        folder.path("d.npy"),
        "--json",
        "--operator",
        operator,
        "--accumulate",
        sums,
        ...judge,
      );
      expect({ status, error }).toEqual({ status: 0, error: "" });
      const { route } = JSON.parse(out);
      expect(route.operator).toMatch(new RegExp(`^${operator}`));
      expect(route.summed).toBe(sums);
    }
  });

  it("says as JSON what it did", async () => {
    await save(folder.path("a.npy"), u8, randomMatrix(u8, 3, 4, 1));
    await save(folder.path("b.npy"), i8, randomMatrix(i8, 4, 2, 2));
    const { out } = await tilewright(
      "gemm",
      folder.path("a.npy"),
      folder.path("b.npy"),
      "-o",
      folder.path("d.npy"),
      "--json",
      "--explain",
      "--alpha",
      "2",
      ...judge,
    );
    expect(JSON.parse(out)).toEqual({
      device: { kind: "simulator", name: "simulator" },
      missing: [],
      a: { path: folder.path("a.npy"), type: "u8", shape: [3, 4], transposed: false },
      b: { path: folder.path("b.npy"), type: "i8", shape: [4, 2], transposed: false },
      c: null,
      bias: null,
      activation: null,
      residual: null,
      algebra: null,
      d: { path: folder.path("d.npy"), type: "i32", shape: [3, 2] },
      alpha: 2,
      beta: 0,
      route: {
        schedule: "matrix-vector",
        operator: expect.any(String),
        block: { m: expect.any(Number), n: expect.any(Number), k: expect.any(Number) },
        multiplied: ["u8", "i8"],
        summed: "i32",
      },
      seconds: expect.any(Number),
      operations: 48,
      explanation: expect.stringContaining("operator"),
    });
  });

  it("takes empty matrices", async () => {
    await save(folder.path("a.npy"), f32, { rows: 3, columns: 0, values: [] });
    await save(folder.path("b.npy"), f32, { rows: 0, columns: 2, values: [] });
    const { status, error } = await tilewright(
      "gemm",
      folder.path("a.npy"),
      folder.path("b.npy"),
      "-o",
      folder.path("d.npy"),
      ...judge,
    );
    expect({ status, error }).toEqual({ status: 0, error: "" });
    expect((await load(folder.path("d.npy"))).values).toEqual([0, 0, 0, 0, 0, 0]);
  });

  it("may write over its own input", async () => {
    const a = randomMatrix(f64, 6, 6, 1);
    await save(folder.path("a.npy"), f64, a);
    const { status } = await tilewright(
      "gemm",
      folder.path("a.npy"),
      folder.path("a.npy"),
      "-o",
      folder.path("a.npy"),
      ...judge,
    );
    expect(status).toBe(0);
    const { values } = product(a, a);
    (await load(folder.path("a.npy"))).values.forEach((value, i) => {
      expect(value).toBeCloseTo(values[i], 12);
    });
    expect(readdirSync(folder.path())).toEqual(["a.npy"]);
  });

  it("keeps kernels where TILEWRIGHT_DUMP says", async () => {
    vi.stubEnv("TILEWRIGHT_DUMP", folder.path("kernels"));
    try {
      await save(folder.path("a.npy"), f32, randomMatrix(f32, 4, 4, 1));
      await tilewright(
        "gemm",
        folder.path("a.npy"),
        folder.path("a.npy"),
        "-o",
        folder.path("d.npy"),
        ...judge,
      );
    } finally {
      vi.unstubAllEnvs();
    }
    const endings = readdirSync(folder.path("kernels")).map((name) =>
      name.replace(/^gemm\w*\.simulator\.[0-9a-f]{12}/, ""),
    );
    expect(endings.sort()).toEqual([".ir", ".js", ".optimised.ir"]);
  });
});

describe("tilewright gemm, asked for what it cannot do", () => {
  /** Makes a.npy (3 x 4), b.npy (4 x 2), turned.npy (2 x 4), vector.npy and text.npy, and runs the command. */
  async function attempt(line: string): Promise<{ readonly status: number; readonly error: string }> {
    await save(folder.path("a.npy"), f32, randomMatrix(f32, 3, 4, 1));
    await save(folder.path("b.npy"), f32, randomMatrix(f32, 4, 2, 2));
    await save(folder.path("turned.npy"), f32, randomMatrix(f32, 2, 4, 2));
    await save(folder.path("integers.npy"), i32, randomMatrix(i32, 4, 2, 2));
    await save(folder.path("small.npy"), i8, randomMatrix(i8, 3, 4, 2));
    await save(folder.path("bytes.npy"), i8, randomMatrix(i8, 4, 2, 2));
    await save(folder.path("opaque.npy"), bf16, randomMatrix(bf16, 4, 2, 2));
    await saveNpy(folder.path("vector.npy"), { type: f32, shape: [4], data: encode(f32, [1, 2, 3, 4]) });
    writeFileSync(folder.path("text.npy"), "1 2 3");
    writeFileSync(folder.path("short.npy"), readFileSync(folder.path("b.npy")).subarray(0, 150));
    const before = readdirSync(folder.path());
    const args = line
      .split(" ")
      .map((word) => (/\.npy$|^folder/.test(word) ? folder.path(word.replace("folder", "")) : word));
    const { status, error, out } = await tilewright("gemm", ...args);
    expect(out).toBe("");
    expect(readdirSync(folder.path())).toEqual(before);
    return { status, error: error.replaceAll(`${folder.path()}/`, "").replaceAll(folder.path(), ".") };
  }

  it.each([
    [
      "a.npy turned.npy -o d.npy",
      1,
      /^tilewright: a\.npy is 3 x 4 and turned\.npy is 2 x 4: the 4 columns must equal the 2 rows; giving --transpose-b would fit\n$/,
    ],
    [
      "a.npy b.npy -o d.npy --transpose-b",
      1,
      /b\.npy transposed is 2 x 4.*leaving out --transpose-b would fit\n$/,
    ],
    [
      "a.npy vector.npy -o d.npy",
      1,
      /^tilewright: vector\.npy: holds an array of rank 1, shape \[4\]; a matrix has rank 2/,
    ],
    ["a.npy none.npy -o d.npy", 1, /^tilewright: none\.npy: cannot be opened: no such file/],
    ["a.npy text.npy -o d.npy", 1, /^tilewright: text\.npy: not a \.npy file/],
    ["a.npy short.npy -o d.npy", 1, /^tilewright: short\.npy: .*truncated/],
    ["a.npy opaque.npy -o d.npy", 1, /opaque\.npy: the dtype '<V2' .*opaque/],
    ["a.npy b.npy -o none/d.npy", 1, /^tilewright: none\/d\.npy: cannot be written: there is no folder/],
    ["a.npy b.npy -o folder", 1, /cannot be written: it is a folder; give the path of a file\n$/],
    ["a.npy b.npy -o a.npy/d.npy", 1, /cannot be written: .*a\.npy is not a folder/],
    [
      "a.npy b.npy -o d.npy --c a.npy",
      1,
      /^tilewright: a\.npy is 3 x 4; the product is 3 x 2, and C must be too\n$/,
    ],
    ["a.npy integers.npy -o d.npy --device simulator", 1, /^tilewright: gemm: A is f32 and B is i32; /],
    ["small.npy bytes.npy -o d.npy --alpha 0.5 --device simulator", 1, /alpha = 0\.5 is no i32/],
    ["a.npy b.npy -o d.npy --operator mma --device simulator", 1, /has no mma instruction for f32·f32→f32/],
    ["a.npy b.npy -o d.npy --device cuda:99", 1, /^tilewright: /],
    [
      "a.npy b.npy -o d.npy --alpha two",
      2,
      /'--alpha <number>' argument 'two' is invalid\. It must be a number such as/,
    ],
    ["a.npy b.npy -o d.npy --alpha NaN", 2, /argument 'NaN' is invalid/],
    ["a.npy b.npy -o d.npy --beta 2", 2, /^tilewright: --beta is the factor of C: give --c as well/],
    ["a.npy b.npy -o d.npy --type f99", 2, /argument 'f99' is invalid\. Known are f16, bf16, f32/],
    ["a.npy b.npy -o d.npy --operator tensor", 2, /argument 'tensor' is invalid\. Known are fma, mma, wmma/],
    [
      "a.npy b.npy -o d.npy --device gpu",
      2,
      /^tilewright: --device gpu is not known; known are cuda, webgpu, simulator/,
    ],
    ["a.npy b.npy", 2, /required option '-o, --output <D\.npy>' not specified/],
    ["a.npy -o d.npy", 2, /missing required argument 'B\.npy'/],
    ["a.npy b.npy c.npy -o d.npy", 2, /too many arguments/],
    ["a.npy b.npy -o d.npy --fast", 2, /unknown option '--fast'/],
  ])("%s ends with %i and one line", async (line, status, message) => {
    const outcome = await attempt(line);
    expect(outcome.error).toMatch(message);
    expect(outcome.error.trimEnd()).not.toContain("\n");
    expect(outcome.status).toBe(status);
  });

  it("shows stack and causes when asked to", async () => {
    const { error, status } = await attempt("a.npy none.npy -o d.npy --debug");
    expect(status).toBe(1);
    expect(error).toMatch(/FileError: none\.npy.*\n\s+at /);
    expect(error).toContain("Caused by: Error: ENOENT");
  });
});

describe("existing output", () => {
  it("stays when the work fails", async () => {
    writeFileSync(folder.path("d.npy"), "precious");
    await save(folder.path("a.npy"), f32, randomMatrix(f32, 3, 4, 1));
    const { status } = await tilewright(
      "gemm",
      folder.path("a.npy"),
      folder.path("a.npy"),
      "-o",
      folder.path("d.npy"),
    );
    expect(status).toBe(1);
    expect(readFileSync(folder.path("d.npy"), "utf8")).toBe("precious");
    expect(existsSync(folder.path("a.npy"))).toBe(true);
  });
});

it("keeps i64 products exact beyond 2^53", async () => {
  const data = rawArray(types.i64, 1);
  data[0] = 3037000499n;
  await saveNpy(folder.path("a.npy"), { type: types.i64, shape: [1, 1], data });
  const { status } = await tilewright(
    "gemm",
    folder.path("a.npy"),
    folder.path("a.npy"),
    "-o",
    folder.path("d.npy"),
    ...judge,
  );
  expect(status).toBe(0);
  const bytes = readFileSync(folder.path("d.npy"));
  expect(bytes.readBigInt64LE(bytes.length - 8)).toBe(3037000499n ** 2n);
});
