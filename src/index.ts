/**
 * @file `tilewright`: devices, arrays, element types and errors. Kernels are written with `tilewright/lang`, matrices
 * multiplied with `tilewright/gemm`, arrays worked on with `tilewright/array-ops`.
 */
export * from "./errors.ts";
export type { Kernel } from "./lang/index.ts";
export { DeviceArray } from "./runtime/array.ts";
export type {
  BoundLaunch,
  CompiledKernel,
  CompileOptions,
  Device,
  Graph,
  GridSize,
  LaunchOptions,
  MissingDevice,
  SliceRange,
} from "./runtime/device.ts";
export {
  type DeviceKind,
  devices,
  type FoundDevice,
  type OpenOptions,
  open,
  type SimulatorOptions,
  type SimulatorProgress,
} from "./runtime/open.ts";
export type { TargetFacts } from "./target/facts.ts";
export type { HostValues, StorageArray, ValueArray } from "./types/host.ts";
export { decode, encode } from "./types/host.ts";
export * from "./types/types.ts";
