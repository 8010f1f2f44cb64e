/** @file Between host and device, and within the device, at byte granularity and in order with launches. */
import { DeviceError } from "../../errors.ts";
import type { WebgpuBuffer } from "./buffers.ts";
import { bufferUsage, mapForReading } from "./constants.ts";
import type { Faults } from "./faults.ts";
import type { CommandQueue } from "./queue.ts";
import { UtilityKernels } from "./utility-kernels.ts";

/** Bytes of one staging buffer at most; larger reads take several. */
const mostStaged = 2 ** 25;
/** Staging memory that stays for later reads. */
const mostPooled = 2 ** 26;

interface Staged {
  readonly buffer: GPUBuffer;
  /** Of the target. */
  readonly start: number;
  readonly bytes: number;
  /** Bytes before the wanted ones. */
  readonly lead: number;
}

export class Transfers {
  readonly #kernels: UtilityKernels;
  readonly #pool: GPUBuffer[] = [];
  #pooled = 0;

  constructor(
    private readonly queue: CommandQueue,
    private readonly faults: Faults,
  ) {
    this.#kernels = new UtilityKernels(queue);
  }

  /** Whole words go through the queue; the bytes before and after them as fills of a few bytes. */
  write(buffer: WebgpuBuffer, byteOffset: number, data: Uint8Array): void {
    if (data.length === 0) return;
    const atEnd = byteOffset + data.length === buffer.bytes;
    const head = Math.min(data.length, (4 - (byteOffset % 4)) % 4);
    const tail = atEnd && buffer.own ? 0 : (data.length - head) % 4;
    const middle = data.subarray(head, data.length - tail);
    this.#writePart(buffer, byteOffset, data.subarray(0, head));
    if (middle.length > 0) {
      this.queue.flush();
      this.queue.device.queue.writeBuffer(buffer.gpuBuffer, byteOffset + head, wholeWords(middle));
    }
    this.#writePart(buffer, byteOffset + data.length - tail, data.subarray(data.length - tail));
  }

  #writePart(buffer: WebgpuBuffer, byteOffset: number, data: Uint8Array): void {
    if (data.length === 0) return;
    let pattern = 0;
    data.forEach((byte, i) => {
      pattern |= byte << (8 * i);
    });
    this.#kernels.fill(buffer.gpuBuffer, byteOffset, data.length, pattern >>> 0);
  }

  /** The copies are enqueued at once; the promise waits for them. */
  async read(buffer: WebgpuBuffer, byteOffset: number, target: Uint8Array): Promise<void> {
    const parts: Staged[] = [];
    for (let start = 0; start < target.length; start += mostStaged) {
      const bytes = Math.min(mostStaged, target.length - start);
      parts.push(this.#stage(buffer, byteOffset + start, start, bytes));
    }
    this.queue.flush();
    const mapping = parts.map(({ buffer: staging }) => staging.mapAsync(mapForReading));
    try {
      await Promise.all(mapping);
    } catch (cause) {
      await this.faults.settle();
      this.faults.check();
      throw new DeviceError("reading memory failed", "mapping", { cause });
    }
    for (const { buffer: staging, start, bytes, lead } of parts) {
      target.set(new Uint8Array(staging.getMappedRange(), lead, bytes), start);
      staging.unmap();
      this.#giveBack(staging);
    }
    await this.faults.settle();
  }

  #stage({ gpuBuffer }: WebgpuBuffer, byteOffset: number, start: number, bytes: number): Staged {
    const lead = byteOffset % 4;
    const size = Math.ceil((lead + bytes) / 4) * 4;
    const staging = this.#takeStaging(size);
    const encoder = this.queue.encoder("a read");
    encoder.copyBufferToBuffer(gpuBuffer, byteOffset - lead, staging, 0, size);
    return { buffer: staging, start, bytes, lead };
  }

  #takeStaging(size: number): GPUBuffer {
    const found = this.#pool.findIndex((one) => one.size >= size && one.size <= 4 * size + 4096);
    if (found >= 0) {
      const [buffer] = this.#pool.splice(found, 1);
      this.#pooled -= buffer!.size;
      return buffer!;
    }
    const roomy = 2 ** Math.ceil(Math.log2(Math.max(256, size)));
    return this.queue.device.createBuffer({
      size: Math.min(roomy, Math.max(size, mostStaged)),
      usage: bufferUsage.mapRead | bufferUsage.copyTarget,
    });
  }

  #giveBack(buffer: GPUBuffer): void {
    if (this.#pooled + buffer.size > mostPooled) {
      buffer.destroy();
      return;
    }
    this.#pool.push(buffer);
    this.#pooled += buffer.size;
  }

  copy(
    source: WebgpuBuffer,
    sourceOffset: number,
    target: WebgpuBuffer,
    targetOffset: number,
    bytes: number,
  ): void {
    if (bytes === 0) return;
    if (source.gpuBuffer === target.gpuBuffer) {
      this.#copyWithin(source.gpuBuffer, sourceOffset, targetOffset, bytes);
      return;
    }
    this.#copyApart(source.gpuBuffer, sourceOffset, target.gpuBuffer, targetOffset, bytes);
  }

  #copyApart(
    source: GPUBuffer,
    sourceOffset: number,
    target: GPUBuffer,
    targetOffset: number,
    bytes: number,
  ): void {
    if (sourceOffset % 4 === 0 && targetOffset % 4 === 0 && bytes % 4 === 0) {
      this.queue.encoder("a copy").copyBufferToBuffer(source, sourceOffset, target, targetOffset, bytes);
      return;
    }
    this.#kernels.move(source, sourceOffset, target, targetOffset, bytes);
  }

  /** WebGPU copies between different buffers only. */
  #copyWithin(buffer: GPUBuffer, sourceOffset: number, targetOffset: number, bytes: number): void {
    const lead = sourceOffset % 4;
    const size = Math.ceil((lead + bytes) / 16) * 16 + 16;
    const between = this.queue.device.createBuffer({
      size,
      usage: bufferUsage.storage | bufferUsage.copySource | bufferUsage.copyTarget,
    });
    const copied = Math.min(Math.ceil((lead + bytes) / 4) * 4, buffer.size - (sourceOffset - lead));
    this.queue.encoder("a copy").copyBufferToBuffer(buffer, sourceOffset - lead, between, 0, copied);
    this.#copyApart(between, lead, buffer, targetOffset, bytes);
    this.queue.retire(between);
  }

  /** `pattern` is a 32-bit word that is repeated from `byteOffset` on, lowest byte first. */
  fill(buffer: WebgpuBuffer, byteOffset: number, bytes: number, pattern: number): void {
    if (bytes === 0) return;
    const whole =
      byteOffset % 4 === 0 && (bytes % 4 === 0 || (buffer.own && byteOffset + bytes === buffer.bytes));
    if (pattern === 0 && whole) {
      this.queue.encoder("a fill").clearBuffer(buffer.gpuBuffer, byteOffset, Math.ceil(bytes / 4) * 4);
      return;
    }
    this.#kernels.fill(buffer.gpuBuffer, byteOffset, bytes, pattern);
  }

  /** Ends what is pooled. @throws nothing */
  dispose(): void {
    for (const buffer of this.#pool) buffer.destroy();
    this.#pool.length = 0;
  }
}

/** The bytes, padded to whole words: what follows them is the padding of an allocation. */
function wholeWords(data: Uint8Array): Uint8Array<ArrayBuffer> {
  if (data.length % 4 === 0) return data as Uint8Array<ArrayBuffer>;
  const words = new Uint8Array(Math.ceil(data.length / 4) * 4);
  words.set(data);
  return words;
}
