/** @file GEMM kernels as NVIDIA's assembler takes them: one for each component and target, no spills, no warnings. */
import {
  bf16,
  type Device,
  type DeviceArray,
  e4m3,
  f16,
  f32,
  f64,
  i8,
  type StorageType,
  tf32,
} from "tilewright";
import {
  type Algebra,
  algebraMatrix,
  bias,
  complex,
  complex3m,
  defineAlgebra,
  diagonal,
  dual,
  fma,
  type GemmOptions,
  geluTanh,
  int4Weights,
  type MatrixSource,
  maxPlus,
  mmaSync,
  planConv2d,
  planGemm,
  planGemmInt4,
  planGrouped,
  relu,
  residual,
  semiringOperator,
  silu,
  type Transform,
  triangular,
  wmmaSync,
} from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { createPaperDevice } from "../../src/cli/paper-device.ts";
import { type NvidiaTargetName, nvidiaTarget } from "../../src/target/nvidia.ts";
import { assemble } from "../support/ptxas.ts";
import { requirement } from "../support/require.ts";

const { available } = requirement("ptxas");

/** A product of large square matrices: `options` may want arrays of the device. */
interface Kernel {
  readonly name: string;
  /** Columns of B, where they are few. */
  readonly vectors?: number;
  readonly targets: readonly NvidiaTargetName[];
  readonly type: StorageType;
  readonly layout?: "nn" | "nt" | "tn" | "tt";
  readonly schedule: string;
  /** What elements are, where they are no single numbers. */
  readonly algebra?: Algebra;
  /** What A is, where it is not dense. */
  readonly structured?: (a: DeviceArray) => MatrixSource;
  /** Matrices of A, for all of which there is one B. */
  readonly batch?: number;
  readonly options?: (device: Device) => GemmOptions;
}

const all = ["sm_75", "sm_80", "sm_89", "sm_90a"] as const;
const size = 4096;
const quaternion: Algebra = defineAlgebra({
  name: "quaternion",
  basis: "1 i j k",
  table: ["1 i j k", "i -1 k -j", "j -k -1 i", "k j -i -1"],
  conjugate: "1 -i -j -k",
});
const halved: Transform = (x) => x.mul(0.5).add(1);

