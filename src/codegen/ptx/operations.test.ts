/** @file Every operation, on every target that has it, through the assembler; and refused with reasons where it is not. */
import { describe, expect, it } from "vitest";
import { assemble } from "../../../test/support/ptxas.ts";
import { requirement } from "../../../test/support/require.ts";
import { UnsupportedError } from "../../errors.ts";
import { constant, KernelBuilder } from "../../ir/builder-for-tests.ts";
import {
  type BufferParameter,
  type IrValue,
  type Lanes,
  type Operand,
  type RegisterRange,
  scalar,
} from "../../ir/nodes.ts";
import { type OperationName, operations } from "../../ir/operations.ts";
import { type NvidiaTargetName, nvidiaTarget } from "../../target/nvidia.ts";
import {
  b1,
  bf16,
  bool,
  type ElementType,
  e4m3,
  e5m2,
  f16,
  f32,
  f64,
  i8,
  i16,
  i32,
  i64,
  index,
  type StorageType,
  tf32,
  u8,
  u16,
  u32,
  u64,
} from "../../types/types.ts";
import { generatePtx } from "./index.ts";

const targets: readonly NvidiaTargetName[] = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"];
const available = requirement("ptxas").available;

/** A kernel under construction with values of every type, loaded so that nothing is a constant. */
class Bench extends KernelBuilder {
  readonly thread: IrValue = this.builtin("threadIndexX");

  private readonly outputs = new Map<StorageType, BufferParameter>();
  private readonly inputs = new Map<StorageType, BufferParameter>();
  private elements = 0;

  constructor() {
    super({ name: "bench", block: [128, 1, 1] });
  }

  loaded(element: StorageType, lanes: Lanes = 1): IrValue {
    const array = this.inputs.get(element) ?? this.buffer(`in${this.parameters.length}`, element);
    this.inputs.set(element, array);
    this.elements += 1;
    return this.load(array, this.thread, { lanes, offset: this.elements * 16 });
  }

  some(element: ElementType, lanes: Lanes = 1): IrValue {
    switch (element.name) {
      case "bool":
        return this.compare("less", this.some(i32, lanes), constant(i32, 3, lanes));
      case "index":
        return this.convert(this.some(i32, lanes), index);
      case "tf32":
        return this.convert(this.some(f32, lanes), tf32);
      case "b1":
        return this.some(u32, lanes);
      default:
        return this.loaded(element, lanes);
    }
  }

  /** Stores a result where ptxas cannot drop it. */
  keep(value: IrValue): void {
    const { element, lanes } = value.type;
    if (
      element.class === "bool" ||
      element.name === "index" ||
      element.name === "tf32" ||
      element.name === "b1"
    ) {
      const one = lanes === 1 ? value : this.op("extract", scalar(element), [value], { lane: lanes - 1 });
      const number = element.class === "bool" ? this.convert(one, i32) : this.convert(one, f32);
      this.keep(number);
      return;
    }
    this.elements += 1;
    this.store(this.outputOf(element), this.thread, value, this.elements * 16);
  }

  private outputOf(element: StorageType) {
    const known = this.outputs.get(element) ?? this.buffer(`out${this.parameters.length}`, element);
    this.outputs.set(element, known);
    return known;
  }

  fragment(
    element: ElementType,
    count: number,
    lanes: Lanes,
    access: RegisterRange["access"],
  ): RegisterRange {
    return {
      variable: this.variable(`v${this.variables.length}`, element, count, lanes),
      offset: 0,
      count,
      access,
    };
  }

  /** A fragment of a matrix instruction of so many bytes a lane. */
  matrix(element: ElementType, bytes: number, access: RegisterRange["access"]): RegisterRange {
    if (element.name === "b1") return this.fragment(u32, bytes / 4, 1, access);
    if (element.name === "tf32") return this.fragment(f32, bytes / 4, 1, access);
    if (element.bits >= 32) return this.fragment(element, (bytes * 8) / element.bits, 1, access);
    return this.fragment(element, bytes / 4, (32 / element.bits) as Lanes, access);
  }
}

type Sample = (bench: Bench) => void;
type Target = (name: NvidiaTargetName) => boolean;

interface Samples {
  readonly samples: readonly Sample[];
  /** Targets that have the operation; all when left out. */
  readonly on?: Target;
}

const from =
  (capability: number): Target =>
  (name) =>
    Number(name.slice(3, 5)) >= capability;
const onlyA: Target = (name) => name === "sm_90a";

const floats = [f16, bf16, f32, f64] as const;
const integers = [i32, u32, i64, u64, index] as const;
const arithmetic = [...floats, ...integers] as const;

