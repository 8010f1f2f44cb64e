/**
 * @file Launches. All that can be worked out beforehand is: a launch writes at most three words and makes one call that
 * counts.
 */
import { ArgumentError, DisposedError, UnsupportedError } from "../../errors.ts";
import type { TargetFacts } from "../../target/facts.ts";
import type { ArgumentValue, PreparedLaunch } from "../backend.ts";
import { type ArgumentLayout, viewOf, writeAddresses, writeNumber, writeWord } from "./arguments.ts";
import type { DriverContext } from "./context.ts";
import type { Address, HostBlock } from "./driver-library.ts";
import type { GraphCapture } from "./graph.ts";
import type { KernelFunction } from "./kernel-function.ts";
import type { CudaBuffer, DeviceMemory } from "./memory.ts";
import { isFault, status, statusError } from "./status.ts";
import { encodeTensorMap, tensorMapAlignment } from "./tensor-map.ts";

/** Byte offsets of CUlaunchConfig, which begins with the grid, followed by one CUlaunchAttribute. */
const launchConfig = {
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

/** Native memory of one prepared launch: arguments, their addresses and, for clusters, the launch's configuration. */
interface ArgumentBlock {
  readonly host: HostBlock;
  readonly view: DataView;
  readonly parameters: Address;
  /** CUlaunchConfig and the three words of it that are the grid, for kernels with clusters. */
  readonly configuration: { readonly address: Address; readonly grid: Uint32Array } | undefined;
}

/** What the launches of one kernel share. */
interface Shared {
  /** Blocks not in use; addresses and configuration are already written. */
  readonly idle: ArgumentBlock[];
  /** What to call each argument in a message. */
  readonly names: readonly string[];
}

const mostIdleBlocks = 16;

/** A kernel with its arguments in native memory, ready for any grid. Holds the memory and the buffers. */
export class CudaPreparedLaunch implements PreparedLaunch {
  readonly kernel: KernelFunction;
  readonly buffers: readonly CudaBuffer[];
  readonly #idle: ArgumentBlock[];
  #block: ArgumentBlock | undefined;

  constructor(
    kernel: KernelFunction,
    buffers: readonly CudaBuffer[],
    block: ArgumentBlock,
    idle: ArgumentBlock[],
  ) {
    this.kernel = kernel;
    this.buffers = buffers;
    this.#block = block;
    this.#idle = idle;
  }

  /** What the driver reads. @throws DisposedError when the launch or one of its buffers is gone */
  open(): ArgumentBlock {
    if (this.#block === undefined) {
      throw new DisposedError(`The prepared launch of kernel ${this.kernel.name} was disposed.`);
    }
    for (const buffer of this.buffers) {
      if (buffer.freed) {
        throw new DisposedError(`The launch of kernel ${this.kernel.name} uses an array that was disposed.`);
      }
    }
    return this.#block;
  }

  /** The driver copies arguments when a launch is enqueued, so earlier launches do not mind. */
  dispose(): void {
    if (this.#block === undefined) return;
    if (this.#idle.length < mostIdleBlocks) this.#idle.push(this.#block);
    this.#block = undefined;
  }
}

/** Prepares and enqueues launches on one device. */
export class Launcher {
  readonly #context: DriverContext;
  readonly #memory: DeviceMemory;
  readonly #graphs: GraphCapture;
  readonly #limits: TargetFacts["limits"];
  readonly #shared: WeakMap<ArgumentLayout, Shared> = new WeakMap();
  /** Launches wait for their kernel's end, and so name it when it fails. */
  readonly #blocking: boolean = process.env.CUDA_LAUNCH_BLOCKING === "1";
  /** The launch whose memory the driver is reading: held here, the garbage collector cannot take it in between. */
  // biome-ignore lint/correctness/noUnusedPrivateClassMembers: written for the garbage collector to see
  #current: CudaPreparedLaunch | undefined;

  constructor(
    context: DriverContext,
    memory: DeviceMemory,
    graphs: GraphCapture,
    limits: TargetFacts["limits"],
  ) {
    this.#context = context;
    this.#memory = memory;
    this.#graphs = graphs;
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
    const { idle, names } = this.#shared.get(layout) ?? this.#share(kernel, layout);
    const block = idle.pop() ?? this.#createBlock(kernel, layout);
    const buffers: CudaBuffer[] = [];
    for (let index = 0; index < values.length; index++) {
      this.#writeValue(layout, block, index, values[index]!, names[index]!, buffers);
    }
    return new CudaPreparedLaunch(kernel, buffers, block, idle);
  }

  /** Enqueues. @throws ArgumentError for a bad grid, DisposedError, DeviceError */
  launch(prepared: CudaPreparedLaunch, x: number, y: number, z: number): void {
    const { kernel } = prepared;
    this.#checkGrid(kernel, x, y, z);
    const { parameters, configuration } = prepared.open();
    this.#context.enter();
    const { library, stream } = this.#context;
    this.#current = prepared;
    let code: number;
    if (configuration === undefined) {
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
        parameters,
        0,
      );
    } else {
      const { address, grid } = configuration;
      grid[0] = x;
      grid[1] = y;
      grid[2] = z;
      code = library.cuLaunchKernelEx!(address, kernel.handle, parameters, 0);
    }
    this.#current = undefined;
    const { history } = this.#context;
    if (code !== status.success) this.#fail(code, prepared, x, y, z);
    if (this.#graphs.active) {
      this.#graphs.uses(...prepared.buffers);
      this.#graphs.launched(kernel.name, x, y, z);
      return;
    }
    history.record(kernel.name, x, y, z);
    if (this.#blocking) history.settle(history.count);
  }

  #share(kernel: KernelFunction, layout: ArgumentLayout): Shared {
    const names = layout.parameters.map((_, index) => `Argument ${index} of kernel ${kernel.name}`);
    const shared = { idle: [], names };
    this.#shared.set(layout, shared);
    return shared;
  }

  #writeValue(
    layout: ArgumentLayout,
    block: ArgumentBlock,
    index: number,
    value: ArgumentValue,
    what: string,
    buffers: CudaBuffer[],
  ): void {
    const parameter = layout.parameters[index]!;
    const offset = layout.offsets[index]!;
    if (value.kind === "pointer" && parameter.kind === "pointer") {
      const address = this.#memory.resolve(value.buffer, value.byteOffset, value.byteLength, what);
      buffers.push(this.#memory.own(value.buffer, what));
      writeWord(block.view, offset, address);
    } else if (value.kind === "number" && parameter.kind === "number") {
      writeNumber(block.view, offset, parameter.element, value.value, what);
    } else if (value.kind === "tensorMap" && parameter.kind === "tensorMap") {
      const buffer = this.#memory.own(value.view.buffer, what);
      buffers.push(buffer);
      const base = buffer.address + value.view.byteOffset;
      encodeTensorMap(this.#context, value.map, value.view, base, buffer.bytes, block.host.address + offset);
    } else {
      throw new ArgumentError(`${what} is a ${parameter.kind}; a ${value.kind} was given.`);
    }
  }

  #createBlock(kernel: KernelFunction, layout: ArgumentLayout): ArgumentBlock {
    const { library } = this.#context;
    const bytes = layout.bytes + (kernel.cluster === undefined ? 0 : launchConfig.bytes);
    const host = library.hostBlock(bytes, tensorMapAlignment);
    writeAddresses(layout, host);
    const block = { host, view: viewOf(host), parameters: host.address + layout.addressesOffset };
    if (kernel.cluster === undefined) return { ...block, configuration: undefined };
    if (library.cuLaunchKernelEx === undefined) {
      throw new UnsupportedError(
        `Kernel ${kernel.name} runs in clusters, which need an NVIDIA driver for CUDA 11.8 or newer.`,
      );
    }
    this.#writeConfiguration(kernel, host, layout.bytes);
    return {
      ...block,
      configuration: {
        address: host.address + layout.bytes,
        grid: new Uint32Array(host.bytes.buffer, host.bytes.byteOffset + layout.bytes, 3),
      },
    };
  }

  /** All of a CUlaunchConfig but the grid. */
  #writeConfiguration(kernel: KernelFunction, host: HostBlock, offset: number): void {
    const view = new DataView(host.bytes.buffer, host.bytes.byteOffset + offset, launchConfig.bytes);
    for (let dimension = 0; dimension < 3; dimension++) {
      view.setUint32(launchConfig.block + 4 * dimension, kernel.block[dimension]!, true);
      view.setUint32(launchConfig.attributeValue + 4 * dimension, kernel.cluster![dimension]!, true);
    }
    view.setUint32(launchConfig.dynamicSharedBytes, kernel.dynamicSharedBytes, true);
    writeWord(view, launchConfig.stream, this.#context.stream);
    writeWord(view, launchConfig.attributes, host.address + offset + launchConfig.firstAttribute);
    view.setUint32(launchConfig.attributeCount, 1, true);
    view.setUint32(launchConfig.firstAttribute, attributeClusterDimension, true);
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
