/**
 * @file Quantised results: scaled, rounded to nearest even, held within what the narrow type holds.
 */
import { ArgumentError } from "../../errors.ts";
import {
  type AnyValue,
  constant,
  f16,
  f32,
  f64,
  isFloat,
  roundEven,
  type StorageType,
  select,
} from "../../lang/index.ts";
import type { DeviceArray } from "../../runtime/array.ts";
import { integerRange } from "../../types/integer-range.ts";
import type { Transform } from "../transforms.ts";
import { deviceScalar, type StepAndTransform, type Used, type UsingFunction, uses } from "./uses.ts";

type Quantiser = UsingFunction<"factor">;

const quantisers: Map<StorageType, Quantiser> = new Map();

/**
 * Values as a narrow type's: x · factor, rounded to the nearest integer (ties to even) for i8, u8, i16, u16, and held within
 * the type's bounds for these and for e4m3, e5m2, f16, which round once when they are stored. D's `type` is to be the same.
 * Computed in f32; NaN becomes 0 in an integer and stays NaN in a float.
 *
 *     gemm(a, b, { type: i8, epilogue: [quantise(rowVector(factors), i8)] })
 *
 * @param factor a number; an array of one element (per tensor); a {@link rowVector} (per column); a {@link columnVector}
 * @throws ArgumentError for a type that is not narrow
 */
export function quantise(factor: number | DeviceArray | Used, type: StorageType): StepAndTransform {
  if (type.bits > 16)
    throw new ArgumentError(`gemm: quantise() makes types of 8 and 16 bits; ${type.name} needs no scale`);
  const used =
    typeof factor === "number" || ("shape" in factor && "array" in factor) ? factor : deviceScalar(factor);
  const body = quantisers.get(type) ?? quantiserOf(type);
  quantisers.set(type, body);
  return uses({ factor: used }, body);
}

function quantiserOf(type: StorageType): Quantiser {
  const bounds = boundsOf(type);
  return (x, { factor }) => {
    const scaled = x.to(f32).mul(factor.to(f32));
    return held(isFloat(type) ? scaled : roundEven(scaled), bounds);
  };
}

/** The largest finite numbers of the narrow float types. */
const largest: Readonly<Record<string, number>> = {
  f16: 65504,
  bf16: (2 - 2 ** -7) * 2 ** 127,
  e4m3: 448,
  e5m2: 57344,
};

/** Finite bounds of a narrow type. */
function boundsOf(type: StorageType): readonly [number, number] {
  const range = integerRange(type);
  if (range !== undefined) return [Number(range.least), Number(range.greatest)];
  const most = largest[type.name];
  return [-most, most];
}

/** `x` within two bounds; NaN stays. */
function held(x: AnyValue, [low, high]: readonly [number, number]): AnyValue {
  const most = select(x.gt(high), constant(x.type, high), x);
  return select(most.lt(low), constant(x.type, low), most);
}

const saturations: Map<StorageType, Transform> = new Map();

/**
 * Holds values within the finite numbers of a float type: what would round to infinity on leaving becomes the largest
 * number instead. Without it f16 results beyond 65,504 are infinite. NaN stays. The same type gives the same function.
 *
 *     gemm(a, b, { epilogue: [saturate(f16)] })
 */
export function saturate(type: StorageType): Transform {
  if (!isFloat(type) || type === f64 || type === f32)
    throw new ArgumentError(
      `gemm: saturate() is for floats that are narrower than their sums, such as ${f16.name}; ${type.name} ${isFloat(type) ? "is not" : "saturates by itself"}`,
    );
  const known = saturations.get(type);
  if (known !== undefined) return known;
  const bounds = boundsOf(type);
  const made: Transform = (x) => held(x, bounds);
  saturations.set(type, made);
  return made;
}