/** Lanes in which values of a type are tried. */
function widths(element: ElementType): readonly Lanes[] {
  return element.bits === 16 ? [1, 2, 4, 8] : [1, 2];
}

function elementwise(
  name: OperationName,
  elements: readonly ElementType[],
  operands: number,
): readonly Sample[] {
  return elements.flatMap((element) =>
    widths(element).map(
      (lanes): Sample =>
        (bench) => {
          const values = Array.from({ length: operands }, () => bench.some(element, lanes));
          bench.keep(bench.op(name, { element, lanes }, values, {} as never));
          if (operands < 2) return;
          const constants: Operand[] = [
            values[0]!,
            ...values
              .slice(1)
              .map(() =>
                constant(element, element.name.endsWith("64") && element.class !== "float" ? 7n : 7, lanes),
              ),
          ];
          bench.keep(bench.op(name, { element, lanes }, constants, {} as never));
        },
    ),
  );
}

function comparisons(name: OperationName): readonly Sample[] {
  return [...arithmetic, i8, u8, i16, u16, e4m3].flatMap((element) =>
    ([1, 2] as const).map(
      (lanes): Sample =>
        (bench) => {
          bench.keep(
            bench.op(
              name,
              { element: bool, lanes },
              [bench.some(element, lanes), bench.some(element, lanes)],
              {} as never,
            ),
          );
        },
    ),
  );
}

function shifts(name: "shiftLeft" | "shiftRight"): readonly Sample[] {
  return integers.map(
    (element): Sample =>
      (bench) => {
        const value = bench.some(element);
        bench.keep(bench.op(name, scalar(element), [value, bench.some(u32)], {}));
        bench.keep(bench.op(name, scalar(element), [value, constant(i32, 70)], {}));
      },
  );
}

function conversions(): readonly Sample[] {
  const all: readonly ElementType[] = [
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
    index,
    bool,
  ];
  return all.map(
    (source): Sample =>
      (bench) => {
        const value = bench.some(source);
        for (const target of all) bench.keep(bench.convert(value, target));
        for (const target of [f16, bf16, f32, i8, u8, i16, e4m3])
          bench.keep(bench.convert(bench.some(source, 2), target));
        for (const target of [f16, bf16, i8, e5m2])
          if (source.bits <= 32) bench.keep(bench.convert(bench.some(source, 4), target));
      },
  );
}

const bitcasts: readonly (readonly [ElementType, Lanes, ElementType, Lanes])[] = [
  [f32, 1, u32, 1],
  [f16, 2, u32, 1],
  [u32, 1, f16, 2],
  [f16, 1, u16, 1],
  [i64, 1, u32, 2],
  [u32, 4, f64, 2],
  [u8, 4, u32, 1],
  [u8, 2, f16, 1],
  [i8, 1, u8, 1],
  [e4m3, 1, i8, 1],
  [f16, 8, u32, 4],
  [f16, 4, f64, 1],
];

function memory(name: "load" | "store"): readonly Sample[] {
  const elements: readonly StorageType[] = [f16, bf16, f32, f64, e4m3, i8, i16, i32, i64, u8, u16, u32, u64];
  const samples = elements.flatMap((element) =>
    ([1, 2, 4, 8, 16] as const)
      .filter((lanes) => lanes * element.bits <= 128)
      .map(
        (lanes): Sample =>
          (bench) => {
            const value = bench.loaded(element, lanes);
            const shared = bench.shared(`s${bench.sharedArrays.length}`, element, 256);
            bench.store(shared, bench.thread, value, lanes);
            bench.store(shared, constant(i32, lanes), value);
            bench.keep(bench.load(shared, bench.thread, { lanes }));
            bench.keep(bench.load(shared, constant(i32, lanes), { lanes, cache: "volatile" }));
          },
      ),
  );
  const indices: Sample = (bench) => {
    const array = bench.buffer("wide", f32);
    for (const position of [bench.some(u32), bench.some(index), constant(index, 5), constant(i32, 2 ** 30)]) {
      bench.op("load", scalar(f32), [position], {
        array: { kind: "buffer", parameter: array },
        offset: 2 ** 29,
        cache: "streaming",
      });
      bench.effect("store", [position, constant(f32, 1.5)], {
        array: { kind: "buffer", parameter: array },
        offset: -3,
        cache: "streaming",
      });
      bench.effect("store", [position, constant(f32, 1.5)], {
        array: { kind: "buffer", parameter: array },
        offset: 1,
        cache: "volatile",
      });
    }
  };
  const tables: Sample = (bench) => {
    const table = bench.table("t", f16, [1, 2, 3, 4]);
    const large = bench.table("l", u64, [1n, 2n]);
    bench.keep(bench.load(table, bench.thread));
    bench.keep(bench.load(table, constant(i32, 2)));
    bench.keep(bench.load(large, bench.thread));
  };
  return name === "load" ? [...samples, indices, tables] : [...samples, indices];
}

