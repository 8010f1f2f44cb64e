import { describe, expect, it } from "vitest";
import { constant, KernelBuilder } from "../../ir/builder-for-tests.ts";
import type { IrValue, Operand, RegisterVariable } from "../../ir/nodes.ts";
import { scalar } from "../../ir/nodes.ts";
import { toBits } from "../../types/bits.ts";
import { convertValue } from "../../types/convert.ts";
import { type ElementType, isFloat, type StorageType, types, u32 } from "../../types/types.ts";
import { run } from "./harness-for-tests.ts";

const { f16, bf16, f32, f64, i8, u8, i32, e4m3, e5m2 } = types;
const I = (value: number): Operand => constant(i32, value);

/** Where element `i` of a lane's fragment lies; g = lane / 4, t = lane mod 4. As the PTX ISA draws them. */
type Place = (i: number, g: number, t: number) => readonly [number, number];

interface Case {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly a: ElementType;
  readonly b: ElementType;
  readonly accumulator: StorageType;
  readonly placeA: Place;
  readonly placeB: Place;
  readonly placeC: Place;
}

const wideC: Place = (i, g, t) => [g + 8 * (i >> 1), 2 * t + (i & 1)];
const narrowC: Place = (i, g, t) => [g, 2 * t + i];
const halfA: Place = (i, g, t) => [g + 8 * ((i >> 1) % 2), 2 * t + (i % 2) + 8 * (i >> 2)];
const halfB: Place = (i, g, t) => [2 * t + (i % 2) + 8 * (i >> 1), g];
const byteA: Place = (i, g, t) => [g + 8 * ((i >> 2) % 2), 4 * t + (i % 4) + 16 * (i >> 3)];
const byteB: Place = (i, g, t) => [4 * t + (i % 4) + 16 * (i >> 2), g];
const wordA: Place = (i, g, t) => [g + 8 * (i % 2), t + 4 * (i >> 1)];
const wordB: Place = (i, g, t) => [t + 4 * i, g];
const mma = (
  shape: readonly [number, number, number],
  a: ElementType,
  b: ElementType,
  accumulator: StorageType,
  placeA: Place,
  placeB: Place,
  placeC: Place,
): Case => ({ m: shape[0], n: shape[1], k: shape[2], a, b, accumulator, placeA, placeB, placeC });

const cases: readonly Case[] = [
  mma([16, 8, 16], f16, f16, f32, halfA, halfB, wideC),
  mma([16, 8, 16], f16, f16, f16, halfA, halfB, wideC),
  mma([16, 8, 8], f16, f16, f32, halfA, halfB, wideC),
  mma([16, 8, 16], bf16, bf16, f32, halfA, halfB, wideC),
  mma([16, 8, 4], types.tf32, types.tf32, f32, wordA, wordB, wideC),
  mma([16, 8, 8], types.tf32, types.tf32, f32, wordA, wordB, wideC),
  mma([16, 8, 32], i8, i8, i32, byteA, byteB, wideC),
  mma([16, 8, 32], u8, i8, i32, byteA, byteB, wideC),
  mma([16, 8, 16], i8, u8, i32, byteA, byteB, wideC),
  mma([8, 8, 16], i8, i8, i32, (i, g, t) => [g, 4 * t + i], byteB, narrowC),
  mma([16, 8, 32], e4m3, e5m2, f32, byteA, byteB, wideC),
  mma(
    [8, 8, 4],
    f64,
    f64,
    f64,
    (_i, g, t) => [g, t],
    (_i, g, t) => [t, g],
    narrowC,
  ),
  mma([16, 8, 8], f64, f64, f64, wordA, wordB, wideC),
  mma([16, 8, 16], f64, f64, f64, wordA, wordB, wideC),
];

/** Small numbers, so that every sum is exact and any order gives the same. */
function matrix(type: ElementType, count: number, seed: number): readonly number[] {
  return Array.from({ length: count }, (_, n) => {
    const value = ((n * 29 + seed * 13) % 9) - (type.class === "unsigned" ? 0 : 4);
    return isFloat(type) ? Number(convertValue(value / 2, f64, type)) : value;
  });
}

function stored(type: StorageType, values: readonly number[]): Uint8Array {
  const bytes = new Uint8Array((values.length * type.bits) / 8);
  const view = new DataView(bytes.buffer);
  values.forEach((value, n) => {
    const bits = toBits(type, value);
    if (type.bits === 64) view.setBigUint64(8 * n, BigInt(bits), true);
    else if (type.bits === 32) view.setUint32(4 * n, Number(bits), true);
    else if (type.bits === 16) view.setUint16(2 * n, Number(bits), true);
    else view.setUint8(n, Number(bits));
  });
  return bytes;
}

