/**
 * @file Arrays on a device, and the device as everything outside this folder knows it. The two know each other, so they
 * share a file; `device.ts` holds the implementation of {@link Device}.
 */
import { ArgumentError, DisposedError, ShapeError } from "../errors.ts";
import type { Kernel, ParameterDescriptors } from "../lang/index.ts";
import type { TargetFacts } from "../target/facts.ts";
import {
  decode,
  encode,
  type HostValues,
  isRawArray,
  rawArray,
  type StorageArray,
  type ValueArray,
} from "../types/host.ts";
import { byteSize, type StorageType } from "../types/types.ts";
import type { Allocation } from "./allocation.ts";
import type { CompiledKernel, CompileOptions, LaunchOptions } from "./compiled-kernel.ts";
import {
  broadcastLayout,
  checkShape,
  elementCount,
  elementPosition,
  formatShape,
  isRowMajor,
  memoryOrder,
  permuteLayout,
  repeatsElements,
  rowMajorStrides,
  type SliceRange,
  type StridedLayout,
  sliceLayout,
  span,
  visitPositions,
} from "./shape.ts";

export {
  type CollapsedLayouts,
  collapse,
  commonShape,
  repeatsElements,
  type SliceRange,
  type StridedLayout,
} from "./shape.ts";

/** Why a kind of device is not used here, and what would help. */
export interface MissingDevice {
  readonly kind: "cuda" | "webgpu";
  readonly reason: string;
  readonly remedy: string;
}

/** Work captured by {@link Device.capture}. */
export interface Graph {
  /** Enqueues it all. Arguments and grids are those of the capture. @throws DisposedError */
  launch(): void;
  dispose(): void;
  [Symbol.dispose](): void;
}

/**
 * A device: memory, kernels, order. Work is done in the order in which it was enqueued. What may compile or wait returns
 * a promise; what only enqueues returns at once. A fault of the device rejects the next `sync` or `read`.
 */
export interface Device {
  readonly kind: "cuda" | "webgpu" | "simulator";
  /** What the maker calls it. */
  readonly name: string;
  /** What kernels compiled for it may count on. */
  readonly facts: TargetFacts;
  /** Kinds of device that would have been preferred, and why they are not there. */
  readonly missing: readonly MissingDevice[];
  readonly disposed: boolean;

  /**
   * A row-major array. `data` is a flat list of values: floats round to nearest even, integers out of range are an
   * error. Without it every element is 0.
   * @throws ShapeError, ArgumentError
   */
  array<T extends StorageType>(type: T, shape: readonly number[], data?: HostValues): DeviceArray<T>;
  /** A row-major array from raw storage: bit patterns for f16, bf16, e4m3 and e5m2, else the type's typed array. */
  arrayFromBits<T extends StorageType>(
    type: T,
    shape: readonly number[],
    bits: StorageArray<T>,
  ): DeviceArray<T>;
  /** A row-major array of whatever the memory holds: write before reading. */
  empty<T extends StorageType>(type: T, shape: readonly number[]): DeviceArray<T>;
  /** Copies between contiguous arrays of one type and size, without a kernel. They must not overlap. */
  copy<T extends StorageType>(source: DeviceArray<T>, target: DeviceArray<T>): void;

  /** Compiles a kernel, once for each kernel object. */
  compile<P extends ParameterDescriptors>(
    kernel: Kernel<P>,
    options?: CompileOptions,
  ): Promise<CompiledKernel<P>>;
  /**
   * Compiles a kernel if that has not been done and enqueues a launch; resolves when it is enqueued. Arguments are
   * checked before anything is compiled.
   */
  run<P extends ParameterDescriptors>(
    kernel: Kernel<P>,
    options: LaunchOptions<P> & CompileOptions,
  ): Promise<void>;
  /** Enqueues a launch of a compiled kernel. */
  launch<P extends ParameterDescriptors>(kernel: CompiledKernel<P>, options: LaunchOptions<P>): void;

