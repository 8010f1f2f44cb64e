import { ArgumentError, bf16, f16, f32, f64, i8, i32, ShapeError, type StorageType, tf32 } from "tilewright";
import {
  type Algebra,
  type AlgebraMatrix,
  algebraMatrix,
  algebraOperator,
  bias,
  blas,
  complex,
  complex3m,
  defineAlgebra,
  dual,
  fmaOperator,
  gemm,
  maxPlus,
  mmaSync,
  planGemm,
  semiringOperator,
  silu,
  type Transform,
  wmmaSync,
} from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { createPaperDevice } from "../../src/cli/paper-device.ts";
import { nvidiaTarget } from "../../src/target/nvidia.ts";
import { checkAlgebra, conjugateOf, productOf } from "./algebra-cases.ts";
import { pairwise } from "./gemm-cases.ts";
import { onEveryDevice } from "./table.ts";

const quaternion: Algebra = defineAlgebra({
  name: "quaternion",
  basis: "1 i j k",
  table: ["1 i j k", "i -1 k -j", "j -k -1 i", "k j -i -1"],
  conjugate: "1 -i -j -k",
});
/** The cross product of three dimensions: no unit, an odd number of components. */
const cross: Algebra = defineAlgebra({
  name: "cross product",
  basis: "x y z",
  table: ["0 z -y", "-z 0 x", "y -x 0"],
  conjugate: "-x -y -z",
});
const operations = ["N", "T", "C"] as const;

