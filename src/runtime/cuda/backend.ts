/** @file The CUDA backend: memory, modules and launches of one device through NVIDIA's driver alone. */
import { AbortedError, ArgumentError, DeviceError, DisposedError } from "../../errors.ts";
import type { TargetFacts } from "../../target/facts.ts";
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
import { type ArgumentLayout, layOut, nativeParameter } from "./arguments.ts";
import { isUnavailable, type Unavailable, unavailable } from "./availability.ts";
import { Completions } from "./completions.ts";
import { DriverContext } from "./context.ts";
import { type CudaDevice, deviceHandle, listDevices, openDriver } from "./devices.ts";
import type { Address, DriverLibrary, HostBlock } from "./driver-library.ts";
import { createTimingEvent } from "./events.ts";
import { cudaFacts } from "./facts.ts";
import { fillRange } from "./fill.ts";
import { GraphCapture } from "./graph.ts";
import { type KernelFunction, openKernel } from "./kernel-function.ts";
import { CudaPreparedLaunch, Launcher } from "./launch.ts";
import { type CudaBuffer, DeviceMemory } from "./memory.ts";
import { Modules } from "./modules.ts";
import { PtxProgram } from "./ptx-program.ts";
import { Downloads, defaultStaging, type StagingSizes, Uploads } from "./staging.ts";

/** Options of {@link createCudaBackend}. */
export interface CudaOptions {
  /** Ordinal of the device; 0 when not given. */
  readonly device?: number | undefined;
  /** In place of the installed driver, for tests. */
  readonly library?: DriverLibrary | undefined;
  /** Sizes of the page-locked memory for copies. */
  readonly staging?: StagingSizes | undefined;
}

/** A kernel loaded from a {@link Module}. */
export interface CudaExecutable extends Executable {
  readonly kernel: KernelFunction;
  readonly layout: ArgumentLayout;
  /** What the driver's compiler said; empty where the code came from the driver's cache. */
  readonly log: string;
}

/** A CUDA device, or why there is none: a missing or broken driver is an answer, not an exception. */
export async function createCudaBackend(options: CudaOptions = {}): Promise<CudaBackend | Unavailable> {
  const library = await openDriver(options.library);
  if (isUnavailable(library)) return library;
  const index = options.device ?? 0;
  try {
    const devices = listDevices(library);
    const device = devices[index];
    if (device === undefined) {
      return unavailable(
        `CUDA device ${index} was asked for; the driver shows ${devices.length} devices, counted from 0.`,
        devices.length === 0
          ? "Check that `nvidia-smi` lists a device and that CUDA_VISIBLE_DEVICES does not hide it."
          : `Ask for one of 0 to ${devices.length - 1}.`,
      );
    }
    const facts = cudaFacts(device);
    if (isUnavailable(facts)) return facts;
    return new CudaBackend(library, device, facts, options.staging ?? defaultStaging);
  } catch (error) {
    if (!(error instanceof DeviceError)) throw error;
    return unavailable(
      `CUDA device ${index} cannot be opened: ${error.message}`,
      "See `nvidia-smi`: the device may be in use exclusively, out of memory or in a bad state.",
    );
  }
}

/** {@link Backend} over libcuda. Power users find the native handles here. */
export class CudaBackend implements Backend {
  readonly kind = "cuda";
  readonly name: string;
  readonly facts: TargetFacts;
  readonly device: CudaDevice;
  readonly #context: DriverContext;
  readonly #completions: Completions;
  readonly #memory: DeviceMemory;
  readonly #uploads: Uploads;
  readonly #downloads: Downloads;
  readonly #modules: Modules;
  readonly #graphs: GraphCapture;
  readonly #launcher: Launcher;
  readonly #executables: Map<string, WeakRef<CudaExecutable>> = new Map();

