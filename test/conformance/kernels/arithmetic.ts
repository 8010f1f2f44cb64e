/**
 * @file Arithmetic on a device against the one meaning of every operation (src/ir/evaluate.ts), bit for bit, over the
 * values at which rules differ.
 */
import type { Device, StorageType, TargetFacts } from "tilewright";
import {
  bf16,
  block,
  ceil,
  constant,
  dot4,
  type ElementType,
  e4m3,
  e5m2,
  f16,
  f32,
  f64,
  floor,
  i8,
  i16,
  i32,
  i64,
  input,
  type Kernel,
  kernel,
  leadingZeros,
  max,
  min,
  mulHigh,
  output,
  permuteBytes,
  popcount,
  reverseBits,
  roundEven,
  select,
  sqrt,
  thread,
  trunc,
  u8,
  u16,
  u32,
  u64,
  type Value,
  when,
} from "tilewright/lang";
import { expect } from "vitest";
import { type EvaluableName, evaluateOperation } from "../../../src/ir/evaluate.ts";
import { scalar } from "../../../src/ir/nodes.ts";
import { convertValue } from "../../../src/types/convert.ts";
import { decode, encode, rawArray } from "../../../src/types/host.ts";
import { integers, normals } from "../../support/random.ts";
import { type ConformanceCase, expectSame, poisoned } from "../table.ts";

type Numbers = readonly (number | bigint)[];
// Cases are tables over types: what is right for each is checked while tracing.
// biome-ignore lint/suspicious/noExplicitAny: a table over all element types
type Any = Value<any>;

const f32Edges = [
  0,
  -0,
  1,
  -1,
  0.5,
  1.5,
  2.5,
  -2.5,
  3,
  7,
  1 / 3,
  1e-45,
  -1e-45,
  1.1754943508222875e-38,
  1.1754942106924411e-38,
  3.4028234663852886e38,
  -3.4028234663852886e38,
  Infinity,
  -Infinity,
  NaN,
  8388609,
  16777216,
  2147483648,
  4294967296,
  -9.3e18,
  65504,
  65520,
  2 ** -24,
  2 ** -25,
  448,
  464,
  57344,
  61440,
  255.5,
  256,
  -128.5,
  -129,
];

const edges: { readonly [name: string]: Numbers } = {
  f32: f32Edges,
  f64: [
    ...f32Edges,
    5e-324,
    Number.MAX_VALUE,
    Number.MIN_VALUE * 3,
    2 ** 53 + 2,
    0.1,
    1e300,
    1 + 2 ** -52,
    2 ** 63,
    2 ** 64,
  ],
  i32: [
    0, 1, -1, 2, -2, 3, 7, -7, 31, 32, 33, 64, 100, -100, 0x7fffffff, -0x80000000, 0x55555555, 65535, -65536,
  ],
  u32: [0, 1, 2, 3, 7, 31, 32, 33, 100, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffff9, 65536],
  i64: [
    0n,
    1n,
    -1n,
    2n,
    3n,
    7n,
    -7n,
    63n,
    64n,
    65n,
    2n ** 31n,
    -(2n ** 31n),
    2n ** 32n,
    2n ** 63n - 1n,
    -(2n ** 63n),
    123456789012345n,
  ],
  u64: [0n, 1n, 2n, 3n, 7n, 63n, 64n, 65n, 2n ** 31n, 2n ** 32n, 2n ** 63n, 2n ** 64n - 1n, 123456789012345n],
  i8: [0, 1, -1, 127, -128, 5],
  u8: [0, 1, 127, 128, 255],
  i16: [0, 1, -1, 32767, -32768, 300],
  u16: [0, 1, 32767, 32768, 65535, 300],
};

