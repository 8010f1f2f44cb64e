/**
 * @file The plain operator with every legal pair of warp grid and per-lane block, and tensor-core operators with every
 * legal pair of block and warps: right, or refused with the reason.
 */
import { ArgumentError, f16, f32, i8, i32, type StorageType, UnsupportedError } from "tilewright";
import { fmaOperator, type GemmParams, mmaSync, type OperatorFactory, wmmaSync } from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { checkGemm, pairwise } from "../conformance/gemm-cases.ts";
import { operatorsFor } from "../conformance/gemm-table.ts";
import { onEveryDevice } from "../conformance/table.ts";

const soak = process.env.TILEWRIGHT_SOAK === "1";

/** An exact fit, and one with a remainder everywhere. */
const sizes = [
  [128, 128, 128],
  [77, 129, 63],
] as const;

/** All combinations, or where that would take long a cover of all pairs. */
function rowsOf<T extends Record<string, readonly unknown[]>>(
  columns: T,
  all: boolean,
): { [K in keyof T]: T[K][number] }[] {
  if (!all) return pairwise(columns);
  const rows = Object.entries(columns).reduce<Record<string, unknown>[]>(
    (held, [name, values]) => held.flatMap((row) => values.map((value) => ({ ...row, [name]: value }))),
    [{}],
  );
  return rows as { [K in keyof T]: T[K][number] }[];
}

onEveryDevice((device, kind) => {
  /** CUDA compiles and runs all pairs in a minute or two; the others take a cover, but for soak. */
  const all = soak || kind === "cuda";

  /** Runs a kind at both sizes; false where it is refused, with a reason. */
  async function works(
    a: StorageType,
    d: StorageType,
    operator: OperatorFactory,
    params: GemmParams,
    which: readonly (readonly [number, number, number])[],
  ): Promise<boolean> {
    for (const [m, n, k] of which) {
      try {
        await checkGemm(device(), { m, n, k, a, d, options: { operator, params } });
      } catch (error) {
        if (!(error instanceof ArgumentError || error instanceof UnsupportedError)) throw error;
        expect(error.message).toMatch(/params|shared memory|threads|registers/);
        return false;
      }
    }
    return true;
  }

  describe("the plain operator", () => {
    it("with every warp grid and per-lane block", async () => {
      const rows = rowsOf(
        {
          laneRows: all && !soak ? [4] : [1, 2, 4, 8, 16, 32],
          rows: [1, 2, 4, 8],
          columns: [1, 2, 4, 8],
          warpRows: [1, 2, 4],
          warpColumns: [1, 2, 4],
          size: sizes,
        },
        all,
      );
      let refused = 0;
      for (const { laneRows, rows: down, columns: across, warpRows, warpColumns, size } of rows) {
        const laneColumns = 32 / laneRows;
        const operator = fmaOperator({ laneRows, laneColumns, rows: down, columns: across });
        const block = { m: warpRows * laneRows * down, n: warpColumns * laneColumns * across, k: 4 };
        const params = { block, warps: { m: warpRows, n: warpColumns }, groupRows: 4 };
        if (!(await works(f32, f32, operator, params, [size]))) refused++;
      }
      expect(refused).toBeLessThan(rows.length / 4);
    }, 1_800_000);

    it("with several operator tiles a warp, and depths that are no power of two", async () => {
      const operator = fmaOperator({ laneRows: 4, laneColumns: 8, rows: 2, columns: 4 });
      for (const block of [
        { m: 16, n: 64, k: 3 },
        { m: 48, n: 32, k: 5 },
        { m: 24, n: 96, k: 16 },
      ]) {
        const params = { block, warps: { m: 1, n: 1 }, groupRows: 1 };
        expect(await works(i32, i32, operator, params, sizes.slice(1))).toBe(true);
      }
    });

    it("refuses a lane grid that is not the subgroup", async () => {
      const operator = fmaOperator({ laneRows: 4, laneColumns: 4, rows: 4, columns: 4 });
      await expect(checkGemm(device(), { m: 8, n: 8, k: 8, a: f32, options: { operator } })).rejects.toThrow(
        "lane grid 4x4 must have the subgroup's 32 lanes",
      );
    });
  });

  describe("the tensor-core operators", () => {
    const operators = [
      ["mma", mmaSync, f16, f32],
      ["wmma", wmmaSync, f16, f32],
      ["mma of bytes", mmaSync, i8, i32],
    ] as const;
    it.for(operators)(
      "%s, with every block and warps",
      { timeout: 1_800_000 },
      async ([name, operator, a, d], { skip }) => {
        const has = operatorsFor({ a, b: a }, device().facts);
        skip(!(name.split(" ")[0]! in has), "the target has no such instruction");
        const rows = rowsOf(
          {
            m: [16, 32, 48, 64, 128],
            n: [16, 32, 48, 64, 128],
            k: [16, 32, 48, 64],
            warpRows: [1, 2, 3, 4],
            warpColumns: [1, 2, 4],
            size: sizes,
          },
          soak,
        );
        let right = 0;
        for (const { m, n, k, warpRows, warpColumns, size } of rows) {
          const params = { block: { m, n, k }, warps: { m: warpRows, n: warpColumns }, groupRows: 3 };
          if (await works(a, d, operator, params, [size])) right++;
        }
        expect(right).toBeGreaterThan(rows.length / 8);
      },
    );
  });

  describe("params that do not fit are refused with what would", () => {
    const good: GemmParams = { block: { m: 64, n: 64, k: 32 }, warps: { m: 2, n: 2 }, groupRows: 8 };
    const refused: readonly (readonly [string, Partial<GemmParams>, RegExp])[] = [
      [
        "a block that the warps do not divide",
        { block: { m: 40, n: 64, k: 32 } },
        /block\.m = 40 is no multiple of .* 2 x 16/,
      ],
      [
        "a K step that the instruction does not divide",
        { block: { m: 64, n: 64, k: 24 } },
        /block\.k = 24 is no multiple of .* 16/,
      ],
      ["a block without columns", { block: { m: 64, n: 0, k: 32 } }, /block\.n is a positive integer, not 0/],
      ["half a warp", { warps: { m: 0.5, n: 2 } }, /warps\.m is a positive integer, not 0\.5/],
      ["groups of no rows", { groupRows: 0 }, /groupRows is a positive integer, not 0/],
      [
        "too many threads",
        { block: { m: 1024, n: 1024, k: 16 }, warps: { m: 16, n: 4 } },
        /16 x 4 warps of 32 lanes are 2048 threads; a block has at most 1024/,
      ],
      [
        "too much shared memory",
        { block: { m: 512, n: 512, k: 128 }, warps: { m: 4, n: 4 } },
        /bytes of shared memory/,
      ],
    ];
    it.for(refused)("%s", async ([, change, message], { skip }) => {
      const { mma, wmma } = operatorsFor({ a: f16, b: f16 }, device().facts);
      const operator = mma ?? wmma;
      skip(operator === undefined, "the target has no matrix instructions");
      const options = { operator: operator!, params: { ...good, ...change } };
      await expect(checkGemm(device(), { m: 64, n: 64, k: 64, a: f16, d: f32, options })).rejects.toThrow(
        message,
      );
    });
  });
});
