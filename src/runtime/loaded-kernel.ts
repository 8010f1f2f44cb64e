/**
 * @file A compiled kernel on one device: binds arguments and launches.
 */
import { ArgumentError } from "../errors.ts";
import type { KernelIr } from "../ir/nodes.ts";
import { type ArgumentSlot, argumentSlots } from "../ir/parameters.ts";
import type { HostArguments, Kernel, ParameterDescriptors } from "../lang/index.ts";
import type { TargetFacts } from "../target/facts.ts";
import { type Device, DeviceArray } from "./array.ts";
import type { Backend, Executable, PreparedLaunch } from "./backend.ts";
import type { BoundLaunch, CompiledKernel, GridSize } from "./compiled-kernel.ts";
import { argumentValues, checkArguments } from "./launch-arguments.ts";

/** What compiling gives; see compile.ts. */
export interface KernelParts {
  readonly ir: KernelIr;
  readonly text: string;
  readonly executable: Executable;
}

/** {@link CompiledKernel} over a backend. */
export class LoadedKernel<P extends ParameterDescriptors> implements CompiledKernel<P> {
  readonly kernel: Kernel<P>;
  readonly ir: KernelIr;
  readonly text: string;
  readonly executable: Executable;
  readonly device: Device;
  readonly #backend: Backend;
  readonly #slots: readonly ArgumentSlot[];

  constructor(device: Device, backend: Backend, kernel: Kernel<P>, parts: KernelParts) {
    this.device = device;
    this.#backend = backend;
    this.kernel = kernel;
    this.ir = parts.ir;
    this.text = parts.text;
    this.executable = parts.executable;
    this.#slots = argumentSlots(parts.ir);
  }

  get name(): string {
    return this.kernel.name;
  }
  get registersPerThread(): number | undefined {
    return this.executable.registersPerThread;
  }
  get spilledBytes(): number | undefined {
    return this.executable.spilledBytes;
  }
  get blocksPerMultiprocessor(): number | undefined {
    return this.executable.blocksPerMultiprocessor;
  }

  bind(args: HostArguments<P>): BoundLaunch {
    const { params } = this.kernel;
    checkArguments({ kernel: this.name, device: this.device, params }, args);
    const values = argumentValues(this.#slots, params, args);
    const prepared = this.#backend.prepare(this.executable, values);
    return new PreparedBoundLaunch(this.#backend, this.executable, prepared, arraysOf(this.name, args));
  }
}

interface NamedArray {
  readonly what: string;
  readonly array: DeviceArray;
}

function arraysOf(kernel: string, args: Readonly<Record<string, unknown>>): readonly NamedArray[] {
  return Object.entries(args)
    .filter((entry): entry is [string, DeviceArray] => entry[1] instanceof DeviceArray)
    .map(([name, array]) => ({ what: `kernel ${kernel}: argument ${name}`, array }));
}

class PreparedBoundLaunch implements BoundLaunch {
  readonly #backend: Backend;
  readonly #executable: Executable;
  readonly #prepared: PreparedLaunch;
  /** Held, so that memory the device will use is not collected; checked, so that disposed memory is not used. */
  readonly #arrays: readonly NamedArray[];

  constructor(
    backend: Backend,
    executable: Executable,
    prepared: PreparedLaunch,
    arrays: readonly NamedArray[],
  ) {
    this.#backend = backend;
    this.#executable = executable;
    this.#prepared = prepared;
    this.#arrays = arrays;
  }

  launch(blocks: GridSize): void {
    const grid = gridOf(this.#executable.module.name, blocks, this.#backend.facts);
    for (const { what, array } of this.#arrays) if (array.disposed) array.check(what);
    if (grid !== undefined) this.#backend.launch(this.#executable, grid, this.#prepared);
  }
  dispose(): void {
    this.#prepared.dispose();
  }
  [Symbol.dispose](): void {
    this.dispose();
  }
}

/** The grid of a launch; undefined when there is nothing to launch. @throws ArgumentError */
function gridOf(
  kernel: string,
  blocks: GridSize,
  { limits, name }: TargetFacts,
): readonly [number, number, number] | undefined {
  const grid: readonly [number, number, number] =
    typeof blocks === "number" ? [blocks, 1, 1] : [blocks[0] ?? 1, blocks[1] ?? 1, blocks[2] ?? 1];
  const [x, y, z] = grid;
  const isWhole = Number.isInteger(x) && Number.isInteger(y) && Number.isInteger(z);
  if (
    !isWhole ||
    x < 0 ||
    y < 0 ||
    z < 0 ||
    (typeof blocks === "object" && (blocks.length < 1 || blocks.length > 3))
  ) {
    throw new ArgumentError(
      `kernel ${kernel}: blocks is a whole number from 0 on, or up to three of them, not ${JSON.stringify(blocks)}`,
    );
  }
  if (x > limits.gridX || y > limits.gridY || z > limits.gridZ) {
    throw new ArgumentError(
      `kernel ${kernel}: a grid of ${x} x ${y} x ${z} blocks; ${name} takes at most ${limits.gridX} x ${limits.gridY} x ${limits.gridZ}`,
    );
  }
  return x === 0 || y === 0 || z === 0 ? undefined : grid;
}
