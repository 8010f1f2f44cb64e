/**
 * @file Device memory, allocated and freed in stream order: what is freed becomes free after the work enqueued before.
 *
 * Drivers with memory pools do that themselves (cuMemAllocFromPoolAsync); the pool is this backend's own, keeps what it
 * has, and goes with the backend. Without pools a free waits in {@link Completions} for its turn.
 */
import { ArgumentError, DeviceError, DisposedError } from "../../errors.ts";
import type { BackendBuffer } from "../backend.ts";
import type { Completions } from "./completions.ts";
import type { DriverContext } from "./context.ts";
import type { Address } from "./driver-library.ts";
import { status } from "./status.ts";

const memoryPoolsSupported = 115;
const poolAttribute = { releaseThreshold: 4, reserved: 5, used: 7 } as const;

/** An allocation on a CUDA device. */
export class CudaBuffer implements BackendBuffer {
  readonly bytes: number;
  /** Device address; 0 for an allocation of no bytes. */
  readonly address: Address;
  /** Whose memory it is. */
  readonly owner: DeviceMemory;
  #freed = false;

  constructor(owner: DeviceMemory, address: Address, bytes: number) {
    this.owner = owner;
    this.address = address;
    this.bytes = bytes;
  }

  get freed(): boolean {
    return this.#freed;
  }

  markFreed(): void {
    this.#freed = true;
  }
}

/** Memory of one device. */
export class DeviceMemory {
  readonly #context: DriverContext;
  readonly #completions: Completions;
  readonly #pool: Address | undefined;
  readonly #addresses: Set<Address> = new Set();
  readonly #forgotten: FinalizationRegistry<Address>;

  /** The context must be current. */
  constructor(context: DriverContext, completions: Completions) {
    this.#context = context;
    this.#completions = completions;
    this.#pool = createPool(context);
    this.#forgotten = new FinalizationRegistry((address) => this.#collect(address));
  }

  /** Whether frees are ordered by the driver. */
  get pooled(): boolean {
    return this.#pool !== undefined;
  }

  /** Uninitialised memory. @throws DeviceError when the device has not that much left. */
  allocate(bytes: number): CudaBuffer {
    if (!Number.isSafeInteger(bytes) || bytes < 0) {
      throw new ArgumentError(
        `An allocation of ${bytes} bytes was asked for; give a whole number from 0 on.`,
      );
    }
    this.#context.enter();
    this.#completions.drain();
    if (bytes === 0) return new CudaBuffer(this, 0, 0);
    const address = this.#allocate(bytes);
    this.#addresses.add(address);
    const buffer = new CudaBuffer(this, address, bytes);
    this.#forgotten.register(buffer, address, buffer);
    return buffer;
  }

  /**
   * Frees after the work already enqueued. A second call does nothing, nor does one after disposal; a fault is left for
   * the next wait to tell. @throws ArgumentError for another device's buffer
   */
  free(buffer: BackendBuffer): void {
    if (buffer instanceof CudaBuffer && buffer.owner === this && buffer.freed) return;
    const own = this.own(buffer, "A disposal");
    own.markFreed();
    this.#forgotten.unregister(own);
    this.#collect(own.address);
  }

  /**
   * The device address of a range. @throws DisposedError for a freed buffer, ArgumentError for another device's buffer
   * or a range outside it.
   */
  resolve(buffer: BackendBuffer, byteOffset: number, bytes: number, what: string): Address {
    const own = this.own(buffer, what);
    if (!(byteOffset >= 0 && bytes >= 0 && byteOffset + bytes <= own.bytes)) {
      throw new ArgumentError(
        `${what} reaches from byte ${byteOffset} over ${bytes} bytes, outside an allocation of ${own.bytes} bytes.`,
      );
    }
    if (!Number.isInteger(byteOffset) || !Number.isInteger(bytes)) {
      throw new ArgumentError(`${what} has a fractional byte offset or size: ${byteOffset}, ${bytes}.`);
    }
    return own.address + byteOffset;
  }

  /** The buffer as this device's own, still allocated. @throws DisposedError, ArgumentError */
  own(buffer: BackendBuffer, what: string): CudaBuffer {
    if (!(buffer instanceof CudaBuffer) || buffer.owner !== this) {
      throw new ArgumentError(`${what} uses memory of another device; copy it over through the host.`);
    }
    if (buffer.freed) throw new DisposedError(`${what} uses an array that was disposed.`);
    return buffer;
  }

  /** Bytes that an allocation can get, and bytes of the device. */
  info(): { readonly free: number; readonly total: number } {
    this.#context.enter();
    this.#completions.drain();
    const free = new BigUint64Array(1);
    const total = new BigUint64Array(1);
    this.#context.check(this.#context.library.cuMemGetInfo(free, total), "Asking for free memory");
    const idle = this.#poolBytes(poolAttribute.reserved) - this.#poolBytes(poolAttribute.used);
    return { free: Number(free[0]) + Math.max(0, idle), total: Number(total[0]) };
  }

