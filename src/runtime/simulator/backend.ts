/**
 * @file The simulator as a device: the same intermediate representation on any machine, exact, failing on what a GPU lets
 * pass. Work is enqueued and done by {@link Backend.sync} and {@link Backend.read}, in slices between which the event loop
 * runs.
 */
import { AbortedError, ArgumentError, DeviceError, DisposedError } from "../../errors.ts";
import type { TargetFacts } from "../../target/facts.ts";
import { type SimulatorFactsOptions, simulatorFacts } from "../../target/simulator.ts";
import type {
  ArgumentValue,
  Backend,
  BackendBuffer,
  CapturedWork,
  Executable,
  Module,
  PreparedLaunch,
} from "../backend.ts";
import { Recorder } from "../recorder.ts";
import { type ArgumentBinding, asBuffer, BufferBinding, bindArguments, TensorBinding } from "./arguments.ts";
import { SimulatorBuffer } from "./buffers.ts";
import { Counters } from "./counters.ts";
import { shadowBuffers } from "./launch-shadows.ts";
import { loadProgram } from "./load-program.ts";
import type { Program } from "./program.ts";
import { LaunchRun } from "./scheduler.ts";
import { Launch, type Report, type Schedule } from "./state.ts";

/** How far a launch is. */
export interface SimulatorProgress {
  readonly kernel: string;
  /** Blocks. */
  readonly done: number;
  readonly total: number;
}

export interface SimulatorOptions extends SimulatorFactsOptions {
  readonly name?: string;
  /** Report faults. Default true. Without it kernels run several times faster. */
  readonly checks?: boolean;
  /** Generate text that counts, for `profile`. Default false. */
  readonly counters?: boolean;
  /** Make integer division by zero and MIN / -1 errors instead of reports. Default false. */
  readonly strictIntegers?: boolean;
  /** In what order warps, lanes and asynchronous work are taken. Default "forward". */
  readonly schedule?: Schedule;
  /** Bytes of device memory. Default: what facts say. */
  readonly memoryBytes?: number;
  /** Called between slices of long launches. */
  readonly onProgress?: (progress: SimulatorProgress) => void;
  /** What kernels print. Default: console.log. */
  readonly onPrint?: (text: string) => void;
}

/** A backend that runs kernels in JavaScript. */
export interface SimulatorBackend extends Backend {
  readonly kind: "simulator";
  /** What code generation should be asked for. */
  readonly mode: { readonly checks: boolean; readonly counters: boolean };
  /** Faults with defined results, newest last; at most 1000 are kept. */
  readonly reports: readonly Report[];
  /** Aborts work in progress and to come when the signal does; undefined for none. */
  setSignal(signal: AbortSignal | undefined): void;
  /**
   * Runs blocks of a launch (all for undefined) and counts; after earlier work, and with its effects on memory. The
   * module's text must have been generated with counters.
   */
  profile(
    executable: Executable,
    grid: readonly [number, number, number],
    prepared: PreparedLaunch,
    options?: { readonly blocks?: readonly (readonly [number, number, number])[] | undefined },
  ): Promise<Counters>;
}

/** Makes a simulator. */
export function createSimulatorBackend(options: SimulatorOptions = {}): SimulatorBackend {
  return new Simulator(options);
}

interface SimulatorExecutable extends Executable {
  readonly program: Program;
}

class SimulatorLaunchArguments implements PreparedLaunch {
  disposed = false;
  constructor(
    readonly program: Program,
    readonly bindings: readonly ArgumentBinding[],
  ) {}
  dispose(): void {
    this.disposed = true;
  }
}

/** Work in the queue. */
type Work =
  | { readonly kind: "action"; readonly run: () => void }
  | { readonly kind: "launch"; readonly start: () => LaunchRun };

/** Milliseconds of work between two looks at the event loop. */
const slice = 50;
const mostReports = 1000;

