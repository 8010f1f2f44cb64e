import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { constant, KernelBuilder } from "../../ir/builder-for-tests.ts";
import { type ElementValue, type EvaluableName, evaluateOperation } from "../../ir/evaluate.ts";
import type { IrValue, Operand } from "../../ir/nodes.ts";
import { scalar } from "../../ir/nodes.ts";
import type { Attributes } from "../../ir/operations.ts";
import { run } from "../../runtime/simulator/harness-for-tests.ts";
import { fromBits, toBits } from "../../types/bits.ts";
import { convertValue } from "../../types/convert.ts";
import {
  bool,
  type ElementType,
  f32,
  i32,
  isFloat,
  isStorage,
  type StorageType,
  types,
  u32,
} from "../../types/types.ts";

const count = 64;
const random = fc.sample(fc.integer({ min: 0, max: 2 ** 32 - 1 }), { seed: 7, numRuns: 4096 });
let next = 0;
const word = (): number => random[next++ % random.length]!;

const special: Record<string, readonly number[]> = {
  float: [0, -0, 1, -1, 0.5, 1.5, 2.5, -2.5, NaN, Infinity, -Infinity, 65504, 65520, 1e-8, 3e38, 7.3],
  integer: [0, 1, -1, 2 ** 31 - 1, -(2 ** 31), 2 ** 31, 5, -5, 3, 7, 31, 32, 33, -3, 2 ** 32 - 1, 100],
};

/** Sample values of a type. */
function samples(type: ElementType): readonly ElementValue[] {
  const given = special[isFloat(type) ? "float" : "integer"]!;
  return Array.from({ length: count }, (_, n) => {
    if (type.name === "bool") return word() % 2 === 0;
    if (type.name === "index")
      return n < given.length ? given[n]! : (word() - 2 ** 31) * (1 + (word() % 1000));
    if (isFloat(type)) {
      const value = n < given.length ? given[n]! : (word() / 2 ** 32 - 0.5) * 2 ** ((word() % 40) - 20);
      return convertValue(value, types.f64, type);
    }
    if (type.bits === 64)
      return fromBits(
        type as StorageType,
        n < given.length ? BigInt.asUintN(64, BigInt(given[n]!)) : (BigInt(word()) << 32n) | BigInt(word()),
      );
    return fromBits(
      type as StorageType,
      n < given.length ? toBits(type as StorageType, given[n]!) : word() & (2 ** Math.min(type.bits, 31) - 1),
    );
  });
}

/** The storage type through which values of a register type reach a kernel. */
function carrier(type: ElementType): StorageType {
  if (isStorage(type)) return type;
  return type.name === "bool" ? i32 : type.name === "tf32" ? f32 : types.f64;
}

function store(type: StorageType, values: readonly ElementValue[]): Uint8Array {
  const bytes = new Uint8Array((values.length * type.bits) / 8);
  const view = new DataView(bytes.buffer);
  values.forEach((value, n) => {
    const bits = toBits(type, typeof value === "boolean" ? Number(value) : value);
    if (type.bits === 64) view.setBigUint64(8 * n, BigInt(bits), true);
    else if (type.bits === 32) view.setUint32(4 * n, Number(bits), true);
    else if (type.bits === 16) view.setUint16(2 * n, Number(bits), true);
    else view.setUint8(n, Number(bits));
  });
  return bytes;
}

function fetch(type: StorageType, bytes: Uint8Array): readonly ElementValue[] {
  const view = new DataView(bytes.buffer);
  return Array.from({ length: (bytes.length * 8) / type.bits }, (_, n) => {
    const bits =
      type.bits === 64
        ? view.getBigUint64(8 * n, true)
        : type.bits === 32
          ? view.getUint32(4 * n, true)
          : type.bits === 16
            ? view.getUint16(2 * n, true)
            : view.getUint8(n);
    return fromBits(type, bits);
  });
}

