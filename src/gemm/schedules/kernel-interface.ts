/**
 * @file What every GEMM kernel takes, whatever its schedule.
 */
import {
  type AnyValue,
  type f32,
  type GlobalArray,
  type I32,
  type Index,
  i32,
  index,
  inout,
  input,
  output,
  type ParameterDescriptors,
  type StorageType,
  type Value,
} from "../../lang/index.ts";
import { stepArguments, stepParameters } from "../epilogues/step.ts";
import { allExtraArguments, allExtraParameters } from "../extras.ts";
import { type GemmKind, scaleTypeOf } from "../kind.ts";
import { factsOf } from "../layouts/layout.ts";
import { groupParameters } from "./group-tables.ts";
import type { GemmLaunch } from "./schedule.ts";
import { dividesK, matrixStart, type Work, type WorkArguments } from "./work.ts";

/** Parameters of the kernel, in order. */
export function gemmParameters(kind: GemmKind): ParameterDescriptors {
  const scale = scaleTypeOf(kind.types.accumulator) as typeof f32;
  const reads = (operand: "a" | "b"): boolean => factsOf(kind[operand].layout).pure !== true;
  return {
    ...(reads("a") ? { a: input(kind.a.type, 0) } : {}),
    ...(reads("b") ? { b: input(kind.b.type, 0) } : {}),
    // C may be D: what is read there may have been written by this kernel, so it is no plain input.
    ...(kind.c === undefined ? {} : { c: inout(kind.c.type, 0) }),
    d: output(kind.d.type, 0),
    ...(kind.batch === "grouped" ? groupParameters(kind) : sizeParameters(kind)),
    alpha: scale,
    ...(kind.c === undefined ? {} : { beta: scale }),
    ...workParameters(kind),
    ...stepParameters(kind.steps),
    ...allExtraParameters(kind.extras),
  };
}

/** Sizes of the matrices, one for all of a batch. */
function sizeParameters(kind: GemmKind): ParameterDescriptors {
  return {
    m: i32,
    n: i32,
    k: i32,
    leadingA: index,
    leadingB: index,
    ...(kind.c === undefined ? {} : { leadingC: index }),
    leadingD: index,
    ...(kind.gate === undefined ? {} : { columns: i32 }),
  };
}

/** Parameters of a kind with a batch or with K divided. */
export function workParameters(kind: GemmKind): ParameterDescriptors {
  const batched = kind.batch === "strided";
  const divided = dividesK(kind);
  return {
    ...(batched ? { strideA: index, strideB: index } : {}),
    ...(batched && kind.c !== undefined ? { strideC: index } : {}),
    ...(batched || divided ? { strideD: index } : {}),
    ...(batched && divided ? { batches: i32 } : {}),
    ...(divided ? { parts: i32 } : {}),
  };
}

/** Host arguments of those parameters. */
export function workArguments(kind: GemmKind, { batch }: GemmLaunch): Readonly<Record<string, unknown>> {
  const { count, strides } = batch;
  const all: Readonly<Record<string, number>> = {
    strideA: strides.a,
    strideB: strides.b,
    strideC: strides.c,
    strideD: strides.d,
    batches: count,
    parts: kind.params.splitK ?? 1,
  };
  return Object.fromEntries(Object.keys(workParameters(kind)).map((name) => [name, all[name]]));
}

/** Host arguments of those parameters. */
export function gemmArguments(kind: GemmKind, launch: GemmLaunch): Readonly<Record<string, unknown>> {
  const { problem, c, d, k, alpha, beta, steps, extras } = launch;
  const { a, b, m, n } = problem;
  return {
    ...(a.array === undefined ? {} : { a: a.array }),
    ...(b.array === undefined ? {} : { b: b.array }),
    d: d.array,
    m,
    n,
    k,
    leadingA: a.leading,
    leadingB: b.leading,
    leadingD: d.leading,
    alpha,
    ...(kind.c === undefined || c === undefined ? {} : { c: c.array, leadingC: c.leading, beta }),
    ...(kind.gate === undefined ? {} : { columns: launch.columns }),
    ...workArguments(kind, launch),
    ...stepArguments(steps),
    ...allExtraArguments(extras),
  };
}

/** What the body receives. */
export interface GemmArguments extends WorkArguments {
  /** Undefined for pure layouts, as is `b`. */
  readonly a: GlobalArray<StorageType> | undefined;
  readonly b: GlobalArray<StorageType> | undefined;
  readonly c: GlobalArray<StorageType>;
  readonly d: GlobalArray<StorageType>;
  readonly leadingA: Value<Index>;
  readonly leadingB: Value<Index>;
  readonly leadingC: Value<Index>;
  readonly leadingD: Value<Index>;
  readonly alpha: AnyValue;
  readonly beta: AnyValue;
  /** Columns of D; only of gated products. */
  readonly columns: Value<I32>;
}

/** Columns of D. */
export function columnsOf({ gate }: Pick<GemmKind, "gate">, args: GemmArguments): Value<I32> {
  return gate === undefined ? args.n : args.columns;
}

/** The arrays of one matrix of a batch. */
export function matricesOf(args: GemmArguments, { batch, target }: Work): GemmArguments {
  if (target === undefined) return args;
  const { a, b, c, d, strideA, strideB, strideC, strideD } = args;
  return {
    ...args,
    d: d.from(matrixStart(target, strideD)),
    ...(batch === undefined || a === undefined ? {} : { a: a.from(matrixStart(batch, strideA)) }),
    ...(batch === undefined || b === undefined ? {} : { b: b.from(matrixStart(batch, strideB)) }),
    ...(batch === undefined || c === undefined ? {} : { c: c.from(matrixStart(batch, strideC)) }),
  };
}