class Simulator implements SimulatorBackend {
  readonly kind = "simulator";
  readonly name: string;
  readonly facts: TargetFacts;
  readonly mode: { readonly checks: boolean; readonly counters: boolean };
  readonly reports: Report[] = [];
  private readonly queue: Work[] = [];
  private running: LaunchRun | undefined;
  private pumping: Promise<void> | undefined;
  private fault: { readonly error: unknown; readonly what: string; told: boolean } | undefined;
  private disposed = false;
  private allocated = 0;
  private launches = 0;
  private time_ = 0;
  private signal: AbortSignal | undefined;
  private readonly recorder: Recorder = new Recorder();

  constructor(private readonly options: SimulatorOptions) {
    this.facts = simulatorFacts(options);
    this.name = options.name ?? "simulator";
    this.mode = { checks: options.checks ?? true, counters: options.counters ?? false };
  }

  setSignal(signal: AbortSignal | undefined): void {
    this.signal = signal;
  }

  // Memory --------------------------------------------------------------------------------------------------------------

  allocate(bytes: number): BackendBuffer {
    this.refuseDisposed();
    this.recorder.refuse("allocating memory");
    if (!Number.isSafeInteger(bytes) || bytes < 0)
      throw new ArgumentError(`an allocation of ${bytes} bytes; a whole number is wanted`);
    const { free } = this.memory();
    if (bytes > free)
      throw new DeviceError(
        `out of memory: ${bytes} bytes asked for, ${free} of the simulator's ${this.totalBytes} are free`,
        "outOfMemory",
      );
    let buffer: SimulatorBuffer;
    try {
      buffer = new SimulatorBuffer(bytes);
    } catch (cause) {
      throw new DeviceError(`out of memory: JavaScript could not give ${bytes} bytes`, "outOfMemory", {
        cause,
      });
    }
    this.allocated += bytes;
    return buffer;
  }

  free(buffer: BackendBuffer): void {
    const own = asBuffer(buffer);
    if (own.freed) return;
    this.recorder.refuse("disposing memory");
    own.freed = true;
    this.allocated -= own.bytes;
  }

  write(buffer: BackendBuffer, byteOffset: number, data: Uint8Array): void {
    const own = this.checkRange(buffer, byteOffset, data.byteLength);
    this.recorder.refuse("a write");
    if (this.isIdle) own.octets.set(data, byteOffset);
    else {
      const copy = data.slice();
      this.enqueue(() => own.octets.set(copy, byteOffset));
    }
  }

  async read(buffer: BackendBuffer, byteOffset: number, target: Uint8Array): Promise<void> {
    const own = this.checkRange(buffer, byteOffset, target.byteLength);
    this.recorder.refuse("a read");
    const snapshot: { bytes: Uint8Array | undefined } = { bytes: undefined };
    this.enqueue(() => {
      snapshot.bytes = own.octets.slice(byteOffset, byteOffset + target.byteLength);
    });
    await this.sync();
    target.set(snapshot.bytes!);
  }

  copy(
    source: BackendBuffer,
    sourceOffset: number,
    target: BackendBuffer,
    targetOffset: number,
    bytes: number,
  ): void {
    const from = this.checkRange(source, sourceOffset, bytes);
    const to = this.checkRange(target, targetOffset, bytes);
    if (this.recorder.takes(() => this.copy(source, sourceOffset, target, targetOffset, bytes))) return;
    this.enqueue(() => to.octets.set(from.octets.subarray(sourceOffset, sourceOffset + bytes), targetOffset));
  }

  fill(buffer: BackendBuffer, byteOffset: number, bytes: number, pattern: number): void {
    const own = this.checkRange(buffer, byteOffset, bytes);
    if (this.recorder.takes(() => this.fill(buffer, byteOffset, bytes, pattern))) return;
    this.enqueue(() => {
      for (let byte = 0; byte < bytes; byte++)
        own.octets[byteOffset + byte] = (pattern >>> (8 * (byte & 3))) & 0xff;
    });
  }

