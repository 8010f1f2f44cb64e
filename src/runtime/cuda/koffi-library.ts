/** @file libcuda through koffi, an optional package that is imported only when a CUDA device is asked for. */
import { type Unavailable, unavailable } from "./availability.ts";
import type { Address, DriverLibrary, HostBlock, Status } from "./driver-library.ts";

type Koffi = typeof import("koffi");
type NativeFunction = (...args: unknown[]) => number;

/**
 * C prototypes of the exported symbols, by the name used here. Handles, device addresses and host addresses are
 * `uint64_t`, which takes a number faster than `void *` takes a bigint; `void *` takes a typed array. Several prototypes
 * for one name are tried in order.
 */
const required = {
  cuInit: ["int cuInit(uint32_t flags)"],
  cuDriverGetVersion: ["int cuDriverGetVersion(void *version)"],
  cuDeviceGetCount: ["int cuDeviceGetCount(void *count)"],
  cuDeviceGet: ["int cuDeviceGet(void *device, int ordinal)"],
  cuDeviceGetName: ["int cuDeviceGetName(void *name, int length, int device)"],
  cuDeviceTotalMem: ["int cuDeviceTotalMem_v2(void *bytes, int device)"],
  cuDeviceGetAttribute: ["int cuDeviceGetAttribute(void *value, int attribute, int device)"],
  cuDevicePrimaryCtxRetain: ["int cuDevicePrimaryCtxRetain(void *context, int device)"],
  cuDevicePrimaryCtxRelease: ["int cuDevicePrimaryCtxRelease_v2(int device)"],
  cuCtxSetCurrent: ["int cuCtxSetCurrent(uint64_t context)"],
  cuStreamCreate: ["int cuStreamCreate(void *stream, uint32_t flags)"],
  cuStreamDestroy: ["int cuStreamDestroy_v2(uint64_t stream)"],
  cuStreamSynchronize: ["int cuStreamSynchronize(uint64_t stream)"],
  cuEventCreate: ["int cuEventCreate(void *event, uint32_t flags)"],
  cuEventDestroy: ["int cuEventDestroy_v2(uint64_t event)"],
  cuEventRecord: ["int cuEventRecord(uint64_t event, uint64_t stream)"],
  cuEventQuery: ["int cuEventQuery(uint64_t event)"],
  cuEventSynchronize: ["int cuEventSynchronize(uint64_t event)"],
  cuEventElapsedTime: [
    "int cuEventElapsedTime_v2(void *milliseconds, uint64_t start, uint64_t end)",
    "int cuEventElapsedTime(void *milliseconds, uint64_t start, uint64_t end)",
  ],
  cuMemGetInfo: ["int cuMemGetInfo_v2(void *free, void *total)"],
  cuMemAlloc: ["int cuMemAlloc_v2(void *address, size_t bytes)"],
  cuMemFree: ["int cuMemFree_v2(uint64_t address)"],
  cuMemHostAlloc: ["int cuMemHostAlloc(void *address, size_t bytes, uint32_t flags)"],
  cuMemFreeHost: ["int cuMemFreeHost(uint64_t address)"],
  cuMemcpyHtoDAsync: [
    "int cuMemcpyHtoDAsync_v2(uint64_t target, uint64_t source, size_t bytes, uint64_t stream)",
  ],
  cuMemcpyDtoHAsync: [
    "int cuMemcpyDtoHAsync_v2(uint64_t target, uint64_t source, size_t bytes, uint64_t stream)",
  ],
  cuMemcpyDtoDAsync: [
    "int cuMemcpyDtoDAsync_v2(uint64_t target, uint64_t source, size_t bytes, uint64_t stream)",
  ],
  cuMemcpyDtoH: ["int cuMemcpyDtoH_v2(void *target, uint64_t source, size_t bytes)"],
  cuMemsetD8Async: ["int cuMemsetD8Async(uint64_t target, uint8_t value, size_t count, uint64_t stream)"],
  cuMemsetD16Async: ["int cuMemsetD16Async(uint64_t target, uint16_t value, size_t count, uint64_t stream)"],
  cuMemsetD32Async: ["int cuMemsetD32Async(uint64_t target, uint32_t value, size_t count, uint64_t stream)"],
  cuModuleLoadDataEx: [
    "int cuModuleLoadDataEx(void *module, void *image, uint32_t optionCount, void *options, void *values)",
  ],
  cuModuleUnload: ["int cuModuleUnload(uint64_t module)"],
  cuModuleGetFunction: ["int cuModuleGetFunction(void *kernel, uint64_t module, const char *name)"],
  cuFuncGetAttribute: ["int cuFuncGetAttribute(void *value, int attribute, uint64_t kernel)"],
  cuFuncSetAttribute: ["int cuFuncSetAttribute(uint64_t kernel, int attribute, int value)"],
  cuOccupancyMaxActiveBlocksPerMultiprocessor: [
    "int cuOccupancyMaxActiveBlocksPerMultiprocessor(void *blocks, uint64_t kernel, int threads, size_t dynamicBytes)",
  ],
  cuLaunchKernel: [
    "int cuLaunchKernel(uint64_t kernel, uint32_t gridX, uint32_t gridY, uint32_t gridZ, uint32_t blockX, uint32_t blockY, uint32_t blockZ, uint32_t dynamicBytes, uint64_t stream, uint64_t parameters, uint64_t extra)",
  ],
} as const;

