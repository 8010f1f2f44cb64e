/**
 * @file The part of the CUDA driver API (libcuda) that this backend calls, as it is in C.
 *
 * Names and argument order are those of the driver's reference manual, without the `_v2` that the exported symbols of
 * some carry. Numbers pass by value. What a function writes goes to a typed array; handles and addresses are exact
 * numbers, since user space ends far below 2^53.
 *
 * The driver keeps reading some memory after JavaScript has forgotten it, so memory that it is given by *address* comes
 * from {@link DriverLibrary.hostBlock} or from the driver itself, and whoever passes the address holds the owner until
 * the driver is done.
 */

/** A CUresult; 0 is success. */
export type Status = number;

/** An address on host or device, or a handle of the driver. */
export type Address = number;

/** Memory at a fixed address. It lives for as long as this object or `bytes` is referenced. */
export interface HostBlock {
  readonly address: Address;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Entry points of libcuda. Those that older drivers lack may be undefined. */
export interface DriverLibrary {
  /** The file that was loaded. */
  readonly file: string;

  /** Zeroed host memory at a multiple of `alignment` (a power of two). */
  hostBlock(bytes: number, alignment: number): HostBlock;
  /** Memory that the driver owns, without a copy. The driver must outlive the view. */
  view(address: Address, bytes: number): ArrayBuffer;

  /** cuGetErrorName; undefined for a status that the driver does not know. */
  errorName(status: Status): string | undefined;
  /** cuGetErrorString. */
  errorText(status: Status): string | undefined;

  cuInit(flags: number): Status;
  cuDriverGetVersion(version: Int32Array): Status;

  cuDeviceGetCount(count: Int32Array): Status;
  cuDeviceGet(device: Int32Array, ordinal: number): Status;
  cuDeviceGetName(name: Uint8Array, length: number, device: number): Status;
  cuDeviceTotalMem(bytes: BigUint64Array, device: number): Status;
  cuDeviceGetAttribute(value: Int32Array, attribute: number, device: number): Status;

  cuDevicePrimaryCtxRetain(context: BigUint64Array, device: number): Status;
  cuDevicePrimaryCtxRelease(device: number): Status;
  cuCtxSetCurrent(context: Address): Status;

  cuStreamCreate(stream: BigUint64Array, flags: number): Status;
  cuStreamDestroy(stream: Address): Status;
  cuStreamSynchronize(stream: Address): Status;

  cuEventCreate(event: BigUint64Array, flags: number): Status;
  cuEventDestroy(event: Address): Status;
  cuEventRecord(event: Address, stream: Address): Status;
  cuEventQuery(event: Address): Status;
  cuEventSynchronize(event: Address): Status;
  cuEventElapsedTime(milliseconds: Float32Array, start: Address, end: Address): Status;

  cuMemGetInfo(free: BigUint64Array, total: BigUint64Array): Status;
  cuMemAlloc(address: BigUint64Array, bytes: number): Status;
  cuMemFree(address: Address): Status;
  cuMemHostAlloc(address: BigUint64Array, bytes: number, flags: number): Status;
  cuMemFreeHost(address: Address): Status;
  cuMemcpyHtoDAsync(target: Address, source: Address, bytes: number, stream: Address): Status;
  cuMemcpyDtoHAsync(target: Address, source: Address, bytes: number, stream: Address): Status;
  cuMemcpyDtoDAsync(target: Address, source: Address, bytes: number, stream: Address): Status;
  /** Waits for the copy. */
  cuMemcpyDtoH(target: Uint8Array, source: Address, bytes: number): Status;
  cuMemsetD8Async(target: Address, value: number, count: number, stream: Address): Status;
  cuMemsetD16Async(target: Address, value: number, count: number, stream: Address): Status;
  cuMemsetD32Async(target: Address, value: number, count: number, stream: Address): Status;

