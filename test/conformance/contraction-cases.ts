/**
 * @file Random contractions judged by sums in float64: any rank, views of larger poisoned arrays, C, D and factors.
 */
import { type Device, type DeviceArray, f16, f32, i8, i32, type StorageType } from "tilewright";
import { type ContractionOptions, fmaOperator, planContraction } from "tilewright/gemm";
import { decode, encode } from "../../src/types/host.ts";
import { generator } from "../support/random.ts";
import { normal } from "./gemm-cases.ts";

/** A contraction. */
export interface ContractionCase {
  readonly specification: string;
  readonly extents: Readonly<Record<string, number>>;
  readonly type: StorageType;
  readonly alpha: number;
  readonly beta: number;
  /** Pad, permute and slice the arrays that are given. */
  readonly views: boolean;
  /** Those of {@link smallOptions} unless given. */
  readonly options?: ContractionOptions;
}

const extents = [1, 2, 3, 4, 5, 7, 8];
const types = [f32, f16, i8] as const;

/** The case with a number. */
export function randomContraction(seed: number): ContractionCase {
  const random = generator(seed);
  const below = (n: number): number => Math.floor(random() * n);
  const shuffled = (names: readonly string[]): string[] =>
    names
      .map((name) => [random(), name] as const)
      .sort(([x], [y]) => x - y)
      .map(([, name]) => name);
  const names = "abcdefgh";
  let used = 0;
  const some = (most: number): string[] => Array.from({ length: below(most + 1) }, () => names[used++]!);
  const [batch, rows, columns, summed] = [some(1), some(2), some(2), some(2)];
  const [a, b, d] = [
    [...batch, ...rows, ...summed],
    [...batch, ...columns, ...summed],
    [...batch, ...rows, ...columns],
  ].map(shuffled);
  return {
    specification: `${a!.join("")},${b!.join("")}->${d!.join("")}`,
    extents: Object.fromEntries([...names].map((name) => [name, extents[below(extents.length)]!])),
    type: types[below(3)]!,
    alpha: random() < 0.5 ? 1 : 2,
    beta: random() < 0.6 ? 0 : random() < 0.5 ? 1 : 3,
    views: random() < 0.6,
  };
}

interface Made {
  readonly view: DeviceArray;
  /** Values in the view's row-major order. */
  readonly values: Float64Array;
  /** All of the memory, to see what was touched. */
  readonly whole: DeviceArray;
}

/** A small operator, which compiles in a moment. */
const small: ContractionOptions = {
  operator: fmaOperator({ laneRows: 4, laneColumns: 8, rows: 4, columns: 4 }),
  params: { block: { m: 16, n: 32, k: 8 }, warps: { m: 1, n: 1 }, groupRows: 2 },
};

/** Options for devices whose subgroups have 32 lanes; others choose for themselves. */
export function smallOptions(device: Device): ContractionOptions {
  return device.facts.subgroup.width === 32 ? small : {};
}

/** Runs a case. @throws Error that names it and the first wrong element */
export async function checkContraction(device: Device, test: ContractionCase, seed: number): Promise<void> {
  const { specification, alpha, beta, type, options } = test;
  const random = generator(seed + 1000);
  const output = type.class === "float" ? f32 : i32;
  const [inputs, target] = specification.split("->") as [string, string];
  const [first, second] = inputs.split(",") as [string, string];
  const arrays: DeviceArray[] = [];
  const make = (names: string, of: StorageType, filled: boolean): Made => {
    const made = madeArray(
      device,
      [...names].map((name) => test.extents[name]!),
      of,
      random,
      test.views,
      filled,
    );
    arrays.push(made.whole);
    return made;
  };
  const [a, b] = [make(first, type, true), make(second, type, true)];
  const c = beta === 0 ? undefined : make(target, output, true);
  const d = make(target, output, false);
  const addend = c === undefined ? {} : { c: c.view, beta };
  try {
    using plan = await planContraction(specification, a.view, b.view, {
      ...(options ?? smallOptions(device)),
      ...addend,
      alpha,
      d: d.view,
    });
    plan.run();
    const got = Float64Array.from((await d.view.read()) as ArrayLike<number>, Number);
    const name = `${specification} ${JSON.stringify(test.extents)} ${type.name} alpha ${alpha} beta ${beta} views ${test.views}`;
    const sums = oracle(test, [first, second, target], a.values, b.values);
    sums.forEach(({ sum, magnitude }, i) => {
      const value = alpha * sum + beta * (c?.values[i] ?? 0);
      const allowed =
        output === i32
          ? 0
          : 32 * 2 ** -24 * (alpha * magnitude + Math.abs(beta * (c?.values[i] ?? 0))) + 1e-12;
      if (!(Math.abs(got[i]! - value) <= allowed))
        throw new Error(`${name}: element ${i} is ${got[i]}, not ${value} (allowed ${allowed})`);
    });
    await checkUntouched(d, name, output);
  } finally {
    for (const array of arrays) array.dispose();
  }
}

