/**
 * @file Launches. All that can be worked out beforehand is: a launch writes at most three words and makes one call that
 * counts.
 */
import { ArgumentError, DisposedError } from "../../errors.ts";
import type { TargetFacts } from "../../target/facts.ts";
import type { ArgumentValue, PreparedLaunch } from "../backend.ts";
import { type ArgumentLayout, viewOf, writeAddresses, writeNumber, writeWord } from "./arguments.ts";
import type { DriverContext } from "./context.ts";
import type { Address, HostBlock } from "./driver-library.ts";
import type { KernelFunction } from "./kernel-function.ts";
import type { CudaBuffer, DeviceMemory } from "./memory.ts";
import { isFault, status, statusError } from "./status.ts";
import { encodeTensorMap, tensorMapAlignment } from "./tensor-map.ts";

/** CUlaunchConfig, then one CUlaunchAttribute; byte offsets. */
const configuration = {
  grid: 0,
  block: 12,
  dynamicSharedBytes: 24,
  stream: 32,
  attributes: 40,
  attributeCount: 48,
  firstAttribute: 56,
  attributeValue: 64,
  bytes: 128,
} as const;

const attributeClusterDimension = 4;
const outOfResources = 701;

/** A kernel with its arguments in native memory, ready for any grid. Holds the memory and the buffers. */
export class CudaPreparedLaunch implements PreparedLaunch {
  readonly kernel: KernelFunction;
  readonly buffers: readonly CudaBuffer[];
  /** The array of arguments' addresses. */
  readonly parameters: Address;
  /** CUlaunchConfig, and its grid as three words; for kernels with clusters. */
  readonly configuration: Address;
  readonly grid: Uint32Array | undefined;
  #block: HostBlock | undefined;

  constructor(
    kernel: KernelFunction,
    buffers: readonly CudaBuffer[],
    block: HostBlock,
    addressesOffset: number,
    configurationOffset: number | undefined,
  ) {
    this.kernel = kernel;
    this.buffers = buffers;
    this.#block = block;
    this.parameters = block.address + addressesOffset;
    this.configuration = block.address + (configurationOffset ?? 0);
    this.grid =
      configurationOffset === undefined
        ? undefined
        : new Uint32Array(block.bytes.buffer, block.bytes.byteOffset + configurationOffset, 3);
  }

  /** @throws DisposedError when the launch or one of its buffers is gone */
  checkAlive(): void {
    if (this.#block === undefined) {
      throw new DisposedError(`The prepared launch of kernel ${this.kernel.name} was disposed.`);
    }
    for (const buffer of this.buffers) {
      if (buffer.freed) {
        throw new DisposedError(`The launch of kernel ${this.kernel.name} uses an array that was disposed.`);
      }
    }
  }

  /** The driver copies arguments when a launch is enqueued, so earlier launches do not mind. */
  dispose(): void {
    this.#block = undefined;
  }
}

/** Prepares and enqueues launches on one device. */
export class Launcher {
  readonly #context: DriverContext;
  readonly #memory: DeviceMemory;
  readonly #limits: TargetFacts["limits"];
  /** Launches wait for their kernel's end, and so name it when it fails. */
  readonly #blocking: boolean = process.env.CUDA_LAUNCH_BLOCKING === "1";
  /** The launch whose memory the driver is reading: held here, the garbage collector cannot take it in between. */
  // biome-ignore lint/correctness/noUnusedPrivateClassMembers: written for the garbage collector to see
  #current: CudaPreparedLaunch | undefined;

  constructor(context: DriverContext, memory: DeviceMemory, limits: TargetFacts["limits"]) {
    this.#context = context;
    this.#memory = memory;
    this.#limits = limits;
  }

  /** Writes the arguments. @throws ArgumentError, DisposedError */
  prepare(
    kernel: KernelFunction,
    layout: ArgumentLayout,
    values: readonly ArgumentValue[],
  ): CudaPreparedLaunch {
    if (values.length !== layout.parameters.length) {
      throw new ArgumentError(
        `Kernel ${kernel.name} takes ${layout.parameters.length} native arguments; ${values.length} were given.`,
      );
    }
    const configurationOffset = kernel.cluster === undefined ? undefined : layout.bytes;
    const bytes = layout.bytes + (configurationOffset === undefined ? 0 : configuration.bytes);
    const block = this.#context.library.hostBlock(bytes, tensorMapAlignment);
    const buffers = new Set<CudaBuffer>();
    writeAddresses(layout, block);
    for (const [index, value] of values.entries()) {
      this.#writeValue(kernel, layout, block, index, value, buffers);
    }
    if (configurationOffset !== undefined) this.#writeConfiguration(kernel, block, configurationOffset);
    return new CudaPreparedLaunch(kernel, [...buffers], block, layout.addressesOffset, configurationOffset);
  }

