/**
 * @file Arrays over the caller's `GPUBuffer`s, and the `GPUBuffer`s of arrays, without copies: for work that shares a
 * `GPUDevice` with other libraries.
 */
import { ArgumentError } from "../../errors.ts";
import { type StorageType, u8 } from "../../types/types.ts";
import type { Device, DeviceArray } from "../array.ts";
import { WebgpuBackend } from "./backend.ts";

/** A part of a `GPUBuffer`, in bytes. */
export interface GpuBufferRange {
  readonly buffer: GPUBuffer;
  readonly offset: number;
  readonly size: number;
}

/**
 * A row-major array whose memory is the caller's buffer. Disposing the array leaves the buffer alone; the buffer must
 * outlive the array. Work that other code submits to the queue is in order with the device's own, whose enqueued work
 * {@link submit} (or any wait) sends off.
 *
 * @throws ArgumentError for a buffer that is too small, of a size that is no multiple of 16, mapped, or made without
 * STORAGE, COPY_SRC and COPY_DST; and on a device that is not WebGPU
 */
export function arrayOver<T extends StorageType>(
  device: Device,
  buffer: GPUBuffer,
  type: T,
  shape: readonly number[],
): DeviceArray<T> {
  return backendOf(device, "arrayOver()").over(buffer, () => device.empty(type, shape));
}

/** Where an array's memory lies. The array's strides are in elements from `offset` on. */
export function gpuBufferOf(array: DeviceArray): GpuBufferRange {
  array.check("gpuBufferOf()");
  const { backend, buffer } = array.allocation;
  if (!(backend instanceof WebgpuBackend)) throw notWebgpu("gpuBufferOf()", array.device);
  const offset = (array.offset * array.type.bits) / 8;
  return { buffer: backend.gpuBufferOf(buffer), offset, size: buffer.bytes - offset };
}

/** Submits what was enqueued on a device, for other code to submit work after it. */
export function submit(device: Device): void {
  backendOf(device, "submit()").flush();
}

/** The `GPUDevice` of a device. */
export function gpuDeviceOf(device: Device): GPUDevice {
  return backendOf(device, "gpuDeviceOf()").device;
}

/** Arrays know whose memory they have; devices do not tell. */
function backendOf(device: Device, what: string): WebgpuBackend {
  if (device.kind !== "webgpu") throw notWebgpu(what, device);
  const probe = device.empty(u8, [0]);
  const { backend } = probe.allocation;
  probe.dispose();
  if (!(backend instanceof WebgpuBackend)) throw notWebgpu(what, device);
  return backend;
}

function notWebgpu(what: string, device: Device): ArgumentError {
  return new ArgumentError(`${what} is for WebGPU devices; ${device.name} is none`);
}
