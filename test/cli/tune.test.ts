/** @file `tilewright tune gemm`: on the simulator, whose clock is the host's. */
import { usualStore } from "tilewright/tuning";
import { afterEach, expect, it } from "vitest";
import { tilewright } from "./run.ts";

afterEach(() => usualStore().clear());

const sizes = ["16", "32", "8"] as const;

it("finds params, and later products take them", async () => {
  const { status, out } = await tilewright(
    ..."tune gemm 16 32 8 --type f32 --device simulator --most 2 --json".split(" "),
  );
  expect(status).toBe(0);
  const found = JSON.parse(out);
  expect(found).toMatchObject({ m: 16, n: 32, k: 8, schedule: "register-staged", refused: [] });
  expect(found.measured.length).toBe(2);
});

it("says what was fastest to people", async () => {
  const { status, out } = await tilewright(
    "tune",
    "gemm",
    ...sizes,
    "--type",
    "f32",
    "--device",
    "simulator",
    "--most",
    "2",
  );
  expect(status).toBe(0);
  expect(out).toMatch(/^16 x 32 x 8 on .*register-staged: .* times as fast as the usual\n/);
  expect(out).toMatch(/block \d+ x \d+ x \d+, \d+ x \d+ warps, groups of \d+ tile rows\n/);
});

it("refuses what makes no sense in one line", async () => {
  const wrong = await tilewright("tune", "gemm", "16", "0", "8", "--device", "simulator");
  expect([wrong.status, wrong.error]).toEqual([2, expect.stringContaining("whole number from 1")]);
  const order = await tilewright("tune", "gemm", ...sizes, "--layout", "xy");
  expect([order.status, order.error]).toEqual([2, expect.stringContaining("Known are nn, nt, tn, tt")]);
  const vectors = await tilewright("tune", "gemm", "1", "64", "64", "--type", "f32", "--device", "simulator");
  expect([vectors.status, vectors.error]).toEqual([1, expect.stringContaining("nothing to tune")]);
});
