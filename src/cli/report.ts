/** @file How commands show what they found: numbers for people, facts for programs. */
import type { GemmPlan } from "../gemm/index.ts";

/** A duration with three digits and a fitting unit. */
export function formatSeconds(seconds: number): string {
  const units = [
    [1, "s"],
    [1e-3, "ms"],
    [1e-6, "µs"],
  ] as const;
  const [scale, unit] = units.find(([size]) => seconds >= size) ?? units[2];
  return `${threeDigits(seconds / scale)} ${unit}`;
}

/** A rate of arithmetic. */
export function formatRate(operationsPerSecond: number): string {
  const units = [
    [1e12, "Tflop/s"],
    [1e9, "Gflop/s"],
    [1e6, "Mflop/s"],
  ] as const;
  const [scale, unit] = units.find(([size]) => operationsPerSecond >= size) ?? units[2];
  return `${threeDigits(operationsPerSecond / scale)} ${unit}`;
}

function threeDigits(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

/** Bytes in binary units. */
export function formatBytes(bytes: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), units.length - 1);
  const value = bytes / 1024 ** power;
  return `${Number.isInteger(value) || power === 0 ? value : value.toFixed(1)} ${units[power]}`;
}

/** Which way a multiplication takes. */
export interface GemmRoute {
  /** How data moves: "warpgroup", "multistage", "register-staged". */
  readonly schedule: string;
  /** What multiplies: "wgmma m64n256k16", "mma m16n8k16", "fma". */
  readonly operator: string;
  readonly block: { readonly m: number; readonly n: number; readonly k: number };
  /** Types that are multiplied and summed in. */
  readonly multiplied: readonly [a: string, b: string];
  readonly summed: string;
}

/** The way that a plan takes. */
export function routeOf({ kind, operator }: GemmPlan): GemmRoute {
  const { schedule, types, params } = kind;
  return {
    schedule,
    operator,
    block: params.block,
    multiplied: [types.a.name, types.b.name],
    summed: types.accumulator.name,
  };
}

/** A route on one line. */
export function formatRoute({ schedule, operator, block, summed }: GemmRoute): string {
  return `${operator}, ${schedule}, sums in ${summed}, tiles of ${block.m} × ${block.n} × ${block.k}`;
}

/** Facts as JSON text; integers that a double cannot hold become text. */
export function formatJson(facts: unknown): string {
  const plain = (_: string, value: unknown): unknown =>
    typeof value === "bigint" ? value.toString() : value;
  return `${JSON.stringify(facts, plain, 2)}\n`;
}
