/** @file Every pass and the whole pipeline keep what random kernels store. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { print } from "../ir/printer.ts";
import { verifyOptimised } from "../ir/verifier.ts";
import { nvidiaTarget } from "../target/nvidia.ts";
import { type PassName, optimise, passes } from "./index.ts";
import { interpret, type Launch } from "./interpreter-for-tests.ts";
import { growKernel } from "./program-for-tests.ts";
import type { KernelIr } from "../ir/nodes.ts";

const factsForTests = nvidiaTarget("sm_90a");

const launches: readonly Launch[] = [
  { builtins: { threadIndexX: 0, blockIndexX: 0 }, parameters: [0, 0, 0, 0, 0, 7] },
  { builtins: { threadIndexX: 31, blockIndexX: 1000 }, parameters: [0, 0, 0, 0, 0, -5] },
];

function stores(kernel: KernelIr) {
  return launches.map((launch) => interpret(kernel, launch).stores);
}

const tapes = fc.array(fc.nat(1_000_000), { minLength: 20, maxLength: 400, size: "max" });
const runs = { numRuns: Number(process.env["TILEWRIGHT_PROPERTY_RUNS"] ?? 150), seed: 20240607 };

function holds(transform: (kernel: KernelIr) => KernelIr): void {
  fc.assert(
    fc.property(tapes, (tape) => {
      const kernel = growKernel(tape);
      verifyOptimised(kernel);
      const before = print(kernel);
      const changed = transform(kernel);
      expect(print(kernel)).toBe(before);
      verifyOptimised(changed);
      expect(stores(changed)).toEqual(stores(kernel));
    }),
    runs,
  );
}

describe("random kernels store the same after", () => {
  test.each(Object.keys(passes) as PassName[])("%s", (name) => {
    holds((kernel) => passes[name](kernel, factsForTests));
  });

  test("the pipeline", () => {
    holds((kernel) => optimise(kernel, factsForTests));
  });

  test("the pipeline twice", () => {
    holds((kernel) => optimise(optimise(kernel, factsForTests), factsForTests));
  });
});

test("what needs no change stays the same object", () => {
  const kernel = optimise(growKernel([3, 1, 4, 1, 5, 9, 2, 6]), factsForTests);
  for (const name of ["fold", "share", "drop", "renumber", "convert-ifs"] as const) {
    expect(passes[name](kernel, factsForTests)).toBe(kernel);
  }
});
