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
import type { GemmLaunch } from "./schedule.ts";

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
    m: i32,
    n: i32,
    k: i32,
    leadingA: index,
    leadingB: index,
    ...(kind.c === undefined ? {} : { leadingC: index }),
    leadingD: index,
    alpha: scale,
    ...(kind.c === undefined ? {} : { beta: scale }),
    ...stepParameters(kind.steps),
    ...allExtraParameters(kind.extras),
  };
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
    ...stepArguments(steps),
    ...allExtraArguments(extras),
  };
}

/** What the body receives. */
export interface GemmArguments {
  /** Undefined for pure layouts, as is `b`. */
  readonly a: GlobalArray<StorageType> | undefined;
  readonly b: GlobalArray<StorageType> | undefined;
  readonly c: GlobalArray<StorageType>;
  readonly d: GlobalArray<StorageType>;
  readonly m: Value<I32>;
  readonly n: Value<I32>;
  readonly k: Value<I32>;
  readonly leadingA: Value<Index>;
  readonly leadingB: Value<Index>;
  readonly leadingC: Value<Index>;
  readonly leadingD: Value<Index>;
  readonly alpha: AnyValue;
  readonly beta: AnyValue;
}
