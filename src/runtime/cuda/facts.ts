/** @file A device's attributes as the facts that kernels are written against. */
import { UnsupportedError } from "../../errors.ts";
import type { TargetFacts } from "../../target/facts.ts";
import { nvidiaFacts } from "../../target/nvidia.ts";
import { type Unavailable, unavailable } from "./availability.ts";
import type { CudaDevice } from "./devices.ts";

/** Facts of a device, or why no code can be generated for it. */
export function cudaFacts(device: CudaDevice): TargetFacts | Unavailable {
  try {
    return nvidiaFacts({
      computeCapability: device.computeCapability,
      // Text is compiled for the device at hand, so it may use what no other architecture has.
      features: "a",
      sharedBytesPerBlockOptin: device.sharedBytesPerBlock,
      sharedBytesPerMultiprocessor: device.sharedBytesPerMultiprocessor,
      registersPerMultiprocessor: device.registersPerMultiprocessor,
      multiprocessors: device.multiprocessors,
      l2Bytes: device.l2Bytes,
      memoryBytes: device.memoryBytes,
    });
  } catch (error) {
    if (!(error instanceof UnsupportedError)) throw error;
    return unavailable(`${device.name}: ${error.message}.`, "Use a WebGPU device or a newer GPU.");
  }
}