onEveryDevice((device) => {
  const has = (...types: readonly StorageType[]): boolean =>
    types.every(({ name }) => device().facts.storage.has(name) && device().facts.arithmetic.has(name));

  /** The plain operator with little in a lane: kernels that are soon traced. */
  const little = () => {
    const { width } = device().facts.subgroup;
    const laneRows = 2 ** Math.floor(Math.log2(width) / 2);
    return fmaOperator({ laneRows, laneColumns: width / laneRows, rows: 2, columns: 2 });
  };

  describe("products over algebras", () => {
    const rows = pairwise({
      algebra: [complex, dual, complex3m, quaternion, cross],
      type: [f32, f16, bf16, f64, i32],
      transA: operations,
      transB: operations,
      size: [
        [1, 1, 1],
        [3, 2, 7],
        [17, 33, 9],
        [33, 7, 65],
        [8, 64, 32],
      ],
      storage: ["interleaved", "split"],
      storageC: ["interleaved", "split"],
      padding: [0, 1, 8],
      factors: ["plain", "numbers", "elements"],
      columnMajorC: [false, true],
    } as const);
    it.each([complex, dual, complex3m, quaternion, cross])("$name", async (algebra) => {
      const every = process.env.TILEWRIGHT_SOAK === "1" ? 1 : 4;
      const own = rows
        .filter((row) => row.algebra === algebra && has(row.type))
        .filter((_, i) => i % every === 0);
      for (const [seed, row] of own.entries()) await checkAlgebra(device(), row, seed + 1);
    });

    it.each([
      ["mma", mmaSync, f16, {}],
      ["wmma", wmmaSync, f16, {}],
      ["mma in tf32", mmaSync, f32, { compute: tf32 }],
      ["integers", undefined, i8, {}],
    ] as const)("by %s", async (_, operator, type, more) => {
      const { mma, wmma, subgroup } = device().facts;
      if (mma.length === 0 || wmma.length === 0 || subgroup.width !== 32) return;
      for (const algebra of [complex, quaternion, ...(type === i8 ? [] : [complex3m])]) {
        const [transA, transB] = algebra === complex ? (["N", "C"] as const) : (["C", "N"] as const);
        const options = { ...more, ...(operator === undefined ? {} : { operator }) };
        const row = { algebra, type, transA, transB, size: [33, 17, 40], options } as const;
        await checkAlgebra(device(), row);
      }
    });

    it("of 2 x 2 by hand, all nine pairs of operations", async () => {
      const a = [1, 2, 3, -4, 5, 6, -7, 8];
      const b = [2, -1, 4, 3, 6, 5, 8, -7];
      for (const transA of operations) {
        for (const transB of operations) {
          const split = (transA === "T") === (transB === "N");
          const make = (values: readonly number[]): AlgebraMatrix => {
            if (!split) return algebraMatrix(complex, device().array(f32, [2, 2, 2], values));
            const planes = [0, 1].flatMap((p) => values.filter((_, i) => i % 2 === p));
            return algebraMatrix(complex, device().array(f32, [2, 2, 2], planes).permute([1, 2, 0]));
          };
          const c = make(new Array(8).fill(Number.NaN));
          await blas.gemmEx(transA, transB, 1, make(a), make(b), 0, c, { operator: little() });
          const expected: number[] = [];
          const at = (values: readonly number[], operation: string, row: number, column: number) => {
            const first = 2 * (operation === "N" ? row * 2 + column : column * 2 + row);
            return [values[first]!, values[first + 1]! * (operation === "C" ? -1 : 1)] as const;
          };
          for (const [i, j] of [
            [0, 0],
            [0, 1],
            [1, 0],
            [1, 1],
          ] as const) {
            const sum = [0, 0];
            for (const l of [0, 1]) {
              const [[x, y], [u, v]] = [at(a, transA, i, l), at(b, transB, l, j)];
              sum[0]! += x * u - y * v;
              sum[1]! += x * v + y * u;
            }
            expected.push(...sum);
          }
          expect([...(await c.array.read())], `${transA}${transB}`).toEqual(expected);
        }
      }
    });
  });

  describe("a function written against blas.gemmEx alone", () => {
    /** x³. */
    async function cube(x: blas.BlasMatrix): Promise<blas.BlasMatrix> {
      const [square, result] = [0, 1].map(() => blas.emptyLike(x, [x.shape[0]!, x.shape[1]!]));
      await blas.gemmEx("N", "N", 1, x, x, 0, square!, { operator: little() });
      await blas.gemmEx("N", "N", 1, square!, x, 0, result!, { operator: little() });
      return result!;
    }
    const read = async (x: blas.BlasMatrix): Promise<number[]> =>
      Array.from((await x.read()) as Float32Array);

    it("takes numbers, and derivatives that agree with finite differences", async () => {
      const [values, slopes, h] = [[1, 0.5, -0.25, 2], [0.5, 1, 2, -1], 1 / 64];
      const moved = (sign: number) => values.map((x, i) => x + sign * h * slopes[i]!);
      const [above, below] = await Promise.all(
        [1, -1].map(async (sign) => read(await cube(device().array(f32, [2, 2], moved(sign))))),
      );
      const both = values.flatMap((x, i) => [x, slopes[i]!]);
      const result = await read(await cube(algebraMatrix(dual, device().array(f32, [2, 2, 2], both))));
      const real = await read(await cube(device().array(f32, [2, 2], values)));
      real.forEach((x, i) => {
        expect(result[2 * i]).toBeCloseTo(x, 5);
        // The difference quotient errs by h² times the third derivative over 6.
        expect(Math.abs(result[2 * i + 1]! - (above![i]! - below![i]!) / (2 * h))).toBeLessThan(0.01);
      });
    });

    it("takes complex numbers and a user's quaternions", async () => {
      for (const algebra of [complex, quaternion]) {
        const { dimension: n } = algebra;
        const x = Array.from({ length: n }, (_, i) => i + 1);
        const expected = productOf(algebra, productOf(algebra, x, x), x);
        const matrix = algebraMatrix(algebra, device().array(f32, [1, 1, n], x));
        expect(await read(await cube(matrix))).toEqual(expected);
        const y = blas.emptyLike(matrix, [1, 1]);
        await blas.gemv("C", 1, matrix, matrix, 0, y);
        expect(await read(y)).toEqual(productOf(algebra, conjugateOf(algebra, x), x));
      }
    });

    it("multiplies by elements from the left: i · j + j · k = k + i", async () => {
      const [one, j, c] = [
        [1, 0, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 1],
      ].map((x) => algebraMatrix(quaternion, device().array(f32, [1, 1, 4], x)));
      await blas.gemmEx("N", "N", [0, 1, 0, 0], one!, j!, [0, 0, 1, 0], c!, { operator: little() });
      expect(await read(c!)).toEqual([0, 1, 0, 1]);
    });

    it("follows BLAS where factors are zero", async () => {
      const nothing = () => new Array(8).fill(Number.NaN);
      const [a, b] = [0, 1].map(() => algebraMatrix(complex, device().array(f32, [2, 2, 2], nothing())));
      const c = device().array(f32, [2, 2, 2], [1, 2, 3, 4, 5, 6, 7, 8]);
      await blas.gemmEx("N", "N", [0, 0], a!, b!, [0, 1], algebraMatrix(complex, c));
      expect([...(await c.read())]).toEqual([-2, 1, -4, 3, -6, 5, -8, 7]);
      await blas.gemmEx("C", "T", 0, a!, b!, 0, algebraMatrix(complex, c));
      expect([...(await c.read())].every((x) => x === 0)).toBe(true);
      const [v, m] = [device().array(f32, [2], [1, 2]), device().array(f32, [2, 2], [1, 2, 3, 4])];
      const y = device().array(f32, [2], nothing().slice(0, 2));
      await blas.gemv("T", 2, m, v, 0, y);
      expect([...(await y.read())]).toEqual([14, 20]);
    });
  });

  it("batches are matrices over an algebra in turn, interleaved and split, one of them for all", async () => {
    const values = (length: number, step: number) => Array.from({ length }, (_, i) => ((i * step) % 7) - 3);
    const [b, k] = [3, 5];
    const left = values(b * 2 * k * 2, 3);
    const right = values(2 * k * 3, 5);
    const a = algebraMatrix(complex, device().array(f32, [b, 2, k, 2], left));
    const planes = algebraMatrix(complex, device().array(f32, [2, k, 3], right).permute([1, 2, 0]));
    const d = await gemm(a, planes.conjugate, { alpha: [0, 1] });
    expect(d.shape).toEqual([b, 2, 3, 2]);
    const got = await d.read();
    for (let at = 0; at < b * 2 * 3; at++) {
      const [line, j] = [Math.floor(at / 3), at % 3];
      const sum = [0, 0];
      for (let l = 0; l < k; l++) {
        const x = [0, 1].map((p) => left[(line * k + l) * 2 + p]!);
        const y = [0, 1].map((p) => right[p * k * 3 + l * 3 + j]! * (p === 1 ? -1 : 1));
        productOf(complex, x, y).forEach((value, p) => {
          sum[p]! += value;
        });
      }
      expect([got[2 * at], got[2 * at + 1]], `element ${at}`).toEqual([0 - sum[1]!, sum[0]]);
    }
  });

  it("a view is read as it counts", async () => {
    const array = device().array(f32, [2, 1, 2], [1, 2, 3, 4]);
    const matrix = algebraMatrix(complex, array);
    expect(matrix.adjoint.shape).toEqual([1, 2]);
    expect([...(await matrix.adjoint.read())]).toEqual([1, -2, 3, -4]);
    expect([...(await matrix.adjoint.conjugate.transposed.read())]).toEqual([1, 2, 3, 4]);
  });

  it("D may share lines with A where it shares no element", async () => {
    const whole = device().array(f32, [4, 8, 2]);
    const [a, d] = [0, 8].map((first) => whole.strided([4, 4, 2], [16, 2, 1], first));
    const x = algebraMatrix(complex, a!);
    await gemm(x, algebraMatrix(complex, device().array(f32, [4, 4, 2])), { d: d! });
    const near = whole.strided([4, 4, 2], [16, 2, 1], 6);
    await expect(gemm(x, x, { d: near })).rejects.toThrow(/D overlaps A/);
  });

  it("one kernel serves other sizes and factors", async () => {
    const kernels = new Set<unknown>();
    for (const size of [8, 16]) {
      const a = algebraMatrix(complex, device().array(f32, [size, size, 2]));
      using plan = await planGemm(a, a.adjoint, { alpha: [size, 1] });
      kernels.add(plan.compiled?.executable);
    }
    expect(kernels.size).toBe(1);
  });

  it("transforms and functions see each component with its element's coordinates", async () => {
    const byRow: Transform = (x, { row }) => x.mul(row.add(1).to(f32));
    const a = device().array(f32, [2, 1, 2], [1, 2, 3, 4]);
    const one = algebraMatrix(complex, device().array(f32, [1, 3, 2], [1, 0, 1, 0, 1, 0]));
    for (const stage of ["globalToShared", "sharedToRegister"] as const) {
      const d = await gemm(algebraMatrix(complex, a), one, {
        transforms: { a: { [stage]: byRow } },
        epilogue: [(x, { column }) => x.add(column.to(f32))],
      });
      expect([...(await d.read())]).toEqual([1, 2, 2, 3, 3, 4, 6, 8, 7, 9, 8, 10]);
    }
  });

  it("refuses what does not go together, in words", async () => {
    const array = device().array(f32, [4, 4, 2]);
    const [x, y] = [algebraMatrix(complex, array), algebraMatrix(dual, device().array(f32, [4, 4, 2]))];
    const plain = device().array(f32, [4, 4]);
    const refused = async (
      work: Promise<unknown>,
      kind: abstract new (...args: never[]) => Error,
      words: RegExp,
    ): Promise<void> => {
      const error = await work.catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(kind);
      expect((error as Error).message).toMatch(words);
    };
    await refused(gemm(x, y), ArgumentError, /A has complex numbers and B dual numbers/);
    await refused(gemm(x, plain), ArgumentError, /B plain numbers/);
    await refused(
      gemm(x, x, { alpha: [1, 2, 3] }),
      ArgumentError,
      /has 3 components; complex numbers have 2/,
    );
    await refused(gemm(plain, plain, { alpha: [1, 2] }), ArgumentError, /plain numbers/);
    await refused(gemm(x, x, { d: plain }), ShapeError, /must be 4 x 4 x 2/);
    await refused(gemm(x, x, { d: array }), ArgumentError, /D overlaps A/);
    await refused(gemm(x, x, { epilogue: [bias(plain.row(0))] }), Error, /bias epilogue works on single/);
    const other = () => device().array(f32, [4, 4, 2]);
    await refused(
      blas.gemmEx("N", "N", 1, x, x, 0, algebraMatrix(complex, other()).conjugate),
      ArgumentError,
      /conjugated view/,
    );
    await refused(gemm(x, x, { c: y }), ArgumentError, /C has dual numbers and A and B have complex numbers/);
    await refused(gemm(plain, plain, { d: y }), ArgumentError, /D has dual numbers and A and B have plain/);
    const repeated = device().array(f32, [64]).strided([4, 4, 2], [8, 2, 2]);
    await refused(gemm(x, x, { d: repeated }), ShapeError, /overlap/);
    await refused(blas.gemmEx("H" as never, "N", 1, x, x, 0, x), ArgumentError, /"N", "T" or "C"/);
    expect(() => algebraMatrix(complex, plain)).toThrow(/shape \[rows, columns, 2\]/);
    await refused(gemm(x, device().array(f32, [2, 4, 4])), ArgumentError, /B plain numbers/);
    expect(() => algebraMatrix(complex, device().array(f32, [2, 4, 4]))).toThrow(/permute\(\[1, 2, 0\]\)/);
    expect(() => algebraOperator(complex, semiringOperator(maxPlus))).toThrow(/neither multiplies nor adds/);
    const plane = defineAlgebra({ name: "shift", basis: "a b", table: ["a b", "0 0"] });
    expect(() => algebraMatrix(plane, array).adjoint).toThrow(/shift numbers have no conjugates/);
    const table =
      (rows: readonly string[], conjugate = "1 i") =>
      () =>
        defineAlgebra({ name: "odd", basis: "1 i", table: rows, conjugate });
    expect(table(["1 i", "i"])).toThrow(/2 x 2; it was given as rows of 2, 1/);
    expect(table(["1 i", "i 2i"])).toThrow(/"2i" is none of 1, i/);
    expect(table(["1 i", "0 i"], "1 -i")).toThrow(/turn products round/);
    expect(() =>
      defineAlgebra({
        ...{ name: "odd", basis: "1 i", table: ["1 i", "i 1"] },
        algorithm: complex3m.algorithm!,
      }),
    ).toThrow(/the algorithm makes -1 of c_110, the table says 1/);
  });
});

