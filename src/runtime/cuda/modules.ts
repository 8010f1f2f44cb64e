/** @file PTX text compiled and loaded by the driver. */
import { CompileError } from "../../errors.ts";
import type { Completions } from "./completions.ts";
import type { DriverContext } from "./context.ts";
import type { Address, Status } from "./driver-library.ts";
import { describeStatus, isFault, status } from "./status.ts";

const jitOption = {
  infoLogBuffer: 3,
  infoLogBytes: 4,
  errorLogBuffer: 5,
  errorLogBytes: 6,
  logVerbose: 12,
} as const;

const logBytes = 32 << 10;

/** Statuses that say that the text asks for more than this driver or device knows. */
const noBinaryForDevice = 209;
const unsupportedPtxVersion = 222;

/** A module in the device's memory. */
export class LoadedModule {
  readonly handle: Address;
  /** What the driver's compiler said; empty where it took the code from its cache. */
  readonly log: string;

  constructor(handle: Address, log: string) {
    this.handle = handle;
    this.log = log;
  }
}

/** Loads modules, and unloads those that nobody refers to any more. */
export class Modules {
  readonly #context: DriverContext;
  readonly #completions: Completions;
  readonly #handles: Set<Address> = new Set();
  readonly #forgotten: FinalizationRegistry<Address>;

  constructor(context: DriverContext, completions: Completions) {
    this.#context = context;
    this.#completions = completions;
    this.#forgotten = new FinalizationRegistry((handle) => this.#unload(handle));
  }

  /**
   * Compiles PTX and loads it. `name` is for messages. The context must be current; the thread compiles for as long as
   * it takes, since a context is current on one thread and the driver has no other way to be told.
   * @throws CompileError with the log of the driver's compiler
   */
  load(name: string, text: string): LoadedModule {
    const { library } = this.#context;
    const image = new TextEncoder().encode(`${text}\0`);
    const info = library.hostBlock(logBytes, 8);
    const errors = library.hostBlock(logBytes, 8);
    const options = Int32Array.of(
      jitOption.infoLogBuffer,
      jitOption.infoLogBytes,
      jitOption.errorLogBuffer,
      jitOption.errorLogBytes,
      jitOption.logVerbose,
    );
    const values = BigUint64Array.of(
      BigInt(info.address),
      BigInt(logBytes),
      BigInt(errors.address),
      BigInt(logBytes),
      1n,
    );
    const out = new BigUint64Array(1);
    const code = library.cuModuleLoadDataEx(out, image, options.length, options, values);
    // Reading the logs here also keeps both blocks alive through the call.
    const log = [readLog(errors.bytes), readLog(info.bytes)].filter((part) => part !== "").join("\n");
    if (code !== status.success) throw this.#refusal(code, name, text, log);
    const handle = Number(out[0]);
    this.#handles.add(handle);
    const loaded = new LoadedModule(handle, log);
    this.#forgotten.register(loaded, handle);
    return loaded;
  }

  /** Unloads everything. The stream must be idle. */
  dispose(): void {
    for (const handle of this.#handles) this.#context.library.cuModuleUnload(handle);
    this.#handles.clear();
  }

  #refusal(code: Status, name: string, text: string, log: string): Error {
    const { library } = this.#context;
    if (isFault(code)) return this.#context.recordFault(code);
    const what = `The driver refused kernel ${name}: ${describeStatus(library, code)}.`;
    const first = log.split("\n").find((line) => /error|fatal/i.test(line));
    const detail = first === undefined ? "" : ` ${first.trim()}`;
    return new CompileError(what + detail + advice(code, text), log);
  }

  #unload(handle: Address): void {
    if (this.#context.disposed || this.#context.fault !== undefined) return;
    if (!this.#handles.delete(handle)) return;
    try {
      this.#context.enter();
      this.#completions.after((fault) => {
        if (fault === undefined) this.#context.library.cuModuleUnload(handle);
      });
    } catch (error) {
      // Called by the garbage collector, which has nobody to tell; the next wait tells of a fault.
      if (this.#context.fault === undefined) throw error;
    }
  }
}

function advice(code: Status, text: string): string {
  const version = /^\s*\.version\s+(\S+)/m.exec(text)?.[1];
  const target = /^\s*\.target\s+(\S+)/m.exec(text)?.[1];
  switch (code) {
    case unsupportedPtxVersion:
      return ` The text is PTX ${version ?? "of an unknown version"}; install a newer NVIDIA driver.`;
    case noBinaryForDevice:
      return ` The text is for ${target ?? "an unknown target"}, which this device cannot run.`;
    default:
      return "";
  }
}

/** The driver ends the text with a zero byte. */
function readLog(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  return new TextDecoder().decode(bytes.subarray(0, end < 0 ? bytes.length : end)).trim();
}
