/**
 * @file Device memory that an array owns and its views share.
 */
import { DisposedError } from "../errors.ts";
import type { Backend, BackendBuffer } from "./backend.ts";

/** Whether the caller has heard of the device's fault, if there was one. */
export interface FaultRecord {
  told: boolean;
}

/** Passes a rejection on and remembers that it was heard of. */
export async function telling<R>(record: FaultRecord, work: Promise<R>): Promise<R> {
  try {
    return await work;
  } catch (error) {
    record.told = true;
    throw error;
  }
}

/** One allocation. Whoever owns it ends it for every view. */
export class Allocation {
  readonly backend: Backend;
  readonly buffer: BackendBuffer;
  /** What to call it in messages: type and shape of the array that owns it. */
  readonly label: string;
  readonly #faults: FaultRecord;
  #disposed = false;

  constructor(backend: Backend, faults: FaultRecord, bytes: number, label: string) {
    this.backend = backend;
    this.#faults = faults;
    this.label = label;
    this.buffer = backend.allocate(bytes);
  }

  get disposed(): boolean {
    return this.#disposed;
  }

  /** Resolves when earlier work is done and `target` filled. */
  read(byteOffset: number, target: Uint8Array): Promise<void> {
    return telling(this.#faults, this.backend.read(this.buffer, byteOffset, target));
  }

  /** Gives the memory back after the work already enqueued. */
  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.backend.free(this.buffer);
  }

  /** @throws DisposedError after disposal; `what` begins the message */
  check(what: string): void {
    if (this.#disposed) throw new DisposedError(`${what}: the array ${this.label} was disposed`);
  }
}
