/** @file Evaluation against oracles over BigInt and bit patterns. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  bf16,
  bool,
  type ElementType,
  f16,
  f32,
  f64,
  i32,
  i64,
  index,
  u8,
  u32,
  u64,
} from "../types/types.ts";
import { type EvaluableName, evaluateOperation, type HostValue, isEvaluable, isExact } from "./evaluate.ts";
import type { Lanes, ValueType } from "./nodes.ts";
import type { OperationName } from "./operations.ts";
import { operations } from "./operations.ts";

const seed = { seed: 1, numRuns: 300 };
const type = (element: ElementType, lanes: Lanes = 1): ValueType => ({ element, lanes });

function run(
  name: EvaluableName,
  element: ElementType,
  operands: readonly HostValue[],
  result: ElementType = element,
  attributes: object = {},
): HostValue {
  return evaluateOperation(
    name,
    operands,
    operands.map(() => type(element)),
    type(result),
    attributes as never,
  );
}

/** An integer type as numbers of its own and as BigInt. */
interface Integer {
  readonly element: ElementType;
  readonly width: number;
  readonly values: fc.Arbitrary<bigint>;
  readonly wrap: (x: bigint) => bigint;
  readonly own: (x: bigint) => number | bigint;
}

const edges = (low: bigint, high: bigint): fc.Arbitrary<bigint> =>
  fc.oneof(
    fc.bigInt({ min: low, max: high }),
    fc.constantFrom(low, high, 0n, 1n, high - 1n, low + 1n),
    fc.bigInt({ min: low < 0n ? -40n : 0n, max: 40n }),
  );

const integerTypes: readonly Integer[] = [
  {
    element: i32,
    width: 32,
    values: edges(-(2n ** 31n), 2n ** 31n - 1n),
    wrap: (x) => BigInt.asIntN(32, x),
    own: Number,
  },
  {
    element: u32,
    width: 32,
    values: edges(0n, 2n ** 32n - 1n),
    wrap: (x) => BigInt.asUintN(32, x),
    own: Number,
  },
  {
    element: i64,
    width: 64,
    values: edges(-(2n ** 63n), 2n ** 63n - 1n),
    wrap: (x) => BigInt.asIntN(64, x),
    own: (x) => x,
  },
  {
    element: u64,
    width: 64,
    values: edges(0n, 2n ** 64n - 1n),
    wrap: (x) => BigInt.asUintN(64, x),
    own: (x) => x,
  },
];

const floor = (a: bigint, b: bigint): bigint => (a % b !== 0n && a < 0n !== b < 0n ? a / b - 1n : a / b);

const binaryOracles: { readonly [name: string]: (a: bigint, b: bigint, width: number) => bigint } = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  mulHigh: (a, b, width) => (a * b) >> BigInt(width),
  div: (a, b) => (b === 0n ? a : a / b),
  rem: (a, b) => (b === 0n ? 0n : a % b),
  floorDiv: (a, b) => (b === 0n ? a : floor(a, b)),
  floorMod: (a, b) => (b === 0n ? 0n : a - b * floor(a, b)),
  min: (a, b) => (a < b ? a : b),
  max: (a, b) => (a > b ? a : b),
  and: (a, b) => a & b,
  or: (a, b) => a | b,
  xor: (a, b) => a ^ b,
};

describe.each(integerTypes)("$element.name", ({ element, width, values, wrap, own }) => {
  test.each(Object.keys(binaryOracles))("%s", (name) => {
    fc.assert(
      fc.property(values, values, (a, b) => {
        const expected = own(wrap(binaryOracles[name]!(a, b, width)));
        expect(run(name as EvaluableName, element, [own(a), own(b)])).toBe(expected);
      }),
      seed,
    );
  });

  test("neg, abs, not, fma", () => {
    fc.assert(
      fc.property(values, values, values, (a, b, c) => {
        expect(run("neg", element, [own(a)])).toBe(own(wrap(-a)));
        expect(run("abs", element, [own(a)])).toBe(own(wrap(a < 0n ? -a : a)));
        expect(run("not", element, [own(a)])).toBe(own(wrap(~a)));
        expect(run("fma", element, [own(a), own(b), own(c)])).toBe(own(wrap(a * b + c)));
      }),
      seed,
    );
  });

  test("shifts take their count modulo the width, from either 32-bit type", () => {
    fc.assert(
      fc.property(values, fc.integer(), (a, count) => {
        const by = BigInt.asUintN(32, BigInt(count)) % BigInt(width);
        const shift = (name: EvaluableName, countType: ElementType, countValue: number): HostValue =>
          evaluateOperation(
            name,
            [own(a), countValue],
            [type(element), type(countType)],
            type(element),
            {} as never,
          );
        for (const [countType, value] of [
          [i32, count],
          [u32, count >>> 0],
        ] as const) {
          expect(shift("shiftLeft", countType, value)).toBe(own(wrap(a << by)));
          expect(shift("shiftRight", countType, value)).toBe(own(wrap(a >> by)));
        }
      }),
      seed,
    );
  });

  test("bits", () => {
    fc.assert(
      fc.property(values, (a) => {
        const digits = BigInt.asUintN(width, a).toString(2).padStart(width, "0");
        expect(run("popcount", element, [own(a)], i32)).toBe(
          [...digits].filter((digit) => digit === "1").length,
        );
        expect(run("leadingZeros", element, [own(a)], i32)).toBe(
          digits.includes("1") ? digits.indexOf("1") : width,
        );
        const reversed = BigInt(`0b${[...digits].reverse().join("")}`);
        expect(run("reverseBits", element, [own(a)])).toBe(own(wrap(reversed)));
      }),
      seed,
    );
  });

  test("comparisons", () => {
    fc.assert(
      fc.property(values, values, (a, b) => {
        const outcomes = (["equal", "notEqual", "less", "lessEqual", "greater", "greaterEqual"] as const).map(
          (name) => run(name, element, [own(a), own(b)], bool),
        );
        expect(outcomes).toEqual([a === b, a !== b, a < b, a <= b, a > b, a >= b]);
      }),
      seed,
    );
  });
});