  /**
   * Keeps the launches and copies that `enqueue` makes, to be enqueued again by one call: a CUDA graph where the device
   * is one, else a list. Nothing runs yet. Plans are made before; inside, nothing may be allocated, written, read or disposed.
   */
  capture(enqueue: () => void): Graph;
  /** Resolves when all that was enqueued is done. @throws DeviceError, SimulationError for a fault since the last time */
  sync(): Promise<void>;
  /** Seconds, on the device's own clock, that the work enqueued by `enqueue` takes. */
  time(enqueue: () => void): Promise<number>;
  /**
   * Bytes from one array's first element to another's in the address space of kernels; undefined where their allocations
   * have none in common.
   */
  bytesBetween(from: DeviceArray, to: DeviceArray): number | undefined;
  /** Bytes. */
  memory(): { readonly free: number; readonly total: number };
  /** Ends the device and its arrays. */
  dispose(): void;
  [Symbol.dispose](): void;
  /** Waits for the work enqueued, then disposes. @throws DeviceError, SimulationError for a fault not heard of yet */
  [Symbol.asyncDispose](): Promise<void>;
}

/** What an array is made of. @internal */
export interface ArrayParts<T extends StorageType> extends StridedLayout {
  readonly device: Device;
  readonly type: T;
  readonly allocation: Allocation;
  readonly owner: boolean;
}

/**
 * An array on a device, or a view of one: another arrangement of the same elements, free of cost. Disposing an array
 * ends its views; disposing a view ends that view alone.
 */
export class DeviceArray<T extends StorageType = StorageType> {
  readonly device: Device;
  readonly type: T;
  /** Extents, outermost first. Rank 0 is a single element. */
  readonly shape: readonly number[];
  /** Distances between neighbours, in elements. */
  readonly strides: readonly number[];
  /** Position of the first element in the allocation, in elements. */
  readonly offset: number;
  /** Number of elements. */
  readonly size: number;
  /** Whether the elements lie one after the other in row-major order. */
  readonly isContiguous: boolean;
  /** @internal */
  readonly allocation: Allocation;
  readonly #owner: boolean;
  #disposed = false;

  /** @internal Made by {@link Device.array} and by views. */
  constructor(parts: ArrayParts<T>) {
    this.device = parts.device;
    this.type = parts.type;
    this.shape = parts.shape;
    this.strides = parts.strides;
    this.offset = parts.offset;
    this.size = elementCount(parts.shape);
    this.isContiguous = isRowMajor(parts.shape, parts.strides);
    this.allocation = parts.allocation;
    this.#owner = parts.owner;
  }

  get rank(): number {
    return this.shape.length;
  }
  /** Whether the array, or the one it is a view of, was disposed. */
  get disposed(): boolean {
    return this.#disposed || this.allocation.disposed || this.device.disposed;
  }

  // Views ---------------------------------------------------------------------------------------------------------------