describe("matrix operations", () => {
  const params = { block: { m: 16, n: 16, k: 16 }, warps: { m: 1, n: 1 }, groupRows: 8 };
  async function products(algebra: Algebra | undefined): Promise<number> {
    using device = createPaperDevice(nvidiaTarget("sm_80"));
    const array = device.empty(f16, [64, 64, ...(algebra === undefined ? [] : [algebra.dimension])]);
    const matrix = algebra === undefined ? array : algebraMatrix(algebra, array);
    const plan = await planGemm(matrix, matrix, { schedule: "register-staged", params });
    return plan.compiled!.text.match(/mma\.sync/g)!.length;
  }

  it("are those that the table asks for: 4, 3 and 3 times the real product's", async () => {
    const real = await products(undefined);
    for (const [algebra, times] of [
      [complex, 4],
      [complex3m, 3],
      [dual, 3],
      [quaternion, 16],
    ] as const) {
      expect(await products(algebra)).toBe(times * real);
    }
  });

  it("go through registers, and explain says why no other schedule could serve", async () => {
    using device = createPaperDevice(nvidiaTarget("sm_90a"));
    const a = algebraMatrix(complex, device.empty(f16, [512, 512, 2]));
    const plan = await planGemm(a, a, { alpha: [0, 1] });
    const text = plan.explain();
    for (const schedule of ["matrix-vector", "multistage"])
      expect(text).toMatch(
        new RegExp(`not taken  ${schedule}: elements have 2 components \\(complex mma\\)`),
      );
    expect(text).toMatch(/not taken {2}warpgroup: the components of A's elements lie side by side/);
    expect(text).toContain("D = [0, 1] · A · B");
    await expect(planGemm(a, a, { schedule: "warpgroup" })).rejects.toThrow(/lie side by side/);
    await expect(planGemm(a, a, { schedule: "multistage" })).rejects.toThrow(/elements have 2 components/);
    const sums = algebraMatrix(complex3m, device.empty(f16, [512, 512, 2]));
    await expect(planGemm(sums, sums, { pack: true })).rejects.toThrow(/no faster schedule/);
    await expect(planGemm(a, a, { gate: silu })).rejects.toThrow(/gated epilogue works on single numbers/);
    const split = { ...params, splitK: 2 };
    await expect(planGemm(a, a, { params: split })).rejects.toThrow(/splitK = 2: .*interleaved results/);
  });
});
