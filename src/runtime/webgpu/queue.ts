/**
 * @file Work on its way to the device. Launches and copies of one stretch of synchronous code go in one command buffer;
 * it is submitted before anything that the queue itself does, and at the latest when that code has run.
 */
import type { Faults } from "./faults.ts";

export class CommandQueue {
  #encoder: GPUCommandEncoder | undefined;
  #pass: GPUComputePassEncoder | undefined;
  #scheduled = false;
  /** Work in the command buffer, for messages. */
  #names: string[] = [];
  #retired: GPUBuffer[] = [];

  constructor(
    readonly device: GPUDevice,
    private readonly faults: Faults,
  ) {}

  /** The encoder, outside any pass. */
  encoder(what: string): GPUCommandEncoder {
    this.#pass?.end();
    this.#pass = undefined;
    return this.#open(what);
  }

  /** The compute pass. */
  pass(what: string): GPUComputePassEncoder {
    const encoder = this.#open(what);
    this.#pass ??= encoder.beginComputePass();
    return this.#pass;
  }

  #open(what: string): GPUCommandEncoder {
    if (this.#names.at(-1) !== what && this.#names.length < 8) this.#names.push(what);
    this.#encoder ??= this.device.createCommandEncoder();
    if (!this.#scheduled) {
      this.#scheduled = true;
      queueMicrotask(() => {
        this.#scheduled = false;
        this.flush();
      });
    }
    return this.#encoder;
  }

  /** Destroys a buffer after the work recorded so far has been submitted. */
  retire(buffer: GPUBuffer): void {
    if (this.#encoder === undefined) buffer.destroy();
    else this.#retired.push(buffer);
  }

  /** Submits what was recorded. */
  flush(): void {
    const encoder = this.#encoder;
    if (encoder === undefined) return;
    const names = this.#names;
    this.#pass?.end();
    this.#pass = undefined;
    this.#encoder = undefined;
    this.#names = [];
    this.device.pushErrorScope("validation");
    this.device.queue.submit([encoder.finish()]);
    this.faults.watch(this.device.popErrorScope(), `work of ${names.join(", ")} was refused`);
    for (const buffer of this.#retired) buffer.destroy();
    this.#retired = [];
  }
}
