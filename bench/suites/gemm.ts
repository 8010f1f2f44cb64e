/** @file Products from here beside cuBLASLt's fastest, in one process and turn by turn. */

import {
  bias,
  type GemmOptions,
  type GemmPlan,
  geluTanh,
  mmaSync,
  planGemm,
  relu,
  wmmaSync,
} from "tilewright/gemm";
import { type StorageType, types } from "tilewright/lang";
import type { Device, DeviceArray } from "../../src/runtime/array.ts";
import { createCompiler } from "../../src/runtime/compile.ts";
import type { CudaBackend } from "../../src/runtime/cuda/index.ts";
import { createDevice } from "../../src/runtime/device.ts";
import type { Contender, WorkItem } from "../harness.ts";
import type { LimitKind } from "../limits.ts";
import { CublasLt, type MatmulOptions } from "../peers/cublaslt.ts";
import { normalValues } from "../random.ts";
import type { Suite } from "../suite.ts";

interface Product {
  readonly name: string;
  readonly operand: "f16" | "bf16" | "f32" | "f64" | "i8" | "e4m3" | "e5m2";
  /** Of B, where it is another one. */
  readonly operandB?: "e4m3";
  readonly result: "f16" | "bf16" | "f32" | "f64" | "i32";
  readonly compute: MatmulOptions["compute"];
  readonly limit: LimitKind;
}

const f16: Product = { name: "f16", operand: "f16", result: "f16", compute: "f32", limit: "f16" };
const f16ToF32: Product = { ...f16, name: "f16 to f32", result: "f32" };
const bf16: Product = { name: "bf16", operand: "bf16", result: "bf16", compute: "f32", limit: "bf16" };
const f32: Product = { name: "f32", operand: "f32", result: "f32", compute: "f32", limit: "f32" };
const tf32: Product = { ...f32, name: "tf32", compute: "tf32", limit: "tf32" };
const f64: Product = { name: "f64", operand: "f64", result: "f64", compute: "f64", limit: "f64 tensor" };
const i8: Product = { name: "i8 to i32", operand: "i8", result: "i32", compute: "i32", limit: "int8" };

const e4m3: Product = { name: "e4m3 to bf16", operand: "e4m3", result: "bf16", compute: "f32", limit: "fp8" };
const e5m2: Product = { ...e4m3, name: "e5m2 by e4m3 to bf16", operand: "e5m2", operandB: "e4m3" };

/** What one item multiplies, and how. */
interface Options {
  readonly product: Product;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly majors: "NN" | "NT" | "TN" | "TT";
  readonly suffix?: string;
  readonly epilogue?: "bias relu" | "bias gelu";
  /** Unused elements at the end of A's lines, and of every line. */
  readonly paddingA?: number;
  readonly padding?: number;
  /** Matrices of A and D, row-major; of B as many, or one for all. */
  /** Which sums the library is asked for, with 8-bit floats: exact ones unless given. */
  readonly fastAccumulation?: boolean;
  readonly batch?: { readonly count: number; readonly sharedB: boolean };
  /** Our ways; each is a contender. */
  readonly ways?: readonly { readonly name: string; readonly options: GemmOptions }[];
}

const devices: WeakMap<CudaBackend, Device> = new WeakMap();

function deviceOf(backend: CudaBackend): Device {
  const known = devices.get(backend);
  if (known !== undefined) return known;
  const made = createDevice(backend, createCompiler(backend), []);
  devices.set(backend, made);
  return made;
}

/** Distinct values of an operand; more would only cost time to make. */
const distinct = 1_000_003;

function matrix(
  device: Device,
  type: StorageType,
  lines: number,
  length: number,
  padding: number,
  seed: number,
  matrices = 1,
): { readonly whole: DeviceArray; readonly view: DeviceArray } {
  const leading = length + padding;
  const values = normalValues(distinct, seed);
  const scaled =
    type.class === "float" ? values : values.map((x) => Math.max(-127, Math.min(127, Math.round(x * 40))));
  const host = new Float32Array(matrices * lines * leading);
  for (let i = 0; i < host.length; i += distinct)
    host.set(scaled.subarray(0, Math.min(distinct, host.length - i)), i);
  const whole = device.array(type, [matrices * lines, leading], host);
  const view = whole.slice([], [0, length]);
  return { whole, view: matrices === 1 ? view : view.reshape([matrices, lines, length]) };
}