/** Runs one operation on the simulator for 64 threads. */
async function simulate(
  name: EvaluableName,
  operandTypes: readonly ElementType[],
  values: readonly (readonly ElementValue[])[],
  result: ElementType,
  attributes: object,
): Promise<readonly ElementValue[]> {
  const k = new KernelBuilder();
  const inputs = operandTypes.map((type, n) => k.buffer(`x${n}`, carrier(type), "read"));
  const output = k.buffer("y", carrier(result));
  const t = k.builtin("threadIndexX");
  const operands: Operand[] = operandTypes.map((type, n) => {
    const loaded = k.load(inputs[n]!, t);
    if (type.name === "bool") return k.compare("notEqual", loaded, constant(i32, 0));
    return isStorage(type) ? loaded : k.convert(loaded, type);
  });
  const value = k.op(name, scalar(result), operands, attributes as Attributes[EvaluableName]);
  let stored: IrValue = value;
  if (result.name === "bool") stored = k.select(value, constant(i32, 1), constant(i32, 0));
  else if (!isStorage(result)) stored = k.convert(value, carrier(result));
  k.store(output, t, stored);
  const y = new Uint8Array((count * carrier(result).bits) / 8);
  const args = Object.fromEntries(values.map((list, n) => [`x${n}`, store(carrier(operandTypes[n]!), list)]));
  await run({ kernel: k.build({ block: [count, 1, 1] }), args: { ...args, y } });
  return fetch(carrier(result), y);
}

async function compare(
  name: EvaluableName,
  operandTypes: readonly ElementType[],
  result: ElementType,
  attributes: object = {},
): Promise<void> {
  const values = operandTypes.map(samples);
  const simulated = await simulate(name, operandTypes, values, result, attributes);
  const expected = Array.from({ length: count }, (_, n) => {
    const value = evaluateOperation(
      name,
      values.map((list) => list[n]!),
      operandTypes.map(scalar),
      scalar(result),
      attributes as Attributes[EvaluableName],
    ) as ElementValue;
    return typeof value === "boolean" ? Number(value) : value;
  });
  expect(simulated).toEqual(expected);
}

const floats = [types.f16, types.bf16, types.f32, types.f64];
const integers = [types.i32, types.u32, types.i64, types.u64];
const both = [...floats, ...integers, types.index];
const named = (list: readonly ElementType[]): readonly (readonly [string, ElementType])[] =>
  list.map((type) => [type.name, type]);