function atomics(): readonly Sample[] {
  const kinds = {
    add: [i32, u32, i64, u64, f16, f32, f64],
    min: [i32, u32, i64, u64],
    max: [i32, u64],
    and: [u32, i64],
    or: [u32],
    xor: [i32],
    exchange: [f32, u64, i32],
    compareExchange: [u32, f32, i64],
  } as const;
  return Object.entries(kinds).flatMap(([operation, elements]) =>
    elements.map(
      (element): Sample =>
        (bench) => {
          const array = bench.buffer("a", element);
          const shared = bench.shared(`s${bench.sharedArrays.length}`, element, 16);
          const values =
            operation === "compareExchange"
              ? [bench.some(element), bench.some(element)]
              : [bench.some(element)];
          for (const [order, scope] of [
            ["relaxed", "device"],
            ["acquireRelease", "block"],
            ["release", "system"],
            ["acquire", "device"],
          ] as const) {
            const attributes = { operation: operation as "add", order, scope, offset: 1 };
            bench.keep(
              bench.op("atomic", scalar(element), [bench.thread, ...values], {
                ...attributes,
                array: { kind: "buffer", parameter: array },
              }),
            );
            bench.op("atomic", scalar(element), [bench.thread, ...values], {
              ...attributes,
              array: { kind: "shared", array: shared },
            });
          }
        },
    ),
  );
}

const words = [i32, u32, f32, f16, bf16, i64, f64, bool, u8] as const;

function shuffles(): readonly Sample[] {
  return words.flatMap((element) =>
    ([1, 2] as const).map(
      (lanes): Sample =>
        (bench) => {
          const value = bench.some(element, lanes);
          for (const mode of ["index", "up", "down", "xor"] as const) {
            bench.keep(bench.op("shuffle", value.type, [value, constant(i32, 1)], { mode, width: 32 }));
            bench.keep(bench.op("shuffle", value.type, [value, bench.some(i32)], { mode, width: 8 }));
            bench.keep(bench.op("shuffle", value.type, [value, constant(i32, 9)], { mode, width: 8 }));
          }
        },
    ),
  );
}

function reductions(): readonly Sample[] {
  const bits = (["and", "or", "xor"] as const).flatMap((operation) =>
    [i32, u32, u64].map((element) => [operation, element] as const),
  );
  const numbers = (["add", "min", "max"] as const).flatMap((operation) =>
    [i32, u32, i64, f32, f64, f16].map((element) => [operation, element] as const),
  );
  return [...bits, ...numbers].map(
    ([operation, element]): Sample =>
      (bench) => {
        bench.keep(bench.op("subgroupReduce", scalar(element), [bench.some(element)], { operation }));
      },
  );
}

const barrierOf = (bench: Bench) => ({
  array: bench.shared(`b${bench.sharedArrays.length}`, u64, 4, "barrier"),
  offset: 1,
});

function onBarrier(
  name: "barrierArrive" | "barrierWait" | "barrierArriveExpect" | "copyAsyncArrive" | "barrierInit",
  ...operands: readonly Operand[]
): Sample {
  return (bench) => {
    for (const place of [bench.thread, constant(i32, 2)]) {
      bench.effect(name, [place, ...operands], {
        ...barrierOf(bench),
        ...(name === "barrierInit" ? { count: 3 } : {}),
      } as never);
    }
  };
}

function tensorLoads(multicast: boolean): Sample {
  return (bench) => {
    for (let rank = 1; rank <= 5; rank++) {
      const map = bench.tensorMap(
        `m${rank}`,
        f16,
        Array.from({ length: rank }, () => 8),
        128,
      );
      const target = bench.shared(`t${rank}`, f16, 1024);
      const barrier = barrierOf(bench);
      const coordinates = Array.from({ length: rank }, (_, i) => (i === 0 ? bench.thread : constant(i32, i)));
      bench.effect(
        "tensorLoad",
        [bench.thread, constant(i32, 0), ...coordinates, ...(multicast ? [constant(u32, 3)] : [])],
        {
          map,
          target,
          targetOffset: 64,
          barrier: barrier.array,
          barrierOffset: 1,
          multicast,
        },
      );
    }
  };
}