describe("floats", () => {
  test("round once, in their own type", () => {
    expect(run("add", f16, [2048, 1])).toBe(2048);
    expect(run("mul", bf16, [1.0078125, 1.0078125])).toBe(1.015625);
    expect(run("add", f32, [16777216, 1])).toBe(16777216);
    expect(run("fma", f32, [16777215, 16777215, -281474943156224])).toBe(1);
    expect(run("div", f32, [1, 3])).toBe(Math.fround(1 / 3));
    expect(run("sqrt", f64, [2])).toBe(Math.SQRT2);
  });
  test("min and max prefer numbers", () => {
    expect(run("min", f32, [Number.NaN, 3])).toBe(3);
    expect(run("max", f32, [3, Number.NaN])).toBe(3);
    expect(run("max", f32, [-0, 0])).toBe(0);
    expect(run("min", f32, [0, -0])).toBe(-0);
  });
  test("NaN compares unequal to everything", () => {
    expect(run("equal", f32, [Number.NaN, Number.NaN], bool)).toBe(false);
    expect(run("notEqual", f32, [Number.NaN, Number.NaN], bool)).toBe(true);
    expect(run("isNaN", f32, [Number.NaN], bool)).toBe(true);
  });
  test("rounding to integers", () => {
    const roundEven = (x: number): HostValue => run("roundEven", f64, [x]);
    expect([0.5, 1.5, 2.5, -0.5, -1.5, 2.4, 2.6].map(roundEven)).toEqual([0, 2, 2, -0, -2, 2, 3]);
    expect(roundEven(2 ** 53 + 2)).toBe(2 ** 53 + 2);
    expect(roundEven(Number.NEGATIVE_INFINITY)).toBe(Number.NEGATIVE_INFINITY);
    expect(run("ceil", f32, [-0.5])).toBe(-0);
  });
});

describe("conversions and bits", () => {
  test("float to integer truncates, saturates, NaN gives 0", () => {
    expect(run("convert", f32, [-2.9], i32)).toBe(-2);
    expect(run("convert", f32, [1e20], i32)).toBe(2147483647);
    expect(run("convert", f32, [-1], u32)).toBe(0);
    expect(run("convert", f32, [Number.NaN], i64)).toBe(0n);
  });
  test("integers wrap", () => {
    expect(run("convert", i32, [-1], u8)).toBe(255);
    expect(run("convert", i32, [-1], index)).toBe(-1);
    expect(run("convert", u64, [2n ** 64n - 1n], i32)).toBe(-1);
  });
  test("bit casts, lane 0 lowest", () => {
    expect(run("bitcast", f32, [1], u32)).toBe(0x3f800000);
    const halves = evaluateOperation("bitcast", [0xc0003c00], [type(u32)], type(f16, 2), {});
    expect(halves).toEqual([1, -2]);
    expect(evaluateOperation("bitcast", [[1, -2]], [type(f16, 2)], type(u32), {})).toBe(0xc0003c00);
    expect(run("bitcast", f64, [-1], i64)).toBe(-4616189618054758400n);
  });
  test("dot4 and permuteBytes", () => {
    const dot = (signedA: boolean, signedB: boolean): HostValue =>
      evaluateOperation("dot4", [0xff010203, 0x02030405, 10], [type(u32), type(u32), type(i32)], type(i32), {
        signedA,
        signedB,
      });
    expect(dot(true, true)).toBe(10 + 15 + 8 + 3 - 2);
    expect(dot(false, false)).toBe(10 + 15 + 8 + 3 + 510);
    expect(run("permuteBytes", u32, [0x33221100, 0x77665584, 0x7531])).toBe(0x77553311);
    expect(run("permuteBytes", u32, [0x33221100, 0x77665584, 0xcc40])).toBe(0xffff8400);
  });
});

describe("vectors", () => {
  test("lane by lane", () => {
    const pair = type(f32, 2);
    expect(
      evaluateOperation(
        "add",
        [
          [1, 2],
          [3, 4],
        ],
        [pair, pair],
        pair,
        {},
      ),
    ).toEqual([4, 6]);
    expect(
      evaluateOperation(
        "less",
        [
          [1, 4],
          [3, 4],
        ],
        [pair, pair],
        type(bool, 2),
        {},
      ),
    ).toEqual([true, false]);
    expect(evaluateOperation("compose", [1, 2], [type(f32), type(f32)], pair, {})).toEqual([1, 2]);
    expect(evaluateOperation("extract", [[1, 2]], [pair], type(f32), { lane: 1 })).toBe(2);
    expect(evaluateOperation("select", [false, [1, 2], [3, 4]], [type(bool), pair, pair], pair, {})).toEqual([
      3, 4,
    ]);
  });
});

test("every pure operation can be evaluated, but those that ask about the launch", () => {
  const pure = (Object.keys(operations) as OperationName[]).filter((name) => operations[name].pure);
  expect(pure.filter((name) => !isEvaluable(name))).toEqual([
    "builtin",
    "parameter",
    "bufferSize",
    "bufferStride",
  ]);
  expect(pure.filter((name) => isEvaluable(name) && !isExact(name))).toEqual([
    "reciprocalSqrt",
    "reciprocal",
    "exp2",
    "log2",
    "sin",
    "cos",
    "tanh",
  ]);
});
