/**
 * @file Plan stages: kernels that a plan launches before and after its product, and the memory they share with it.
 *
 * A product whose blocks leave partial results (reductions across blocks, sums split along K) needs a workspace and a
 * kernel that finishes. Whoever wants them says so as data, a {@link PlanSurroundings}; the plan compiles, launches in order
 * and gives back what it holds.
 */
import type { Kernel } from "../lang/index.ts";
import type { Device, DeviceArray } from "../runtime/array.ts";
import type { BoundLaunch, CompiledKernel, GridSize } from "../runtime/device.ts";

/** A kernel with everything that a launch takes. */
export interface PlanStage {
  /** What it does, as `explain()` says it. */
  readonly purpose: string;
  readonly kernel: Kernel;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly blocks: GridSize;
}

/** What surrounds a product. */
export interface PlanSurroundings {
  /** Arrays that live as long as the plan. */
  readonly workspaces: readonly DeviceArray[];
  /** The product's own arguments that are among them, by parameter name. */
  readonly arguments: Readonly<Record<string, unknown>>;
  /** Launched before the product, in order. */
  readonly before: readonly PlanStage[];
  /** Launched after it, in order; also where D has no elements and the product is not launched at all. */
  readonly after: readonly PlanStage[];
}

/** Nothing around the product. */
export const noSurroundings: PlanSurroundings = { workspaces: [], arguments: {}, before: [], after: [] };

/** Several surroundings as one, in order. */
export function joinSurroundings(all: readonly PlanSurroundings[]): PlanSurroundings {
  return {
    workspaces: all.flatMap(({ workspaces }) => workspaces),
    arguments: Object.assign({}, ...all.map((one) => one.arguments)),
    before: all.flatMap(({ before }) => before),
    after: all.flatMap(({ after }) => after),
  };
}

/** A list of stages, compiled and bound. */
export interface BoundStages {
  readonly compiled: readonly CompiledKernel[];
  launch(): void;
  dispose(): void;
}

/** Compiles and binds stages; what was bound is given back when one fails. */
export async function bindStages(
  device: Device,
  stages: readonly PlanStage[],
  signal: AbortSignal | undefined,
): Promise<BoundStages> {
  const compiled: CompiledKernel[] = [];
  const bound: BoundLaunch[] = [];
  const dispose = (): void => {
    for (const launch of bound) launch.dispose();
  };
  try {
    for (const stage of stages) {
      const kernel = await device.compile(stage.kernel, { signal });
      compiled.push(kernel);
      bound.push(kernel.bind(stage.arguments as never));
    }
  } catch (error) {
    dispose();
    throw error;
  }
  return {
    compiled,
    launch: () =>
      bound.forEach((launch, i) => {
        launch.launch(stages[i].blocks);
      }),
    dispose,
  };
}
