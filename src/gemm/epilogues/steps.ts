/**
 * @file The usual epilogue steps that use arrays: bias, residual, scales, auxiliary output.
 */
import { binary, isFloat } from "../../lang/index.ts";
import type { DeviceArray } from "../../runtime/array.ts";
import { stateType } from "./reduction.ts";
import type { EpilogueStep, StepBehaviour } from "./step.ts";
import type { StepOperandShape } from "./step-operand.ts";

function combining(name: string, shape: StepOperandShape["shape"], operator: "add" | "mul"): StepBehaviour {
  return {
    name,
    operands: [{ shape, access: "read" }],
    apply(values, run, [operand]) {
      const others = operand.load(run);
      return values.map((x, e) => {
        // Integer sums meet floats as floats; otherwise values keep their type.
        const left = isFloat(others[e].type) && !isFloat(x.type) ? x.to(stateType(others[e].type)) : x;
        return binary(operator, left, others[e].to(left.type));
      });
    },
  };
}

const biasPerColumn = combining("bias", "perColumn", "add");
const biasPerRow = combining("bias per row", "perRow", "add");
const scalePerColumn = combining("scale per column", "perColumn", "mul");
const scalePerRow = combining("scale per row", "perRow", "mul");
const scaleByScalar = combining("scale", "scalar", "mul");
const residualMatrix = combining("residual", "matrix", "add");

const auxiliaryOutput: StepBehaviour = {
  name: "auxiliary output",
  operands: [{ shape: "matrix", access: "write" }],
  apply(values, run, [operand]) {
    operand.store(run, values);
    return values;
  },
};

const transposes: ReadonlyMap<StepBehaviour, StepBehaviour> = new Map([
  [biasPerColumn, biasPerRow],
  [biasPerRow, biasPerColumn],
  [scalePerColumn, scalePerRow],
  [scalePerRow, scalePerColumn],
  [scaleByScalar, scaleByScalar],
]);

/** What a step by rows is by columns, for results that are computed as their transpose; undefined where there is none. */
export function transposedStep({ behaviour, arrays }: EpilogueStep): EpilogueStep | undefined {
  const exchanged = transposes.get(behaviour);
  return exchanged === undefined ? undefined : { behaviour: exchanged, arrays };
}

/** Adds a vector: element j to column j of D, or with `per: "row"` element i to row i. Any element type. */
export function bias(vector: DeviceArray, options: { readonly per?: "row" | "column" } = {}): EpilogueStep {
  return { behaviour: options.per === "row" ? biasPerRow : biasPerColumn, arrays: [vector] };
}

/**
 * Multiplies by a vector: column j by element j, or with `per: "row"` row i by element i; with `per: "tensor"` everything by
 * the only element of an array. Any element type; integer sums times floats are floats.
 */
export function scale(
  vector: DeviceArray,
  options: { readonly per?: "row" | "column" | "tensor" } = {},
): EpilogueStep {
  const behaviour = { row: scalePerRow, column: scalePerColumn, tensor: scaleByScalar }[
    options.per ?? "column"
  ];
  return { behaviour, arrays: [vector] };
}

/** Adds a matrix of D's shape, rows contiguous. Any element type. */
export function residual(matrix: DeviceArray): EpilogueStep {
  return { behaviour: residualMatrix, arrays: [matrix] };
}

/** Writes the values as they are at this step (a pre-activation, say) to a matrix of D's shape as well. */
export function auxiliary(matrix: DeviceArray): EpilogueStep {
  return { behaviour: auxiliaryOutput, arrays: [matrix] };
}
