import { expect, it } from "vitest";
import { runProgram } from "./program.ts";

it("own-kernel.ts sums rows", async () => {
  expect(await runProgram("examples/own-kernel.ts")).toBe(
    "the first row adds up to -0.0129\n24 row sums; the largest error is below 1e-4\n",
  );
});

it("tiling.ts multiplies by tiles", async () => {
  expect(await runProgram("examples/tiling.ts")).toBe(
    "the first element is -0.0621\n64 x 128 elements; the largest error is below 1e-4\n",
  );
});