const windowLoad: Sample = (bench) => {
  const map = bench.tensorMap("windows", f16, [64, 128], 128, true);
  const barrier = barrierOf(bench);
  const numbers = [constant(i32, 0), bench.thread, constant(i32, -1), constant(i32, 3)];
  bench.effect(
    "tensorLoad",
    [constant(i32, 0), constant(i32, 0), ...numbers, bench.thread, constant(i32, 2)],
    {
      map,
      target: bench.shared("pixels", f16, 64 * 128),
      targetOffset: 0,
      barrier: barrier.array,
      barrierOffset: 1,
      multicast: false,
    },
  );
};

/** Bytes a lane holds of a matrix of so many elements. */
function share(element: ElementType, elements: number): number {
  const bits = element.name === "tf32" ? 32 : element.bits;
  return (elements * bits) / 8 / 32;
}

function everyMma(table: "mma", name: NvidiaTargetName): readonly Sample[] {
  return nvidiaTarget(name)[table].map(
    (one): Sample =>
      (bench) => {
        const [a, b, accumulator] = [byName(one.a), byName(one.b), byName(one.accumulator)];
        bench.effect("mma", [], { shape: one, a, b, accumulator }, [
          bench.matrix(accumulator, share(accumulator, one.m * one.n), "readwrite"),
          bench.matrix(a, share(a, one.m * one.k), "read"),
          bench.matrix(b, share(b, one.k * one.n), "read"),
        ]);
      },
  );
}

function byName(name: string): ElementType {
  return [f16, bf16, f32, f64, tf32, e4m3, e5m2, i8, u8, i32, b1].find((element) => element.name === name)!;
}

/** Registers of a wmma fragment (PTX ISA, "Matrix Fragments for WMMA"). f16 is held twice. */
function wmmaBytes(
  element: ElementType,
  use: "a" | "b" | "accumulator",
  m: number,
  n: number,
  k: number,
): number {
  const elements = use === "a" ? m * k : use === "b" ? k * n : m * n;
  if (element.name === "f16" && use !== "accumulator") return 32;
  return share(element, elements);
}

function everyWmma(kind: "wmmaLoad" | "wmmaStore" | "wmmaMma", name: NvidiaTargetName): readonly Sample[] {
  return nvidiaTarget(name).wmma.map(
    (one): Sample =>
      (bench) => {
        const [a, b, accumulator] = [byName(one.a), byName(one.b), byName(one.accumulator)];
        const shape = { m: one.m, n: one.n, k: one.k };
        const bytes = (element: ElementType, use: "a" | "b" | "accumulator") =>
          wmmaBytes(element, use, one.m, one.n, one.k);
        const fragments = {
          accumulator: bench.matrix(accumulator, bytes(accumulator, "accumulator"), "readwrite"),
          a: bench.matrix(a, bytes(a, "a"), "read"),
          b: bench.matrix(b, bytes(b, "b"), "read"),
        };
        const array = (element: ElementType) =>
          ({
            kind: "buffer",
            parameter: bench.buffer("m", element.name === "tf32" ? f32 : (element as StorageType)),
          }) as const;
        if (kind === "wmmaMma") {
          bench.effect(kind, [], { shape, a, b, accumulator, majorA: "row", majorB: "column" }, [
            fragments.accumulator,
            fragments.a,
            fragments.b,
          ]);
        } else if (kind === "wmmaStore") {
          bench.effect(
            kind,
            [bench.thread, constant(i32, 64)],
            { shape, element: accumulator, major: "row", array: array(accumulator), offset: 16 },
            [fragments.accumulator],
          );
          const shared = bench.shared(`w${bench.sharedArrays.length}`, accumulator as StorageType, 256);
          bench.effect(
            kind,
            [constant(i32, 0), constant(i32, 16)],
            {
              shape,
              element: accumulator,
              major: "column",
              array: { kind: "shared", array: shared },
              offset: 0,
            },
            [fragments.accumulator],
          );
        } else {
          for (const [use, element] of [
            ["a", a],
            ["b", b],
            ["accumulator", accumulator],
          ] as const) {
            bench.effect(
              kind,
              [bench.thread, bench.some(i32)],
              { use, shape, element, major: "column", array: array(element), offset: 16 },
              [fragments[use]],
            );
          }
        }
      },
  );
}

