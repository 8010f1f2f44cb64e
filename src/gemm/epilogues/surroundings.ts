/**
 * @file What the steps of an epilogue want around the product: workspaces for partial states, the kernels that finish them,
 * and zeros to begin with.
 */
import { UnsupportedError } from "../../errors.ts";
import type { Kernel } from "../../lang/index.ts";
import type { Device, DeviceArray } from "../../runtime/array.ts";
import { joinSurroundings, type PlanStage, type PlanSurroundings } from "../stages.ts";
import type { PartExtents } from "./collector.ts";
import { beginningKernel, clearingKernel, fillingBlocks, finishingKernel, linesPerBlock } from "./finish.ts";
import type { Collection } from "./reduction.ts";
import { type EpilogueStep, partialsOf } from "./step.ts";

/** Where the steps run. */
export interface StepSurroundingsContext {
  readonly device: Device;
  /** Extents of D. */
  readonly rows: number;
  readonly columns: number;
  readonly parts: PartExtents;
}

/** Surroundings of all steps. */
export function stepSurroundings(
  steps: readonly EpilogueStep[],
  context: StepSurroundingsContext,
): PlanSurroundings {
  return joinSurroundings(
    steps.flatMap((step, i) => {
      const { collects } = step.behaviour;
      const cleared = clearedArrays(step);
      return collects === undefined
        ? [cleared]
        : [cleared, reductionSurroundings(step, i, collects, context)];
    }),
  );
}

function clearedArrays({ behaviour, arrays }: EpilogueStep): PlanSurroundings {
  const before = behaviour.operands.flatMap((operand, j) => {
    const array = arrays[j] as DeviceArray;
    return operand.cleared === true && array.size > 0
      ? [fill(`clears the ${behaviour.name}`, clearingKernel(array.type), array)]
      : [];
  });
  return { workspaces: [], arguments: {}, before, after: [] };
}

function fill(purpose: string, kernel: Kernel, target: DeviceArray): PlanStage {
  const length = target.shape.at(-1) ?? 1;
  const lines = target.size / length;
  const leading = lines === 1 ? length : target.strides[0];
  return {
    purpose,
    kernel,
    arguments: { target, length, lines, leading },
    blocks: fillingBlocks(target.size),
  };
}

function reductionSurroundings(
  { behaviour, arrays }: EpilogueStep,
  i: number,
  { reduction, axis, type, atomics }: Collection,
  { device, rows, columns, parts }: StepSurroundingsContext,
): PlanSurroundings {
  const targets = arrays as readonly DeviceArray[];
  if (atomics) {
    const [target] = targets;
    const begin = fill(`begins the ${behaviour.name}`, beginningKernel(reduction, type), target);
    return {
      workspaces: [],
      arguments: { [partialsOf(i)]: target },
      before: target.size === 0 ? [] : [begin],
      after: [],
    };
  }
  const [down, across] = [Math.ceil(rows / parts.rows), Math.ceil(columns / parts.columns)];
  const [lines, count] = {
    row: [rows, across],
    column: [columns, down],
    all: [1, down * across],
  }[axis];
  const components = reduction.identity(type).length;
  if (count * components >= 2 ** 31 || lines >= 2 ** 31) {
    throw new UnsupportedError(
      `gemm: ${behaviour.name} of ${rows} x ${columns} elements has more than 2^31 partial states; larger tiles (params.block) have fewer`,
    );
  }
  const partials = device.empty(type, [Math.max(1, components * count * lines)]);
  const perBlock = linesPerBlock(lines);
  const finish: PlanStage = {
    purpose: `finishes the ${behaviour.name}`,
    kernel: finishingKernel(
      reduction,
      type,
      targets.map((target) => target.type),
      perBlock,
    ),
    arguments: {
      partials,
      parts: count,
      lines,
      ...Object.fromEntries(targets.map((target, t) => [`target${t}`, target])),
    },
    blocks: Math.ceil(lines / perBlock),
  };
  return {
    workspaces: [partials],
    arguments: { [partialsOf(i)]: partials },
    before: [],
    after: lines === 0 ? [] : [finish],
  };
}
