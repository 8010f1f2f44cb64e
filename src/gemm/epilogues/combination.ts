/**
 * @file The arithmetic of every epilogue: alpha · product + beta · C, the transforms of C and D, the conversion to D.
 */
import {
  type AnyValue,
  binary,
  constant,
  type ElementType,
  fusedMultiplyAdd,
  isInteger,
  type StorageType,
} from "../../lang/index.ts";
import { integerRange } from "../../types/integer-range.ts";
import { converted, joined, separate, type Transform, type Transforms } from "../transforms.ts";
import type { Collectors } from "./collector.ts";
import type { StepKind } from "./step.ts";
import type { StepOperand, StepRun } from "./step-operand.ts";

/** What the combination needs to know. */
export interface Combination {
  /** Type that alpha and beta have and that the combination is computed in. */
  readonly scaleType: ElementType;
  readonly alpha: AnyValue;
  readonly beta: AnyValue;
  readonly transforms: Transforms;
  readonly steps: readonly StepKind[];
  /** The gate, and the products that it meets, of a gated product. */
  readonly gate?: { readonly apply: Transform; readonly products: readonly AnyValue[] } | undefined;
  /** The steps' arrays, by step. */
  readonly stepOperands: readonly (readonly StepOperand[])[];
  /** Takes what steps reduce. */
  readonly collectors: Collectors | undefined;
  /** Type of D. */
  readonly target: StorageType;
  /** Loads C's elements; undefined when beta is zero. */
  readonly source: (() => readonly AnyValue[]) | undefined;
}

/** Neighbouring accumulators to neighbouring elements of D: alpha, the gate, beta, then the steps, then D's transforms. */
export function combine(
  combination: Combination,
  products: readonly AnyValue[],
  run: StepRun,
): readonly AnyValue[] {
  const { scaleType, alpha, beta, transforms, target, source, steps, stepOperands } = combination;
  const through = (
    values: readonly AnyValue[],
    ...steps: readonly (Transform | undefined)[]
  ): readonly AnyValue[] =>
    steps.reduce(
      (held, step) => (step === undefined ? held : held.map((x, e) => step(x, run.at(e)))),
      values,
    );
  const scaled = (x: AnyValue): AnyValue => binary("mul", x.to(scaleType), alpha);
  let result: readonly AnyValue[] = products.map(scaled);
  const { gate } = combination;
  if (gate !== undefined)
    result = result.map((x, e) => binary("mul", gate.apply(x, run.at(e)), scaled(gate.products[e])));
  if (source !== undefined) {
    const addend = through(source(), transforms.c?.globalToShared, transforms.c?.sharedToRegister);
    result = result.map((x, e) => fusedMultiplyAdd(addend[e].to(scaleType), beta, x));
  }
  steps.forEach(({ behaviour }, i) => {
    result = behaviour.apply(result, run, stepOperands[i]);
    combination.collectors?.add(i, result, run);
  });
  const leaving = through(result, transforms.d?.registerToShared, transforms.d?.sharedToGlobal);
  return convertedAll(
    leaving.map((value) => saturated(value, target)),
    target,
  );
}

/** The value held within what a narrower integer type holds; conversions between integers alone would wrap. */
export function saturated(value: AnyValue, type: StorageType): AnyValue {
  const range = isInteger(type) && isInteger(value.type) ? integerRange(type) : undefined;
  const held = integerRange(value.type);
  if (range === undefined || held === undefined) return value;
  let result = value;
  if (range.least > held.least) result = binary("max", result, constant(value.type, range.least));
  if (range.greatest < held.greatest) result = binary("min", result, constant(value.type, range.greatest));
  return result;
}

/** Converts as many elements together as one access holds, so that targets with packed conversions use them. */
function convertedAll(values: readonly AnyValue[], type: StorageType): readonly AnyValue[] {
  const [first] = values;
  const together = Math.min(values.length, Math.floor(128 / Math.max(first.type.bits, type.bits)));
  const parts: AnyValue[] = [];
  for (let e = 0; e < values.length; e += together) {
    parts.push(...separate(converted(joined(values.slice(e, e + together)), type)));
  }
  return parts;
}
