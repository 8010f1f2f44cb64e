/** @file Kernels of PTX text written by hand or by another compiler, launched with plain native arguments. */
import { ArgumentError } from "../../errors.ts";
import type { TargetFacts } from "../../target/facts.ts";
import { type ElementType, types } from "../../types/types.ts";
import type { ArgumentValue } from "../backend.ts";
import { type ArgumentLayout, layOut, type NativeParameter } from "./arguments.ts";
import type { DriverContext } from "./context.ts";
import { type KernelFunction, openKernel } from "./kernel-function.ts";
import type { CudaPreparedLaunch, Launcher } from "./launch.ts";
import type { LoadedModule } from "./modules.ts";

/** A `.param` of a PTX kernel: an address, a tensor map (`.align 64 .b8 [128]`), or a number by its type. */
export type PtxParameter = "pointer" | "tensorMap" | ElementType["name"];

/** How a PTX kernel is called. */
export interface PtxKernelShape {
  readonly parameters: readonly PtxParameter[];
  readonly block: readonly [number, number, number];
  readonly cluster?: readonly [number, number, number] | undefined;
  /** Shared memory that the launch gives (`.extern .shared`), in bytes. */
  readonly dynamicSharedBytes?: number | undefined;
}

/** A loaded PTX text. */
export class PtxProgram {
  readonly #context: DriverContext;
  readonly #launcher: Launcher;
  readonly #module: LoadedModule;
  readonly #facts: TargetFacts;

  constructor(context: DriverContext, launcher: Launcher, module: LoadedModule, facts: TargetFacts) {
    this.#context = context;
    this.#launcher = launcher;
    this.#module = module;
    this.#facts = facts;
  }

  /** What the driver's compiler said; empty where the code came from the driver's cache. */
  get log(): string {
    return this.#module.log;
  }

  /** The kernel `.entry name`. @throws DeviceError when there is none, ArgumentError for a shape it cannot have */
  kernel(name: string, shape: PtxKernelShape): PtxKernel {
    this.#context.enter();
    const launchShape = {
      block: shape.block,
      cluster: shape.cluster,
      dynamicSharedBytes: shape.dynamicSharedBytes ?? 0,
    };
    const kernel = openKernel(this.#context, this.#module, name, launchShape, this.#facts.limits.sharedBytes);
    return new PtxKernel(this.#launcher, kernel, layOut(shape.parameters.map(native)));
  }
}

/** A kernel of a {@link PtxProgram}. */
export class PtxKernel {
  readonly #launcher: Launcher;
  readonly #layout: ArgumentLayout;
  /** What the driver knows about it: registers, spills, occupancy. */
  readonly function: KernelFunction;

  constructor(launcher: Launcher, kernel: KernelFunction, layout: ArgumentLayout) {
    this.#launcher = launcher;
    this.#layout = layout;
    this.function = kernel;
  }

  /** Native arguments to launch with, as often as wanted. @throws ArgumentError */
  prepare(values: readonly ArgumentValue[]): CudaPreparedLaunch {
    return this.#launcher.prepare(this.function, this.#layout, values);
  }

  /** Enqueues a launch over `grid` blocks. @throws ArgumentError, DisposedError, DeviceError */
  launch(
    grid: readonly [number, number, number],
    values: readonly ArgumentValue[] | CudaPreparedLaunch,
  ): void {
    const prepared = "kernel" in values ? values : this.prepare(values);
    if (prepared.kernel !== this.function) {
      throw new ArgumentError(`The prepared launch given for kernel ${this.function.name} is another's.`);
    }
    this.#launcher.launch(prepared, grid[0], grid[1], grid[2]);
  }
}

function native(parameter: PtxParameter): NativeParameter {
  if (parameter === "pointer" || parameter === "tensorMap") return { kind: parameter };
  return { kind: "number", element: types[parameter] };
}