  /** @throws DeviceError when the driver cannot open the device; see {@link createCudaBackend} */
  constructor(library: DriverLibrary, device: CudaDevice, facts: TargetFacts, staging: StagingSizes) {
    this.device = device;
    this.name = device.name;
    this.facts = facts;
    this.#context = new DriverContext(library, deviceHandle(library, device.index));
    this.#completions = new Completions(this.#context);
    this.#memory = new DeviceMemory(this.#context, this.#completions);
    this.#uploads = new Uploads(this.#context, this.#completions, staging);
    this.#downloads = new Downloads(this.#context, this.#completions, this.#memory, staging);
    this.#modules = new Modules(this.#context, this.#completions);
    this.#graphs = new GraphCapture(this.#context);
    this.#launcher = new Launcher(this.#context, this.#memory, this.#graphs, facts.limits);
  }

  /** CUstream that all work goes through, for other libraries' calls in order with it. */
  get stream(): Address {
    return this.#context.stream;
  }

  /** Makes the device's context current on this thread, before calls of other libraries. */
  makeCurrent(): void {
    this.#context.enter();
  }

  /** Host memory at a fixed address, for other libraries' calls; see {@link HostBlock}. */
  hostBlock(bytes: number, alignment: number): HostBlock {
    return this.#context.library.hostBlock(bytes, alignment);
  }

  /** CUdeviceptr of an allocation of this device. */
  addressOf(buffer: BackendBuffer): Address {
    return this.#memory.own(buffer, "The address").address;
  }

  allocate(bytes: number): BackendBuffer {
    this.#graphs.refuse("allocating memory");
    return this.#memory.allocate(bytes);
  }

  free(buffer: BackendBuffer): void {
    if (this.#context.disposed) return;
    this.#graphs.refuse("disposing memory");
    this.#memory.free(buffer);
  }

  write(buffer: BackendBuffer, byteOffset: number, data: Uint8Array): void {
    this.#graphs.refuse("a write");
    const target = this.#memory.resolve(buffer, byteOffset, data.length, "A write");
    this.#context.enter();
    this.#uploads.write(target, data);
  }

  async read(buffer: BackendBuffer, byteOffset: number, target: Uint8Array): Promise<void> {
    this.#graphs.refuse("a read");
    const source = this.#memory.resolve(buffer, byteOffset, target.length, "A read");
    this.#context.enter();
    await this.#downloads.read(source, target);
  }

  copy(
    source: BackendBuffer,
    sourceOffset: number,
    target: BackendBuffer,
    targetOffset: number,
    bytes: number,
  ): void {
    const from = this.#memory.resolve(source, sourceOffset, bytes, "The source of a copy");
    const to = this.#memory.resolve(target, targetOffset, bytes, "The target of a copy");
    if (bytes === 0) return;
    if (from < to + bytes && to < from + bytes) {
      throw new ArgumentError(
        `A copy of ${bytes} bytes overlaps itself: it goes from byte ${sourceOffset} to byte ${targetOffset} of one allocation. Copy through another array.`,
      );
    }
    this.#context.enter();
    this.#graphs.uses(source as CudaBuffer, target as CudaBuffer);
    const { library, stream } = this.#context;
    this.#context.check(
      library.cuMemcpyDtoDAsync(to, from, bytes, stream),
      `Copying ${bytes} bytes on the device`,
    );
  }

