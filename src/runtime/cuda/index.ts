/** @file NVIDIA devices through the driver alone. */
export { isUnavailable, type Unavailable } from "./availability.ts";
export { CudaBackend, type CudaExecutable, type CudaOptions, createCudaBackend } from "./backend.ts";
export { type CudaDevice, listCudaDevices } from "./devices.ts";
export type { Address, DriverLibrary, HostBlock, Status } from "./driver-library.ts";
export type { KernelFunction, LaunchShape } from "./kernel-function.ts";
export type { CudaPreparedLaunch } from "./launch.ts";
export { CudaBuffer } from "./memory.ts";
export type { PtxKernel, PtxKernelShape, PtxParameter, PtxProgram } from "./ptx-program.ts";
export type { StagingSizes } from "./staging.ts";
