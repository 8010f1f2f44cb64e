/**
 * @file The device: everything above the backend's memory, modules and launches. {@link Device} is the interface that
 * the rest of the library and its users see; `createDevice` makes one over any backend.
 */
import { ArgumentError, DisposedError, ShapeError } from "../errors.ts";
import type { Kernel, ParameterDescriptors } from "../lang/index.ts";
import type { TargetFacts } from "../target/facts.ts";
import type { HostValues, StorageArray } from "../types/host.ts";
import { byteSize, isStorage, type StorageType } from "../types/types.ts";
import { Allocation, type FaultRecord, telling } from "./allocation.ts";
import { type Device, DeviceArray, type Graph, type MissingDevice } from "./array.ts";
import type { Backend } from "./backend.ts";
import type { CompiledKernel, CompileOptions, LaunchOptions } from "./compiled-kernel.ts";
import { checkArguments } from "./launch-arguments.ts";
import { type KernelParts, LoadedKernel } from "./loaded-kernel.ts";
import { checkShape, elementCount, formatShape, rowMajorStrides } from "./shape.ts";

export type { Device, DeviceArray, Graph, MissingDevice, SliceRange } from "./array.ts";
export type {
  BoundLaunch,
  CompiledKernel,
  CompileOptions,
  GridSize,
  LaunchOptions,
} from "./compiled-kernel.ts";

/** Takes kernels to executables of one backend; `compile.ts` makes them. */
export interface KernelCompiler {
  compile(kernel: Kernel, options: CompileOptions): Promise<KernelParts>;
}

/** A device over a backend. */
export function createDevice(
  backend: Backend,
  compiler: KernelCompiler,
  missing: readonly MissingDevice[] = [],
): Device {
  return new BackendDevice(backend, compiler, missing);
}

class BackendDevice implements Device {
  readonly missing: readonly MissingDevice[];
  readonly #backend: Backend;
  readonly #compiler: KernelCompiler;
  readonly #kernels: WeakMap<object, Promise<CompiledKernel>> = new WeakMap();
  readonly #faults: FaultRecord = { told: false };
  #disposed = false;

  constructor(backend: Backend, compiler: KernelCompiler, missing: readonly MissingDevice[]) {
    this.#backend = backend;
    this.#compiler = compiler;
    this.missing = missing;
  }

  get kind(): Backend["kind"] {
    return this.#backend.kind;
  }
  get name(): string {
    return this.#backend.name;
  }
  get facts(): TargetFacts {
    return this.#backend.facts;
  }
  get disposed(): boolean {
    return this.#disposed;
  }

  array<T extends StorageType>(type: T, shape: readonly number[], data?: HostValues): DeviceArray<T> {
    const array = this.empty(type, shape);
    if (data === undefined) this.#clear(array);
    else filling(array, () => array.write(data));
    return array;
  }

  arrayFromBits<T extends StorageType>(
    type: T,
    shape: readonly number[],
    bits: StorageArray<T>,
  ): DeviceArray<T> {
    const array = this.empty(type, shape);
    filling(array, () => array.writeBits(bits));
    return array;
  }

  empty<T extends StorageType>(type: T, shape: readonly number[]): DeviceArray<T> {
    this.#check("an array");
    if (typeof type !== "object" || !isStorage(type)) {
      const name = (type as { readonly name?: unknown } | undefined)?.name ?? type;
      throw new ArgumentError(
        `an array's type is one such as f32 or i8 that memory can hold, not ${String(name)}`,
      );
    }
    checkShape(shape);
    const bytes = elementCount(shape) * byteSize(type);
    if (!Number.isSafeInteger(bytes))
      throw new ShapeError(`shape ${formatShape(shape)} has more than 2^53 bytes`);
    const allocation = new Allocation(
      this.#backend,
      this.#faults,
      bytes,
      `${type.name}${formatShape(shape)}`,
    );
    return new DeviceArray({
      device: this,
      type,
      allocation,
      owner: true,
      offset: 0,
      shape: [...shape],
      strides: rowMajorStrides(shape),
    });
  }