function item(backend: CudaBackend, options: Options): WorkItem {
  const { product, m, n, k, majors, suffix = "", epilogue, paddingA = 0, padding = 0, batch } = options;
  const { fastAccumulation = false } = options;
  const count = batch?.count ?? 1;
  const several = batch === undefined ? "" : `${count} of `;
  return {
    id: `${product.name} ${several}${m} x ${n} x ${k} ${majors}${suffix}`,
    operations: 2 * count * m * n * k,
    limit: product.limit,
    prepare: async () => {
      const device = deviceOf(backend);
      const operand: StorageType = types[product.operand];
      const operandB: StorageType = types[product.operandB ?? product.operand];
      const result: StorageType = types[product.result];
      const [ta, tb] = [majors[0] === "T", majors[1] === "T"];
      const a = matrix(device, operand, ta ? k : m, ta ? m : k, paddingA + padding, 1, count);
      const matricesB = batch?.sharedB === true ? 1 : count;
      const b = matrix(device, operandB, tb ? n : k, tb ? k : n, padding, 2, matricesB);
      const outer = batch === undefined ? [] : [count];
      const ours = device.empty(result, [...outer, m, n + padding]);
      const theirs = device.empty(result, [...outer, m, n + padding]);
      const offsets = device.array(
        result.class === "float" ? result : types.f32,
        [n],
        Float32Array.from(normalValues(n, 3)),
      );
      const steps = epilogue === undefined ? [] : [bias(offsets), epilogue === "bias relu" ? relu : geluTanh];
      const plans: GemmPlan[] = [];
      const contenders: Contender[] = [];
      for (const way of options.ways ?? [{ name: "ours", options: {} }]) {
        const plan = await planGemm(ta ? a.view.transposed : a.view, tb ? b.view.transposed : b.view, {
          d: ours.slice(...outer.map(() => undefined), undefined, [0, n]),
          epilogue: steps,
          ...(product.compute === "tf32" ? { compute: types.tf32 } : {}),
          fastAccumulation,
          ...way.options,
        });
        plans.push(plan);
        const { registersPerThread, spilledBytes } = plan.compiled ?? {};
        contenders.push({
          name: way.name,
          role: "ours",
          note: `${plan.kind.schedule}, block ${Object.values(plan.kind.params.block).join(" x ")}, ${registersPerThread} registers, ${spilledBytes} bytes spilled`,
          enqueue: () => plan.run(),
        });
      }
      const library = new CublasLt(backend);
      const peer = await library.matmul({
        m,
        n,
        k,
        a: {
          type: product.operand,
          buffer: a.whole.allocation.buffer,
          leading: a.whole.shape[1]!,
          transposed: ta,
        },
        b: {
          type: product.operandB ?? product.operand,
          buffer: b.whole.allocation.buffer,
          leading: b.whole.shape[1]!,
          transposed: tb,
          ...(matricesB < count ? { batchStride: 0 } : {}),
        },
        d: { type: product.result, buffer: theirs.allocation.buffer, leading: n + padding },
        compute: product.compute,
        fastAccumulation,
        ...(batch === undefined ? {} : { batch: count }),
        ...(epilogue === undefined ? {} : { epilogue, bias: offsets.allocation.buffer }),
      });
      contenders.push({
        name: "cuBLASLt",
        role: "peer",
        note: `${library.version}, ${peer.note}`,
        enqueue: () => peer.enqueue(),
      });
      return {
        contenders,
        dispose: () => {
          peer.dispose();
          library.dispose();
          for (const plan of plans) plan.dispose();
          for (const array of [a.whole, b.whole, ours, theirs, offsets]) array.dispose();
        },
      };
    },
  };
}

const everyMajors = ["NN", "NT", "TN", "TT"] as const;
const operators = [
  { name: "warpgroup", options: {} },
  { name: "mma", options: { operator: mmaSync } },
  { name: "mma, register-staged", options: { operator: mmaSync, schedule: "register-staged" } },
  { name: "wmma", options: { operator: wmmaSync } },
] as const;

/** What the library takes, and the schedule that was there before asynchronous copies. */
const schedules = [
  { name: "ours", options: {} },
  { name: "register-staged", options: { schedule: "register-staged" } },
] as const;

