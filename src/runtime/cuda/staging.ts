/**
 * @file Copies between JavaScript's memory and the device through page-locked memory, so that neither direction blocks:
 * the caller may reuse its array when a write returns, and a read is a promise.
 *
 * One ring of page-locked memory for each direction. Large copies go in pieces, the host's part of one overlapping the
 * device's part of the next. A read's place in the order of work is the call, so all its copies are enqueued at once;
 * when the ring has not room for that, the source is first copied on the device.
 */
import { DeviceError, DisposedError } from "../../errors.ts";
import type { Completions } from "./completions.ts";
import type { DriverContext } from "./context.ts";
import type { Address } from "./driver-library.ts";
import type { CudaBuffer, DeviceMemory } from "./memory.ts";
import { Ring, type Span } from "./ring.ts";
import { status } from "./status.ts";

/** Sizes in bytes; the defaults suit a PCIe or NVLink host. */
export interface StagingSizes {
  /** Of each ring. */
  readonly ring: number;
  /** Largest single copy. */
  readonly piece: number;
}

/** 16 MiB rings and pieces of 4 MiB. */
export const defaultStaging: StagingSizes = Object.freeze({ ring: 16 << 20, piece: 4 << 20 });

/** A ring of page-locked host memory. */
class PinnedRing {
  readonly ring: Ring;
  readonly #context: DriverContext;
  #address: Address = 0;
  #bytes: Uint8Array | undefined;

  constructor(context: DriverContext, capacity: number) {
    this.#context = context;
    this.ring = new Ring(capacity);
  }

  /** Allocated at first use. */
  #open(): Uint8Array {
    if (this.#bytes === undefined) {
      const out = new BigUint64Array(1);
      const { library } = this.#context;
      const code = library.cuMemHostAlloc(out, this.ring.capacity, 0);
      this.#context.check(code, `Allocating ${this.ring.capacity} bytes of page-locked host memory`);
      this.#address = Number(out[0]);
      this.#bytes = new Uint8Array(library.view(this.#address, this.ring.capacity));
    }
    return this.#bytes;
  }

  bytesOf(span: Span): Uint8Array {
    return this.#open().subarray(span.offset, span.offset + span.bytes);
  }

  addressOf(span: Span): Address {
    this.#open();
    return this.#address + span.offset;
  }

  dispose(): void {
    if (this.#bytes === undefined) return;
    this.#bytes = undefined;
    this.#context.library.cuMemFreeHost(this.#address);
  }
}

/** A contiguous part of a copy. */
interface Piece {
  readonly at: number;
  readonly bytes: number;
}

function* pieces(bytes: number, largest: number): Generator<Piece> {
  for (let at = 0; at < bytes; at += largest) yield { at, bytes: Math.min(largest, bytes - at) };
}

/** Copies from host to device. */
export class Uploads {
  readonly #context: DriverContext;
  readonly #completions: Completions;
  readonly #pinned: PinnedRing;
  readonly #piece: number;

  constructor(context: DriverContext, completions: Completions, sizes: StagingSizes) {
    this.#context = context;
    this.#completions = completions;
    this.#pinned = new PinnedRing(context, sizes.ring);
    this.#piece = Math.min(sizes.piece, sizes.ring);
  }

  /** Enqueues; blocks only while the ring is full. The context must be current. */
  write(target: Address, data: Uint8Array): void {
    const { library, stream } = this.#context;
    for (const { at, bytes } of pieces(data.length, this.#piece)) {
      const span = this.#take(bytes);
      try {
        this.#pinned.bytesOf(span).set(data.subarray(at, at + bytes));
        const source = this.#pinned.addressOf(span);
        const code = library.cuMemcpyHtoDAsync(target + at, source, bytes, stream);
        this.#context.check(code, `Copying ${bytes} bytes to the device`);
        this.#completions.after(() => this.#pinned.ring.release(span));
      } catch (error) {
        this.#pinned.ring.release(span);
        throw error;
      }
    }
  }

  dispose(): void {
    this.#pinned.dispose();
  }

  #take(bytes: number): Span {
    this.#completions.drain();
    for (;;) {
      const span = this.#pinned.ring.take(bytes);
      if (span !== undefined) return span;
      this.#completions.waitForOldest();
    }
  }
}

/** Copies from device to host. */
export class Downloads {
  readonly #context: DriverContext;
  readonly #completions: Completions;
  readonly #memory: DeviceMemory;
  readonly #pinned: PinnedRing;
  readonly #piece: number;

