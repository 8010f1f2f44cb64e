/**
 * @file Epilogue steps: what happens to a result on its way out, one after another.
 *
 * A step is a function of neighbouring elements and their coordinates, and may read or write device arrays of its own:
 * vectors along the rows or columns of D, or matrices of D's shape. The behaviour is compiled in and compared by identity;
 * the arrays are arguments, so that other arrays of the same kind run the same kernel.
 */
import { ShapeError } from "../../errors.ts";
import {
  type AnyValue,
  byteSize,
  type GlobalArray,
  type Index,
  index,
  type ParameterDescriptors,
  type StorageType,
  type Value,
  type VectorLanes,
  vector,
} from "../../lang/index.ts";
import type { DeviceArray } from "../../runtime/array.ts";
import {
  commonAlignment,
  type ExtraArgument,
  type ExtraKind,
  extraArguments,
  extraParameters,
  extraValues,
} from "../extras.ts";
import type { ElementCoordinates, Transform } from "../transforms.ts";

/** Neighbouring elements of D that a step sees together. */
export interface StepRun {
  readonly count: number;
  /** Direction in which they are neighbours: "C" along a row (their columns count up), "R" along a column. */
  readonly along: "R" | "C";
  /** Coordinates of element `e`. */
  at(e: number): ElementCoordinates;
}

/** What a step does, compiled in. */
export interface StepBehaviour {
  readonly name: string;
  /** One entry for each of the step's arrays. */
  readonly operands: readonly StepOperandShape[];
  apply(values: readonly AnyValue[], run: StepRun, operands: readonly StepOperand[]): readonly AnyValue[];
}

/** How a step uses an array: a vector with an element per column or row, or a row-major matrix of D's shape. */
export interface StepOperandShape {
  readonly shape: "perColumn" | "perRow" | "matrix";
  readonly access: "read" | "write";
}

/** A step with its arrays. */
export interface EpilogueStep {
  readonly behaviour: StepBehaviour;
  readonly arrays: readonly DeviceArray[];
}

/** The compiled-in part of a step's array. */
export interface StepOperandKind extends StepOperandShape {
  readonly type: StorageType;
  /** Bytes to which the start (and every line) is aligned. */
  readonly alignment: number;
}

/** The compiled-in part of a step. */
export interface StepKind {
  readonly behaviour: StepBehaviour;
  readonly operands: readonly StepOperandKind[];
}

/** A step's array inside the kernel. */
export class StepOperand {
  constructor(
    private readonly kind: StepOperandKind,
    private readonly array: GlobalArray<StorageType>,
    private readonly leading: Value<Index> | undefined,
  ) {}