/** What lies around D's elements must still be poison. */
async function checkUntouched({ whole, view }: Made, name: string, type: StorageType): Promise<void> {
  const all = (await whole.read()) as ArrayLike<number>;
  const poisoned = Array.from(all).filter((x) => (type === i32 ? x === 113 : Number.isNaN(x))).length;
  if (poisoned < whole.size - view.size) throw new Error(`${name}: elements outside D were written`);
}

function madeArray(
  device: Device,
  shape: readonly number[],
  type: StorageType,
  random: () => number,
  views: boolean,
  filled: boolean,
): Made {
  const size = shape.reduce((product, extent) => product * extent, 1);
  const poison = type.class === "float" ? Number.NaN : 113;
  const order = shape.map((_, i) => i);
  if (views) order.sort(() => random() - 0.5);
  // Dimension order[i] of the view is dimension i of the memory, longer than needed.
  const padding = order.map(() => (views && random() < 0.5 ? 1 : 0));
  const memory = order.map((from, i) => shape[from]! + padding[i]!);
  const strides = shape.map((_, from) => {
    const at = order.indexOf(from);
    return memory.slice(at + 1).reduce((product, extent) => product * extent, 1);
  });
  const length = memory.reduce((product, extent) => product * extent, 1);
  const host = new Array<number>(length).fill(poison);
  const positions = Array.from({ length: size }, (_, i) => positionOf(i, shape, strides));
  if (filled) {
    for (const at of positions)
      host[at] = type.class === "float" ? normal(random) : Math.floor(random() * 7) - 3;
  }
  const raw = encode(type, host);
  const whole = device.arrayFromBits(type, [length], raw as never);
  const held = Float64Array.from(decode(type, raw as never) as ArrayLike<number>, Number);
  return {
    whole,
    view: whole.strided(shape, strides),
    values: Float64Array.from(positions, (at) => held[at]!),
  };
}

function positionOf(i: number, shape: readonly number[], strides: readonly number[]): number {
  let [rest, at] = [i, 0];
  for (let dimension = shape.length - 1; dimension >= 0; dimension--) {
    at += (rest % shape[dimension]!) * strides[dimension]!;
    rest = Math.floor(rest / shape[dimension]!);
  }
  return at;
}

function oracle(
  { extents }: ContractionCase,
  [first, second, target]: readonly [string, string, string],
  a: Float64Array,
  b: Float64Array,
): readonly { readonly sum: number; readonly magnitude: number }[] {
  const summed = [...first].filter((name) => !target.includes(name));
  const count = (names: readonly string[]): number =>
    names.reduce((product, name) => product * extents[name]!, 1);
  const place = (names: string, at: Readonly<Record<string, number>>): number =>
    [...names].reduce((sum, name) => sum * extents[name]! + at[name]!, 0);
  const coordinates = (i: number, names: readonly string[], at: Record<string, number>): void => {
    let rest = i;
    for (const name of [...names].reverse()) {
      at[name] = rest % extents[name]!;
      rest = Math.floor(rest / extents[name]!);
    }
  };
  return Array.from({ length: count([...target]) }, (_, i) => {
    const at: Record<string, number> = {};
    coordinates(i, [...target], at);
    let [sum, magnitude] = [0, 0];
    for (let k = 0; k < count(summed); k++) {
      coordinates(k, summed, at);
      const term = a[place(first, at)]! * b[place(second, at)]!;
      sum += term;
      magnitude += Math.abs(term);
    }
    return { sum, magnitude };
  });
}