/** Values of a type: the edges, and random ones. */
function samples(type: StorageType): Numbers {
  const own = edges[type.name] ?? f32Edges;
  const random =
    type.class === "float" ? normals(23, 1) : integers(23, 1, type.class === "signed" ? -100 : 0, 127);
  const all = [
    ...own,
    ...(type.bits === 64 && type.class !== "float" ? random.map(BigInt) : random),
  ] as number[];
  // As the type holds them.
  return [...(decode(type, encode(type, all)) as Iterable<number>)];
}

/** All pairs of a type's samples. */
function pairs(type: StorageType): readonly [Numbers, Numbers] {
  const list = samples(type);
  return [list.flatMap((a) => list.map(() => a)), list.flatMap(() => list)];
}

const threads = 128;

/** z[i] = compute(x[i], y[i]) for values of whichever types. */
function elementwise(
  x: StorageType,
  y: StorageType,
  z: StorageType,
  compute: (a: Any, b: Any) => Any,
): Kernel {
  return kernel("elementwise", {
    params: { x: input(x), y: input(y), z: output(z) },
    block: threads,
    body({ x, y, z }) {
      const at = block.id.x.mul(threads).add(thread.index);
      when(at.lt(z.size()), () => z.store(at, compute(x.load(at), y.load(at))));
    },
  }) as unknown as Kernel;
}

async function results(
  device: Device,
  [xType, yType, zType]: readonly [StorageType, StorageType, StorageType],
  [xs, ys]: readonly [Numbers, Numbers],
  compute: (a: Any, b: Any) => Any,
): Promise<ArrayLike<number | bigint>> {
  const x = device.array(xType, [xs.length], xs as number[]);
  const y = device.array(yType, [ys.length], ys as number[]);
  const z = poisoned(device, zType, [xs.length]);
  const blocks = Math.ceil(xs.length / threads);
  await device.run(elementwise(xType, yType, zType, compute), { blocks, args: { x, y, z } as never });
  return z.read();
}

function has(...types: readonly ElementType[]): (facts: TargetFacts) => boolean {
  return (facts) =>
    types.every(({ name }) => facts.storage.has(name)) && facts.arithmetic.has(types[0]!.name);
}

interface Binary {
  readonly name: EvaluableName;
  readonly compute: (a: Any, b: Any) => Any;
}

const method = (name: string): Binary => ({
  name: name as EvaluableName,
  compute: (a, b) => (a as never as Record<string, (b: Any) => Any>)[name]!(b),
});

const everywhere: readonly Binary[] = [
  method("add"),
  method("sub"),
  method("mul"),
  { name: "min", compute: (a, b) => min(a, b) },
  { name: "max", compute: (a, b) => max(a, b) },
  { name: "neg", compute: (a) => a.neg() },
  { name: "abs", compute: (a) => a.abs() },
];
const onFloats: readonly Binary[] = [
  { name: "floor", compute: (a) => floor(a) },
  { name: "ceil", compute: (a) => ceil(a) },
  { name: "trunc", compute: (a) => trunc(a) },
  { name: "roundEven", compute: (a) => roundEven(a) },
  { name: "div", compute: (a, b) => a.div(b) },
  { name: "sqrt", compute: (a) => sqrt(a) },
];
const onIntegers: readonly Binary[] = [
  method("div"),
  method("rem"),
  method("floorDiv"),
  method("floorMod"),
  method("and"),
  method("or"),
  method("xor"),
  method("shiftLeft"),
  method("shiftRight"),
  { name: "not", compute: (a) => a.not() },
];
const onWords: readonly Binary[] = [
  { name: "mulHigh", compute: (a, b) => mulHigh(a, b) },
  { name: "reverseBits", compute: (a) => reverseBits(a) },
];
const unary: ReadonlySet<string> = new Set([
  "neg",
  "abs",
  "floor",
  "ceil",
  "trunc",
  "roundEven",
  "sqrt",
  "not",
  "reverseBits",
]);