  /** The elements that belong to a run. */
  load(run: StepRun): readonly AnyValue[] {
    const { count } = run;
    if (!this.#varies(run)) {
      const same = this.array.loadAt(this.#position(run, 0));
      return Array.from({ length: count }, () => same);
    }
    if (this.#wide(run))
      return this.array.loadVectorAt(count as VectorLanes, this.#position(run, 0)).elements();
    return Array.from({ length: count }, (_, e) => this.array.loadAt(this.#position(run, e)));
  }
  /** Stores the elements of a run. */
  store(run: StepRun, values: readonly AnyValue[]): void {
    const held = values.map((value) => value.to(this.kind.type) as AnyValue);
    if (this.#wide(run)) {
      this.array.storeVectorAt(this.#position(run, 0), vector(...held));
      return;
    }
    held.forEach((value, e) => {
      this.array.storeAt(this.#position(run, e), value);
    });
  }

  /** Whether neighbouring elements of a run belong to different elements of the array. */
  #varies({ count, along }: StepRun): boolean {
    const { shape } = this.kind;
    return count > 1 && (shape === "matrix" || shape === (along === "C" ? "perColumn" : "perRow"));
  }
  #wide(run: StepRun): boolean {
    const bytes = run.count * byteSize(this.kind.type);
    const inLine = this.kind.shape !== "matrix" || run.along === "C";
    return run.count > 1 && inLine && this.#varies(run) && bytes <= 16 && this.kind.alignment >= bytes;
  }
  #position(run: StepRun, e: number): Value<Index> {
    const { row, column } = run.at(e);
    if (this.kind.shape === "perColumn") return column.to(index);
    if (this.kind.shape === "perRow") return row.to(index);
    return row
      .to(index)
      .mul(this.leading as Value<Index>)
      .add(column.to(index));
  }
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

/** A step's arrays as extras: each array, and the leading dimension after each matrix. */
function stepExtras({ operands }: StepKind): readonly ExtraKind[] {
  return operands.flatMap(({ type, access, alignment, shape }): readonly ExtraKind[] => [
    { array: true, type, access, alignment },
    ...(shape === "matrix" ? [{ array: false, type: index } as const] : []),
  ]);
}

/** Parameters of the steps' arrays. */
export function stepParameters(steps: readonly StepKind[]): ParameterDescriptors {
  return Object.assign({}, ...steps.map((step, i) => extraParameters(`step${i}`, stepExtras(step))));
}

/** The steps' arrays inside the kernel, by step. */
export function stepOperands(
  steps: readonly StepKind[],
  args: Readonly<Record<string, unknown>>,
): readonly (readonly StepOperand[])[] {
  return steps.map((step, i) => {
    const values = extraValues(`step${i}`, stepExtras(step), args).values();
    return step.operands.map((operand) => {
      const array = values.next().value as GlobalArray<StorageType>;
      const leading = operand.shape === "matrix" ? (values.next().value as Value<Index>) : undefined;
      return new StepOperand(operand, array, leading);
    });
  });
}

/** Host arguments of the steps' arrays. */
export function stepArguments(steps: readonly EpilogueStep[]): Readonly<Record<string, unknown>> {
  const extras = ({ behaviour, arrays }: EpilogueStep): readonly ExtraArgument[] =>
    arrays.flatMap((array, j): readonly ExtraArgument[] =>
      behaviour.operands[j].shape === "matrix" ? [array, { type: index, value: leadingOf(array) }] : [array],
    );
  return Object.assign({}, ...steps.map((step, i) => extraArguments(`step${i}`, extras(step))));
}

function leadingOf(array: DeviceArray): number {
  return array.shape[0] <= 1 ? array.shape[1] : array.strides[0];
}

/**
 * Checks a step's arrays against the result.
 * @throws ShapeError naming step and array
 */
export function stepKind(step: EpilogueStep, size: { readonly m: number; readonly n: number }): StepKind {
  const { behaviour, arrays } = step;
  const operands = behaviour.operands.map((operand, j) => {
    const array = arrays[j];
    array.check(`gemm: ${behaviour.name}`);
    const wanted = { perColumn: [size.n], perRow: [size.m], matrix: [size.m, size.n] }[operand.shape];
    if (array.shape.length !== wanted.length || array.shape.some((extent, d) => extent !== wanted[d])) {
      const what = {
        perColumn: "one element for each column of D",
        perRow: "one element for each row of D",
        matrix: "D's shape",
      };
      throw new ShapeError(
        `gemm: ${behaviour.name} wants ${what[operand.shape]}, [${wanted.join(", ")}]; it was given ${array.label}`,
      );
    }
    const inner = array.strides.at(-1);
    if ((array.shape.at(-1) ?? 0) > 1 && inner !== 1) {
      throw new ShapeError(
        `gemm: ${behaviour.name} wants neighbouring elements in ${array.label} (stride 1, not ${inner}); copy() of tilewright/array-ops makes them so`,
      );
    }
    return { ...operand, type: array.type, alignment: alignmentOf(array) };
  });
  return { behaviour, operands };
}

function alignmentOf(array: DeviceArray): number {
  const size = byteSize(array.type);
  return commonAlignment([
    array.offset * size,
    ...(array.shape.length === 2 ? [leadingOf(array) * size] : []),
  ]);
}
