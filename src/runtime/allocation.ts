/**
 * @file Device memory that an array owns and its views share.
 */
import { DisposedError } from "../errors.ts";
import type { Backend, BackendBuffer } from "./backend.ts";

/** One allocation. Whoever owns it ends it for every view. */
export class Allocation {
  readonly backend: Backend;
  readonly buffer: BackendBuffer;
  /** What to call it in messages: type and shape of the array that owns it. */
  readonly label: string;
  #disposed = false;

  constructor(backend: Backend, bytes: number, label: string) {
    this.backend = backend;
    this.label = label;
    this.buffer = backend.allocate(bytes);
  }

  get disposed(): boolean {
    return this.#disposed;
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