  memory(): { readonly free: number; readonly total: number } {
    return { free: this.totalBytes - this.allocated, total: this.totalBytes };
  }

  private get totalBytes(): number {
    return this.options.memoryBytes ?? this.facts.machine.memoryBytes;
  }

  private checkRange(buffer: BackendBuffer, byteOffset: number, bytes: number): SimulatorBuffer {
    this.refuseDisposed();
    const own = asBuffer(buffer);
    if (own.freed) throw new DisposedError("a buffer is used after it was freed");
    if (!(byteOffset >= 0 && bytes >= 0 && byteOffset + bytes <= own.bytes)) {
      throw new ArgumentError(`bytes ${byteOffset} to ${byteOffset + bytes} of a buffer of ${own.bytes}`);
    }
    return own;
  }

  // Launches ------------------------------------------------------------------------------------------------------------

  async load(module: Module): Promise<Executable> {
    this.refuseDisposed();
    const program = loadProgram(module);
    const executable: SimulatorExecutable = {
      module,
      program,
      registersPerThread: undefined,
      spilledBytes: undefined,
      blocksPerMultiprocessor: undefined,
    };
    return executable;
  }

  prepare(executable: Executable, values: readonly ArgumentValue[]): PreparedLaunch {
    this.refuseDisposed();
    const { program, module } = executable as SimulatorExecutable;
    return new SimulatorLaunchArguments(program, bindArguments(program.kernel, module.slots, values));
  }

  launch(executable: Executable, grid: readonly [number, number, number], prepared: PreparedLaunch): void {
    if (this.recorder.active) {
      // The caller may dispose of what it prepared; the graph keeps arguments of its own.
      const { program, bindings } = prepared as SimulatorLaunchArguments;
      const kept = new SimulatorLaunchArguments(program, bindings);
      this.recorder.takes(() => this.launch(executable, grid, kept));
      return;
    }
    this.enqueueLaunch(executable, grid, prepared, undefined, undefined);
  }

  async profile(
    executable: Executable,
    grid: readonly [number, number, number],
    prepared: PreparedLaunch,
    { blocks }: { readonly blocks?: readonly (readonly [number, number, number])[] | undefined } = {},
  ): Promise<Counters> {
    if (!(executable as SimulatorExecutable).program.generated.counters) {
      throw new ArgumentError(
        "profiling needs text generated with counters; make the simulator with { counters: true }",
      );
    }
    const counters = new Counters();
    this.enqueueLaunch(executable, grid, prepared, blocks, counters);
    await this.sync();
    return counters;
  }

  private enqueueLaunch(
    executable: Executable,
    grid: readonly [number, number, number],
    prepared: PreparedLaunch,
    blocks: readonly (readonly [number, number, number])[] | undefined,
    counters: Counters | undefined,
  ): void {
    this.refuseDisposed();
    const { program } = executable as SimulatorExecutable;
    const given = prepared as SimulatorLaunchArguments;
    if (given.disposed)
      throw new DisposedError(`the arguments of kernel ${program.kernel.name} were disposed`);
    if (given.bindings.some((binding) => typeof binding === "object" && binding.buffer.freed))
      throw new DisposedError(`the launch of kernel ${program.kernel.name} uses an array that was disposed`);
    this.checkGrid(program, grid);
    const number = ++this.launches;
    const start = (): LaunchRun => {
      shadowBuffers(program, given.bindings);
      const launch = new Launch(program, number, grid[0], grid[1], grid[2], given.bindings, {
        startTime: this.time_,
        schedule: this.options.schedule ?? "forward",
        strictIntegers: this.options.strictIntegers ?? false,
        counters: counters ?? (program.generated.counters ? new Counters() : undefined),
        print: this.options.onPrint ?? ((text) => console.log(text)),
        report: (report) => {
          this.reports.push(report);
          if (this.reports.length > mostReports) this.reports.shift();
        },
      });
      return new LaunchRun(launch, blocks);
    };
    this.queue.push({ kind: "launch", start });
  }