  /** `pattern` is a 32-bit word that is repeated from `byteOffset` on, lowest byte first. */
  fill(buffer: BackendBuffer, byteOffset: number, bytes: number, pattern: number): void {
    const target = this.#memory.resolve(buffer, byteOffset, bytes, "A fill");
    this.#context.enter();
    this.#graphs.uses(buffer as CudaBuffer);
    fillRange(this.#context, target, bytes, pattern);
  }

  /** Compiles on the calling thread; one executable per hash for as long as somebody holds it. */
  async load(module: Module, options: LoadOptions = {}): Promise<CudaExecutable> {
    await nextTurn();
    if (options.signal?.aborted === true) {
      throw new AbortedError(`Loading kernel ${module.name} was stopped.`, { cause: options.signal.reason });
    }
    const known = this.#executables.get(module.hash)?.deref();
    if (known !== undefined) return known;
    this.#context.enter();
    const executable = this.#open(module);
    this.#executables.set(module.hash, new WeakRef(executable));
    return executable;
  }

  prepare(executable: Executable, values: readonly ArgumentValue[]): CudaPreparedLaunch {
    const { kernel, layout } = this.#own(executable);
    this.#context.enter();
    return this.#launcher.prepare(kernel, layout, values);
  }

  launch(executable: Executable, grid: readonly [number, number, number], prepared: PreparedLaunch): void {
    if (
      !(prepared instanceof CudaPreparedLaunch) ||
      prepared.kernel !== (executable as CudaExecutable).kernel
    ) {
      throw new ArgumentError(
        `The prepared launch given for kernel ${executable.module.name} was prepared for another one.`,
      );
    }
    this.#launcher.launch(prepared, grid[0], grid[1], grid[2]);
  }

  /** Compiles PTX text that did not come from here, for its kernels to be launched by hand. @throws CompileError */
  loadPtx(text: string, name = "of a given PTX text"): PtxProgram {
    this.#context.enter();
    const module = this.#modules.load(name, text);
    return new PtxProgram(this.#context, this.#launcher, module, this.facts);
  }

  capture(enqueue: () => void): CapturedWork {
    this.#context.enter();
    return this.#graphs.capture(enqueue);
  }

  async sync(): Promise<void> {
    this.#graphs.refuse("sync()");
    this.#context.enter();
    await this.#completions.reached();
  }

  async time(enqueue: () => void): Promise<number> {
    this.#graphs.refuse("time()");
    this.#context.enter();
    const { library, stream } = this.#context;
    const start = createTimingEvent(this.#context);
    const end = createTimingEvent(this.#context);
    try {
      this.#context.check(library.cuEventRecord(start, stream), "Starting the clock");
      enqueue();
      this.#context.enter();
      this.#context.check(library.cuEventRecord(end, stream), "Stopping the clock");
      await this.#completions.reached();
      const milliseconds = new Float32Array(1);
      this.#context.check(library.cuEventElapsedTime(milliseconds, start, end), "Reading the clock");
      return milliseconds[0]! / 1000;
    } finally {
      library.cuEventDestroy(start);
      library.cuEventDestroy(end);
    }
  }

  memory(): { readonly free: number; readonly total: number } {
    return this.#memory.info();
  }

  /** Waits for the work enqueued, blocking, then gives everything back. */
  dispose(): void {
    if (this.#context.disposed) return;
    this.#context.drain();
    if (this.#context.fault === undefined) this.#completions.drain();
    this.#completions.dispose(this.#context.fault ?? new DisposedError("The device was disposed."));
    this.#uploads.dispose();
    this.#downloads.dispose();
    this.#modules.dispose();
    this.#memory.dispose();
    this.#executables.clear();
    this.#context.dispose();
  }

  #own(executable: Executable): CudaExecutable {
    if (!("kernel" in executable && "layout" in executable)) {
      throw new ArgumentError(`Kernel ${executable.module.name} was loaded for another device.`);
    }
    return executable as CudaExecutable;
  }

  #open(module: Module): CudaExecutable {
    const { ir } = module;
    const loaded = this.#modules.load(module.name, module.text);
    const shape = {
      block: ir.block,
      cluster: ir.cluster,
      dynamicSharedBytes: usesDynamicShared(module.text) ? ir.sharedBytes : 0,
    };
    const kernel = openKernel(this.#context, loaded, ir.name, shape, this.facts.limits.sharedBytes);
    return Object.freeze({
      module,
      kernel,
      layout: layOut(module.slots.map(nativeParameter)),
      log: loaded.log,
      registersPerThread: kernel.registersPerThread,
      spilledBytes: kernel.localBytes,
      blocksPerMultiprocessor: kernel.blocksPerMultiprocessor,
    });
  }
}

/** Whether PTX takes its shared memory from the launch and not from a declaration with a size. */
function usesDynamicShared(text: string): boolean {
  return /^\s*\.extern\s+\.shared\b/m.test(text);
}

/** Lets what is due run before a compilation holds the thread. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
