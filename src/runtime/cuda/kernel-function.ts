/** @file One kernel of a loaded module, with what the driver knows about it after compiling. */
import { ArgumentError } from "../../errors.ts";
import type { DriverContext } from "./context.ts";
import type { Address } from "./driver-library.ts";
import type { LoadedModule } from "./modules.ts";

const functionAttribute = {
  maxThreadsPerBlock: 0,
  staticSharedBytes: 1,
  localBytes: 3,
  registers: 4,
  maxDynamicSharedBytes: 8,
  nonPortableClusterSizeAllowed: 14,
} as const;

/** Shared memory that a block can have without asking. */
const ordinarySharedBytes = 48 << 10;
/** Blocks per cluster that every device with clusters can run. */
const portableClusterBlocks = 8;

/** How a kernel is launched, the grid apart. */
export interface LaunchShape {
  readonly block: readonly [number, number, number];
  readonly cluster: readonly [number, number, number] | undefined;
  readonly dynamicSharedBytes: number;
}

/** A kernel that can be launched. Keeps its module loaded. */
export interface KernelFunction extends LaunchShape {
  readonly name: string;
  readonly handle: Address;
  readonly module: LoadedModule;
  readonly registersPerThread: number;
  /** Local memory per thread: spilled registers and arrays that could not be kept in registers. */
  readonly localBytes: number;
  readonly staticSharedBytes: number;
  /** Resident blocks per multiprocessor; 0 when not even one fits. */
  readonly blocksPerMultiprocessor: number;
}

/**
 * Finds a kernel and readies it for its launch shape. The context must be current.
 * @throws ArgumentError when the shape is more than the device or the compiled kernel can have
 */
export function openKernel(
  context: DriverContext,
  module: LoadedModule,
  name: string,
  shape: LaunchShape,
  sharedLimit: number,
): KernelFunction {
  const { library } = context;
  const out = new BigUint64Array(1);
  context.check(library.cuModuleGetFunction(out, module.handle, name), `Finding kernel ${name}`);
  const handle = Number(out[0]);
  const value = new Int32Array(1);
  const attribute = (which: number): number => {
    context.check(library.cuFuncGetAttribute(value, which, handle), `Asking about kernel ${name}`);
    return value[0]!;
  };

  const threads = shape.block[0] * shape.block[1] * shape.block[2];
  const registersPerThread = attribute(functionAttribute.registers);
  const threadLimit = attribute(functionAttribute.maxThreadsPerBlock);
  if (threads > threadLimit) {
    throw new ArgumentError(
      `Kernel ${name} has blocks of ${threads} threads; compiled with ${registersPerThread} registers per thread it can have ${threadLimit}.`,
    );
  }
  const staticSharedBytes = attribute(functionAttribute.staticSharedBytes);
  const sharedBytes = staticSharedBytes + shape.dynamicSharedBytes;
  // What a kernel declares itself the driver's compiler has checked.
  if (shape.dynamicSharedBytes > sharedLimit) {
    throw new ArgumentError(
      `Kernel ${name} needs ${shape.dynamicSharedBytes} bytes of shared memory per block; the device has ${sharedLimit}.`,
    );
  }
  const set = (which: number, to: number, what: string): void =>
    context.check(library.cuFuncSetAttribute(handle, which, to), `${what} for kernel ${name}`);
  if (sharedBytes > ordinarySharedBytes && shape.dynamicSharedBytes > 0) {
    set(
      functionAttribute.maxDynamicSharedBytes,
      shape.dynamicSharedBytes,
      "Raising the limit of shared memory",
    );
  }
  if (
    shape.cluster !== undefined &&
    shape.cluster[0] * shape.cluster[1] * shape.cluster[2] > portableClusterBlocks
  ) {
    set(functionAttribute.nonPortableClusterSizeAllowed, 1, "Allowing a large cluster");
  }
  const localBytes = attribute(functionAttribute.localBytes);
  context.check(
    library.cuOccupancyMaxActiveBlocksPerMultiprocessor(value, handle, threads, shape.dynamicSharedBytes),
    `Asking for the occupancy of kernel ${name}`,
  );
  return Object.freeze({
    ...shape,
    name,
    handle,
    module,
    registersPerThread,
    localBytes,
    staticSharedBytes,
    blocksPerMultiprocessor: value[0]!,
  });
}
