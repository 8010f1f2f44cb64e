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
import { stepParameters } from "../epilogues/step.ts";
import { type GemmKind, scaleTypeOf } from "../kind.ts";

/** Parameters of the kernel, in order. */
export function gemmParameters(kind: GemmKind): ParameterDescriptors {
  const scale = scaleTypeOf(kind.types.accumulator) as typeof f32;
  return {
    a: input(kind.a.type, 0),
    b: input(kind.b.type, 0),
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
  };
}

/** What the body receives. */
export interface GemmArguments {
  readonly a: GlobalArray<StorageType>;
  readonly b: GlobalArray<StorageType>;
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