  /** The last two dimensions exchanged. */
  get transposed(): DeviceArray<T> {
    const { rank } = this;
    if (rank < 2) throw new ShapeError(`${this.label} has rank ${rank}; transposing takes two dimensions`);
    const order = this.shape.map((_, dimension) => dimension);
    return this.permute([...order.slice(0, -2), rank - 1, rank - 2]);
  }
  /** The dimensions in another order: `order[i]` is which of them comes i-th. */
  permute(order: readonly number[]): DeviceArray<T> {
    return this.#view(permuteLayout(this, order));
  }
  /**
   * A part, one range for each dimension: `[from, to, step]`; `[]`, `undefined` and missing ranges take all, negative
   * positions count from the end. @throws ShapeError for a range outside the array
   */
  slice(...ranges: readonly (SliceRange | undefined)[]): DeviceArray<T> {
    return this.#view(sliceLayout(this, ranges));
  }
  /** One row of a matrix, as an array of rank 1. */
  row(position: number): DeviceArray<T> {
    return this.#line(0, position);
  }
  /** One column of a matrix, as an array of rank 1; contiguous only for a transposed matrix. */
  column(position: number): DeviceArray<T> {
    return this.#line(1, position);
  }
  /** The same elements in another shape. @throws ShapeError unless the array is contiguous and the sizes agree */
  reshape(shape: readonly number[]): DeviceArray<T> {
    checkShape(shape);
    if (elementCount(shape) !== this.size) {
      throw new ShapeError(
        `${this.label} has ${this.size} elements and cannot take the shape ${formatShape(shape)}`,
      );
    }
    if (!this.isContiguous) {
      throw new ShapeError(
        `${this.label} with strides ${formatShape(this.strides)} is not contiguous and has no other shape; \`copy\` of tilewright/array-ops makes it so`,
      );
    }
    return this.#view({ shape, strides: rowMajorStrides(shape), offset: this.offset });
  }
  /** The array repeated to a larger shape, dimensions aligned at the last one. The view can be read, not written. */
  broadcast(shape: readonly number[]): DeviceArray<T> {
    return this.#view(broadcastLayout(this, shape));
  }
  /**
   * Any arrangement of the allocation's elements; strides and offset in elements, the offset from the allocation's
   * start. @throws ShapeError when it reaches outside the allocation
   */
  strided(
    shape: readonly number[],
    strides: readonly number[],
    offset: number = this.offset,
  ): DeviceArray<T> {
    checkShape(shape);
    const isLayout =
      strides.length === shape.length &&
      [...strides, offset].every((step) => Number.isSafeInteger(step) && step >= 0);
    if (!isLayout) {
      throw new ShapeError(
        `strides ${formatShape(strides)} from ${offset}: one whole stride from 0 on for each of ${formatShape(shape)}`,
      );
    }
    const end = offset + span(shape, strides);
    const capacity = this.allocation.buffer.bytes / byteSize(this.type);
    if (end > capacity) {
      throw new ShapeError(
        `shape ${formatShape(shape)} with strides ${formatShape(strides)} from ${offset} reaches element ${end - 1} of ${capacity}`,
      );
    }
    return this.#view({ shape, strides, offset });
  }

  // Values --------------------------------------------------------------------------------------------------------------

  /**
   * The values in row-major order: f16, bf16, e4m3 and e5m2 as Float32Array, i64 and u64 as arrays of bigint, the others
   * as their own typed arrays. Waits for the work that makes them.
   */
  async read(): Promise<ValueArray<T>> {
    return decode(this.type, await this.readBits());
  }
  /** The raw storage in row-major order. */
  async readBits(): Promise<StorageArray<T>> {
    this.check("read()");
    const bits = rawArray(this.type, this.size);
    if (this.size === 0) return bits;
    if (this.isContiguous) {
      await this.#readRange(this.offset, bits);
      return bits;
    }
    const spanned = rawArray(this.type, span(this.shape, this.strides));
    await this.#readRange(this.offset, spanned);
    const [to, from] = [bits as Uint8Array, spanned as Uint8Array];
    visitPositions(this.shape, rowMajorStrides(this.shape), this.strides, (target, source) => {
      to[target] = from[source]!;
    });
    return bits;
  }
  /** One element, by its coordinates; none are needed where there is one element alone. */
  async item(...coordinates: readonly number[]): Promise<ValueArray<T>[number]> {
    this.check("item()");
    const bits = rawArray(this.type, 1);
    const isAlone = coordinates.length === 0 && this.size === 1;
    await this.#readRange(isAlone ? this.offset : elementPosition(this, coordinates), bits);
    return decode(this.type, bits)[0]!;
  }
  /** Replaces all values; `values` is a flat row-major list, as {@link Device.array} takes it. */
  write(values: HostValues): void {
    this.check("write()");
    this.#checkCount(values.length);
    this.#write(encode(this.type, values));
  }
  /** Replaces all elements by raw storage in row-major order. */
  writeBits(bits: StorageArray<T>): void {
    this.check("writeBits()");
    if (!isRawArray(this.type, bits)) {
      const wanted = rawArray(this.type, 0).constructor.name;
      throw new ArgumentError(`raw storage of ${this.type.name} is a ${wanted}; write() takes values`);
    }
    this.#checkCount(bits.length);
    this.#write(bits);
  }