const optional = {
  cuMemPoolCreate: ["int cuMemPoolCreate(void *pool, void *properties)"],
  cuMemPoolDestroy: ["int cuMemPoolDestroy(uint64_t pool)"],
  cuMemPoolSetAttribute: ["int cuMemPoolSetAttribute(uint64_t pool, int attribute, void *value)"],
  cuMemPoolGetAttribute: ["int cuMemPoolGetAttribute(uint64_t pool, int attribute, void *value)"],
  cuMemPoolTrimTo: ["int cuMemPoolTrimTo(uint64_t pool, size_t bytesToKeep)"],
  cuMemAllocFromPoolAsync: [
    "int cuMemAllocFromPoolAsync(void *address, size_t bytes, uint64_t pool, uint64_t stream)",
  ],
  cuMemFreeAsync: ["int cuMemFreeAsync(uint64_t address, uint64_t stream)"],
  cuLaunchKernelEx: [
    "int cuLaunchKernelEx(uint64_t configuration, uint64_t kernel, uint64_t parameters, uint64_t extra)",
  ],
  cuStreamBeginCapture: ["int cuStreamBeginCapture_v2(uint64_t stream, int mode)"],
  cuStreamEndCapture: ["int cuStreamEndCapture(uint64_t stream, void *graph)"],
  cuGraphInstantiateWithFlags: [
    "int cuGraphInstantiateWithFlags(void *executable, uint64_t graph, unsigned long long flags)",
  ],
  cuGraphLaunch: ["int cuGraphLaunch(uint64_t executable, uint64_t stream)"],
  cuGraphDestroy: ["int cuGraphDestroy(uint64_t graph)"],
  cuGraphExecDestroy: ["int cuGraphExecDestroy(uint64_t executable)"],
  cuTensorMapEncodeTiled: [
    "int cuTensorMapEncodeTiled(uint64_t map, int dataType, uint32_t rank, uint64_t base, void *sizes, void *byteStrides, void *box, void *elementStrides, int interleave, int swizzle, int promotion, int outOfBounds)",
  ],
  cuTensorMapEncodeIm2col: [
    "int cuTensorMapEncodeIm2col(uint64_t map, int dataType, uint32_t rank, uint64_t base, void *sizes, void *byteStrides, void *lowerCorner, void *upperCorner, uint32_t channelsPerPixel, uint32_t pixelsPerColumn, void *elementStrides, int interleave, int swizzle, int promotion, int outOfBounds)",
  ],
} as const;

