/**
 * @file The WebGPU backend: buffers, pipelines and one queue of a `GPUDevice`, in a page, a worker or Node.js.
 */
import { ArgumentError, CompileError } from "../../errors.ts";
import { type WebGpuFacts, type WebGpuFactsOptions, webGpuFacts } from "../../target/webgpu.ts";
import type {
  ArgumentValue,
  Backend,
  BackendBuffer,
  CapturedWork,
  Executable,
  LoadOptions,
  Module,
  PreparedLaunch,
} from "../backend.ts";
import { Recorder } from "../recorder.ts";
import { type AdapterChoices, type OpenedDevice, openDevice } from "./adapter.ts";
import { isUnavailable, type Unavailable } from "./availability.ts";
import { adopt, allocate, checkedRange, padded, type WebgpuBuffer } from "./buffers.ts";
import { timed } from "./clock.ts";
import { Faults } from "./faults.ts";
import { prepare, WebgpuPreparedLaunch } from "./launches.ts";
import { type LoadedShader, Pipelines } from "./pipelines.ts";
import { CommandQueue } from "./queue.ts";
import { Transfers } from "./transfers.ts";

/** Which device, and how kernels are written for it. */
export interface WebgpuOptions extends AdapterChoices, WebGpuFactsOptions {}

/** A kernel loaded from a {@link Module}. */
export interface WebgpuExecutable extends Executable {
  readonly loaded: LoadedShader;
  readonly log: string;
}

/** A WebGPU device, or why there is none: a missing adapter is an answer, not an exception. */
export async function createWebgpuBackend(options: WebgpuOptions = {}): Promise<WebgpuBackend | Unavailable> {
  const device = await openDevice(options);
  if (isUnavailable(device)) return device;
  return new WebgpuBackend(device, options);
}

/** {@link Backend} over a `GPUDevice`. */
export class WebgpuBackend implements Backend {
  readonly kind = "webgpu";
  readonly name: string;
  readonly facts: WebGpuFacts;
  /** The native device, for other libraries' work. Its queue is in order with what {@link flush} has submitted. */
  readonly device: GPUDevice;
  readonly #opened: OpenedDevice;
  readonly #faults: Faults;
  readonly #queue: CommandQueue;
  readonly #transfers: Transfers;
  readonly #pipelines: Pipelines;
  readonly #recorder: Recorder = new Recorder();
  #allocated = 0;
  #adopted: WebgpuBuffer | undefined;
  #disposed = false;

  constructor(opened: OpenedDevice, options: WebGpuFactsOptions = {}) {
    this.#opened = opened;
    this.device = opened.device;
    this.name = opened.name;
    this.facts = webGpuFacts(opened.description, options);
    this.#faults = new Faults(opened.device, opened.name);
    this.#queue = new CommandQueue(opened.device, this.#faults);
    this.#transfers = new Transfers(this.#queue, this.#faults);
    this.#pipelines = new Pipelines(opened.device);
  }

  /** Submits what was enqueued; happens by itself when the running code has ended. */
  flush(): void {
    this.#queue.flush();
  }

  /** A `GPUBuffer` of the caller's as memory, without a copy; freeing leaves it alone. */
  adopt(buffer: GPUBuffer): BackendBuffer {
    this.#faults.check();
    return adopt(this, buffer);
  }

  /** Runs `make` with the caller's buffer in place of what it allocates first. */
  over<R>(buffer: GPUBuffer, make: () => R): R {
    this.#adopted = adopt(this, buffer);
    try {
      return make();
    } finally {
      this.#adopted = undefined;
    }
  }

  /** The `GPUBuffer` of an allocation. */
  gpuBufferOf(buffer: BackendBuffer): GPUBuffer {
    return checkedRange(this, buffer, 0, 0, "gpuBufferOf()").gpuBuffer;
  }

  allocate(bytes: number): BackendBuffer {
    this.#faults.check();
    const adopted = this.#adopted;
    if (adopted !== undefined) {
      this.#adopted = undefined;
      if (adopted.bytes >= bytes) return adopted;
      throw new ArgumentError(`the GPUBuffer has ${adopted.bytes} bytes; the array takes ${bytes}`);
    }
    this.#recorder.refuse("allocating memory");
    this.device.pushErrorScope("out-of-memory");
    const buffer = allocate(this, this.device, bytes);
    this.#faults.watch(this.device.popErrorScope(), `allocating ${bytes} bytes`);
    this.#allocated += padded(bytes);
    return buffer;
  }