function operationsOf(type: StorageType): readonly Binary[] {
  if (type.class === "float") return [...everywhere, ...onFloats];
  const words = type.bits === 32 ? onWords : [];
  return [...everywhere, ...onIntegers, ...words].filter(
    ({ name }) => type.class === "signed" || (name !== "neg" && name !== "abs"),
  );
}

/** Least positive normal number. */
const leastNormal: { readonly [name: string]: number } = { f16: 2 ** -14, f32: 2 ** -126 };

/**
 * WGSL promises less of floats than the rest of the library: no subnormal numbers, no infinities, no NaN but those that
 * `min`, `max` and conversions look for on bits, no signs of zero; divisions and roots are within 2.5 units in the last place,
 * and fma may round twice.
 */
function expectPromised(
  device: Device,
  type: StorageType,
  actual: ArrayLike<number | bigint>,
  expected: Numbers,
  operandsAt: (position: number) => Numbers,
  what: (position: number) => string,
  units = 0,
): void {
  if (device.facts.language !== "wgsl" || type.class !== "float") {
    expectSame(actual, expected, what);
    return;
  }
  const least = leastNormal[type.name]!;
  const isPlain = (x: number | bigint): boolean =>
    Number.isFinite(x) && (x === 0 || Math.abs(Number(x)) >= least);
  expected.forEach((wanted, position) => {
    const operands = operandsAt(position);
    if (![wanted, ...operands].every(isPlain)) return;
    const size = Math.max(Math.abs(Number(wanted)), least);
    const allowed = units * size * 2 ** -(type.precision - 1);
    if (!(Math.abs(Number(actual[position]) - Number(wanted)) <= allowed)) {
      expect.fail(`${what(position)}: ${String(wanted)} expected, got ${String(actual[position])}`);
    }
  });
}

/** f16 and bf16 have a division and a root by way of f32, correctly rounded; only f32 and f64 promise it. */
function binaryCase(type: StorageType, { name, compute }: Binary): ConformanceCase {
  return {
    name: `${name} of ${type.name}`,
    needs: has(type),
    async run(device) {
      const given = pairs(type);
      const actual = await results(device, [type, type, type], given, compute);
      const expected = given[0].map((a, position) => {
        const operands = unary.has(name) ? [a] : [a, given[1][position]!];
        return evaluateOperation(
          name,
          operands,
          operands.map(() => scalar(type)),
          scalar(type),
          {},
        ) as number;
      });
      // WGSL promises f32 quotients by divisors up to 2^126, whose reciprocals are normal numbers.
      const reciprocal = (x: number | bigint): Numbers =>
        name === "div" && type === f32 ? [1 / Number(x)] : [];
      const operandsAt = (at: number): Numbers =>
        unary.has(name) ? [given[0][at]!] : [given[0][at]!, given[1][at]!, ...reciprocal(given[1][at]!)];
      const what = (at: number): string => `${name}(${given[0][at]}, ${given[1][at]})`;
      const units = name === "div" || name === "sqrt" ? 2.5 : 0;
      expectPromised(device, type, actual, expected, operandsAt, what, units);
    },
  };
}

const comparisons: readonly Binary[] = [
  { name: "equal", compute: (a, b) => a.eq(b) },
  { name: "notEqual", compute: (a, b) => a.ne(b) },
  { name: "less", compute: (a, b) => a.lt(b) },
  { name: "lessEqual", compute: (a, b) => a.le(b) },
  { name: "greater", compute: (a, b) => a.gt(b) },
  { name: "greaterEqual", compute: (a, b) => a.ge(b) },
];

function comparisonCase(type: StorageType): ConformanceCase {
  return {
    name: `comparisons of ${type.name}`,
    needs: has(type, u32),
    async run(device) {
      const given = pairs(type);
      for (const { name, compute } of comparisons) {
        const actual = await results(device, [type, type, u32], given, (a, b) =>
          select(compute(a, b) as never, constant(u32, 1), 0),
        );
        const expected = given[0].map((a, position) =>
          Number(
            evaluateOperation(name, [a, given[1][position]!], [scalar(type), scalar(type)], scalar(type), {}),
          ),
        );
        const operandsAt = (at: number): Numbers => [given[0][at]!, given[1][at]!];
        const what = (at: number): string => `${name}(${given[0][at]}, ${given[1][at]})`;
        expectPromised(device, type, actual, expected, operandsAt, what);
      }
    },
  };
}