function everyWarpgroupMma(): readonly Sample[] {
  return nvidiaTarget("sm_90a").warpgroupMma.flatMap((one) =>
    [8, 64, 256].flatMap((n) =>
      [true, false].map(
        (fromShared): Sample =>
          (bench) => {
            const [a, b, accumulator] = [byName(one.a), byName(one.b), byName(one.accumulator)];
            const tile = { leadingBytes: 16, strideBytes: 1024, swizzle: 128, offset: 32 } as const;
            const major = a.bits === 16 ? "mn" : "k";
            const sharedB = {
              ...tile,
              array: bench.shared(
                `b${bench.sharedArrays.length}`,
                b.name === "b1" ? u32 : b.name === "tf32" ? f32 : (b as StorageType),
                1024,
              ),
              major,
            } as const;
            const sharedA = fromShared ? ({ ...sharedB, major: "k" } as const) : undefined;
            const d = bench.matrix(accumulator, (one.m * n * accumulator.bits) / 8 / 128, "readwrite");
            const left = fromShared ? [] : [bench.matrix(a, 16, "read")];
            const attributes = {
              shape: { m: one.m, n, k: one.k },
              a,
              b,
              accumulator,
              sharedA,
              sharedB,
              negateA: a.class === "float",
              negateB: false,
            };
            bench.effect("warpgroupFence", [], {});
            bench.effect(
              "warpgroupMma",
              [...(fromShared ? [constant(i32, 64)] : []), constant(i32, 0), constant(bool, true)],
              attributes,
              [d, ...left],
            );
            bench.effect("warpgroupCommit", [], {});
            bench.effect("warpgroupWait", [], { pending: 0 });
          },
      ),
    ),
  );
}

const plain =
  (
    name:
      | "blockBarrier"
      | "subgroupBarrier"
      | "proxyFence"
      | "barrierInitFence"
      | "copyAsyncCommit"
      | "tensorStoreCommit"
      | "warpgroupFence"
      | "warpgroupCommit",
  ): Sample =>
  (bench) =>
    bench.effect(name, [], {});

const matrixRows = (name: "loadMatrix" | "storeMatrix"): readonly Sample[] =>
  ([1, 2, 4] as const).flatMap((count) =>
    [true, false].map(
      (transpose): Sample =>
        (bench) => {
          const array = bench.shared(`l${bench.sharedArrays.length}`, f16, 1024);
          const registers = [bench.fragment(f16, count, 2, name === "loadMatrix" ? "write" : "read")];
          bench.effect(name, [bench.thread], { array, offset: 8, count, transpose }, registers);
          bench.effect(name, [constant(i32, 0)], { array, offset: 8, count, transpose }, registers);
        },
    ),
  );

