/**
 * @file The conformance table's rows and columns: cases, and every device that can run them.
 *
 * TILEWRIGHT_DEVICES names the devices ("cuda,webgpu"); without it there is the simulator, with its checks on. A device
 * that is named must be there.
 */
import type { Device, DeviceArray, DeviceKind, StorageType, TargetFacts } from "tilewright";
import { open } from "tilewright";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { rawArray } from "../../src/types/host.ts";

/** One small kernel, or a few that belong together. */
export interface ConformanceCase {
  readonly name: string;
  /** What the target must have; all of them have it unless given. */
  readonly needs?: (facts: TargetFacts) => boolean;
  readonly run: (device: Device) => Promise<void>;
}

/** Kinds of devices to run on. */
export function deviceKinds(): readonly DeviceKind[] {
  const named = process.env.TILEWRIGHT_DEVICES?.trim();
  return named === undefined || named === "" ? ["simulator"] : (named.split(",") as DeviceKind[]);
}

/** Describes tests once for each device; `device()` is the opened device, inside a test. */
export function onEveryDevice(body: (device: () => Device, kind: DeviceKind) => void): void {
  for (const kind of deviceKinds()) {
    describe(kind, () => {
      let device: Device | undefined;
      beforeAll(async () => {
        device = await open(kind);
      });
      afterAll(async () => {
        await device?.[Symbol.asyncDispose]();
      });
      body(() => device!, kind);
    });
  }
}

/** Runs a list of cases on every device. */
export function runCases(cases: readonly ConformanceCase[]): void {
  onEveryDevice((device) => {
    it.for(cases)("$name", async ({ needs, run }, { skip }) => {
      skip(needs?.(device().facts) === false, "the target lacks what it needs");
      await run(device());
      await device().sync();
    });
  });
}

/** An array whose every byte is poison: NaN in floats, an unlikely number in integers. */
export function poisoned<T extends StorageType>(
  device: Device,
  type: T,
  shape: readonly number[],
): DeviceArray<T> {
  const size = shape.reduce((product, extent) => product * extent, 1);
  const bits = rawArray(type, size);
  new Uint8Array(bits.buffer).fill(0xff);
  return device.arrayFromBits(type, shape, bits);
}

type Numbers = ArrayLike<number | bigint>;

/** Every number is the expected one; all NaN are alike, zeros are told apart by sign. */
export function expectSame(
  actual: Numbers,
  expected: Numbers,
  what: (position: number) => string = String,
): void {
  expect(actual.length).toBe(expected.length);
  for (let position = 0; position < expected.length; position++) {
    const [got, wanted] = [actual[position]!, expected[position]!];
    if (!Object.is(got, wanted))
      expect.fail(`${what(position)}: ${shown(wanted)} expected, got ${shown(got)}`);
  }
}

function shown(value: number | bigint): string {
  return Object.is(value, -0) ? "-0" : String(value);
}

/** Every number is within `tolerance(position)` of the expected one. */
export function expectClose(
  actual: ArrayLike<number>,
  expected: ArrayLike<number>,
  tolerance: number | ((position: number) => number),
): void {
  expect(actual.length).toBe(expected.length);
  for (let position = 0; position < expected.length; position++) {
    const [got, wanted] = [actual[position]!, expected[position]!];
    const allowed = typeof tolerance === "number" ? tolerance : tolerance(position);
    if (!(Math.abs(got - wanted) <= allowed)) {
      expect.fail(`${position}: ${wanted} ± ${allowed} expected, got ${got}`);
    }
  }
}
