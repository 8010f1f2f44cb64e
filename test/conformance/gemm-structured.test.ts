import { ArgumentError, bf16, f16, f32, f64, i8, i32, ShapeError, type StorageType } from "tilewright";
import { bound, diagonal, fmaOperator, gemm, type Predicate, planGemm } from "tilewright/gemm";
import { type GlobalArray, loopWhile, variable } from "tilewright/lang";
import { describe, expect, it } from "vitest";
import { pairwise } from "./gemm-cases.ts";
import { checkStructured, type StructuredCase, type StructureRow } from "./structured-cases.ts";
import { structures, transposed } from "./structures.ts";
import { onEveryDevice } from "./table.ts";

const soak = process.env.TILEWRIGHT_SOAK === "1";
const types: readonly StorageType[] = [f16, f32, bf16, i8, i32, f64];
const sides = ["a", "b"] as const;
const orders = ["row", "column"] as const;
const sizes = [
  [1, 3, 2],
  [7, 17, 33],
  [33, 70, 5],
  [65, 33, 3],
] as const;
/** Several tiles and K steps in small matrices. */
const small = { block: { m: 32, n: 32, k: 16 }, warps: { m: 2, n: 1 }, groupRows: 2 };

onEveryDevice((device) => {
  const run = async (structure: StructureRow, row: Partial<StructuredCase>, seed: number): Promise<void> => {
    const type = row.type ?? f16;
    const options = type === f16 && device().facts.mma.length > 0 ? { params: small } : {};
    const base = { structure, side: "a", otherMajor: "row", rows: 33, columns: 70, other: 5 } as const;
    await checkStructured(device(), { ...base, options, type, ...row }, seed);
  };

  describe("a product with a structured matrix", () => {
    // One side and type each; soak meets all pairs, and all matrices transposed.
    it.for(structures.map((structure, i) => ({ structure, i })))(
      "$structure.name",
      async ({ structure, i }) => {
        const type = i % 5 === 4 ? types[1 + (i % 4)]! : f16;
        await run(structure, { type, side: sides[i % 2]!, otherMajor: orders[(i >> 1) % 2]! }, i);
      },
    );
    it.for(structures.filter((_, i) => i % 4 === 2).map(transposed))("$name", (structure) =>
      run(structure, { side: "b" }, 3),
    );
    // Some K steps count wholly and some in part.
    it.for(structures.filter(({ name }) => /^(lower|upper) triangular|^banded/.test(name)))(
      "$name, on warpgroups",
      async (structure, { skip }) => {
        skip(device().facts.warpgroupMma.length === 0, "the target has no warpgroup products");
        const params = { block: { m: 128, n: 64, k: 64 }, warps: { m: 8, n: 1 }, groupRows: 2 };
        const size = { rows: 272, columns: 272, other: 40 };
        await checkStructured(
          device(),
          {
            structure,
            side: "a",
            otherMajor: "row",
            type: f16,
            ...size,
            options: { schedule: "warpgroup", params },
          },
          5,
        );
      },
    );
    it.runIf(soak).for([...structures, ...structures.map(transposed)])(
      "$name, every pair of size, type, side and order",
      { timeout: 600_000 },
      async (structure) => {
        const rows = pairwise({ size: sizes, type: types, side: sides, otherMajor: orders });
        for (const [seed, { size, ...row }] of rows.entries()) {
          const [rows, columns, other] = size;
          await run(structure, { rows, columns, other, ...row }, seed + 1);
        }
      },
    );
  });

  describe("what components take at run time", () => {
    it("reaches transforms of all streams, and one kernel serves other values", async () => {
      const scaled = (vector: typeof rows, addend: number) =>
        bound((x, { row }, [v, add]) => x.mul(v.loadAt(row)).add(add), vector, {
          type: f32,
          value: addend,
        } as const);
      const rows = device().array(f32, [5], [1, 2, 3, 4, 5]);
      const ones = device().array(f32, [5, 5], new Array(25).fill(1));
      const first = scaled(rows, 1);
      const bindings = { ...first, extras: [rows, { type: f32, value: 0 }] };
      const kernels = new Set<unknown>();
      for (const [given, expected] of [
        [first, [10, 15, 20, 25, 30]],
        [bindings, [5, 10, 15, 20, 25]],
      ] as const) {
        for (const stage of ["globalToShared", "sharedToRegister"] as const) {
          using plan = await planGemm(ones, ones, { transforms: { a: { [stage]: given } } });
          plan.run();
          if (stage === "globalToShared") kernels.add(plan.compiled?.executable);
          expect([...(await plan.d.read())].filter((_, i) => i % 5 === 0)).toEqual(expected);
        }
      }
      expect(kernels.size).toBe(1);
      const leaving = await gemm(ones, ones, { transforms: { d: { registerToShared: first } } });
      expect([...(await leaving.read())].filter((_, i) => i % 5 === 0)).toEqual([6, 11, 16, 21, 26]);
    });

    it("reaches predicates, which meet those of A and B", async () => {
      const n = 96;
      const listed: Predicate = {
        name: "listed steps",
        // Flags, one a step: the first that is set, found one by one.
        next(tile, step, [flags]) {
          const at = variable(i32, step);
          loopWhile(
            () => {
              const set = (flags as GlobalArray<typeof i32>).loadAt(at.value.min(tile.steps.sub(1)));
              return at.value.lt(tile.steps).and(set.eq(0));
            },
            () => {
              at.value = at.value.add(1);
            },
          );
          return at.value;
        },
      };
      // Of 16 elements each; the fallback of narrow subgroups has the same.
      const flags = device().array(i32, [6], [1, 0, 0, 1, 1, 0]);
      const identity = diagonal(device().array(f32, [n], new Array(n).fill(1)));
      const b = device().array(f32, [n, 3], new Array(3 * n).fill(1));
      const width = device().facts.subgroup.width;
      const [laneRows, laneColumns] = width >= 32 ? [4, width / 4] : [2, width / 2];
      const options = {
        operator: fmaOperator({ laneRows, laneColumns, rows: 32 / laneRows, columns: 32 / laneColumns }),
        params: { block: { m: 32, n: 32, k: 16 }, warps: { m: 1, n: 1 }, groupRows: 2 },
      };
      const d = await gemm(identity, b, { ...options, predicate: { component: listed, extras: [flags] } });
      const kept = [...(await d.read())].filter((_, i) => i % 3 === 0);
      expect(kept).toEqual(Array.from({ length: n }, (_, i) => [1, 0, 0, 1, 1, 0][Math.floor(i / 16)]));
    });

    it("must be on the problem's device, and not where D is", async () => {
      const x = device().array(f32, [4, 4]);
      const v = x.row(1);
      await expect(gemm(diagonal(v), x.slice([2, 4]))).rejects.toThrow(ShapeError);
      const d = x;
      const b = device().array(f32, [4, 4]);
      await expect(gemm(diagonal(v), b, { d })).rejects.toThrow("D overlaps A in memory");
      expect(() => diagonal(x)).toThrow(/takes a vector \(rank 1\).*matrix.strided/);
      await expect(gemm({} as never, b)).rejects.toThrow(ArgumentError);
    });
  });
});