function fmaCase(type: StorageType): ConformanceCase {
  return {
    name: `fma of ${type.name}`,
    needs: has(type),
    async run(device) {
      const given = pairs(type);
      const third = given[0].map((_, position) => given[1][(position * 7 + 3) % given[1].length]!);
      const actual = await results(device, [type, type, type], given, (a, b) => a.fma(b, a));
      const expected = given[0].map(
        (a, at) =>
          evaluateOperation(
            "fma",
            [a, given[1][at]!, a],
            [scalar(type), scalar(type), scalar(type)],
            scalar(type),
            {},
          ) as number,
      );
      expectFused(device, type, actual, expected, (at) => [given[0][at]!, given[1][at]!, given[0][at]!]);
      const rounded = await results(device, [type, type, type], [given[0], third], (a, b) => a.fma(a, b));
      const wanted = given[0].map(
        (a, at) =>
          evaluateOperation(
            "fma",
            [a, a, third[at]!],
            [scalar(type), scalar(type), scalar(type)],
            scalar(type),
            {},
          ) as number,
      );
      expectFused(device, type, rounded, wanted, (at) => [given[0][at]!, given[0][at]!, third[at]!]);
    },
  };
}

/** Where products are rounded before they are added, what is left of them when the sum cancels is anything. */
function expectFused(
  device: Device,
  type: StorageType,
  actual: ArrayLike<number | bigint>,
  expected: Numbers,
  operandsAt: (position: number) => Numbers,
): void {
  const cancels = (position: number): boolean => {
    const [a, b, c] = operandsAt(position).map(Number) as [number, number, number];
    const product = Math.abs(a * b);
    const vanishes = product !== 0 && product < leastNormal[type.name]!;
    return vanishes || Math.abs(Number(expected[position])) < Math.max(product, Math.abs(c)) / 2;
  };
  const known = (position: number): Numbers => [
    ...operandsAt(position),
    ...(type.class === "float" && device.facts.language === "wgsl" && cancels(position) ? [NaN] : []),
  ];
  const what = (at: number): string => `fma(${operandsAt(at).join(", ")})`;
  expectPromised(device, type, actual, expected, known, what, 2);
}

const storageTypes: readonly StorageType[] = [
  f16,
  bf16,
  f32,
  f64,
  e4m3,
  e5m2,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
];
const arithmeticTypes: readonly StorageType[] = [f16, bf16, f32, f64, i32, i64, u32, u64];

function conversionCase(from: StorageType): ConformanceCase {
  return {
    name: `conversion of ${from.name} to every type`,
    needs: (facts) => facts.storage.has(from.name),
    async run(device) {
      const given = samples(from);
      for (const to of storageTypes.filter(({ name }) => device.facts.storage.has(name))) {
        const actual = await results(device, [from, from, to], [given, given], (a) => a.to(to));
        const expected = given.map((value) =>
          from === to ? value : (convertValue(value, from, to) as number),
        );
        expectSame(actual, expected, (at) => `${given[at]} (${from.name}) to ${to.name}`);
      }
    },
  };
}