describe("operations agree with their one meaning", () => {
  describe.each(["add", "sub", "mul", "min", "max"] as const)("%s", (name) => {
    it.each(named(both.filter((type) => name !== "mul" || type.name !== "index")))("of %s", (_, type) =>
      compare(name, [type, type], type),
    );
  });
  describe.each(["div"] as const)("%s", (name) => {
    it.each(named(both))("of %s", (_, type) => compare(name, [type, type], type));
  });
  describe.each(["rem", "floorDiv", "floorMod"] as const)("%s", (name) => {
    it.each(named([...integers, types.index]))("of %s", (_, type) => compare(name, [type, type], type));
  });
  it.each(named([...floats, ...integers]))("fma of %s", (_, type) =>
    compare("fma", [type, type, type], type),
  );
  describe.each(["neg", "abs"] as const)("%s", (name) => {
    it.each(named(both))("of %s", (_, type) => compare(name, [type], type));
  });
  describe.each(["and", "or", "xor"] as const)("%s", (name) => {
    it.each(named([...integers, bool]))("of %s", (_, type) => compare(name, [type, type], type));
  });
  it.each(named([...integers, bool, types.index]))("not of %s", (_, type) => compare("not", [type], type));
  describe.each(["shiftLeft", "shiftRight"] as const)("%s", (name) => {
    it.each(named(integers))("of %s by u32", (_, type) => compare(name, [type, u32], type));
    it.each(named(integers))("of %s by i32", (_, type) => compare(name, [type, i32], type));
  });
  describe.each(["equal", "notEqual", "less", "lessEqual", "greater", "greaterEqual"] as const)(
    "%s",
    (name) => {
      it.each(named(both))("of %s", (_, type) => compare(name, [type, type], bool));
    },
  );
  it.each(named(floats))("isNaN of %s", (_, type) => compare("isNaN", [type], bool));
  it.each(named(both))("select of %s", (_, type) => compare("select", [bool, type, type], type));
  describe.each([
    "sqrt",
    "floor",
    "ceil",
    "trunc",
    "roundEven",
    "reciprocal",
    "reciprocalSqrt",
    "exp2",
    "log2",
    "sin",
    "cos",
    "tanh",
  ] as const)("%s", (name) => {
    it.each(named(floats))("of %s", (_, type) => compare(name, [type], type));
  });
  describe.each(["mulHigh"] as const)("%s", (name) => {
    it.each(named(integers))("of %s", (_, type) => compare(name, [type, type], type));
  });
  describe.each(["popcount", "leadingZeros"] as const)("%s", (name) => {
    it.each(named(integers))("of %s", (_, type) => compare(name, [type], i32));
  });
  it.each(named(integers))("reverseBits of %s", (_, type) => compare("reverseBits", [type], type));
  it.each([
    [true, true],
    [false, true],
    [true, false],
    [false, false],
  ])("dot4 with signs %s, %s", (signedA, signedB) =>
    compare("dot4", [u32, u32, i32], i32, { signedA, signedB }),
  );
  it("permuteBytes", () => compare("permuteBytes", [u32, u32, u32], u32));

  const convertible = Object.values(types).filter(({ name }) => name !== "b1");
  describe.each(named(convertible))("convert from %s", (_, from) => {
    it.each(named(convertible))("to %s", (_name, to) => compare("convert", [from], to));
  });
});

describe("bit casts", () => {
  const cases: readonly (readonly [StorageType, 1 | 2 | 4 | 8, StorageType, 1 | 2 | 4 | 8])[] = [
    [types.u32, 1, types.f16, 2],
    [types.f16, 2, types.u32, 1],
    [types.f32, 1, types.i32, 1],
    [types.u32, 2, types.f64, 1],
    [types.f64, 1, types.i64, 1],
    [types.i64, 1, types.u32, 2],
    [types.u32, 1, types.e4m3, 4],
    [types.i8, 4, types.u16, 2],
    [types.bf16, 2, types.i8, 4],
    [types.u16, 1, types.f16, 1],
    [types.u64, 1, types.u8, 8],
  ];
  it.each(
    cases.map(([from, m, to, n]) => [`${m} x ${from.name} to ${n} x ${to.name}`, from, m, to, n] as const),
  )("%s", async (_, from, m, to, n) => {
    const k = new KernelBuilder();
    const x = k.buffer("x", from, "read");
    const y = k.buffer("y", to);
    const t = k.builtin("threadIndexX");
    const loaded = k.load(x, k.calculate("mul", t, constant(i32, m)), { lanes: m });
    k.store(
      y,
      k.calculate("mul", t, constant(i32, n)),
      k.op("bitcast", { element: to, lanes: n }, [loaded], {}),
    );
    const values = Array.from({ length: 32 * m }, () =>
      fromBits(from, from.bits === 64 ? BigInt(word()) << 20n : word() & (2 ** Math.min(from.bits, 32) - 1)),
    );
    const input = store(from, values);
    const output = new Uint8Array(input.length);
    await run({ kernel: k.build(), args: { x: input, y: output } });
    const expected = Array.from({ length: 32 }, (_u, thread) =>
      evaluateOperation(
        "bitcast",
        [m === 1 ? values[thread]! : values.slice(thread * m, thread * m + m)],
        [{ element: from, lanes: m }],
        { element: to, lanes: n },
        {},
      ),
    ).flat();
    expect(fetch(to, output)).toEqual(expected.map((value) => fromBits(to, toBits(to, value as number))));
  });
});