const storageOf = (type: ElementType): StorageType => (type.name === "tf32" ? f32 : (type as StorageType));

/** Element number in an array, from a place that depends on the lane: through a table. */
function positions(
  k: KernelBuilder,
  lane: IrValue,
  place: Place,
  i: number,
  index: (row: number, column: number) => number,
): IrValue {
  const table = k.table(
    `p${k.tables.length}`,
    i32,
    Array.from({ length: 32 }, (_, n) => index(...place(i, n >> 2, n & 3))),
  );
  return k.load(table, lane);
}

function product(
  a: readonly number[],
  b: readonly number[],
  c: readonly number[],
  { m, n, k }: { m: number; n: number; k: number },
): readonly number[] {
  return Array.from({ length: m * n }, (_, e) => {
    const [row, column] = [Math.floor(e / n), e % n];
    let sum = c[e]!;
    for (let d = 0; d < k; d++) sum += a[row * k + d]! * b[d * n + column]!;
    return sum;
  });
}

describe("mma.sync", () => {
  it.each(
    cases.map(
      (one) =>
        [`m${one.m}n${one.n}k${one.k} ${one.a.name} ${one.b.name} ${one.accumulator.name}`, one] as const,
    ),
  )("%s", async (_, one) => {
    const { m, n, k: depth, a, b, accumulator } = one;
    const k = new KernelBuilder();
    const [A, B, C, D] = [
      k.buffer("a", storageOf(a), "read"),
      k.buffer("b", storageOf(b), "read"),
      k.buffer("c", accumulator, "read"),
      k.buffer("d", accumulator),
    ];
    const lane = k.builtin("lane");
    const fill = (
      name: string,
      type: ElementType,
      array: typeof A,
      count: number,
      place: Place,
      index: (row: number, column: number) => number,
    ): RegisterVariable => {
      const variable = k.variable(name, type, count);
      for (let i = 0; i < count; i++) {
        const loaded = k.load(array, positions(k, lane, place, i, index));
        k.write(variable, type.name === "tf32" ? k.op("convert", scalar(type), [loaded], {}) : loaded, i);
      }
      return variable;
    };
    const fragmentA = fill("fa", a, A, (m * depth) / 32, one.placeA, (row, column) => row * depth + column);
    const fragmentB = fill("fb", b, B, (n * depth) / 32, one.placeB, (row, column) => row * n + column);
    const fragmentC = fill("fc", accumulator, C, (m * n) / 32, one.placeC, (row, column) => row * n + column);
    k.effect("mma", [], { shape: { m, n, k: depth }, a, b, accumulator }, [
      { variable: fragmentC, offset: 0, count: (m * n) / 32, access: "readwrite" },
      { variable: fragmentA, offset: 0, count: (m * depth) / 32, access: "read" },
      { variable: fragmentB, offset: 0, count: (n * depth) / 32, access: "read" },
    ]);
    for (let i = 0; i < (m * n) / 32; i++)
      k.store(
        D,
        positions(k, lane, one.placeC, i, (row, column) => row * n + column),
        k.read(fragmentC, i),
      );
    const [va, vb, vc] = [matrix(a, m * depth, 1), matrix(b, n * depth, 2), matrix(accumulator, m * n, 3)];
    const d = stored(accumulator, matrix(accumulator, m * n, 0));
    await run({
      kernel: k.build(),
      args: { a: stored(storageOf(a), va), b: stored(storageOf(b), vb), c: stored(accumulator, vc), d },
    });
    expect(d).toEqual(stored(accumulator, product(va, vb, vc, { m, n, k: depth })));
  });

  it("of bits counts common ones; registers may be u32", async () => {
    const [m, n, words] = [16, 8, 8];
    const k = new KernelBuilder();
    const [A, B, D] = [k.buffer("a", u32, "read"), k.buffer("b", u32, "read"), k.buffer("d", i32)];
    const lane = k.builtin("lane");
    const [fa, fb, fc] = [k.variable("fa", u32, 4), k.variable("fb", u32, 2), k.variable("fc", i32, 4)];
    for (let i = 0; i < 4; i++) {
      k.write(
        fa,
        k.load(
          A,
          positions(k, lane, wordA, i, (row, word) => row * words + word),
        ),
        i,
      );
      k.write(fc, I(i), i);
    }
    for (let i = 0; i < 2; i++)
      k.write(
        fb,
        k.load(
          B,
          positions(k, lane, wordB, i, (word, column) => column * words + word),
        ),
        i,
      );
    k.effect("mma", [], { shape: { m, n, k: 256 }, a: types.b1, b: types.b1, accumulator: i32 }, [
      { variable: fc, offset: 0, count: 4, access: "readwrite" },
      { variable: fa, offset: 0, count: 4, access: "read" },
      { variable: fb, offset: 0, count: 2, access: "read" },
    ]);
    for (let i = 0; i < 4; i++)
      k.store(
        D,
        positions(k, lane, wideC, i, (row, column) => row * n + column),
        k.read(fc, i),
      );
    const a = Uint32Array.from({ length: m * words }, (_, e) => Math.imul(e + 1, 0x9e3779b9));
    const b = Uint32Array.from({ length: n * words }, (_, e) => Math.imul(e + 7, 0x85ebca6b));
    const d = new Int32Array(m * n);
    await run({ kernel: k.build(), args: { a, b, d } });
    const ones = (word: number): number => (word >>> 0).toString(2).replaceAll("0", "").length;
    const startOf = (row: number, column: number): number => 2 * (row >> 3) + (column & 1);
    expect([...d]).toEqual(
      Array.from({ length: m * n }, (_, e) => {
        const [row, column] = [Math.floor(e / n), e % n];
        let sum = startOf(row, column);
        for (let w = 0; w < words; w++) sum += ones(a[row * words + w]! & b[column * words + w]!);
        return sum;
      }),
    );
  });

  it("rounds once per instruction and ignores the low bits of tf32", async () => {
    const k = new KernelBuilder();
    const y = k.buffer("y", f32);
    const [fa, fb, fc] = [k.variable("fa", f32, 4), k.variable("fb", f32, 2), k.variable("fc", f32, 4)];
    for (let i = 0; i < 4; i++) {
      k.write(fa, constant(f32, 1 + 2 ** -11), i);
      k.write(fc, constant(f32, 2 ** 24), i);
    }
    for (let i = 0; i < 2; i++) k.write(fb, constant(f32, 0.5), i);
    k.effect("mma", [], { shape: { m: 16, n: 8, k: 8 }, a: types.tf32, b: types.tf32, accumulator: f32 }, [
      { variable: fc, offset: 0, count: 4, access: "readwrite" },
      { variable: fa, offset: 0, count: 4, access: "read" },
      { variable: fb, offset: 0, count: 2, access: "read" },
    ]);
    k.store(y, k.builtin("lane"), k.read(fc));
    const result = new Float32Array(32);
    await run({ kernel: k.build(), args: { y: result } });
    expect(result[0]).toBe(2 ** 24 + 4);
  });
});

