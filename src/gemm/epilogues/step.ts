/**
 * @file Epilogue steps: what happens to a result on its way out, one after another.
 *
 * A step is a function of neighbouring elements and their coordinates, and may read or write device arrays of its own:
 * vectors along the rows or columns of D, or matrices of D's shape. The behaviour is compiled in and compared by identity;
 * the arrays are arguments, so that other arrays of the same kind run the same kernel.
 */
import { ArgumentError, ShapeError, TypeMismatchError } from "../../errors.ts";
import {
  type AnyValue,
  byteSize,
  type GlobalArray,
  type Index,
  index,
  inout,
  type ParameterDescriptors,
  type StorageType,
  type Value,
} from "../../lang/index.ts";
import { DeviceArray } from "../../runtime/array.ts";
import { fits as holds } from "../../types/convert.ts";
import {
  commonAlignment,
  type ExtraArgument,
  type ExtraKind,
  extraArguments,
  extraParameters,
  extraValues,
} from "../extras.ts";
import type { Transform } from "../transforms.ts";
import type { Collection } from "./reduction.ts";
import { StepOperand, type StepOperandKind, type StepOperandShape, type StepRun } from "./step-operand.ts";

/** What a step does, compiled in. */
export interface StepBehaviour {
  readonly name: string;
  /** One entry for each of the step's arrays and numbers. */
  readonly operands: readonly StepOperandShape[];
  apply(values: readonly AnyValue[], run: StepRun, operands: readonly StepOperand[]): readonly AnyValue[];
  /** What the step reduces; the values go on as `apply` gives them. */
  readonly collects?: Collection;
}

/** A step with its arrays and numbers. */
export interface EpilogueStep {
  readonly behaviour: StepBehaviour;
  readonly arrays: readonly StepArray[];
}

/** An operand as the caller gives it. */
export type StepArray = DeviceArray | number;

/** The compiled-in part of a step. */
export interface StepKind {
  readonly behaviour: StepBehaviour;
  readonly operands: readonly StepOperandKind[];
}

/** A function of one element as a step. The same function is the same step. */
export function stepOf(step: EpilogueStep | Transform): EpilogueStep {
  if (typeof step !== "function") return step;
  const known = functions.get(step);
  if (known !== undefined) return known;
  const behaviour: StepBehaviour = {
    name: "function",
    operands: [],
    apply: (values, run) => values.map((x, e) => step(x, run.at(e))),
  };
  const made = { behaviour, arrays: [] };
  functions.set(step, made);
  return made;
}

const functions: WeakMap<Transform, EpilogueStep> = new WeakMap();

/** A step's operands as extras: each array or number, and the leading dimension after each matrix. */
function stepExtras({ operands }: StepKind): readonly ExtraKind[] {
  return operands.flatMap((operand): readonly ExtraKind[] => {
    const { type, access, alignment, shape } = operand;
    if (access === "finish") return [];
    if (shape === "number") return [{ array: false, type }];
    const array: ExtraKind = { array: true, type, access, alignment };
    return hasLines(operand) ? [array, { array: false, type: index }] : [array];
  });
}

/** Parameters of the steps' arrays and numbers, and of the partial states of what they reduce. */
export function stepParameters(steps: readonly StepKind[]): ParameterDescriptors {
  const ofStep = (step: StepKind, i: number): ParameterDescriptors => {
    const { collects } = step.behaviour;
    return {
      ...extraParameters(`step${i}`, stepExtras(step)),
      ...(collects === undefined ? {} : { [partialsOf(i)]: inout(collects.type, 0) }),
    };
  };
  return Object.assign({}, ...steps.map(ofStep));
}

/** Name of the parameter that step `i` leaves partial states in. */
export function partialsOf(i: number): string {
  return `step${i}Partials`;
}

/** The steps' operands inside the kernel, by step. */
export function stepOperands(
  steps: readonly StepKind[],
  args: Readonly<Record<string, unknown>>,
): readonly (readonly StepOperand[])[] {
  return steps.map((step, i) => {
    const values = extraValues(`step${i}`, stepExtras(step), args).values();
    return step.operands
      .filter(({ access }) => access !== "finish")
      .map((operand) => {
        const held = values.next().value as GlobalArray<StorageType>;
        const leading = hasLines(operand) ? (values.next().value as Value<Index>) : undefined;
        return new StepOperand(operand, held, leading);
      });
  });
}

