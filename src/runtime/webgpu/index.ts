/** @file WebGPU devices: `tilewright/webgpu`. */
export {
  isWebGpuFacts,
  type SubgroupMatrixConfiguration,
  type WebGpuFacts,
  type WgslFeatures,
} from "../../target/webgpu.ts";
export { type AdapterChoices, type FoundAdapter, findAdapter as findWebgpuAdapter } from "./adapter.ts";
export { isUnavailable, type Unavailable } from "./availability.ts";
export { createWebgpuBackend, WebgpuBackend, type WebgpuExecutable, type WebgpuOptions } from "./backend.ts";
export { WebgpuBuffer } from "./buffers.ts";
export type { GpuChoices } from "./gpu-browser.ts";
export { arrayOver, type GpuBufferRange, gpuBufferOf, gpuDeviceOf, submit } from "./interop.ts";