  /** Gives everything back. The stream must be idle. */
  dispose(): void {
    const { library, stream } = this.#context;
    for (const address of this.#addresses) {
      if (this.#pool === undefined) library.cuMemFree(address);
      else library.cuMemFreeAsync!(address, stream);
    }
    this.#addresses.clear();
    if (this.#pool !== undefined) {
      library.cuStreamSynchronize(stream);
      library.cuMemPoolDestroy!(this.#pool);
    }
  }

  #allocate(bytes: number): Address {
    const out = new BigUint64Array(1);
    let code = this.#tryAllocate(out, bytes);
    if (code === status.outOfMemory) {
      this.#reclaim();
      code = this.#tryAllocate(out, bytes);
    }
    if (code === status.outOfMemory) {
      const { free, total } = this.info();
      throw new DeviceError(
        `${bytes} bytes were asked for, ${free} of the device's ${total} are free. Dispose arrays that are no longer needed, or work in parts.`,
        this.#context.library.errorName(code) ?? "",
      );
    }
    this.#context.check(code, `Allocating ${bytes} bytes`);
    return Number(out[0]);
  }

  #tryAllocate(out: BigUint64Array, bytes: number): number {
    const { library, stream } = this.#context;
    return this.#pool === undefined
      ? library.cuMemAlloc(out, bytes)
      : library.cuMemAllocFromPoolAsync!(out, bytes, this.#pool, stream);
  }

  /** Waits for pending frees and returns what the pool holds without use. */
  #reclaim(): void {
    const { library, stream } = this.#context;
    this.#context.check(library.cuStreamSynchronize(stream), "Waiting for memory to come free");
    this.#completions.drain();
    if (this.#pool !== undefined) library.cuMemPoolTrimTo!(this.#pool, 0);
  }

  /** For disposal and for the garbage collector, neither of which wants to hear of a fault. */
  #collect(address: Address): void {
    if (address === 0 || this.#context.disposed || this.#context.fault !== undefined) return;
    if (!this.#addresses.delete(address)) return;
    const { library, stream } = this.#context;
    try {
      this.#context.enter();
      if (this.#pool !== undefined) {
        this.#context.check(library.cuMemFreeAsync!(address, stream), "Freeing memory");
      } else {
        this.#completions.after((fault) => {
          if (fault === undefined) library.cuMemFree(address);
        });
      }
    } catch (error) {
      if (this.#context.fault === undefined) throw error;
    }
  }

  #poolBytes(attribute: number): number {
    if (this.#pool === undefined) return 0;
    const value = new BigUint64Array(1);
    const code = this.#context.library.cuMemPoolGetAttribute!(this.#pool, attribute, value);
    return code === status.success ? Number(value[0]) : 0;
  }
}

/** A pool on the context's device that keeps freed memory for the next allocation; undefined where there are none. */
function createPool(context: DriverContext): Address | undefined {
  const { library, device } = context;
  if (
    library.cuMemPoolCreate === undefined ||
    library.cuMemPoolDestroy === undefined ||
    library.cuMemPoolSetAttribute === undefined ||
    library.cuMemPoolGetAttribute === undefined ||
    library.cuMemPoolTrimTo === undefined ||
    library.cuMemAllocFromPoolAsync === undefined ||
    library.cuMemFreeAsync === undefined
  ) {
    return undefined;
  }
  const supported = new Int32Array(1);
  const asked = library.cuDeviceGetAttribute(supported, memoryPoolsSupported, device);
  if (asked !== status.success || supported[0] === 0) return undefined;
  const pool = new BigUint64Array(1);
  const made = library.cuMemPoolCreate(pool, poolProperties(device));
  if (made !== status.success) return undefined;
  const handle = Number(pool[0]);
  const keepAll = BigUint64Array.of(0xffff_ffff_ffff_ffffn);
  context.check(
    library.cuMemPoolSetAttribute(handle, poolAttribute.releaseThreshold, keepAll),
    "Setting up the memory pool",
  );
  return handle;
}

/** CUmemPoolProps: pinned memory of one device, no sharing with other processes. */
function poolProperties(device: number): Uint8Array {
  const bytes = new Uint8Array(88);
  const view = new DataView(bytes.buffer);
  const allocationTypePinned = 1;
  const handleTypeNone = 0;
  const locationTypeDevice = 1;
  view.setInt32(0, allocationTypePinned, true);
  view.setInt32(4, handleTypeNone, true);
  view.setInt32(8, locationTypeDevice, true);
  view.setInt32(12, device, true);
  return bytes;
}