  free(buffer: BackendBuffer): void {
    const own = buffer as WebgpuBuffer;
    if (own.freed || this.#disposed) return;
    this.#recorder.refuse("disposing memory");
    checkedRange(this, buffer, 0, 0, "A disposal");
    own.freed = true;
    if (!own.own) return;
    this.#allocated -= padded(own.bytes);
    this.#queue.retire(own.gpuBuffer);
  }

  write(buffer: BackendBuffer, byteOffset: number, data: Uint8Array): void {
    this.#faults.check();
    this.#recorder.refuse("a write");
    this.#transfers.write(checkedRange(this, buffer, byteOffset, data.length, "A write"), byteOffset, data);
  }

  async read(buffer: BackendBuffer, byteOffset: number, target: Uint8Array): Promise<void> {
    this.#faults.check();
    this.#recorder.refuse("a read");
    await this.#transfers.read(
      checkedRange(this, buffer, byteOffset, target.length, "A read"),
      byteOffset,
      target,
    );
  }

  copy(
    source: BackendBuffer,
    sourceOffset: number,
    target: BackendBuffer,
    targetOffset: number,
    bytes: number,
  ): void {
    this.#faults.check();
    const from = checkedRange(this, source, sourceOffset, bytes, "The source of a copy");
    const to = checkedRange(this, target, targetOffset, bytes, "The target of a copy");
    const overlaps =
      from === to && sourceOffset < targetOffset + bytes && targetOffset < sourceOffset + bytes;
    if (overlaps && bytes > 0) {
      throw new ArgumentError(
        `a copy of ${bytes} bytes overlaps itself: it goes from byte ${sourceOffset} to byte ${targetOffset} of one allocation; copy through another array`,
      );
    }
    if (this.#recorder.takes(() => this.copy(source, sourceOffset, target, targetOffset, bytes))) return;
    this.#transfers.copy(from, sourceOffset, to, targetOffset, bytes);
  }

  fill(buffer: BackendBuffer, byteOffset: number, bytes: number, pattern: number): void {
    this.#faults.check();
    const own = checkedRange(this, buffer, byteOffset, bytes, "A fill");
    if (this.#recorder.takes(() => this.fill(buffer, byteOffset, bytes, pattern))) return;
    this.#transfers.fill(own, byteOffset, bytes, pattern);
  }

  async load(module: Module, options: LoadOptions = {}): Promise<WebgpuExecutable> {
    this.#faults.check();
    const { name, text, hash, shader } = module;
    if (shader === undefined) throw new CompileError(`kernel ${name} comes without a WebGPU interface`);
    const loaded = await this.#pipelines.load(name, hash, { text, shader }, options.signal);
    return {
      module,
      loaded,
      log: loaded.log,
      registersPerThread: undefined,
      spilledBytes: undefined,
      blocksPerMultiprocessor: undefined,
    };
  }

  prepare(executable: Executable, values: readonly ArgumentValue[]): PreparedLaunch {
    this.#faults.check();
    if (!("loaded" in executable)) {
      throw new ArgumentError(`kernel ${executable.module.name} was loaded for another device`);
    }
    const { loaded, module } = executable as WebgpuExecutable;
    const context = {
      owner: this,
      queue: this.#queue,
      pipelines: this.#pipelines,
      bindingBytes: this.facts.wgsl.bindingBytes,
    };
    return prepare(context, module, loaded, values);
  }

  launch(executable: Executable, grid: readonly [number, number, number], prepared: PreparedLaunch): void {
    this.#faults.check();
    if (!(prepared instanceof WebgpuPreparedLaunch) || prepared.module.hash !== executable.module.hash) {
      throw new ArgumentError(
        `the prepared launch given for kernel ${executable.module.name} was prepared for another one`,
      );
    }
    const perAxis = this.facts.wgsl.workgroupsPerDimension;
    if (this.#recorder.active) {
      // The caller may dispose of what it prepared; the graph keeps arguments of its own.
      const kept = prepared.copy();
      this.#recorder.takes(() => kept.launch(grid, perAxis));
      return;
    }
    prepared.launch(grid, perAxis);
  }

  capture(enqueue: () => void): CapturedWork {
    this.#faults.check();
    return this.#recorder.record(enqueue);
  }

  async sync(): Promise<void> {
    this.#faults.check();
    this.#recorder.refuse("sync()");
    this.#queue.flush();
    await this.device.queue.onSubmittedWorkDone();
    await this.#faults.settle();
  }

  async time(enqueue: () => void): Promise<number> {
    this.#faults.check();
    this.#recorder.refuse("time()");
    const seconds = await timed(this.#queue, enqueue);
    await this.#faults.settle();
    return seconds;
  }

  /** WebGPU tells no sizes of memory: `total` is the largest buffer. */
  memory(): { readonly free: number; readonly total: number } {
    const total = this.device.limits.maxBufferSize;
    return { free: Math.max(0, total - this.#allocated), total };
  }

  /** Submits what was enqueued, then ends the device, unless it is the caller's. */
  dispose(): void {
    if (this.#disposed) return;
    this.#queue.flush();
    this.#disposed = true;
    this.#faults.dispose();
    this.#transfers.dispose();
    if (this.#opened.own) this.device.destroy();
  }
}
