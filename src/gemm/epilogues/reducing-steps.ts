/**
 * @file Epilogue steps that reduce: rows, columns, or everything.
 */
import { ArgumentError } from "../../errors.ts";
import { isFloat, type StorageType } from "../../lang/index.ts";
import type { DeviceArray } from "../../runtime/array.ts";
import {
  namedReductions,
  type Reduction,
  type ReductionAxis,
  type ReductionName,
  stateType,
} from "./reduction.ts";
import type { EpilogueStep, StepBehaviour } from "./step.ts";

/** How a reduction is finished. */
export interface ReduceOptions {
  /**
   * Blocks join their results in the target by atomics: no workspace and no second kernel, but for floats no fixed order, so
   * that sums differ in their last bits from run to run. The target's type must be f32, f64 or an integer of 32 or 64 bits; the
   * reduction "sum" or "sumOfSquares", or any named one of integers.
   */
  readonly atomics?: boolean;
}

/** One array, or as many as the reduction has results. */
export type ReductionTargets = DeviceArray | readonly DeviceArray[];

/**
 * Reduces each row of what D is at this step: element i of the target is row i's, target [m]. Computed in f32 (f64 for an f64
 * target; i32, u32, i64 or u64 for integers) and converted on storing; sums in a fixed order, the same bits every time.
 *
 * @throws ArgumentError for a reduction without a name that is none, targets that are too many or too few, atomics that are not
 */
export function reduceRows(
  targets: ReductionTargets,
  reduction: ReductionName | Reduction,
  options: ReduceOptions = {},
): EpilogueStep {
  return reducing("row", targets, reduction, options);
}

/** Reduces each column: element j of the target is column j's, target [n]. See {@link reduceRows}. */
export function reduceColumns(
  targets: ReductionTargets,
  reduction: ReductionName | Reduction,
  options: ReduceOptions = {},
): EpilogueStep {
  return reducing("column", targets, reduction, options);
}

/** Reduces everything to one element: target [1] or []. See {@link reduceRows}. */
export function reduceAll(
  targets: ReductionTargets,
  reduction: ReductionName | Reduction,
  options: ReduceOptions = {},
): EpilogueStep {
  return reducing("all", targets, reduction, options);
}

/** The largest magnitude of what D is at this step, to a single element: what a scale for 8-bit floats is made from. */
export function amax(target: DeviceArray): EpilogueStep {
  return reduceAll(target, "absMax");
}

function reducing(
  axis: ReductionAxis,
  given: ReductionTargets,
  named: ReductionName | Reduction,
  { atomics = false }: ReduceOptions,
): EpilogueStep {
  const targets = Array.isArray(given) ? (given as readonly DeviceArray[]) : [given as DeviceArray];
  const reduction = reductionOf(named);
  const [first] = targets;
  const type = stateType(first?.type);
  const components = reduction.identity(type).length;
  const wanted = reduction.targets ?? components;
  if (targets.length !== wanted) {
    throw new ArgumentError(
      `gemm: ${reduction.name} has ${wanted} result${wanted === 1 ? "" : "s"}; ${targets.length} target${targets.length === 1 ? " was" : "s were"} given`,
    );
  }
  if (targets.some((target) => stateType(target.type) !== type)) {
    throw new ArgumentError(
      `gemm: the targets of ${reduction.name} are reduced in one type; ${targets.map(({ label }) => label).join(", ")} want several`,
    );
  }
  if (atomics) checkAtomics(reduction, first.type, type, components);
  return { behaviour: behaviourOf(axis, reduction, type, targets.length, atomics), arrays: targets };
}

function reductionOf(named: ReductionName | Reduction): Reduction {
  const reduction = typeof named === "string" ? namedReductions[named] : named;
  if (reduction?.combine === undefined) {
    throw new ArgumentError(
      `gemm: no reduction ${JSON.stringify(named)}; there are ${Object.keys(namedReductions).join(", ")}, and objects with identity, enter and combine`,
    );
  }
  return reduction;
}

function checkAtomics(
  reduction: Reduction,
  target: StorageType,
  type: StorageType,
  components: number,
): void {
  const isOrdered = isFloat(type) && reduction.atomic !== "add";
  if (reduction.atomic === undefined || isOrdered || target !== type || components !== 1) {
    throw new ArgumentError(
      `gemm: ${reduction.name} into ${target.name} has no atomic; leave atomics out (sums of f32 and f64, and named reductions of 32- and 64-bit integers, have one)`,
    );
  }
}

const behaviours: WeakMap<Reduction, Map<string, StepBehaviour>> = new WeakMap();

/** The same object for the same reduction, axis, type and way. */
function behaviourOf(
  axis: ReductionAxis,
  reduction: Reduction,
  type: StorageType,
  targets: number,
  atomics: boolean,
): StepBehaviour {
  const known = behaviours.get(reduction) ?? new Map<string, StepBehaviour>();
  behaviours.set(reduction, known);
  const key = `${axis} ${type.name} ${targets} ${String(atomics)}`;
  const shape = ({ row: "perRow", column: "perColumn", all: "scalar" } as const)[axis];
  const of = { row: "rows", column: "columns", all: "all elements" }[axis];
  const found = known.get(key) ?? {
    name: `${reduction.name} of ${of}`,
    operands: Array.from({ length: targets }, () => ({ shape, access: "finish" as const })),
    apply: (values) => values,
    collects: { reduction, axis, type, atomics },
  };
  known.set(key, found);
  return found;
}
