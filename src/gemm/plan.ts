/**
 * @file Plans: a problem with its kind chosen, compiled and bound; running one only enqueues.
 */
import { DisposedError } from "../errors.ts";
import type { DeviceArray } from "../runtime/array.ts";
import type { CompiledKernel } from "../runtime/device.ts";
import { stepSurroundings } from "./epilogues/surroundings.ts";
import { explainPlan } from "./explain.ts";
import { kernelOf } from "./identity.ts";
import type { GemmKind } from "./kind.ts";
import { type PackedProduct, packOperands } from "./packing/operands.ts";
import { type GemmOptions, type Resolved, resolve } from "./resolve.ts";
import { matrixVectorSchedule } from "./schedules/matrix-vector.ts";
import type { GemmLaunch } from "./schedules/schedule.ts";
import { warpgroupSchedule } from "./schedules/warpgroup.ts";
import { dividesK } from "./schedules/work.ts";
import type { MatrixSource } from "./source.ts";
import { splitProduct } from "./split.ts";
import {
  type BoundStages,
  bindStages,
  joinSurroundings,
  noSurroundings,
  type PlanStage,
  type PlanSurroundings,
} from "./stages.ts";
import { transposedProduct } from "./transposed-product.ts";

/** A multiplication ready to be enqueued. */
export interface GemmPlan {
  /** The result's array. */
  readonly d: DeviceArray;
  readonly kind: GemmKind;
  /** What multiplies: "wgmma m64n256k16", "mma m16n8k16", "fma". */
  readonly operator: string;
  readonly compiled: CompiledKernel | undefined;
  /** Enqueues the multiplication. */
  run(): void;
  /** Says in words which way was taken, tile sizes, widths, registers, and what ruled out a faster way. */
  explain(): string;
  /** Gives back what the plan holds; D stays. */
  dispose(): void;
  [Symbol.dispose](): void;
}

/** Plans `D = alpha · A · B + beta · C`: checks, chooses, compiles and binds. */
export async function planGemm(
  a: DeviceArray | MatrixSource,
  b: DeviceArray | MatrixSource,
  options: GemmOptions = {},
): Promise<GemmPlan> {
  const turned = transposedPlan(a, b, options);
  if (turned !== undefined) return turned;
  const resolved = resolve(a, b, options);
  try {
    return await bindPlan(packOperands(resolved, a, b, options), options.signal);
  } catch (error) {
    if (resolved.ownD) resolved.result.dispose();
    throw error;
  }
}

/** The plan of Dᵀ = Bᵀ · Aᵀ, where D lies by columns and warpgroups, which leave rows, serve that; undefined elsewhere. */
function transposedPlan(
  a: DeviceArray | MatrixSource,
  b: DeviceArray | MatrixSource,
  options: GemmOptions,
): Promise<GemmPlan> | undefined {
  const { schedule, signal } = options;
  if (schedule !== undefined && schedule !== warpgroupSchedule.name) return undefined;
  const product = transposedProduct({ a, b, options });
  if (product === undefined) return undefined;
  // Errors speak of the matrices as the caller gave them.
  const { schedule: _, ...others } = options;
  const given = resolve(a, b, others);
  if (given.schedule.name === matrixVectorSchedule.name) return undefined;
  const resolved = resolve(product.a, product.b, product.options);
  if (resolved.schedule !== warpgroupSchedule) return undefined;
  return bindPlan({ resolved, around: noSurroundings }, signal).then((plan) => ({
    ...plan,
    d: given.result,
    explain: () => `transposed D lies by columns: what is computed is Dᵀ = Bᵀ · Aᵀ\n${plan.explain()}`,
  }));
}

async function bindPlan(
  { resolved, around: packing }: PackedProduct,
  signal: AbortSignal | undefined,
): Promise<GemmPlan> {
  const { kind, schedule, problem } = resolved;
  const { device, m: rows } = problem;
  const { columns } = resolved;
  const split = dividesK(kind) ? splitProduct(kind, resolved) : undefined;
  const around = joinSurroundings([
    packing,
    split?.around ?? noSurroundings,
    schedule.surroundings?.(kind, resolved, device.facts) ?? noSurroundings,
    stepSurroundings(resolved.steps, { device, rows, columns, parts: schedule.parts(kind, device.facts) }),
  ]);
  try {
    return await bindLaunches(resolved, split ?? { kind, launch: resolved }, around, signal);
  } catch (error) {
    for (const array of around.workspaces) array.dispose();
    throw error;
  }
}

async function bindLaunches(
  resolved: Resolved,
  made: { readonly kind: GemmKind; readonly launch: GemmLaunch },
  around: PlanSurroundings,
  signal: AbortSignal | undefined,
): Promise<GemmPlan> {
  const { problem, schedule } = resolved;
  const { kind, launch } = made;
  const { m, n, device } = problem;
  const { before, after } = around;
  if (m === 0 || n === 0 || resolved.batch.count === 0) {
    const stages = await bindStages(device, [...before, ...after], signal);
    return planOf(resolved, around, undefined, stages);
  }
  const { kernel, fresh } = kernelOf(kind, schedule);
  const product: PlanStage = {
    purpose: "product",
    kernel,
    arguments: { ...schedule.arguments(kind, launch), ...around.arguments },
    blocks: schedule.blocks(kind, launch, device.facts),
  };
  const stages = await bindStages(device, [...before, product, ...after], signal);
  return planOf(resolved, around, { compiled: stages.compiled[before.length], fresh }, stages);
}

function planOf(
  resolved: Resolved,
  around: PlanSurroundings,
  product: { readonly compiled: CompiledKernel; readonly fresh: boolean } | undefined,
  stages: BoundStages,
): GemmPlan {
  let disposed = false;
  const dispose = (): void => {
    if (disposed) return;
    disposed = true;
    stages.dispose();
    for (const array of around.workspaces) array.dispose();
  };
  return {
    d: resolved.result,
    kind: resolved.kind,
    operator: resolved.schedule.operatorName(resolved.kind, resolved.problem.device.facts),
    compiled: product?.compiled,
    run() {
      if (disposed) throw new DisposedError("this GEMM plan was disposed");
      stages.launch();
    },
    explain: () => explainPlan(resolved, product?.compiled, product?.fresh ?? false, around),
    dispose,
    [Symbol.dispose]: dispose,
  };
}

/**
 * D = alpha · A · B + beta · C. A is m x k, B is k x n: arrays in row- or column-major order (`.transposed` is free) with
 * any leading dimension, or structured matrices such as {@link diagonal}; any sizes, 0 included. Resolves when the work is enqueued.
 *
 * Dimensions before the last two are a batch: they are broadcast against each other, and D has them in front. Vectors are
 * taken as NumPy's matmul takes them: A of shape [k] is one row, B of shape [k] one column, and D lacks that dimension.
 *
 * Sums of 16-bit floats are made in f32, of integers in i32 (wrapping); D rounds once to its type, integers saturate.
 * f16 results beyond 65,504 become infinite. Order of summation: K steps in order, inside a step as the matrix instruction does.
 *
 * @throws ShapeError, TypeMismatchError, ArgumentError, UnsupportedError before anything reaches the device
 */
export async function gemm(
  a: DeviceArray | MatrixSource,
  b: DeviceArray | MatrixSource,
  options: GemmOptions = {},
): Promise<DeviceArray> {
  const plan = await planGemm(a, b, options);
  try {
    plan.run();
  } finally {
    plan.dispose();
  }
  return plan.d;
}
