/** @file Every pass and the whole pipeline keep what random kernels store. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { KernelIr } from "../ir/nodes.ts";
import { print } from "../ir/printer.ts";
import { verifyOptimised } from "../ir/verifier.ts";
import { nvidiaTarget } from "../target/nvidia.ts";
import { optimise, type PassName, passes } from "./index.ts";
import { interpret, type Store } from "./interpreter-for-tests.ts";
import { argumentsFor, growKernel } from "./program-for-tests.ts";

const factsForTests = nvidiaTarget("sm_90a");

function stores(kernel: KernelIr): readonly (readonly Store[])[] {
  return [0, 1, 2, 4, 6, 7, 13].map((choice) => {
    const builtins = { threadIndexX: (choice * 5) % 32, blockIndexX: choice * 1000 };
    return interpret(kernel, { builtins, parameters: argumentsFor(kernel, choice) }).stores;
  });
}

const tapes = fc.array(fc.nat(1_000_000), { minLength: 20, maxLength: 400, size: "max" });
const runs = {
  numRuns: Number(process.env.TILEWRIGHT_PROPERTY_RUNS ?? 150),
  seed: Number(process.env.TILEWRIGHT_PROPERTY_SEED ?? 20240607),
};

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

describe("random kernels store the same after", { timeout: 120_000 }, () => {
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
