/** @file Problems smaller than a tile, in buffers of poison: every element is K, nothing outside is read or written. */
import { f16, f32, i8, i32 } from "tilewright";
import { describe, it } from "vitest";
import { checkGemm, pairwise } from "../conformance/gemm-cases.ts";
import { layouts, plain } from "../conformance/gemm-table.ts";
import { onEveryDevice } from "../conformance/table.ts";

const sizes = [1, 2, 3, 7, 8, 15, 16, 17, 31, 33];
const params = { block: { m: 64, n: 64, k: 32 }, warps: { m: 2, n: 2 }, groupRows: 8 };

onEveryDevice((device, kind) => {
  describe("all ones", () => {
    const types = [
      ["f16", f16, f32, { params, schedule: "register-staged" }],
      ["f16, by the library's own choice", f16, f32, {}],
      ["f32", f32, f32, { operator: plain }],
      ["i8", i8, i32, { params }],
    ] as const;
    it.each(types)(
      "%s",
      async (_, a, d, options) => {
        const cube = sizes.flatMap((m) => sizes.flatMap((n) => sizes.map((k) => ({ m, n, k }))));
        const some = pairwise({ m: sizes, n: sizes, k: sizes });
        const list = kind === "simulator" && process.env.TILEWRIGHT_SOAK !== "1" ? some : cube;
        for (const [i, size] of list.entries()) {
          const layout = layouts[i % 4]!;
          await checkGemm(device(), {
            ...size,
            a,
            d,
            layout,
            padding: i % 3 === 0 ? 8 : 5,
            value: () => 1,
            options,
          });
        }
      },
      900_000,
    );
  });
});