  copy<T extends StorageType>(source: DeviceArray<T>, target: DeviceArray<T>): void {
    source.check("copy(): the source");
    target.check("copy(): the target");
    if (source.device !== this || target.device !== this) {
      throw new ArgumentError("copy() works within one device; read on the one and write on the other");
    }
    if (
      source.type !== target.type ||
      source.size !== target.size ||
      !source.isContiguous ||
      !target.isContiguous
    ) {
      throw new ShapeError(
        `copy() takes contiguous arrays of one type and size, not ${source.label} to ${target.label}; \`copyInto\` of tilewright/array-ops takes any strides`,
      );
    }
    const bytes = byteSize(source.type);
    if (source.size === 0) return;
    this.#backend.copy(
      source.allocation.buffer,
      source.offset * bytes,
      target.allocation.buffer,
      target.offset * bytes,
      source.size * bytes,
    );
  }

  compile<P extends ParameterDescriptors>(
    kernel: Kernel<P>,
    options: CompileOptions = {},
  ): Promise<CompiledKernel<P>> {
    // The map's values have the parameters of their keys, which its type cannot say.
    const known = this.#kernels.get(kernel) as Promise<CompiledKernel<P>> | undefined;
    if (known !== undefined) return known;
    const compiling = this.#compile(kernel, options);
    this.#kernels.set(kernel, compiling as unknown as Promise<CompiledKernel>);
    // A failure is not remembered: the next attempt says again what is wrong, or works (after an abort).
    compiling.catch(() => this.#kernels.delete(kernel));
    return compiling;
  }

  async run<P extends ParameterDescriptors>(
    kernel: Kernel<P>,
    { blocks, args, signal }: LaunchOptions<P> & CompileOptions,
  ): Promise<void> {
    this.#check(`kernel ${kernel.name}`);
    checkArguments({ kernel: kernel.name, device: this, params: kernel.params }, args);
    const compiled = await this.compile(kernel, { signal });
    this.launch(compiled, { blocks, args });
  }

  launch<P extends ParameterDescriptors>(
    kernel: CompiledKernel<P>,
    { blocks, args }: LaunchOptions<P>,
  ): void {
    this.#check(`kernel ${kernel.name}`);
    if (!(kernel instanceof LoadedKernel) || kernel.device !== this) {
      throw new ArgumentError(
        `kernel ${kernel.name} was not compiled for this device; use what its compile() gave`,
      );
    }
    const bound = kernel.bind(args);
    try {
      bound.launch(blocks);
    } finally {
      bound.dispose();
    }
  }

  capture(enqueue: () => void): Graph {
    this.#check("capture()");
    const work = this.#backend.capture(enqueue);
    return {
      launch: () => {
        this.#check("a graph");
        work.launch();
      },
      dispose: () => work.dispose(),
      [Symbol.dispose]: () => work.dispose(),
    };
  }

  async sync(): Promise<void> {
    this.#check("sync()");
    await telling(this.#faults, this.#backend.sync());
  }

  async time(enqueue: () => void): Promise<number> {
    this.#check("time()");
    return telling(this.#faults, this.#backend.time(enqueue));
  }

  bytesBetween(from: DeviceArray, to: DeviceArray): number | undefined {
    const within = to.offset * byteSize(to.type) - from.offset * byteSize(from.type);
    if (from.allocation === to.allocation) return within;
    const backend = this.#backend;
    if (backend.addressOf === undefined) return undefined;
    return backend.addressOf(to.allocation.buffer) - backend.addressOf(from.allocation.buffer) + within;
  }
  memory(): { readonly free: number; readonly total: number } {
    this.#check("memory()");
    return this.#backend.memory();
  }

  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#backend.dispose();
  }
  [Symbol.dispose](): void {
    this.dispose();
  }
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#disposed) return;
    try {
      await this.#backend.sync();
    } catch (error) {
      if (!this.#faults.told) throw error;
    } finally {
      this.dispose();
    }
  }

  async #compile<P extends ParameterDescriptors>(
    kernel: Kernel<P>,
    options: CompileOptions,
  ): Promise<CompiledKernel<P>> {
    this.#check(`kernel ${kernel.name}`);
    const parts = await this.#compiler.compile(kernel as unknown as Kernel, options);
    return new LoadedKernel(this, this.#backend, kernel, parts);
  }

  #clear(array: DeviceArray): void {
    const bytes = array.size * byteSize(array.type);
    if (bytes > 0) this.#backend.fill(array.allocation.buffer, 0, bytes, 0);
  }

  #check(what: string): void {
    if (this.#disposed) throw new DisposedError(`${what}: the device ${this.#backend.name} was disposed`);
  }
}

/** Writes a fresh array; gives its memory back when the data are no good. */
function filling(array: DeviceArray, write: () => void): void {
  try {
    write();
  } catch (error) {
    array.dispose();
    throw error;
  }
}