  // Life ----------------------------------------------------------------------------------------------------------------

  /** Ends the array; its memory is given back after the work already enqueued. A view leaves the memory alone. */
  dispose(): void {
    this.#disposed = true;
    if (this.#owner && !this.device.disposed) this.allocation.dispose();
  }
  [Symbol.dispose](): void {
    this.dispose();
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.dispose();
  }

  /** @internal `f32[4, 5]`, for messages. */
  get label(): string {
    return `${this.type.name}${formatShape(this.shape)}`;
  }
  /** @internal @throws DisposedError; `what` begins the message */
  check(what: string): void {
    if (this.#disposed) throw new DisposedError(`${what}: the array ${this.label} was disposed`);
    if (this.device.disposed)
      throw new DisposedError(`${what}: the device of the array ${this.label} was disposed`);
    this.allocation.check(what);
  }
  toString(): string {
    return `DeviceArray ${this.label} on ${this.device.name}${this.disposed ? ", disposed" : ""}`;
  }

  #view(layout: StridedLayout): DeviceArray<T> {
    this.check("a view");
    const { device, type, allocation } = this;
    const { shape, strides, offset } = layout;
    return new DeviceArray({
      device,
      type,
      allocation,
      shape: [...shape],
      strides: [...strides],
      offset,
      owner: false,
    });
  }

  #line(dimension: 0 | 1, position: number): DeviceArray<T> {
    if (this.rank !== 2)
      throw new ShapeError(`${this.label} has rank ${this.rank}; rows and columns are a matrix's`);
    const extent = this.shape[dimension]!;
    if (!Number.isInteger(position) || position < 0 || position >= extent) {
      throw new ShapeError(`${this.label} has no ${dimension === 0 ? "row" : "column"} ${position}`);
    }
    const other = 1 - dimension;
    return this.#view({
      shape: [this.shape[other]!],
      strides: [this.strides[other]!],
      offset: this.offset + position * this.strides[dimension]!,
    });
  }

  #checkCount(count: number): void {
    if (count === this.size) return;
    throw new ShapeError(`${this.label} has ${this.size} elements; ${count} values were given`);
  }

  async #readRange(position: number, target: StorageArray<T>): Promise<void> {
    const bytes = new Uint8Array(target.buffer, target.byteOffset, target.byteLength);
    await this.allocation.read(position * byteSize(this.type), bytes);
  }

  #writeRange(position: number, source: StorageArray<T>): void {
    const bytes = new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
    this.allocation.backend.write(this.allocation.buffer, position * byteSize(this.type), bytes);
  }

  /** Strided arrays are written in runs of elements that lie together: what lies between keeps its values. */
  #write(bits: StorageArray<T>): void {
    if (this.size === 0) return;
    if (this.isContiguous) {
      this.#writeRange(this.offset, bits);
      return;
    }
    if (repeatsElements(this)) {
      throw new ShapeError(
        `${this.label} with strides ${formatShape(this.strides)} holds elements more than once and cannot be written`,
      );
    }
    const { shape, strides, denseStrides, run, inner } = memoryOrder(this.shape, this.strides);
    const outer = shape.length - inner;
    const together = rawArray(this.type, run);
    const [to, from] = [together as Uint8Array, bits as Uint8Array];
    visitPositions(
      shape.slice(0, outer),
      strides.slice(0, outer),
      denseStrides.slice(0, outer),
      (target, source) => {
        visitPositions(
          shape.slice(outer),
          strides.slice(outer),
          denseStrides.slice(outer),
          (place, value) => {
            to[place] = from[source + value]!;
          },
        );
        this.#writeRange(this.offset + target, together);
      },
    );
  }
}

// What Node.js shows of an array, in place of everything that hangs on it.
Object.defineProperty(DeviceArray.prototype, Symbol.for("nodejs.util.inspect.custom"), {
  value(this: DeviceArray): string {
    return this.toString();
  },
});