/** Host arguments of the steps' arrays and numbers. */
export function stepArguments(steps: readonly EpilogueStep[]): Readonly<Record<string, unknown>> {
  const extras = ({ behaviour, arrays }: EpilogueStep): readonly ExtraArgument[] =>
    arrays.flatMap((array, j): readonly ExtraArgument[] => {
      const operand = behaviour.operands[j];
      if (operand.access === "finish") return [];
      if (typeof array === "number") return [{ type: operand.type as StorageType, value: array }];
      return hasLines(operand) ? [array, { type: index, value: leadingOf(array) }] : [array];
    });
  return Object.assign({}, ...steps.map((step, i) => extraArguments(`step${i}`, extras(step))));
}

function hasLines({ shape }: StepOperandShape): boolean {
  return shape === "matrix" || shape === "bits";
}

function leadingOf(array: DeviceArray): number {
  return array.shape[0] <= 1 ? array.shape[1] : array.strides[0];
}

const wants: Readonly<Record<Exclude<StepOperandShape["shape"], "number">, string>> = {
  perColumn: "one element for each column of D",
  perRow: "one element for each row of D",
  matrix: "D's shape",
  bits: "a word for every 32 columns of each row of D",
  scalar: "a single element",
};

/**
 * Checks a step's operands against the result.
 * @throws ShapeError, TypeMismatchError, ArgumentError naming step and array
 */
export function stepKind(step: EpilogueStep, size: { readonly m: number; readonly n: number }): StepKind {
  const { behaviour, arrays } = step;
  const operands = behaviour.operands.map((operand, j): StepOperandKind => {
    const array = arrays[j];
    if (operand.shape === "number") return numberKind(behaviour, operand, array);
    if (!(array instanceof DeviceArray)) {
      throw new ArgumentError(
        `gemm: ${behaviour.name} wants a device array (${wants[operand.shape]}), not ${String(array)}`,
      );
    }
    array.check(`gemm: ${behaviour.name}`);
    checkOperandShape(behaviour, operand.shape, array, size);
    if (operand.type !== undefined && array.type !== operand.type) {
      throw new TypeMismatchError(
        `gemm: ${behaviour.name} wants ${operand.type.name} elements; it was given ${array.label}`,
      );
    }
    return { ...operand, type: array.type, alignment: alignmentOf(array) };
  });
  return { behaviour, operands };
}

function numberKind(behaviour: StepBehaviour, operand: StepOperandShape, given: StepArray): StepOperandKind {
  const type = operand.type as StorageType;
  if (typeof given !== "number" || !holds(given, type) || (Number.isNaN(given) && type.class === "float")) {
    throw new ArgumentError(
      `gemm: ${behaviour.name} wants a number of type ${type.name}, not ${String(given)}`,
    );
  }
  return { ...operand, type, alignment: byteSize(type) };
}

function checkOperandShape(
  behaviour: StepBehaviour,
  shape: Exclude<StepOperandShape["shape"], "number">,
  array: DeviceArray,
  { m, n }: { readonly m: number; readonly n: number },
): void {
  const wanted = {
    perColumn: [n],
    perRow: [m],
    matrix: [m, n],
    bits: [m, Math.ceil(n / 32)],
    scalar: array.shape.map(() => 1),
  }[shape];
  if (array.shape.length !== wanted.length || array.shape.some((extent, d) => extent !== wanted[d])) {
    throw new ShapeError(
      `gemm: ${behaviour.name} wants ${wants[shape]}, [${wanted.join(", ")}]; it was given ${array.label}`,
    );
  }
  const inner = array.strides.at(-1);
  if ((array.shape.at(-1) ?? 0) > 1 && inner !== 1) {
    throw new ShapeError(
      `gemm: ${behaviour.name} wants neighbouring elements in ${array.label} (stride 1, not ${inner}); copy() of tilewright/array-ops makes them so`,
    );
  }
}

function alignmentOf(array: DeviceArray): number {
  const size = byteSize(array.type);
  return commonAlignment([
    array.offset * size,
    ...(array.shape.length === 2 ? [leadingOf(array) * size] : []),
  ]);
}
