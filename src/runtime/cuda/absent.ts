/** @file What stands for CUDA where there is no driver to call: `#cuda` leads here outside Node.js. */
import { type Unavailable, unavailable } from "./availability.ts";

export { isUnavailable } from "./availability.ts";

const absent: Unavailable = unavailable(
  "This environment cannot call the NVIDIA driver.",
  "Run in Node.js, on a machine with an NVIDIA GPU.",
);

/** No device, and why. */
export async function createCudaBackend(): Promise<Unavailable> {
  return absent;
}

/** No devices, and why. */
export async function listCudaDevices(): Promise<Unavailable> {
  return absent;
}
