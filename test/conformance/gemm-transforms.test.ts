import { f16, f32, i8, i32, type StorageType } from "tilewright";
import { type OperatorFactory, type Transform, type Transforms, wmmaSync } from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { checkGemm, type GemmCase, pairwise } from "./gemm-cases.ts";
import { layouts, operatorsFor, plain } from "./gemm-table.ts";
import { onEveryDevice } from "./table.ts";

/** Depends on value, row and column, and makes something of zero; in f32, so that only the result is rounded. */
const bend: Transform = (x, { row, column }) =>
  x.to(f32).mul(0.5).add(row.to(f32).mul(0.25)).sub(column.to(f32).mul(0.125)).add(1);
const bent = (x: number, row: number, column: number): number => x * 0.5 + row * 0.25 - column * 0.125 + 1;

/** For integer sums. */
const shift: Transform = (x, { row, column }) => x.to(i32).add(row.mul(2)).sub(column).add(1);
const shifted = (x: number, row: number, column: number): number => x + 2 * row - column + 1;

type Stream = readonly [
  operand: "a" | "b" | "c" | "d",
  stage: "globalToShared" | "sharedToRegister" | "registerToShared" | "sharedToGlobal",
];

const streams: readonly Stream[] = [
  ["a", "globalToShared"],
  ["a", "sharedToRegister"],
  ["b", "globalToShared"],
  ["b", "sharedToRegister"],
  ["c", "globalToShared"],
  ["c", "sharedToRegister"],
  ["d", "registerToShared"],
  ["d", "sharedToGlobal"],
];

/** The transform on one stream, for the device and for the oracle. */
function on(
  [operand, stage]: Stream,
  transform: Transform,
  oracle: typeof bent,
): Pick<GemmCase, "mapA" | "mapB" | "mapC" | "mapD"> & { readonly transforms: Transforms } {
  const name = { a: "mapA", b: "mapB", c: "mapC", d: "mapD" }[operand];
  return { transforms: { [operand]: { [stage]: transform } }, [name]: oracle };
}

/** No size is a multiple of a tile: what lies outside must stay zero although the transform makes something of zero. */
const sizes = [
  [33, 17, 29],
  [7, 40, 1],
  [64, 64, 64],
  [16, 9, 35],
] as const;

onEveryDevice((device) => {
  describe("a transform with coordinates", () => {
    it.each(streams)(
      "of %s, %s",
      async (...stream) => {
        const rows = pairwise({
          layout: layouts,
          operator: Object.values(operatorsFor({ a: f16, b: f16 }, device().facts)),
          size: sizes,
          columnMajorD: [false, true],
          padding: [0, 1],
        });
        for (const { layout, operator, size, columnMajorD, padding } of rows) {
          const { transforms, ...maps } = on(stream, bend, bent);
          const [m, n, k] = size;
          const d = stream[0] === "d" || stream[0] === "c" ? f32 : f16;
          const options = { operator, transforms };
          const work = (): Promise<void> =>
            checkGemm(device(), {
              m,
              n,
              k,
              a: f16,
              d,
              layout,
              columnMajorD,
              padding,
              alpha: 1,
              beta: 0.5,
              ...maps,
              options,
            });
          await unlessOpaque(operator, stream, work);
        }
      },
      120_000,
    );

    it.each(streams)("of %s, %s, of integers", async (...stream) => {
      const { transforms, ...maps } = on(stream, shift, shifted);
      for (const [m, n, k] of sizes) {
        const test = {
          m,
          n,
          k,
          a: i32,
          d: i32,
          alpha: 1,
          beta: 2,
          ...maps,
          options: { transforms, operator: plain },
        };
        await checkGemm(device(), test);
      }
    });
  });

  it("all eight at once", async () => {
    const half: Transform = (x) => x.to(f32).mul(0.5);
    for (const operator of [undefined, plain]) {
      const map = (x: number, row: number, column: number): number => bent(x, row, column) * 0.5;
      const both = { globalToShared: bend, sharedToRegister: half };
      await checkGemm(device(), {
        m: 33,
        n: 18,
        k: 21,
        a: f32,
        d: f32,
        beta: 1,
        mapA: map,
        mapB: map,
        mapC: map,
        mapD: map,
        options: {
          ...(operator === undefined ? {} : { operator }),
          transforms: { a: both, b: both, c: both, d: { registerToShared: bend, sharedToGlobal: half } },
        },
      });
    }
  });

  describe("a transform that changes the type", () => {
    const widen: Transform = (x) => x.to(f32).mul(0.5);
    const cases: readonly (readonly [string, StorageType, StorageType, Transforms, Partial<GemmCase>])[] = [
      ["integer sums to float results", i8, f32, { d: { registerToShared: widen } }, { mapD: (x) => x / 2 }],
      ["half to single and back", f16, f32, { a: { globalToShared: widen } }, { mapA: (x) => x / 2 }],
      [
        "on the way to registers",
        f16,
        f32,
        { b: { sharedToRegister: (x) => x.to(f32).mul(x.to(f32)) } },
        { mapB: (x) => x * x },
      ],
      [
        "in two steps",
        f16,
        f32,
        { a: { globalToShared: widen, sharedToRegister: widen } },
        { mapA: (x) => x / 4 },
      ],
    ];
    it.each(cases)("%s", async (_, a, d, transforms, maps) => {
      for (const layout of layouts) {
        await checkGemm(device(), { m: 33, n: 17, k: 19, a, d, layout, ...maps, options: { transforms } });
      }
    });
  });
});

/** wmma keeps coordinates to itself: a transform on the way to its registers is refused with what would serve. */
async function unlessOpaque(
  operator: OperatorFactory,
  [operand, stage]: Stream,
  work: () => Promise<void>,
): Promise<void> {
  if (operator === wmmaSync && stage === "sharedToRegister" && operand !== "c") {
    await expect(work()).rejects.toThrow(/globalToShared, or the mma operator/);
  } else await work();
}
