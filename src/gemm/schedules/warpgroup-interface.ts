/**
 * @file What the warpgroup kernel takes, and where the host finds it.
 */
import {
  type I32,
  type Index,
  i32,
  index,
  inout,
  output,
  type ParameterDescriptors,
  type StorageType,
  type TensorMap,
  tensorMap,
  type Value,
  type WindowMap,
} from "../../lang/index.ts";
import type { DeviceArray } from "../../runtime/array.ts";
import { stepArguments, stepParameters } from "../epilogues/step.ts";
import { allExtraArguments, allExtraParameters } from "../extras.ts";
import { componentsOf, type GemmKind, scaleTypeOf } from "../kind.ts";
import type { InputOperand } from "../source.ts";
import type { GemmLaunch } from "./schedule.ts";
import { operandMap } from "./warpgroup-operands.ts";
import { lineBytes } from "./warpgroup-shape.ts";
import { type StoreArguments, storeBox, storesBoxes } from "./warpgroup-store.ts";
import { dividesK, matrixStart, type Work } from "./work.ts";

/** What the body receives. */
export interface WarpgroupArguments extends StoreArguments {
  readonly a: TensorMap<StorageType> | WindowMap<StorageType>;
  readonly b: TensorMap<StorageType> | WindowMap<StorageType>;
  readonly k: Value<I32>;
  /** Columns of D; only of gated products. */
  readonly columns: Value<I32>;
  /** Matrices of D, parts of K counted; only where there is a batch or K is divided. */
  readonly matrices: Value<I32>;
  /** Matrices of the batch; only where K is divided and there is a batch. */
  readonly batches: Value<I32>;
  /** Parts that K is divided into; only where it is. */
  readonly parts: Value<I32>;
  /** Matrices of A's and of B's tensor map, one where all of a batch share it; only where there is a batch. */
  readonly matricesA: Value<I32>;
  readonly matricesB: Value<I32>;
  readonly strideC: Value<Index>;
  readonly strideD: Value<Index>;
}

/** Parameters of the kernel, in order. */
export function warpgroupParameters(kind: GemmKind): ParameterDescriptors {
  const scale = scaleTypeOf(kind.types.accumulator) as typeof i32;
  const addend = kind.c !== undefined;
  const batched = kind.batch !== "single";
  const divided = dividesK(kind);
  return {
    a: operandMap(kind, "a"),
    b: operandMap(kind, "b"),
    ...(kind.c === undefined ? {} : { c: inout(kind.c.type, 0) }),
    d: output(kind.d.type, 0),
    ...(storesBoxes(kind) ? { boxes: tensorMap(kind.d.type, storeBox(kind), lineBytes) } : {}),
    m: i32,
    n: i32,
    k: i32,
    ...(addend ? { leadingC: index } : {}),
    leadingD: index,
    alpha: scale,
    ...(addend ? { beta: scale } : {}),
    ...(kind.gate === undefined ? {} : { columns: i32 }),
    ...(batched ? { matricesA: i32, matricesB: i32 } : {}),
    ...(batched && addend ? { strideC: index } : {}),
    ...(batched || divided ? { matrices: i32, strideD: index } : {}),
    ...(batched && divided ? { batches: i32 } : {}),
    ...(divided ? { parts: i32 } : {}),
    ...stepParameters(kind.steps),
    ...allExtraParameters(kind.extras),
  };
}

/** Host arguments of those parameters. */
export function warpgroupArguments(kind: GemmKind, launch: GemmLaunch): Readonly<Record<string, unknown>> {
  const { problem, columns, batch, c, d, k, alpha, beta, steps, extras } = launch;
  const { a, b, m, n } = problem;
  const { count, strides } = batch;
  const parts = kind.params.splitK ?? 1;
  const batched = kind.batch !== "single";
  const planes = componentsOf(kind);
  const matrices = batched || parts > 1 ? count * parts : undefined;
  const all: Readonly<Record<string, unknown>> = {
    a: a.images ?? linesOf(a, planes, batched ? matricesOf(count, strides.a) : undefined, strides.a),
    b: linesOf(b, planes, batched ? matricesOf(count, strides.b) : undefined, strides.b),
    c: c?.array,
    d: d.array,
    boxes: storesBoxes(kind) ? linesOf({ ...d, shape: [m, columns] }, 1, matrices, strides.d) : undefined,
    m,
    n,
    k,
    leadingC: c?.leading,
    leadingD: d.leading,
    alpha,
    beta,
    columns,
    matricesA: matricesOf(count, strides.a),
    matricesB: matricesOf(count, strides.b),
    strideC: strides.c,
    matrices,
    strideD: strides.d,
    batches: count,
    parts,
    ...stepArguments(steps),
    ...allExtraArguments(extras),
  };
  return Object.fromEntries(Object.keys(warpgroupParameters(kind)).map((name) => [name, all[name]]));
}

/** How many matrices a tensor map over a batch holds: one where the stride says that all share it. */
function matricesOf(count: number, stride: number): number {
  return stride === 0 ? 1 : count;
}

/**
 * A matrix as a tensor map reads it: lines, in as many planes as elements have components, outermost; a batch of them where
 * `matrices` says how many.
 */
function linesOf(
  {
    array,
    layout,
    leading,
    shape: [rows, columns],
  }: Pick<InputOperand, "array" | "layout" | "leading" | "shape">,
  planes: number,
  matrices: number | undefined,
  stride: number,
): DeviceArray | undefined {
  const [lines, length] = layout.major === "row" ? [rows, columns] : [columns, rows];
  const apart = planes === 1 ? [] : [array?.strides.at(-1) as number];
  const extents = [...(planes === 1 ? [] : [planes]), lines, length];
  const distances = [...apart, lines > 1 ? leading : 0, length > 1 ? 1 : 0];
  if (matrices === undefined) return array?.strided(extents, distances);
  return array?.strided([matrices, ...extents], [matrices > 1 ? stride : 0, ...distances]);
}

/** The arguments of what leaves, which knows D's columns alone. */
export function resultArguments({ gate }: Pick<GemmKind, "gate">, args: WarpgroupArguments): StoreArguments {
  return gate === undefined ? args : { ...args, n: args.columns };
}

/** C and D of one tile's matrix. */
export function tileArguments(args: WarpgroupArguments, { batch, target }: Work): WarpgroupArguments {
  const { c, d, strideC, strideD } = args;
  return {
    ...args,
    ...(target === undefined ? {} : { d: d.from(matrixStart(target, strideD)) }),
    ...(batch === undefined || c === undefined ? {} : { c: c.from(matrixStart(batch, strideC)) }),
  };
}
