/**
 * @file What awkward shapes cost: odd leading dimensions, and remainders of M, N and K with aligned ones, each against the
 * exact, aligned product in the same process and turn by turn. The ratio is how much of the exact product's rate is left.
 */
import { type GemmOptions, type GemmPlan, mmaSync, planGemm, wmmaSync } from "tilewright/gemm";
import { f16, f32, type StorageType } from "tilewright/lang";
import type { Device, DeviceArray } from "../../src/runtime/array.ts";
import { createCompiler } from "../../src/runtime/compile.ts";
import type { CudaBackend } from "../../src/runtime/cuda/index.ts";
import { createDevice } from "../../src/runtime/device.ts";
import type { Contender, WorkItem } from "../harness.ts";
import { normalValues } from "../random.ts";
import type { Suite } from "../suite.ts";

const size = 4096;

/** How a product departs from the exact one. Without a word on leading dimensions they are aligned. */
interface Shape {
  readonly name: string;
  readonly m?: number;
  readonly n?: number;
  readonly k?: number;
  /** Elements from one line to the next, of all operands or of some. */
  readonly leading?: { readonly a?: number; readonly b?: number; readonly d?: number };
}

const odd = size + 3;
const roomy = size + 8;

const shapes: readonly Shape[] = [
  { name: "A's leading dimension odd", leading: { a: odd } },
  { name: "B's leading dimension odd", leading: { b: odd } },
  { name: "D's leading dimension odd", leading: { d: odd } },
  { name: "every leading dimension odd", leading: { a: odd, b: odd, d: odd } },
  { name: "M one more", m: size + 1 },
  { name: "M one less", m: size - 1 },
  { name: "N one more", n: size + 1, leading: { b: roomy, d: roomy } },
  { name: "N one less", n: size - 1 },
  { name: "K one more", k: size + 1, leading: { a: roomy } },
  { name: "K one less", k: size - 1 },
];

const routes: readonly (readonly [string, GemmOptions])[] = [
  ["as the library chooses", {}],
  ["mma", { operator: mmaSync }],
  ["wmma", { operator: wmmaSync }],
];

const distinct = 1_000_003;

/** rows x columns of a buffer whose lines are `leading` apart. */
function matrix(
  device: Device,
  type: StorageType,
  rows: number,
  columns: number,
  leading: number,
  seed: number,
): { readonly whole: DeviceArray; readonly view: DeviceArray } {
  const values = normalValues(distinct, seed);
  const host = new Float32Array(rows * leading);
  for (let i = 0; i < host.length; i += distinct)
    host.set(values.subarray(0, Math.min(distinct, host.length - i)), i);
  const whole = device.array(type, [rows, leading], host);
  return { whole, view: whole.slice([], [0, columns]) };
}

interface Ready {
  readonly contender: Contender;
  dispose(): void;
}

async function ready(
  device: Device,
  name: string,
  role: Contender["role"],
  { m = size, n = size, k = size, leading = {} }: Omit<Shape, "name">,
  options: GemmOptions,
): Promise<Ready> {
  const a = matrix(device, f16, m, k, leading.a ?? Math.max(k, size), 1);
  const b = matrix(device, f16, k, n, leading.b ?? Math.max(n, size), 2);
  const whole = device.empty(f32, [m, leading.d ?? Math.max(n, size)]);
  const plan: GemmPlan = await planGemm(a.view, b.view, { ...options, d: whole.slice([], [0, n]) });
  const { schedule, params, a: kindA, b: kindB, d } = plan.kind;
  const note = `${schedule}, block ${Object.values(params.block).join(" x ")}, lines aligned to ${kindA.alignment}, ${kindB.alignment}, ${d.alignment} bytes`;
  return {
    contender: { name, role, note, enqueue: () => plan.run() },
    dispose: () => {
      plan.dispose();
      for (const array of [a.whole, b.whole, whole]) array.dispose();
    },
  };
}

function item(backend: CudaBackend, shape: Shape, [route, options]: (typeof routes)[number]): WorkItem {
  return {
    id: `f16 to f32 ${size} x ${size} x ${size}, ${shape.name}, ${route}`,
    operations: 2 * (shape.m ?? size) * (shape.n ?? size) * (shape.k ?? size),
    limit: "f16",
    prepare: async () => {
      const device = createDevice(backend, createCompiler(backend), []);
      const exact = await ready(device, "exact", "peer", {}, options);
      const awkward = await ready(device, shape.name, "ours", shape, options);
      return {
        contenders: [exact.contender, awkward.contender],
        dispose: () => {
          exact.dispose();
          awkward.dispose();
        },
      };
    },
  };
}

export const alignmentSuite: Suite = {
  name: "alignment",
  items: (backend) => routes.flatMap((route) => shapes.map((shape) => item(backend, shape, route))),
};