/** Where libcuda is, by platform. WSL keeps it outside the loader's path on some distributions. */
function driverFiles(platform: string): readonly string[] {
  return platform === "win32"
    ? ["nvcuda.dll"]
    : ["libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1"];
}

const noKoffi = "The package koffi, which calls native libraries from JavaScript, cannot be loaded";

/** koffi as a module, or why not. */
export async function loadKoffi(): Promise<Koffi | Unavailable> {
  try {
    const loaded = (await import("koffi")) as Koffi & { readonly default?: Koffi };
    return loaded.default ?? loaded;
  } catch (error) {
    return unavailable(
      `${noKoffi}: ${firstLine(error)}.`,
      "Run `npm install koffi` (it comes as an optional dependency, which --omit=optional leaves out).",
    );
  }
}

/** libcuda, or why it cannot be loaded. `files` are tried in order. */
export async function loadDriverLibrary(
  files: readonly string[] = driverFiles(process.platform),
): Promise<DriverLibrary | Unavailable> {
  if (process.platform === "darwin") {
    return unavailable("macOS has no CUDA driver.", "Use a WebGPU device here.");
  }
  const koffi = await loadKoffi();
  if ("reason" in koffi) return koffi;
  let firstFailure: unknown;
  for (const file of files) {
    let library: ReturnType<Koffi["load"]>;
    try {
      library = koffi.load(file);
    } catch (error) {
      firstFailure ??= error;
      continue;
    }
    try {
      return bind(koffi, library, file);
    } catch (error) {
      return unavailable(
        `The driver library ${file} lacks an entry point: ${firstLine(error)}.`,
        "Install a newer NVIDIA driver.",
      );
    }
  }
  return unavailable(
    `The NVIDIA driver library ${files[0]} cannot be loaded: ${firstLine(firstFailure)}.`,
    "Install NVIDIA's driver; in a container, start it with the GPU passed through (for example `--gpus all`).",
  );
}

function bind(koffi: Koffi, library: ReturnType<Koffi["load"]>, file: string): DriverLibrary {
  const declare = (prototypes: readonly string[]): NativeFunction => {
    for (const prototype of prototypes.slice(0, -1)) {
      try {
        return library.func(prototype);
      } catch {
        // An older driver; the next prototype is what it has.
      }
    }
    return library.func(prototypes[prototypes.length - 1]!);
  };
  const bound: Record<string, NativeFunction | undefined> = {};
  for (const [name, prototypes] of Object.entries(required)) bound[name] = declare(prototypes);
  for (const [name, prototypes] of Object.entries(optional)) {
    try {
      bound[name] = declare(prototypes);
    } catch {
      bound[name] = undefined;
    }
  }
  const text = (symbol: string): ((status: Status) => string | undefined) => {
    const ask = library.func(`int ${symbol}(int status, void *text)`);
    const pointer = new BigUint64Array(1);
    return (status) =>
      ask(status, pointer) === 0 && pointer[0] !== 0n ? koffi.decode.string(pointer[0]) : undefined;
  };
  const own = {
    file,
    hostBlock: (bytes: number, alignment: number) => hostBlock(koffi, bytes, alignment),
    view: (address: Address, bytes: number) => koffi.view(BigInt(address), bytes),
    errorName: text("cuGetErrorName"),
    errorText: text("cuGetErrorString"),
  };
  // The prototypes above are what makes this assertion true.
  return Object.freeze({ ...bound, ...own }) as unknown as DriverLibrary;
}

/** An ArrayBuffer's memory never moves, so a part of a somewhat larger one has any alignment. */
function hostBlock(koffi: Koffi, bytes: number, alignment: number): HostBlock {
  const buffer = new ArrayBuffer(bytes + alignment);
  const start = Number(koffi.address(buffer));
  const offset = (alignment - (start % alignment)) % alignment;
  return { address: start + offset, bytes: new Uint8Array(buffer, offset, bytes) };
}

function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.split("\n", 1)[0]!.replace(/\.$/, "");
}