/** Every bit pattern of a small type goes through the device and comes back. */
function everyPatternCase(type: StorageType): ConformanceCase {
  return {
    name: `every pattern of ${type.name}, loaded, widened and stored`,
    needs: (facts) => facts.storage.has(type.name),
    async run(device) {
      const wide = type.class === "float" ? f32 : i32;
      const bits = rawArray(type, 2 ** type.bits);
      for (let pattern = 0; pattern < bits.length; pattern++) bits[pattern] = pattern;
      const x = device.arrayFromBits(type, [bits.length], bits as never);
      const [z, same] = [poisoned(device, wide, [bits.length]), poisoned(device, type, [bits.length])];
      const blocks = Math.ceil(bits.length / threads);
      await device.run(
        elementwise(type, type, wide, (a) => a.to(wide)),
        { blocks, args: { x, y: x, z } as never },
      );
      await device.run(
        elementwise(type, type, type, (a) => a),
        { blocks, args: { x, y: x, z: same } as never },
      );
      const values = decode(type, bits as never) as ArrayLike<number>;
      expectSame(await z.read(), Array.from(values), (at) => `pattern ${at}`);
      expectSame(await same.read(), Array.from(values), (at) => `pattern ${at}`);
    },
  };
}

const bits: ConformanceCase = {
  name: "bits: popcount, leadingZeros, dot4, permuteBytes, bitcast",
  async run(device) {
    const given = pairs(u32);
    const word = scalar(u32);
    const check = async (
      name: EvaluableName,
      result: StorageType,
      compute: (a: Any, b: Any) => Any,
      evaluate: (a: number, b: number) => unknown,
    ): Promise<void> => {
      const actual = await results(device, [u32, u32, result], given, compute);
      expectSame(
        actual,
        given[0].map((a, at) => evaluate(a as number, given[1][at] as number) as number),
        (at) => `${name}(${given[0][at]}, ${given[1][at]})`,
      );
    };
    await check(
      "popcount",
      i32,
      (a) => popcount(a),
      (a) => evaluateOperation("popcount", [a], [word], scalar(i32), {}),
    );
    await check(
      "leadingZeros",
      i32,
      (a) => leadingZeros(a),
      (a) => evaluateOperation("leadingZeros", [a], [word], scalar(i32), {}),
    );
    for (const signs of [
      { signedA: true, signedB: true },
      { signedA: false, signedB: true },
      { signedA: false, signedB: false },
      { signedA: true, signedB: false },
    ]) {
      await check(
        "dot4",
        i32,
        (a, b) => dot4(a, b, 100, signs),
        (a, b) => evaluateOperation("dot4", [a, b, 100], [word, word, scalar(i32)], scalar(i32), signs),
      );
    }
    await check(
      "permuteBytes",
      u32,
      (a, b) => permuteBytes(a, 0x89abcdef, b),
      (a, b) => evaluateOperation("permuteBytes", [a, 0x89abcdef, b], [word, word, word], word, {}),
    );
    await check(
      "bitcast",
      i32,
      (a) => a.bitcast(f32).bitcast(i32),
      (a) => (Number.isNaN(new Float32Array(Uint32Array.of(a).buffer)[0]) ? a | 0 : a | 0),
    );
  },
};

/** A maximum of magnitudes that begins at 0, which compilers like to simplify. */
const magnitudes: ConformanceCase = {
  name: "the largest magnitude of i32",
  async run(device) {
    const given = pairs(i32);
    const actual = await results(device, [i32, i32, i32], given, (a, b) =>
      max(max(constant(i32, 0), a.abs()), b.abs()),
    );
    const magnitude = (x: number | bigint): number => Math.abs(Number(x)) | 0;
    const expected = given[0].map((a, at) => Math.max(0, magnitude(a), magnitude(given[1][at]!)));
    expectSame(actual, expected, (at) => `of ${given[0][at]} and ${given[1][at]}`);
  },
};

export const arithmeticCases: readonly ConformanceCase[] = [
  ...arithmeticTypes.flatMap((type) => operationsOf(type).map((operation) => binaryCase(type, operation))),
  ...arithmeticTypes.map(comparisonCase),
  ...arithmeticTypes.map(fmaCase),
  ...storageTypes.map(conversionCase),
  ...storageTypes.filter((type) => type.bits <= 16).map(everyPatternCase),
  bits,
  magnitudes,
];