const kernels: readonly Kernel[] = [
  {
    name: "fma of f32",
    targets: ["sm_80"],
    type: f32,
    schedule: "register-staged",
    options: () => ({ operator: fma, schedule: "register-staged" }),
  },
  {
    name: "max-plus of f32",
    targets: ["sm_90a"],
    type: f32,
    schedule: "register-staged",
    options: () => ({ operator: semiringOperator(maxPlus) }),
  },
  {
    name: "mma of f16",
    targets: all,
    type: f16,
    schedule: "register-staged",
    options: () => ({ operator: mmaSync, schedule: "register-staged" }),
  },
  {
    name: "mma of tf32",
    targets: ["sm_80"],
    type: f32,
    layout: "nt",
    schedule: "register-staged",
    options: () => ({ compute: tf32, schedule: "register-staged" }),
  },
  {
    name: "mma of f64",
    targets: ["sm_80", "sm_90a"],
    type: f64,
    schedule: "register-staged",
    options: () => ({ schedule: "register-staged" }),
  },
  {
    name: "mma of i8",
    targets: ["sm_75", "sm_80"],
    type: i8,
    layout: "nt",
    schedule: "register-staged",
    options: () => ({ schedule: "register-staged" }),
  },
  {
    name: "wmma of f16",
    targets: ["sm_75", "sm_90a"],
    type: f16,
    schedule: "register-staged",
    options: () => ({ operator: wmmaSync, schedule: "register-staged" }),
  },
  ...([1, 4, 8] as const).flatMap((vectors) =>
    (["nt", "tn"] as const).map(
      (layout): Kernel => ({
        name: `matrix by ${vectors} vectors of f16, ${layout}`,
        targets: ["sm_75", "sm_90a"],
        type: f16,
        layout,
        vectors,
        schedule: "matrix-vector",
      }),
    ),
  ),
  {
    name: "matrix by a vector of f64",
    targets: ["sm_80"],
    type: f64,
    vectors: 1,
    schedule: "matrix-vector",
  },
  {
    name: "complex f16",
    targets: ["sm_80", "sm_90a"],
    type: f16,
    algebra: complex,
    schedule: "register-staged",
  },
  {
    name: "complex bf16, three products",
    targets: ["sm_90a"],
    type: bf16,
    algebra: complex3m,
    schedule: "register-staged",
  },
  { name: "dual f16", targets: ["sm_75", "sm_90a"], type: f16, algebra: dual, schedule: "register-staged" },
  {
    name: "complex f64",
    targets: ["sm_80", "sm_90a"],
    type: f64,
    algebra: complex,
    schedule: "register-staged",
  },
  {
    name: "complex f32",
    targets: ["sm_75", "sm_90a"],
    type: f32,
    algebra: complex,
    schedule: "register-staged",
  },
  {
    name: "complex tf32",
    targets: ["sm_90a"],
    type: f32,
    algebra: complex,
    schedule: "register-staged",
    options: () => ({ compute: tf32 }),
  },
  {
    name: "quaternion f16",
    targets: ["sm_80", "sm_90a"],
    type: f16,
    algebra: quaternion,
    schedule: "register-staged",
  },
  {
    name: "gated mma of f16",
    targets: ["sm_80", "sm_90a"],
    type: f16,
    schedule: "multistage",
    options: () => ({ gate: silu, epilogue: [relu], schedule: "multistage" }),
  },
  {
    name: "multistage fma of f32",
    targets: ["sm_80"],
    type: f32,
    schedule: "multistage",
    options: () => ({ schedule: "multistage" }),
  },
  {
    name: "wgmma of complex f16 with C",
    targets: ["sm_90a"],
    type: f16,
    algebra: complex,
    schedule: "warpgroup",
    options: (device) => ({
      pack: true,
      c: device.empty(f16, [size, size, 2]),
      alpha: [1, 2],
      beta: [3, 4],
    }),
  },
  {
    name: "wgmma of complex tf32",
    targets: ["sm_90a"],
    type: f32,
    algebra: complex,
    schedule: "warpgroup",
    options: () => ({ pack: true, compute: tf32 }),
  },
  {
    name: "wgmma of quaternions of bf16",
    targets: ["sm_90a"],
    type: bf16,
    algebra: quaternion,
    schedule: "warpgroup",
    options: () => ({ pack: true, type: f32 }),
  },
  { name: "multistage mma of f16", targets: ["sm_80", "sm_89"], type: f16, schedule: "multistage" },
  {
    name: "multistage mma of tf32",
    targets: ["sm_80"],
    type: f32,
    layout: "nt",
    schedule: "multistage",
    options: () => ({ compute: tf32, schedule: "multistage" }),
  },
  { name: "multistage mma of f64", targets: ["sm_80", "sm_90a"], type: f64, schedule: "multistage" },
  { name: "multistage mma of i8", targets: ["sm_80"], type: i8, layout: "nt", schedule: "multistage" },
  { name: "wgmma of f16", targets: ["sm_90a"], type: f16, layout: "nn", schedule: "warpgroup" },
  {
    name: "gated wgmma of f16",
    targets: ["sm_90a"],
    type: f16,
    schedule: "warpgroup",
    options: () => ({ gate: silu, epilogue: [relu] }),
  },
  { name: "wgmma of bf16, transposed", targets: ["sm_90a"], type: bf16, layout: "tt", schedule: "warpgroup" },
  { name: "wgmma of i8", targets: ["sm_90a"], type: i8, layout: "nt", schedule: "warpgroup" },
  {
    name: "wgmma of tf32",
    targets: ["sm_90a"],
    type: f32,
    layout: "nt",
    schedule: "warpgroup",
    options: () => ({ compute: tf32 }),
  },
  {
    name: "wgmma of e4m3, promoted to f32",
    targets: ["sm_90a"],
    type: e4m3,
    layout: "nt",
    schedule: "warpgroup",
    options: (device) => ({
      type: bf16,
      params: { block: { m: 128, n: 192, k: 128 }, warps: { m: 8, n: 1 }, groupRows: 16 },
      epilogue: [bias(device.empty(f32, [size])), geluTanh, residual(device.empty(f16, [size, size]))],
    }),
  },
  {
    name: "wgmma of f16 in a batch with K in parts",
    targets: ["sm_90a"],
    type: f16,
    schedule: "warpgroup",
    batch: 3,
    options: () => ({
      params: { block: { m: 128, n: 256, k: 64 }, warps: { m: 8, n: 1 }, groupRows: 16, splitK: 2 },
    }),
  },
  {
    name: "wgmma of f16, A through registers",
    targets: ["sm_90a"],
    type: f16,
    schedule: "warpgroup",
    options: () => ({ transforms: { a: { sharedToRegister: halved } } }),
  },
  {
    name: "wgmma of f16, transposed A through registers",
    targets: ["sm_90a"],
    type: f16,
    layout: "tn",
    schedule: "warpgroup",
    options: () => ({ transforms: { a: { globalToShared: halved } } }),
  },
  {
    name: "wgmma of f16, A through registers and B rewritten, with bias, GELU and a residual",
    targets: ["sm_90a"],
    type: f16,
    schedule: "warpgroup",
    options: (device) => ({
      transforms: { a: { globalToShared: halved }, b: { globalToShared: halved } },
      epilogue: [bias(device.empty(f32, [size])), geluTanh, residual(device.empty(f16, [size, size]))],
    }),
  },
  {
    name: "wgmma of f16 with tiles in turn, bias, GELU and a residual",
    targets: ["sm_90a"],
    type: f16,
    schedule: "warpgroup",
    options: (device) => ({
      params: { block: { m: 128, n: 128, k: 64 }, warps: { m: 4, n: 1 }, groupRows: 16 },
      epilogue: [bias(device.empty(f32, [size])), geluTanh, residual(device.empty(f16, [size, size]))],
    }),
  },
  {
    name: "wgmma of f16 with tiles of 256 rows, bias, GELU and a residual",
    targets: ["sm_90a"],
    type: f16,
    schedule: "warpgroup",
    options: (device) => ({
      params: { block: { m: 256, n: 128, k: 64 }, warps: { m: 8, n: 1 }, groupRows: 8 },
      epilogue: [bias(device.empty(f32, [size])), geluTanh, residual(device.empty(f16, [size, size]))],
    }),
  },
  {
    name: "wgmma of a lower triangle",
    targets: ["sm_90a"],
    type: f16,
    layout: "tn",
    schedule: "warpgroup",
    structured: (a) => triangular(a, "lower"),
  },
  {
    name: "mma of a diagonal",
    targets: ["sm_80", "sm_90a"],
    type: f16,
    schedule: "multistage",
    structured: (a) => diagonal(a.strided([size], [size + 1])),
  },
  {
    name: "wgmma of widened e4m3",
    targets: ["sm_90a"],
    type: e4m3,
    layout: "nt",
    schedule: "warpgroup",
    options: () => ({ compute: f16, type: f16 }),
  },
  {
    name: "wgmma of f16 with bias, GELU and a residual",
    targets: ["sm_90a"],
    type: f16,
    schedule: "warpgroup",
    options: (device) => ({
      epilogue: [bias(device.empty(f32, [size])), geluTanh, residual(device.empty(f16, [size, size]))],
    }),
  },
];