function square(
  product: Product,
  size: number,
  majors: Options["majors"],
  more: Partial<Options> = {},
): Options {
  return { product, m: size, n: size, k: size, majors, ...more };
}

/** What transforms of either operand cost: the plain product beside them. */
const transformed = [
  { name: "plain", options: {} },
  { name: "A", options: { transforms: { a: { globalToShared: (x) => x.mul(0.5).add(1) } } } },
  { name: "B", options: { transforms: { b: { globalToShared: (x) => x.mul(0.5).add(1) } } } },
] satisfies Options["ways"];

/** What the library takes, and tiles of 128 x 128 in turn: one warpgroup's epilogue beside the other's products. */
const forms = [
  { name: "ours", options: {} },
  {
    name: "in turn",
    options: { params: { block: { m: 128, n: 128, k: 64 }, warps: { m: 4, n: 1 }, groupRows: 16 } },
  },
] as const;

/** Long sums of few tiles: K in parts as the library takes them, and whole. */
const parts = [
  { name: "ours", options: {} },
  {
    name: "K whole",
    options: { params: { block: { m: 128, n: 64, k: 64 }, warps: { m: 8, n: 1 }, groupRows: 16 } },
  },
] as const;

/** Plain products in f32 with other tiles, to see what registers and occupancy are worth. */
const plainWays = [
  ...schedules,
  {
    name: "two blocks",
    options: {
      schedule: "register-staged",
      params: { block: { m: 128, n: 128, k: 16 }, warps: { m: 4, n: 2 }, groupRows: 8, residentBlocks: 2 },
    },
  },
] as const;

export const gemmSuite: Suite = {
  name: "gemm",
  items: (backend) =>
    [
      ...[4096, 8192].flatMap((size) =>
        everyMajors.map((majors) => square(f16ToF32, size, majors, { ways: operators })),
      ),
      ...[256, 512, 1024, 2048, 4096, 8192, 16384].flatMap((size) =>
        everyMajors.map((majors) => square(f16, size, majors)),
      ),
      ...[4096, 8192].flatMap((size) => everyMajors.map((majors) => square(bf16, size, majors))),
      ...[4096, 8192].flatMap((size) =>
        (["bias relu", "bias gelu"] as const).map((epilogue) =>
          square(f16, size, "NN", { epilogue, suffix: ` + ${epilogue}`, ways: forms }),
        ),
      ),
      square(f16, 4096, "NN", { paddingA: 3, suffix: ", A's leading dimension 4099" }),
      square(f16ToF32, 4096, "NN", {
        paddingA: 3,
        suffix: ", A's leading dimension 4099, mma",
        ways: [{ name: "ours", options: { operator: mmaSync } }],
      }),
      {
        ...square(f16ToF32, 4096, "NN"),
        m: 4095,
        padding: 8,
        suffix: ", aligned lines, mma",
        ways: [{ name: "ours", options: { operator: mmaSync } }],
      },
      {
        ...square(f16ToF32, 4096, "NN"),
        n: 4095,
        padding: 9,
        paddingA: -1,
        suffix: ", aligned lines, mma",
        ways: [{ name: "ours", options: { operator: mmaSync } }],
      },
      ...[4096, 8192].map((size) => square(f32, size, "NN", { ways: plainWays })),
      ...[4096, 8192].map((size) => square(tf32, size, "NT", { ways: schedules })),
      square(f64, 4096, "NN", { ways: schedules }),
      ...[4096, 8192].map((size) => square(i8, size, "NT")),
      ...[4096, 8192].flatMap((size) => [
        square(e4m3, size, "NT"),
        square(e4m3, size, "NT", { fastAccumulation: true, suffix: ", fast accumulation" }),
      ]),
      square(e5m2, 4096, "NT"),
      ...(["NN", "NT"] as const).map((majors) =>
        square(f16, 8192, majors, { ways: transformed, suffix: ", changed" }),
      ),
      { ...square(f16, 1024, "NN"), batch: { count: 32, sharedB: false } },
      { ...square(f16, 1024, "NN"), batch: { count: 32, sharedB: true }, suffix: ", one B" },
      { ...square(f16, 2048, "NN"), k: 128, batch: { count: 64, sharedB: false } },
      ...[4096, 16384, 65536].map((k) => ({ ...square(f16, 512, "NN"), k, ways: parts })),
    ].map((options) => item(backend, options)),
};