describe("ldmatrix and stmatrix", () => {
  const fragmentAt = (
    matrix: number,
    row: number,
    column: number,
    transpose: boolean,
  ): readonly [lane: number, element: number] =>
    transpose
      ? [4 * column + (row >> 1), 2 * matrix + (row & 1)]
      : [4 * row + (column >> 1), 2 * matrix + (column & 1)];

  it.each([
    [1, false],
    [2, false],
    [4, false],
    [2, true],
    [4, true],
  ] as const)("%d matrices, transposed: %s", async (count, transpose) => {
    const k = new KernelBuilder();
    const [x, y, z] = [k.buffer("x", f16, "read"), k.buffer("y", f16), k.buffer("z", f16)];
    const pitch = 16;
    const [s, out] = [k.shared("s", f16, 32 * pitch), k.shared("out", f16, 32 * pitch)];
    const lane = k.builtin("lane");
    const row = k.calculate("mul", lane, I(pitch));
    for (let e = 0; e < 8; e++) k.store(s, row, k.load(x, k.calculate("mul", lane, I(8)), { offset: e }), e);
    k.effect("blockBarrier", [], {});
    const fragment = k.variable("f", f16, count, 2);
    k.effect("loadMatrix", [row], { array: s, offset: 0, count, transpose }, [
      { variable: fragment, offset: 0, count, access: "write" },
    ]);
    for (let j = 0; j < count; j++) k.store(y, k.calculate("mul", lane, I(2)), k.read(fragment, j), 64 * j);
    k.effect("storeMatrix", [row], { array: out, offset: 0, count, transpose }, [
      { variable: fragment, offset: 0, count, access: "read" },
    ]);
    k.effect("blockBarrier", [], {});
    k.if(k.compare("less", lane, I(8 * count)), () => {
      for (let e = 0; e < 8; e++)
        k.store(z, k.calculate("mul", lane, I(8)), k.load(out, row, { offset: e }), e);
    });
    const input = Uint16Array.from({ length: 256 }, (_, n) => Number(toBits(f16, n)));
    const [output, back] = [new Uint16Array(64 * count), new Uint16Array(64 * count)];
    await run({ kernel: k.build(), args: { x: input, y: output, z: back } });
    expect(back).toEqual(input.slice(0, 64 * count));
    for (let matrix = 0; matrix < count; matrix++) {
      for (let r = 0; r < 8; r++) {
        for (let c = 0; c < 8; c++) {
          const [at, element] = fragmentAt(matrix, r, c, transpose);
          expect(output[64 * (element >> 1) + 2 * at + (element & 1)]).toBe(input[8 * (8 * matrix + r) + c]);
        }
      }
    }
  });
});

