import { f16, f32 } from "tilewright";
import { type GemmPlan, planGemm } from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { generator } from "../support/random.ts";
import { checkGemm } from "./gemm-cases.ts";
import {
  caseOf,
  cubeRows,
  diagonalTable,
  multiplies,
  pairwiseTable,
  type TableRow,
  type TypeRow,
  thoroughRows,
  typeRows,
} from "./gemm-table.ts";
import { onEveryDevice } from "./table.ts";

const soak = process.env.TILEWRIGHT_SOAK === "1";

onEveryDevice((device, kind) => {
  const run = async (rows: readonly TableRow[]): Promise<void> => {
    for (const [seed, row] of rows.entries())
      await checkGemm(device(), caseOf(row, device().facts), seed + 1);
  };

  /** A test for each row of types that the device can multiply. */
  const overTypes = (body: (types: TypeRow) => Promise<void>, minutes: number): void => {
    it.for(typeRows)("$name", { timeout: minutes * 60_000 }, async (types, { skip }) => {
      skip(!multiplies(types, device().facts), "the target has no arithmetic for it");
      await body(types);
    });
  };

  describe("gemm over types, majorness, operators, sizes, padding, factors and D's order", () => {
    const table = pairwiseTable();
    overTypes((types) => run(table.get(types)!), 5);
  });

  describe.runIf(soak)("every pair of columns for each row of types", () => {
    overTypes((types) => run(thoroughRows(types, Date.now() % 2 ** 31)), 60);
  });

  describe.runIf(soak)("every triple of sizes", () => {
    overTypes((types) => run(cubeRows(types)), 60);
  });

  describe.runIf(kind !== "simulator")("large sizes", () => {
    const table = diagonalTable();
    overTypes((types) => run(table.get(types)!), 20);
  });

  describe("modules", () => {
    const random = generator(50);
    const size = (): number => 1 + Math.floor(random() * 120);
    const sizes = Array.from({ length: 50 }, () => [size(), size(), size()] as const);

    async function plansOf(options: Parameters<typeof planGemm>[2]): Promise<readonly GemmPlan[]> {
      const [a, b, d] = [f16, f16, f32].map((type) => device().array(type, [128, 128]));
      const plans = [];
      for (const [m, n, k] of sizes) {
        const part = d!.slice([0, m], [0, n]);
        plans.push(
          await planGemm(a!.slice([0, m], [0, k]), b!.slice([0, k], [0, n]), { ...options, d: part }),
        );
      }
      for (const plan of plans) plan.run();
      await device().sync();
      for (const plan of plans) plan.dispose();
      for (const array of [a, b, d]) array!.dispose();
      return plans;
    }
    const modules = (plans: readonly GemmPlan[]): number =>
      new Set(plans.map(({ compiled }) => compiled!.executable)).size;

    it("50 random sizes of one kind load one", async () => {
      const params = { block: { m: 32, n: 32, k: 32 }, warps: { m: 2, n: 2 }, groupRows: 8 };
      const plans = await plansOf({ schedule: "register-staged", params });
      expect(new Set(plans.map(({ compiled }) => compiled!.text)).size).toBe(1);
      expect(modules(plans)).toBe(1);
    });

    it("50 random sizes whose params the library chooses load a handful at most", async () => {
      const plans = await plansOf({});
      expect(modules(plans)).toBeLessThanOrEqual(4);
    });
  });
});