  /** Driver 11.3. `properties` is a CUmemPoolProps. */
  readonly cuMemPoolCreate: ((pool: BigUint64Array, properties: Uint8Array) => Status) | undefined;
  readonly cuMemPoolDestroy: ((pool: Address) => Status) | undefined;
  readonly cuMemPoolSetAttribute:
    | ((pool: Address, attribute: number, value: BigUint64Array) => Status)
    | undefined;
  readonly cuMemPoolGetAttribute:
    | ((pool: Address, attribute: number, value: BigUint64Array) => Status)
    | undefined;
  readonly cuMemPoolTrimTo: ((pool: Address, bytesToKeep: number) => Status) | undefined;
  readonly cuMemAllocFromPoolAsync:
    | ((address: BigUint64Array, bytes: number, pool: Address, stream: Address) => Status)
    | undefined;
  readonly cuMemFreeAsync: ((address: Address, stream: Address) => Status) | undefined;

  /** `image` is text that ends in a zero byte. `values` has one pointer-sized word per option. */
  cuModuleLoadDataEx(
    module: BigUint64Array,
    image: Uint8Array,
    optionCount: number,
    options: Int32Array,
    values: BigUint64Array,
  ): Status;
  cuModuleUnload(module: Address): Status;
  cuModuleGetFunction(kernel: BigUint64Array, module: Address, name: string): Status;
  cuFuncGetAttribute(value: Int32Array, attribute: number, kernel: Address): Status;
  cuFuncSetAttribute(kernel: Address, attribute: number, value: number): Status;
  cuOccupancyMaxActiveBlocksPerMultiprocessor(
    blocks: Int32Array,
    kernel: Address,
    threadsPerBlock: number,
    dynamicSharedBytes: number,
  ): Status;

  /** `parameters` is the address of an array with one address per argument. */
  cuLaunchKernel(
    kernel: Address,
    gridX: number,
    gridY: number,
    gridZ: number,
    blockX: number,
    blockY: number,
    blockZ: number,
    dynamicSharedBytes: number,
    stream: Address,
    parameters: Address,
    extra: Address,
  ): Status;
  /** Driver 11.8. `configuration` is the address of a CUlaunchConfig. */
  readonly cuLaunchKernelEx:
    | ((configuration: Address, kernel: Address, parameters: Address, extra: Address) => Status)
    | undefined;

  /** Driver 11.4, as are the other calls for graphs. */
  readonly cuStreamBeginCapture: ((stream: Address, mode: number) => Status) | undefined;
  readonly cuStreamEndCapture: ((stream: Address, graph: BigUint64Array) => Status) | undefined;
  readonly cuGraphInstantiateWithFlags:
    | ((executable: BigUint64Array, graph: Address, flags: number) => Status)
    | undefined;
  readonly cuGraphLaunch: ((executable: Address, stream: Address) => Status) | undefined;
  readonly cuGraphDestroy: ((graph: Address) => Status) | undefined;
  readonly cuGraphExecDestroy: ((executable: Address) => Status) | undefined;

  /** Driver 12.0. `map` is the address of 128 bytes at a multiple of 64. */
  readonly cuTensorMapEncodeTiled:
    | ((
        map: Address,
        dataType: number,
        rank: number,
        base: Address,
        sizes: BigUint64Array,
        byteStrides: BigUint64Array,
        box: Uint32Array,
        elementStrides: Uint32Array,
        interleave: number,
        swizzle: number,
        promotion: number,
        outOfBounds: number,
      ) => Status)
    | undefined;
  /** Driver 12.0. */
  readonly cuTensorMapEncodeIm2col:
    | ((
        map: Address,
        dataType: number,
        rank: number,
        base: Address,
        sizes: BigUint64Array,
        byteStrides: BigUint64Array,
        lowerCorner: Int32Array,
        upperCorner: Int32Array,
        channelsPerPixel: number,
        pixelsPerColumn: number,
        elementStrides: Uint32Array,
        interleave: number,
        swizzle: number,
        promotion: number,
        outOfBounds: number,
      ) => Status)
    | undefined;
}