describe("wmma", () => {
  it.each([
    [16, 16, 16, f16, f32, "row", "row"],
    [16, 16, 16, f16, f16, "column", "column"],
    [32, 8, 16, f16, f32, "row", "column"],
    [8, 32, 16, bf16, f32, "column", "row"],
    [16, 16, 16, i8, i32, "row", "column"],
    [16, 16, 8, types.tf32, f32, "row", "row"],
    [8, 8, 4, f64, f64, "row", "column"],
  ] as const)("m%dn%dk%d %o %o %s %s", async (m, n, depth, a, accumulator, majorA, majorB) => {
    const k = new KernelBuilder();
    const memory = storageOf(a);
    const [A, B, D] = [
      k.buffer("a", memory, "read"),
      k.buffer("b", memory, "read"),
      k.buffer("d", accumulator),
    ];
    const wide = a.name === "f16" ? 16 : 8;
    const count =
      a.name === "f64" ? 1 : a.name === "tf32" ? 4 : Math.max(wide, (Math.max(m, n) * depth) / 32);
    const [fa, fb, fc] = [
      k.variable("fa", a, count),
      k.variable("fb", a, count),
      k.variable("fc", accumulator, (m * n) / 32),
    ];
    for (let i = 0; i < (m * n) / 32; i++) k.write(fc, constant(accumulator, 0), i);
    const shape = { m, n, k: depth };
    const load = (
      array: typeof A,
      use: "a" | "b",
      major: "row" | "column",
      leading: number,
      variable: RegisterVariable,
    ): void =>
      k.effect(
        "wmmaLoad",
        [I(0), I(leading)],
        { array: { kind: "buffer", parameter: array }, offset: 0, use, shape, element: a, major },
        [{ variable, offset: 0, count, access: "write" }],
      );
    load(A, "a", majorA, majorA === "row" ? depth : m, fa);
    load(B, "b", majorB, majorB === "row" ? n : depth, fb);
    k.effect("wmmaMma", [], { shape, a, b: a, accumulator, majorA, majorB }, [
      { variable: fc, offset: 0, count: (m * n) / 32, access: "readwrite" },
      { variable: fa, offset: 0, count, access: "read" },
      { variable: fb, offset: 0, count, access: "read" },
    ]);
    k.effect(
      "wmmaStore",
      [I(0), I(n)],
      { array: { kind: "buffer", parameter: D }, offset: 0, shape, element: accumulator, major: "row" },
      [{ variable: fc, offset: 0, count: (m * n) / 32, access: "read" }],
    );
    const [va, vb] = [matrix(a, m * depth, 1), matrix(a, n * depth, 2)];
    const transposed = (values: readonly number[], rows: number, columns: number): readonly number[] =>
      values.map((_, e) => values[(e % rows) * columns + Math.floor(e / rows)]!);
    const d = stored(accumulator, matrix(accumulator, m * n, 0));
    await run({
      kernel: k.build(),
      args: {
        a: stored(memory, majorA === "row" ? va : transposed(va, m, depth)),
        b: stored(memory, majorB === "row" ? vb : transposed(vb, depth, n)),
        d,
      },
    });
    expect(d).toEqual(
      stored(
        accumulator,
        product(
          va,
          vb,
          matrix(accumulator, m * n, 0).map(() => 0),
          shape,
        ),
      ),
    );
  });
});