/** Complete by type: an operation without samples does not compile. */
const table: { readonly [Name in OperationName]: Samples | ((name: NvidiaTargetName) => Samples) } = {
  add: { samples: elementwise("add", arithmetic, 2) },
  sub: { samples: elementwise("sub", arithmetic, 2) },
  mul: { samples: elementwise("mul", arithmetic, 2) },
  mulHigh: { samples: elementwise("mulHigh", [i32, u32], 2) },
  div: { samples: elementwise("div", arithmetic, 2) },
  rem: { samples: elementwise("rem", integers, 2) },
  floorDiv: { samples: elementwise("floorDiv", integers, 2) },
  floorMod: { samples: elementwise("floorMod", integers, 2) },
  neg: { samples: elementwise("neg", arithmetic, 1) },
  abs: { samples: elementwise("abs", arithmetic, 1) },
  min: { samples: elementwise("min", arithmetic, 2) },
  max: { samples: elementwise("max", arithmetic, 2) },
  fma: { samples: elementwise("fma", arithmetic, 3) },
  and: { samples: elementwise("and", [...integers, bool], 2) },
  or: { samples: elementwise("or", [...integers, bool], 2) },
  xor: { samples: elementwise("xor", [...integers, bool, u8, u16], 2) },
  not: { samples: elementwise("not", [...integers, bool], 1) },
  shiftLeft: { samples: shifts("shiftLeft") },
  shiftRight: { samples: shifts("shiftRight") },
  equal: { samples: comparisons("equal") },
  notEqual: { samples: comparisons("notEqual") },
  less: { samples: comparisons("less") },
  lessEqual: { samples: comparisons("lessEqual") },
  greater: { samples: comparisons("greater") },
  greaterEqual: { samples: comparisons("greaterEqual") },
  isNaN: {
    samples: [f16, bf16, f32, f64, e4m3, e5m2].map(
      (element) => (bench) => bench.keep(bench.op("isNaN", scalar(bool), [bench.some(element)], {})),
    ),
  },
  select: {
    samples: [...arithmetic, i8, u16, bool].map((element) => (bench) => {
      bench.keep(bench.select(bench.some(bool), bench.some(element, 2), bench.some(element, 2)));
      bench.keep(bench.select(bench.some(bool), bench.some(element), bench.some(element)));
    }),
  },
  sqrt: { samples: elementwise("sqrt", floats, 1) },
  reciprocalSqrt: { samples: elementwise("reciprocalSqrt", floats, 1) },
  reciprocal: { samples: elementwise("reciprocal", floats, 1) },
  exp2: { samples: elementwise("exp2", [f16, bf16, f32], 1) },
  log2: { samples: elementwise("log2", [f16, bf16, f32], 1) },
  sin: { samples: elementwise("sin", [f16, bf16, f32], 1) },
  cos: { samples: elementwise("cos", [f16, bf16, f32], 1) },
  tanh: { samples: elementwise("tanh", [f16, bf16, f32], 1) },
  floor: { samples: elementwise("floor", floats, 1) },
  ceil: { samples: elementwise("ceil", floats, 1) },
  trunc: { samples: elementwise("trunc", floats, 1) },
  roundEven: { samples: elementwise("roundEven", floats, 1) },
  convert: (name) => ({
    samples: [
      ...conversions(),
      ...(name === "sm_75"
        ? []
        : [f16, bf16, f32, f64, i32, i64, i8, e4m3, bool].map(
            (element): Sample =>
              (bench) =>
                bench.keep(bench.convert(bench.some(element), tf32)),
          )),
    ],
  }),
  bitcast: {
    samples: bitcasts.map(
      ([a, lanesA, b, lanesB]) =>
        (bench) =>
          bench.keep(bench.op("bitcast", { element: b, lanes: lanesB }, [bench.some(a, lanesA)], {})),
    ),
  },
  popcount: { samples: elementwise("popcount", integers, 1) },
  leadingZeros: { samples: elementwise("leadingZeros", integers, 1) },
  reverseBits: { samples: elementwise("reverseBits", integers, 1) },
  dot4: {
    samples: [
      [true, true],
      [true, false],
      [false, true],
      [false, false],
    ].map(
      ([signedA, signedB]) =>
        (bench) =>
          bench.keep(
            bench.op("dot4", scalar(i32), [bench.some(u32), bench.some(u32), bench.some(i32)], {
              signedA: signedA!,
              signedB: signedB!,
            }),
          ),
    ),
  },
  permuteBytes: {
    samples: [
      (bench) =>
        bench.keep(
          bench.op(
            "permuteBytes",
            scalar(u32),
            [bench.some(u32), bench.some(u32), constant(u32, 0x3210)],
            {},
          ),
        ),
    ],
  },
  compose: {
    samples: (
      [
        [f32, 2],
        [f16, 2],
        [bf16, 8],
        [u8, 2],
        [i8, 4],
        [u8, 16],
        [f64, 2],
        [bool, 2],
        [i16, 4],
      ] as const
    ).map(([element, lanes]) => (bench) => {
      const own = constant(element, element.name === "bool" ? true : 1);
      bench.keep(
        bench.op(
          "compose",
          { element, lanes },
          Array.from({ length: lanes }, (_, lane) => (lane === 1 ? own : bench.some(element))),
          {},
        ),
      );
    }),
  },
  extract: {
    samples: (
      [
        [f32, 4],
        [f16, 8],
        [u8, 2],
        [i8, 4],
        [u8, 16],
        [f64, 2],
        [bool, 2],
        [i16, 4],
      ] as const
    ).map(([element, lanes]) => (bench) => {
      const vector = bench.some(element, lanes);
      for (const lane of [0, lanes - 1]) bench.keep(bench.op("extract", scalar(element), [vector], { lane }));
    }),
  },
  builtin: (name) => ({
    samples: (
      [
        "threadIndexX",
        "threadIndexY",
        "threadIndexZ",
        "blockIndexX",
        "blockIndexY",
        "blockIndexZ",
        "gridSizeX",
        "gridSizeY",
        "gridSizeZ",
        "lane",
        "subgroupIndex",
        ...(from(90)(name)
          ? (["clusterRank", "clusterIndexX", "clusterIndexY", "clusterIndexZ"] as const)
          : []),
      ] as const
    ).map((builtin) => (bench) => bench.keep(bench.builtin(builtin))),
  }),
  parameter: {
    samples: [...arithmetic, i8, u8, u16, i16, e4m3, bool].map(
      (element) => (bench) =>
        bench.keep(bench.parameter(bench.scalarParameter(`p${bench.parameters.length}`, element))),
    ),
  },
  bufferSize: { samples: [(bench) => bench.keep(bench.size(bench.buffer("m", f32, "read", 3), 2))] },
  bufferStride: { samples: [(bench) => bench.keep(bench.stride(bench.buffer("m", f32, "read", 3), 1))] },
  readRegister: {
    samples: [f32, f16, bool, i64, u8].map(
      (element) => (bench) =>
        bench.keep(bench.read(bench.variable(`v${bench.variables.length}`, element, 3), 2)),
    ),
  },
  writeRegister: {
    samples: (
      [
        [f32, 4],
        [f16, 2],
        [bool, 1],
        [i64, 1],
        [u8, 1],
        [f16, 1],
      ] as const
    ).map(([element, lanes]) => (bench) => {
      const variable = bench.variable(`v${bench.variables.length}`, element, 3, lanes);
      bench.write(variable, bench.some(element, lanes), 1);
      bench.write(
        variable,
        constant(element, element.name === "bool" ? true : element.name === "i64" ? 1n : 1, lanes),
        0,
      );
      bench.keep(bench.read(variable, 1));
      bench.keep(bench.read(variable, 0));
    }),
  },
  load: { samples: memory("load") },
  store: { samples: memory("store") },
  atomic: (name) => ({
    samples: [
      ...atomics(),
      ...(from(90)(name)
        ? [
            (bench: Bench) =>
              bench.keep(
                bench.op("atomic", scalar(bf16), [bench.thread, bench.some(bf16)], {
                  operation: "add",
                  order: "relaxed",
                  scope: "cluster",
                  offset: 0,
                  array: { kind: "buffer", parameter: bench.buffer("a", bf16) },
                }),
              ),
          ]
        : []),
      (bench) =>
        bench.op("atomic", { element: f16, lanes: 2 }, [constant(i32, 0), bench.some(f16, 2)], {
          operation: "add",
          order: "relaxed",
          scope: "device",
          offset: 0,
          array: { kind: "buffer", parameter: bench.buffer("a", f16) },
        }),
    ],
  }),
  shuffle: { samples: shuffles() },
  vote: {
    samples: (["any", "all"] as const).map(
      (mode) => (bench) => bench.keep(bench.op("vote", scalar(bool), [bench.some(bool)], { mode })),
    ),
  },
  ballot: { samples: [(bench) => bench.keep(bench.op("ballot", scalar(u32), [bench.some(bool)], {}))] },
  subgroupReduce: { samples: reductions() },
  electOne: { samples: [(bench) => bench.keep(bench.op("electOne", scalar(bool), [], {}))] },
  blockBarrier: { samples: [plain("blockBarrier")] },
  namedBarrier: {
    samples: (["sync", "arrive"] as const).map((action) => (bench) => {
      bench.effect("namedBarrier", [constant(i32, 3)], { action, threads: 64 });
      bench.effect("namedBarrier", [bench.some(i32)], { action, threads: 64 });
    }),
  },
  subgroupBarrier: { samples: [plain("subgroupBarrier")] },
  fence: (name) => ({
    samples: (["block", "device", "system", ...(from(90)(name) ? (["cluster"] as const) : [])] as const).map(
      (scope) => (bench) => bench.effect("fence", [], { scope }),
    ),
  }),
  proxyFence: { samples: [plain("proxyFence")], on: from(90) },
  barrierInitFence: { samples: [plain("barrierInitFence")], on: from(90) },
  clusterBarrier: {
    samples: (["arrive", "wait"] as const).map(
      (action) => (bench) => bench.effect("clusterBarrier", [], { action }),
    ),
    on: from(90),
  },
  barrierInit: { samples: [onBarrier("barrierInit")], on: from(80) },
  barrierArrive: (name) => ({
    samples: [
      onBarrier("barrierArrive"),
      ...(from(90)(name) ? [onBarrier("barrierArrive", constant(i32, 1))] : []),
    ],
    on: from(80),
  }),
  barrierArriveExpect: { samples: [onBarrier("barrierArriveExpect", constant(i32, 4096))], on: from(90) },
  barrierWait: {
    samples: [
      onBarrier("barrierWait", constant(i32, 1)),
      (bench) => onBarrier("barrierWait", bench.some(i32))(bench),
    ],
    on: from(80),
  },
  copyAsync: {
    samples: ([4, 8, 16] as const).map((bytes) => (bench) => {
      const target = bench.shared(`c${bench.sharedArrays.length}`, f16, 1024);
      const attributes = {
        target,
        targetOffset: 8,
        source: { kind: "buffer", parameter: bench.buffer("g", f16) },
        sourceOffset: 8,
        bytes,
      } as const;
      bench.effect("copyAsync", [bench.thread, bench.thread], attributes);
      bench.effect("copyAsync", [constant(i32, 0), constant(i32, 8)], attributes);
      bench.effect("copyAsync", [bench.thread, bench.thread, bench.some(i32)], attributes);
      bench.effect("copyAsync", [bench.thread, bench.thread, constant(i32, 0)], attributes);
      for (const prefetchBytes of [64, 128, 256] as const)
        bench.effect("copyAsync", [bench.thread, bench.thread], { ...attributes, prefetchBytes });
      bench.effect("copyAsync", [bench.thread, bench.thread], { ...attributes, cache: "first" });
    }),
    on: from(80),
  },
  copyAsyncCommit: { samples: [plain("copyAsyncCommit")], on: from(80) },
  copyAsyncWait: { samples: [(bench) => bench.effect("copyAsyncWait", [], { pending: 2 })], on: from(80) },
  copyAsyncArrive: { samples: [onBarrier("copyAsyncArrive")], on: from(80) },
  tensorLoad: { samples: [tensorLoads(false), tensorLoads(true), windowLoad], on: from(90) },
  tensorStore: {
    samples: [
      (bench) => {
        const map = bench.tensorMap("m", f16, [64, 8]);
        bench.effect("tensorStore", [constant(i32, 0), bench.thread, constant(i32, 4)], {
          map,
          source: bench.shared("t", f16, 1024),
          sourceOffset: 64,
        });
      },
    ],
    on: from(90),
  },
  tensorStoreCommit: { samples: [plain("tensorStoreCommit")], on: from(90) },
  tensorStoreWait: {
    samples: [true, false].map(
      (read) => (bench) => bench.effect("tensorStoreWait", [], { pending: 1, read }),
    ),
    on: from(90),
  },
  prefetchTensorMap: {
    samples: [(bench) => bench.effect("prefetchTensorMap", [], { map: bench.tensorMap("m", f16, [64, 8]) })],
    on: from(90),
  },
  loadMatrix: { samples: matrixRows("loadMatrix") },
  storeMatrix: { samples: matrixRows("storeMatrix"), on: from(90) },
  mma: (name) => ({ samples: everyMma("mma", name) }),
  wmmaLoad: (name) => ({ samples: everyWmma("wmmaLoad", name) }),
  wmmaStore: (name) => ({ samples: everyWmma("wmmaStore", name) }),
  wmmaMma: (name) => ({ samples: everyWmma("wmmaMma", name) }),
  warpgroupFence: { samples: [plain("warpgroupFence")], on: onlyA },
  warpgroupMma: { samples: everyWarpgroupMma(), on: onlyA },
  warpgroupCommit: { samples: [plain("warpgroupCommit")], on: onlyA },
  warpgroupWait: { samples: [(bench) => bench.effect("warpgroupWait", [], { pending: 1 })], on: onlyA },
  print: {
    samples: [
      (bench) => {
        const values = [...arithmetic, i8, u8, i16, u16, e4m3, bool].map((element) => bench.some(element));
        bench.effect("print", [...values, bench.some(f32, 4)], {
          parts: ["a % of ", ...values.map(() => ", "), " end"],
        });
      },
    ],
  },
  assert: { samples: [(bench) => bench.effect("assert", [bench.some(bool)], { message: '100 % "sure"' })] },
};