async function textOf(
  { type, layout = "nn", vectors = size, algebra, structured, batch, options }: Kernel,
  target: NvidiaTargetName,
  schedule: string,
) {
  using device = createPaperDevice(nvidiaTarget(target));
  if (algebra !== undefined) {
    const operand = algebraMatrix(algebra, device.empty(type, [size, size, algebra.dimension]));
    const plan = await planGemm(operand, operand, options?.(device) ?? {});
    expect(plan.kind.schedule).toBe(schedule);
    return plan.compiled!.text;
  }
  const matrix = (order: string, columns: number): DeviceArray =>
    order === "t" ? device.empty(type, [columns, size]).transposed : device.empty(type, [size, columns]);
  const a = batch === undefined ? matrix(layout[0]!, size) : device.empty(type, [batch, size, size]);
  const left = structured?.(a) ?? a;
  const plan = await planGemm(left, matrix(layout[1]!, vectors), options?.(device) ?? {});
  expect(plan.kind.schedule).toBe(schedule);
  return plan.compiled!.text;
}

describe.skipIf(!available)("ptxas takes", () => {
  const rows = kernels.flatMap((kernel) => kernel.targets.map((target) => ({ ...kernel, target })));
  it.for(rows)("$name for $target", async ({ target, ...kernel }) => {
    const { succeeded, spilledBytes, warnings, log } = assemble(
      await textOf(kernel, target, kernel.schedule),
    );
    expect(succeeded, log).toBe(true);
    expect({ spilledBytes, warnings }).toEqual({ spilledBytes: 0, warnings: [] });
  });

  it("a padded convolution through a tensor map of windows", async () => {
    using device = createPaperDevice(nvidiaTarget("sm_90a"));
    const images = device.empty(f16, [8, 56, 56, 256]);
    const plan = await planConv2d(images, device.empty(f16, [256, 3, 3, 256]), { padding: "same" });
    const { text } = plan.products[0]!.compiled!;
    expect(text).toMatch(/global\.im2col/);
    const { succeeded, spilledBytes, warnings, log } = assemble(text);
    expect(succeeded, log).toBe(true);
    expect({ spilledBytes, warnings }).toEqual({ spilledBytes: 0, warnings: [] });
  });

  it.for([1, 16, 64])("4-bit weights by %i rows", async (rows) => {
    using device = createPaperDevice(nvidiaTarget("sm_80"));
    // Nothing can be written on paper.
    device.array = (type, shape) => device.empty(type, shape);
    const weights = int4Weights(device, [128, 64], new Int8Array(128 * 64), new Float32Array(64));
    const epilogue = [bias(device.empty(f32, [64])), silu];
    const plan = await planGemmInt4(device.empty(bf16, [rows, 128]), weights, { epilogue });
    const { succeeded, spilledBytes, warnings, log } = assemble(plan.compiled!.text);
    expect(succeeded, log).toBe(true);
    expect({ spilledBytes, warnings }).toEqual({ spilledBytes: 0, warnings: [] });
  });

  it("a group of products whose matrices lie anywhere", async () => {
    using device = createPaperDevice(nvidiaTarget("sm_90a"));
    device.bytesBetween = () => 256;
    // Nothing can be written on paper.
    device.array = (type, shape) => device.empty(type, shape);
    const products = [512, 1024].map((m) => ({
      a: device.empty(f16, [m, 512]),
      b: device.empty(f16, [512, 512]),
    }));
    const plan = await planGrouped(products);
    expect(plan.launches).toBe(1);
    const { succeeded, spilledBytes, warnings, log } = assemble(plan.compiled!.text);
    expect(succeeded, log).toBe(true);
    expect({ spilledBytes, warnings }).toEqual({ spilledBytes: 0, warnings: [] });
  });
});
