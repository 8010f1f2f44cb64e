/** @file Device memory. Allocations are padded to whole vectors of 16 bytes, so that shaders may read in those. */
import { ArgumentError, DeviceError, DisposedError } from "../../errors.ts";
import type { BackendBuffer } from "../backend.ts";
import { bufferUsage } from "./constants.ts";

const neededUsage = bufferUsage.storage | bufferUsage.copySource | bufferUsage.copyTarget;

/** An allocation on a WebGPU device. */
export class WebgpuBuffer implements BackendBuffer {
  freed = false;

  constructor(
    readonly owner: object,
    readonly gpuBuffer: GPUBuffer,
    readonly bytes: number,
    /** Whether freeing destroys the `GPUBuffer`; those of the caller stay. */
    readonly own: boolean,
  ) {}
}

export function padded(bytes: number): number {
  return Math.max(16, Math.ceil(bytes / 16) * 16);
}

/** Zeroed memory. @throws ArgumentError, DeviceError for more than a buffer can hold */
export function allocate(owner: object, device: GPUDevice, bytes: number): WebgpuBuffer {
  if (!Number.isSafeInteger(bytes) || bytes < 0) {
    throw new ArgumentError(`an allocation of ${bytes} bytes; a whole number is wanted`);
  }
  const size = padded(bytes);
  const { maxBufferSize } = device.limits;
  if (size > maxBufferSize) {
    throw new DeviceError(
      `a WebGPU buffer here holds at most ${maxBufferSize} bytes, not ${bytes}; split the array`,
      "outOfMemory",
    );
  }
  return new WebgpuBuffer(owner, device.createBuffer({ size, usage: neededUsage }), bytes, true);
}

/** The caller's own `GPUBuffer` as memory of arrays, without a copy. @throws ArgumentError naming what it lacks */
export function adopt(owner: object, gpuBuffer: GPUBuffer): WebgpuBuffer {
  const missing = Object.entries({
    STORAGE: bufferUsage.storage,
    COPY_SRC: bufferUsage.copySource,
    COPY_DST: bufferUsage.copyTarget,
  })
    .filter(([, flag]) => (gpuBuffer.usage & flag) === 0)
    .map(([name]) => `GPUBufferUsage.${name}`);
  if (missing.length > 0) {
    throw new ArgumentError(
      `the GPUBuffer was made without ${missing.join(" and ")}; arrays need that usage`,
    );
  }
  if (gpuBuffer.size % 16 !== 0) {
    throw new ArgumentError(
      `the GPUBuffer has ${gpuBuffer.size} bytes; arrays need a multiple of 16, as shaders read whole vectors`,
    );
  }
  if (gpuBuffer.mapState !== "unmapped") throw new ArgumentError("the GPUBuffer is mapped; unmap it first");
  return new WebgpuBuffer(owner, gpuBuffer, gpuBuffer.size, false);
}

/** A range of this device's own memory. @throws ArgumentError, DisposedError */
export function checkedRange(
  owner: object,
  buffer: BackendBuffer,
  byteOffset: number,
  bytes: number,
  what: string,
): WebgpuBuffer {
  if (!(buffer instanceof WebgpuBuffer) || buffer.owner !== owner) {
    throw new ArgumentError(`${what} uses memory of another device; copy it over through the host`);
  }
  if (buffer.freed) throw new DisposedError(`${what} uses an array that was disposed`);
  if (!(byteOffset >= 0 && bytes >= 0 && byteOffset + bytes <= buffer.bytes)) {
    throw new ArgumentError(
      `${what} reaches from byte ${byteOffset} over ${bytes} bytes, outside an allocation of ${buffer.bytes} bytes`,
    );
  }
  return buffer;
}
