import { describe, expect, it } from "vitest";
import { createPaperDevice } from "../cli/paper-device.ts";
import { f16, f32, type StorageType } from "../lang/index.ts";
import type { DeviceArray } from "../runtime/array.ts";
import { nvidiaTarget } from "../target/nvidia.ts";
import { diagonal } from "./layouts/diagonal.ts";
import { triangular } from "./layouts/triangular.ts";
import { mmaSync } from "./operators/mma.ts";
import { type GemmOptions, resolve } from "./resolve.ts";
import type { MatrixSource } from "./source.ts";

const hopper = nvidiaTarget("sm_90a");
/** An H200's multiprocessors. */
const facts = { ...hopper, machine: { ...hopper.machine, multiprocessors: 132 } };

/** What an H200 would get: "warpgroup 128 x 256". */
function chosen(
  make: (
    array: (type: StorageType, ...shape: number[]) => DeviceArray,
  ) => readonly [DeviceArray | MatrixSource, DeviceArray | MatrixSource, GemmOptions?],
): string {
  using device = createPaperDevice(facts);
  const [a, b, options = {}] = make((type, ...shape) => device.empty(type, shape));
  const { kind } = resolve(a, b, options);
  const { block, warps, stages } = kind.params;
  const shape = `${kind.schedule} ${block.m} x ${block.n} by ${warps.m} x ${warps.n}`;
  return stages === undefined ? shape : `${shape}, ${stages} stages`;
}

describe("params for those who give none, on 132 multiprocessors", () => {
  it.for([
    [1024, "warpgroup 128 x 64 by 8 x 1"],
    [2048, "warpgroup 128 x 256 by 8 x 1"],
    [3072, "warpgroup 128 x 192 by 8 x 1"],
    // From here on in turn: many rounds hide epilogues.
    [4096, "warpgroup 128 x 128 by 4 x 1"],
    [16384, "warpgroup 128 x 128 by 4 x 1"],
  ] as const)("f16 of size %i: %s", ([size, expected]) => {
    expect(chosen((array) => [array(f16, size, size), array(f16, size, size)])).toBe(expected);
  });

  it("one more column takes tiles of other sides, not one more round", () => {
    const wider = (options: GemmOptions) =>
      chosen((array) => [array(f16, 4096, 4096), array(f16, 4096, 4104).slice([], [0, 4097]), options]);
    expect(wider({})).toBe("warpgroup 256 x 128 by 8 x 1");
    expect(wider({ operator: mmaSync })).toBe("multistage 256 x 128 by 4 x 2, 4 stages");
    expect(wider({ operator: mmaSync, schedule: "register-staged" })).toBe(
      "register-staged 128 x 256 by 2 x 4",
    );
  });

  it("no tiles in turn where not all of K counts or lines straddle those of the cache", () => {
    const size = 8192;
    expect(chosen((array) => [triangular(array(f16, size, size), "lower"), array(f16, size, size)])).toBe(
      "warpgroup 128 x 256 by 8 x 1",
    );
    const roomy = (array: (type: StorageType, ...shape: number[]) => DeviceArray): DeviceArray =>
      array(f16, size, size + 8).slice([], [0, size]);
    expect(chosen((array) => [array(f16, size, size), roomy(array)])).toBe("warpgroup 128 x 256 by 8 x 1");
  });

  it("diagonals take small tiles, and few stages", () => {
    const size = 4096;
    expect(chosen((array) => [diagonal(array(f16, size)), array(f16, size, size)])).toBe(
      "multistage 16 x 128 by 1 x 2, 2 stages",
    );
    expect(chosen((array) => [array(f16, size, size), diagonal(array(f16, size))])).toBe(
      "multistage 64 x 32 by 2 x 1, 2 stages",
    );
    expect(chosen((array) => [diagonal(array(f32, size)), array(f32, size, size)])).toMatch(/32 x 128/);
  });
});