  constructor(context: DriverContext, completions: Completions, memory: DeviceMemory, sizes: StagingSizes) {
    this.#context = context;
    this.#completions = completions;
    this.#memory = memory;
    this.#pinned = new PinnedRing(context, sizes.ring);
    this.#piece = Math.min(sizes.piece, sizes.ring);
  }

  /** Enqueues before returning; resolves when `target` is filled. The context must be current. */
  read(source: Address, target: Uint8Array): Promise<void> {
    this.#completions.drain();
    const spans = this.#takeAll(target.length);
    if (spans === undefined) return this.#readLarge(source, target);
    let at = 0;
    const copies: Promise<void>[] = [];
    for (const span of spans) {
      copies.push(this.#copy(source + at, target.subarray(at, at + span.bytes), span));
      at += span.bytes;
    }
    return copies.length === 0 ? this.#completions.reached() : allOf(copies);
  }

  dispose(): void {
    this.#pinned.dispose();
  }

  /** Room for the whole of a read, or nothing. */
  #takeAll(bytes: number): readonly Span[] | undefined {
    if (bytes > this.#pinned.ring.capacity) return undefined;
    const spans: Span[] = [];
    for (const piece of pieces(bytes, this.#piece)) {
      const span = this.#pinned.ring.take(piece.bytes);
      if (span === undefined) {
        for (const taken of spans) this.#pinned.ring.release(taken);
        return undefined;
      }
      spans.push(span);
    }
    return spans;
  }

  /** One piece into page-locked memory, then into its place. */
  #copy(source: Address, target: Uint8Array, span: Span): Promise<void> {
    const { library, stream } = this.#context;
    try {
      const staged = this.#pinned.bytesOf(span);
      const code = library.cuMemcpyDtoHAsync(this.#pinned.addressOf(span), source, span.bytes, stream);
      this.#context.check(code, `Copying ${span.bytes} bytes from the device`);
      return this.#completions.reached((fault) => {
        this.#pinned.ring.release(span);
        if (fault === undefined) target.set(staged);
      });
    } catch (error) {
      this.#pinned.ring.release(span);
      return Promise.reject(error);
    }
  }

  #readLarge(source: Address, target: Uint8Array): Promise<void> {
    const { library, stream } = this.#context;
    let snapshot: CudaBuffer;
    try {
      snapshot = this.#memory.allocate(target.length);
    } catch (error) {
      if (error instanceof DeviceError && this.#context.fault === undefined) {
        return this.#readBlocking(source, target);
      }
      return Promise.reject(error);
    }
    const code = library.cuMemcpyDtoDAsync(snapshot.address, source, target.length, stream);
    if (code === status.success) return this.#readSnapshot(snapshot, target);
    this.#memory.free(snapshot);
    return rejection(() => this.#context.fail(code, `Copying ${target.length} bytes on the device`));
  }

  /** In pieces, as many at a time as the ring has room for. */
  async #readSnapshot(snapshot: CudaBuffer, target: Uint8Array): Promise<void> {
    const flying: Promise<void>[] = [];
    try {
      for (const { at, bytes } of pieces(target.length, this.#piece)) {
        let span = this.#pinned.ring.take(bytes);
        while (span === undefined) {
          await (flying.shift() ?? this.#completions.reached());
          if (this.#context.disposed) throw new DisposedError("The device was disposed during a read.");
          this.#context.enter();
          span = this.#pinned.ring.take(bytes);
        }
        const copy = this.#copy(snapshot.address + at, target.subarray(at, at + bytes), span);
        copy.catch(() => undefined);
        flying.push(copy);
      }
      await allOf(flying);
    } finally {
      this.#memory.free(snapshot);
    }
  }

  /** When the device has no room for a snapshot. */
  #readBlocking(source: Address, target: Uint8Array): Promise<void> {
    const { library, stream } = this.#context;
    return rejection(() => {
      this.#context.check(library.cuStreamSynchronize(stream), "Waiting for the device");
      this.#context.check(
        library.cuMemcpyDtoH(target, source, target.length),
        `Copying ${target.length} bytes from the device`,
      );
    });
  }
}

/** Resolves with all of them, rejects with the first, leaves no rejection unhandled. */
function allOf(promises: readonly Promise<void>[]): Promise<void> {
  return Promise.all(promises).then(() => undefined);
}

/** Runs now; a throw becomes a rejection. */
function rejection(action: () => void): Promise<void> {
  try {
    action();
    return Promise.resolve();
  } catch (error) {
    return Promise.reject(error);
  }
}