/** bf16 has no arithmetic before sm_80: samples that ask for it are refused there. */
function supported(sample: Sample, name: NvidiaTargetName): boolean {
  if (name !== "sm_75") return true;
  try {
    generatePtx(built(sample), nvidiaTarget(name));
    return true;
  } catch (error) {
    if (error instanceof UnsupportedError && /bf16 has no arithmetic/.test(error.message)) return false;
    throw error;
  }
}

function built(...samples: readonly Sample[]) {
  const bench = new Bench();
  for (const sample of samples) sample(bench);
  const bytes = Math.max(
    0,
    ...bench.sharedArrays.map((array) => array.byteOffset + (array.length * array.element.bits) / 8),
  );
  return bench.build({ sharedBytes: Math.min(bytes, 48 * 1024), sharedAlignment: 1024 });
}

function entry(name: OperationName, target: NvidiaTargetName): Samples {
  const found = table[name];
  return typeof found === "function" ? found(target) : found;
}

/** On sm_90 the assembler says that multicast is meant for sm_90a. It works. */
const multicastAdvice = /.*warning : Advisory: '.multicast::cluster'.*/g;

describe.skipIf(!available)("every operation assembles", () => {
  describe.each(targets)("on %s", (target) => {
    it.each(Object.keys(operations) as OperationName[])("%s", (name) => {
      const { samples, on = () => true } = entry(name, target);
      if (!on(target)) {
        for (const sample of samples)
          expect(() => generatePtx(built(sample), nvidiaTarget(target))).toThrow(UnsupportedError);
        return;
      }
      const usable = samples.filter((sample) => supported(sample, target));
      expect(usable.length).toBeGreaterThan(0);
      const { text } = generatePtx(built(...usable), nvidiaTarget(target));
      const assembly = assemble(text);
      expect(assembly.log.replaceAll(multicastAdvice, "")).not.toMatch(/error|fatal|warning/i);
      expect(assembly.succeeded).toBe(true);
    });
  });
});