  /** Enqueues. @throws ArgumentError for a bad grid, DisposedError, DeviceError */
  launch(prepared: CudaPreparedLaunch, x: number, y: number, z: number): void {
    const { kernel } = prepared;
    this.#checkGrid(kernel, x, y, z);
    prepared.checkAlive();
    this.#context.enter();
    const { library, stream } = this.#context;
    this.#current = prepared;
    let code: number;
    if (prepared.grid === undefined) {
      const { block } = kernel;
      code = library.cuLaunchKernel(
        kernel.handle,
        x,
        y,
        z,
        block[0],
        block[1],
        block[2],
        kernel.dynamicSharedBytes,
        stream,
        prepared.parameters,
        0,
      );
    } else {
      prepared.grid[0] = x;
      prepared.grid[1] = y;
      prepared.grid[2] = z;
      code = library.cuLaunchKernelEx!(prepared.configuration, kernel.handle, prepared.parameters, 0);
    }
    this.#current = undefined;
    const { history } = this.#context;
    if (code !== status.success) this.#fail(code, prepared, x, y, z);
    history.record(kernel.name, x, y, z);
    if (this.#blocking) history.settle(history.count);
  }

  #writeValue(
    kernel: KernelFunction,
    layout: ArgumentLayout,
    block: HostBlock,
    index: number,
    value: ArgumentValue,
    buffers: Set<CudaBuffer>,
  ): void {
    const parameter = layout.parameters[index]!;
    const offset = layout.offsets[index]!;
    const what = `Argument ${index} of kernel ${kernel.name}`;
    if (value.kind === "pointer" && parameter.kind === "pointer") {
      const address = this.#memory.resolve(value.buffer, value.byteOffset, value.byteLength, what);
      buffers.add(this.#memory.own(value.buffer, what));
      writeWord(viewOf(block), offset, address);
    } else if (value.kind === "number" && parameter.kind === "number") {
      writeNumber(viewOf(block), offset, parameter.element, value.value, what);
    } else if (value.kind === "tensorMap" && parameter.kind === "tensorMap") {
      const buffer = this.#memory.own(value.view.buffer, what);
      buffers.add(buffer);
      const base = buffer.address + value.view.byteOffset;
      encodeTensorMap(this.#context, value.map, value.view, base, buffer.bytes, block.address + offset);
    } else {
      throw new ArgumentError(`${what} is a ${parameter.kind}; a ${value.kind} was given.`);
    }
  }

  #writeConfiguration(kernel: KernelFunction, block: HostBlock, offset: number): void {
    const view = new DataView(block.bytes.buffer, block.bytes.byteOffset + offset, configuration.bytes);
    for (let dimension = 0; dimension < 3; dimension++) {
      view.setUint32(configuration.block + 4 * dimension, kernel.block[dimension]!, true);
      view.setUint32(configuration.attributeValue + 4 * dimension, kernel.cluster![dimension]!, true);
    }
    view.setUint32(configuration.dynamicSharedBytes, kernel.dynamicSharedBytes, true);
    writeWord(view, configuration.stream, this.#context.stream);
    writeWord(view, configuration.attributes, block.address + offset + configuration.firstAttribute);
    view.setUint32(configuration.attributeCount, 1, true);
    view.setUint32(configuration.firstAttribute, attributeClusterDimension, true);
  }

  #checkGrid(kernel: KernelFunction, x: number, y: number, z: number): void {
    const { gridX, gridY, gridZ } = this.#limits;
    const fits =
      Number.isInteger(x) &&
      Number.isInteger(y) &&
      Number.isInteger(z) &&
      x >= 1 &&
      y >= 1 &&
      z >= 1 &&
      x <= gridX &&
      y <= gridY &&
      z <= gridZ;
    if (!fits) {
      throw new ArgumentError(
        `Kernel ${kernel.name} cannot be launched with a grid of ${x} x ${y} x ${z} blocks: each extent is a whole number from 1 on, at most ${gridX} x ${gridY} x ${gridZ}.`,
      );
    }
    const { cluster } = kernel;
    if (cluster !== undefined && (x % cluster[0] !== 0 || y % cluster[1] !== 0 || z % cluster[2] !== 0)) {
      throw new ArgumentError(
        `Kernel ${kernel.name} cannot be launched with a grid of ${x} x ${y} x ${z} blocks: it runs in clusters of ${cluster.join(" x ")}, and each extent must be a multiple.`,
      );
    }
  }

  #fail(code: number, { kernel }: CudaPreparedLaunch, x: number, y: number, z: number): never {
    if (isFault(code)) {
      if (this.#blocking) this.#context.history.record(kernel.name, x, y, z);
      throw this.#context.recordFault(code);
    }
    const threads = kernel.block[0] * kernel.block[1] * kernel.block[2];
    const needs = `It has ${threads} threads per block, ${kernel.registersPerThread} registers per thread, ${kernel.staticSharedBytes + kernel.dynamicSharedBytes} bytes of shared memory${kernel.cluster === undefined ? "" : `, clusters of ${kernel.cluster.join(" x ")}`}.`;
    throw statusError(
      this.#context.library,
      code,
      `Launching kernel ${kernel.name} with a grid of ${x} x ${y} x ${z}`,
      code === outOfResources ? `${needs} Make blocks or tiles smaller.` : needs,
    );
  }
}
