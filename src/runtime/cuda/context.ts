/**
 * @file One device's primary context with the one stream that all work goes through, and the first fault.
 *
 * A context is current per thread and other libraries in the process may change it, so every entry makes it current
 * again; that costs some tens of nanoseconds.
 */
import { DeviceError, DisposedError } from "../../errors.ts";
import type { Address, DriverLibrary, Status } from "./driver-library.ts";
import { LaunchHistory } from "./launch-history.ts";
import { check, describeStatus, isFault, status, statusError, statusName } from "./status.ts";

const streamNonBlocking = 1;

/** The driver's state for one device. */
export class DriverContext {
  readonly library: DriverLibrary;
  /** CUdevice. */
  readonly device: number;
  /** CUcontext. */
  readonly handle: Address;
  /** CUstream. */
  readonly stream: Address;
  readonly history: LaunchHistory = new LaunchHistory();
  #fault: DeviceError | undefined;
  #disposed = false;

  /** Retains the primary context and makes a stream. @throws DeviceError */
  constructor(library: DriverLibrary, device: number) {
    this.library = library;
    this.device = device;
    const out = new BigUint64Array(1);
    check(library, library.cuDevicePrimaryCtxRetain(out, device), "Opening the device");
    this.handle = Number(out[0]);
    try {
      check(library, library.cuCtxSetCurrent(this.handle), "Making the device current");
      check(library, library.cuStreamCreate(out, streamNonBlocking), "Creating a stream");
    } catch (error) {
      library.cuDevicePrimaryCtxRelease(device);
      throw error;
    }
    this.stream = Number(out[0]);
  }

  get disposed(): boolean {
    return this.#disposed;
  }

  /** The first device fault, after which nothing works. */
  get fault(): DeviceError | undefined {
    return this.#fault;
  }

  /** Makes the context current. @throws DisposedError, or DeviceError after a fault. */
  enter(): void {
    if (this.#disposed) throw new DisposedError("This CUDA device was disposed.");
    if (this.#fault !== undefined) throw this.afterFault();
    const code = this.library.cuCtxSetCurrent(this.handle);
    if (code !== status.success) this.fail(code, "Making the device current");
  }

  /** Throws unless the call succeeded; remembers the first fault. */
  check(code: Status, what: string): void {
    if (code !== status.success) this.fail(code, what);
  }

  /** @throws DeviceError for a call that failed. */
  fail(code: Status, what: string, advice?: string): never {
    if (isFault(code)) throw this.recordFault(code);
    throw statusError(this.library, code, what, advice);
  }

  /** The error for a fault that a call brought to light. */
  recordFault(code: Status): DeviceError {
    if (this.#fault !== undefined) return this.afterFault();
    this.#fault = new DeviceError(
      `The device stopped with ${describeStatus(this.library, code)}; ${this.history.describe()}.`,
      statusName(this.library, code),
    );
    return this.#fault;
  }

  /** The error of every call after the first fault. */
  private afterFault(): DeviceError {
    const first = this.#fault!;
    return new DeviceError(
      `The device cannot be used since an earlier fault, and the process must be restarted. ${first.message}`,
      first.status,
      { cause: first },
    );
  }

  /** Waits for the stream, blocking; statuses are ignored when the device is lost anyway. */
  drain(): void {
    this.library.cuCtxSetCurrent(this.handle);
    const code = this.library.cuStreamSynchronize(this.stream);
    if (code !== status.success) this.recordFault(code);
  }

  /** Destroys the stream and gives the context back. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.library.cuStreamDestroy(this.stream);
    this.library.cuDevicePrimaryCtxRelease(this.device);
  }
}
