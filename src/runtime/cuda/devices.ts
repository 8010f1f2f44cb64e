/** @file The machine's CUDA devices and what the driver says about them. */
import { isUnavailable, type Unavailable, unavailable } from "./availability.ts";
import type { DriverLibrary, Status } from "./driver-library.ts";
import { loadDriverLibrary } from "./koffi-library.ts";
import { check, describeStatus, status } from "./status.ts";

/** CUdevice_attribute. */
const attribute = {
  threadsPerBlock: 1,
  multiprocessors: 16,
  l2Bytes: 38,
  computeCapabilityMajor: 75,
  computeCapabilityMinor: 76,
  sharedBytesPerMultiprocessor: 81,
  registersPerMultiprocessor: 82,
  sharedBytesPerBlock: 97,
} as const;

/** One CUDA device. Sizes in bytes. */
export interface CudaDevice {
  /** Ordinal among the devices that CUDA_VISIBLE_DEVICES leaves. */
  readonly index: number;
  /** "NVIDIA H200". */
  readonly name: string;
  readonly computeCapability: readonly [major: number, minor: number];
  readonly memoryBytes: number;
  readonly multiprocessors: number;
  /** Shared memory that one block can have, opt-in included. */
  readonly sharedBytesPerBlock: number;
  readonly sharedBytesPerMultiprocessor: number;
  readonly registersPerMultiprocessor: number;
  readonly l2Bytes: number;
  readonly threadsPerBlock: number;
  /** CUDA version that the driver supports. */
  readonly driver: readonly [major: number, minor: number];
}

/** PTX as it is generated here needs this driver. */
const oldestDriver = [12, 0] as const;

const statusHelp: ReadonlyMap<Status, string> = new Map([
  [34, "The library is a build-time stub: put the driver's own libcuda.so.1 first on the loader's path."],
  [46, "Another process has the device for itself; end it, or ask for another device."],
  [
    100,
    "Check that `nvidia-smi` lists a device and that CUDA_VISIBLE_DEVICES does not hide it; in a container, pass the GPU through (for example `--gpus all`).",
  ],
  [802, "The devices' fabric is still starting; wait for the fabric manager, or check that it runs."],
  [803, "The driver's library and kernel module have different versions; restart the machine."],
  [
    804,
    "This device does not take the forward-compatible driver library; use the installed driver's libcuda.so.1.",
  ],
  [999, "The kernel module may be missing or in a bad state; see `nvidia-smi` and the system's log."],
]);

/** The devices, or why CUDA cannot be used. `library` replaces the installed driver, for tests. */
export async function listCudaDevices(library?: DriverLibrary): Promise<readonly CudaDevice[] | Unavailable> {
  const opened = await openDriver(library);
  return isUnavailable(opened) ? opened : listDevices(opened);
}

/** A driver that has started and is new enough, or why not. */
export async function openDriver(given?: DriverLibrary): Promise<DriverLibrary | Unavailable> {
  const library = given ?? (await loadDriverLibrary());
  if (isUnavailable(library)) return library;
  const started = library.cuInit(0);
  if (started !== status.success) {
    return unavailable(
      `The NVIDIA driver does not start: ${describeStatus(library, started)}.`,
      statusHelp.get(started) ?? "See `nvidia-smi` and the system's log.",
    );
  }
  const [major, minor] = driverVersion(library);
  if (major < oldestDriver[0] || (major === oldestDriver[0] && minor < oldestDriver[1])) {
    return unavailable(
      `The NVIDIA driver supports CUDA ${major}.${minor}; ${oldestDriver.join(".")} is needed.`,
      "Install a newer NVIDIA driver (525 or later).",
    );
  }
  return library;
}

/** The devices of a driver that has started. @throws DeviceError */
export function listDevices(library: DriverLibrary): readonly CudaDevice[] {
  const count = new Int32Array(1);
  check(library, library.cuDeviceGetCount(count), "Counting devices");
  return Array.from({ length: count[0]! }, (_, index) => describeDevice(library, index));
}

/** CUdevice of an ordinal. @throws DeviceError */
export function deviceHandle(library: DriverLibrary, index: number): number {
  const device = new Int32Array(1);
  check(library, library.cuDeviceGet(device, index), `Opening device ${index}`);
  return device[0]!;
}

function describeDevice(library: DriverLibrary, index: number): CudaDevice {
  const device = deviceHandle(library, index);
  const value = new Int32Array(1);
  const ask = (which: number): number => {
    check(library, library.cuDeviceGetAttribute(value, which, device), `Asking about device ${index}`);
    return value[0]!;
  };
  const name = new Uint8Array(256);
  check(
    library,
    library.cuDeviceGetName(name, name.length, device),
    `Asking for the name of device ${index}`,
  );
  const memory = new BigUint64Array(1);
  check(library, library.cuDeviceTotalMem(memory, device), `Asking for the memory of device ${index}`);
  return Object.freeze({
    index,
    name: new TextDecoder().decode(name.subarray(0, name.indexOf(0))),
    computeCapability: [
      ask(attribute.computeCapabilityMajor),
      ask(attribute.computeCapabilityMinor),
    ] as const,
    memoryBytes: Number(memory[0]),
    multiprocessors: ask(attribute.multiprocessors),
    sharedBytesPerBlock: ask(attribute.sharedBytesPerBlock),
    sharedBytesPerMultiprocessor: ask(attribute.sharedBytesPerMultiprocessor),
    registersPerMultiprocessor: ask(attribute.registersPerMultiprocessor),
    l2Bytes: ask(attribute.l2Bytes),
    threadsPerBlock: ask(attribute.threadsPerBlock),
    driver: driverVersion(library),
  });
}

/** 12080 is 12.8. */
function driverVersion(library: DriverLibrary): readonly [number, number] {
  const version = new Int32Array(1);
  check(library, library.cuDriverGetVersion(version), "Asking for the driver's version");
  return [Math.floor(version[0]! / 1000), Math.floor((version[0]! % 1000) / 10)];
}