  private checkGrid({ kernel }: Program, grid: readonly [number, number, number]): void {
    const { gridX, gridY, gridZ } = this.facts.limits;
    const limits = [gridX, gridY, gridZ] as const;
    grid.forEach((extent, dimension) => {
      if (!Number.isInteger(extent) || extent < 1 || extent > limits[dimension]!) {
        throw new ArgumentError(
          `kernel ${kernel.name}: a grid of ${grid.join(" x ")} blocks; 1 to ${limits.join(" x ")} are possible`,
        );
      }
      const together = kernel.cluster?.[dimension] ?? 1;
      if (extent % together !== 0) {
        throw new ArgumentError(
          `kernel ${kernel.name}: a grid of ${grid.join(" x ")} blocks, no multiple of its clusters of ${kernel.cluster!.join(" x ")}`,
        );
      }
    });
  }

  // The queue -----------------------------------------------------------------------------------------------------------

  private get isIdle(): boolean {
    return this.queue.length === 0 && this.running === undefined;
  }

  private enqueue(run: () => void): void {
    if (this.isIdle && this.fault === undefined) run();
    else this.queue.push({ kind: "action", run });
  }

  capture(enqueue: () => void): CapturedWork {
    this.refuseDisposed();
    return this.recorder.record(enqueue);
  }

  async sync(): Promise<void> {
    this.refuseDisposed();
    this.recorder.refuse("sync()");
    this.refuseFaulty();
    this.pumping ??= this.pump().finally(() => {
      this.pumping = undefined;
    });
    await this.pumping;
  }

  private async pump(): Promise<void> {
    for (;;) {
      const deadline = performance.now() + slice;
      while (performance.now() < deadline) {
        if (!this.isIdle) this.step(deadline);
        else return;
      }
      this.reportProgress();
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
  }

  /** One piece of work; a fault ends all that was enqueued. */
  private step(deadline: number): void {
    if (this.signal?.aborted === true) {
      this.drop();
      throw new AbortedError("work on the simulator was aborted", { cause: this.signal.reason });
    }
    if (this.running === undefined) {
      const work = this.queue.shift()!;
      if (work.kind === "action") {
        work.run();
        return;
      }
      this.running = work.start();
    }
    try {
      if (this.running.advance(deadline)) this.finishLaunch();
    } catch (error) {
      const { launch } = this.running;
      this.fault = {
        error,
        what: `launch ${launch.number} of kernel ${launch.program.kernel.name}`,
        told: true,
      };
      this.finishLaunch();
      this.drop();
      throw error;
    }
  }

  private finishLaunch(): void {
    const { launch } = this.running!;
    this.time_ = launch.now + 1;
    // Times stay far below the mark of engines.
    if (this.time_ > 2 ** 29) this.time_ = 0;
    for (const binding of launch.args)
      if (binding instanceof BufferBinding || binding instanceof TensorBinding) binding.shadow = undefined;
    this.running = undefined;
  }

  private drop(): void {
    this.running = undefined;
    this.queue.length = 0;
  }

  private reportProgress(): void {
    const { onProgress } = this.options;
    if (onProgress === undefined || this.running === undefined) return;
    onProgress({ kernel: this.running.launch.program.kernel.name, ...this.running.progress });
  }

  private refuseFaulty(): void {
    if (this.fault === undefined) return;
    const { error, what } = this.fault;
    throw new DeviceError(
      `the simulator failed before, in ${what}: ${error instanceof Error ? error.message : String(error)}`,
      "fault",
      { cause: error },
    );
  }

  async time(enqueue: () => void): Promise<number> {
    this.recorder.refuse("time()");
    await this.sync();
    const before = performance.now();
    enqueue();
    await this.sync();
    return (performance.now() - before) / 1000;
  }

  private refuseDisposed(): void {
    if (this.disposed) throw new DisposedError("the simulator was disposed");
  }

  dispose(): void {
    this.disposed = true;
    this.drop();
  }
}
