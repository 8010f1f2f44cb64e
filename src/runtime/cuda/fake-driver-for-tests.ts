/**
 * @file A driver that is JavaScript: a stream whose work happens later, memory with contents, contexts that must be
 * current, host blocks that the garbage collector may take. What a real driver would only be hurt by is an error here.
 */
import type { Address, DriverLibrary, HostBlock, Status } from "./driver-library.ts";

/** A kernel that the fake can run: bytes of each parameter, and what it does. */
export interface FakeKernel {
  readonly parameterBytes: readonly number[];
  readonly run?: (launch: FakeLaunch) => Status | undefined;
  readonly attributes?: Readonly<Record<number, number>>;
}

/** A launch as the driver saw it. */
export interface FakeLaunch {
  readonly kernel: string;
  readonly grid: readonly number[];
  readonly block: readonly number[];
  readonly cluster: readonly number[] | undefined;
  readonly dynamicSharedBytes: number;
  readonly parameters: readonly Uint8Array[];
}

/** What is unlike an ordinary machine. */
export interface FakeSettings {
  readonly initStatus?: Status;
  readonly driverVersion?: number;
  readonly devices?: number;
  readonly computeCapability?: readonly [number, number];
  readonly memoryBytes?: number;
  readonly pools?: boolean;
  /** Pieces of work that get done whenever an event is asked. */
  readonly stepsPerQuery?: number;
}

interface Allocation {
  readonly address: Address;
  readonly bytes: Uint8Array;
  freed: boolean;
}

const ok = 0;
const invalidValue = 1;
const outOfMemory = 2;
const invalidContext = 201;
const invalidHandle = 400;
const illegalState = 401;
const notFound = 500;
const notReady = 600;

const names: Readonly<Record<number, readonly [string, string]>> = {
  1: ["CUDA_ERROR_INVALID_VALUE", "invalid argument"],
  2: ["CUDA_ERROR_OUT_OF_MEMORY", "out of memory"],
  100: ["CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"],
  201: ["CUDA_ERROR_INVALID_CONTEXT", "invalid device context"],
  218: ["CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"],
  222: ["CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."],
  500: ["CUDA_ERROR_NOT_FOUND", "named symbol not found"],
  700: ["CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"],
  701: ["CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"],
};

/** {@link DriverLibrary} in memory. */
export class FakeDriver implements DriverLibrary {
  readonly file = "fake";
  /** Names of the functions called, cuCtxSetCurrent and cuEventQuery left out, with what a test may look for. */
  readonly calls: string[] = [];
  readonly launches: FakeLaunch[] = [];
  readonly kernels: Map<string, FakeKernel> = new Map();
  readonly attributesSet: [number, number][] = [];
  readonly maps: unknown[][] = [];
  /** Allocations and pools that were not given back. */
  readonly settings: FakeSettings;
  /** Answer of the next launches. */
  launchStatus: Status = ok;
  /** Contexts lost for good. */
  sticky: Status = ok;
  contextReferences = 0;
  readonly context = 0xc0;
  current: Address = 0;

  readonly cuMemPoolCreate: DriverLibrary["cuMemPoolCreate"];
  readonly cuMemAllocFromPoolAsync: DriverLibrary["cuMemAllocFromPoolAsync"];

  readonly #work: (() => void)[] = [];
  /** What a capture has taken so far. */
  #captured: (() => void)[] | undefined;
  readonly #graphs: Map<Address, readonly (() => void)[]> = new Map();
  readonly #done: Set<Address> = new Set();
  readonly #events: Set<Address> = new Set();
  readonly #blocks: {
    readonly address: Address;
    readonly bytes: number;
    readonly memory: WeakRef<ArrayBuffer>;
  }[] = [];
  readonly #pinned: Map<Address, ArrayBuffer> = new Map();
  readonly #device: Allocation[] = [];
  readonly #modules: Map<Address, readonly string[]> = new Map();
  readonly #functions: Map<Address, string> = new Map();
  #nextHandle = 0x1000;
  #nextHost = 0x1000_0000;
  #nextDevice = 0x7f_0000_0000;
  #clock = 0;
  readonly #times: Map<Address, number> = new Map();

  constructor(settings: FakeSettings = {}) {
    this.settings = settings;
    const pools = settings.pools ?? true;
    this.cuMemPoolCreate = pools
      ? (pool, properties) => {
          this.calls.push(`cuMemPoolCreate ${[...new Int32Array(properties.slice(0, 16).buffer)].join()}`);
          pool[0] = BigInt(this.#handle());
          return ok;
        }
      : undefined;
    this.cuMemAllocFromPoolAsync = pools ? (out, bytes) => this.#allocate(out, bytes) : undefined;
  }

  /** Bytes allocated on the device now. */
  get allocated(): number {
    return this.#device.filter((a) => !a.freed).reduce((sum, a) => sum + a.bytes.length, 0);
  }

  /** Bytes of page-locked memory now. */
  get pinned(): number {
    return [...this.#pinned.values()].reduce((sum, buffer) => sum + buffer.byteLength, 0);
  }

  /** Modules loaded now. */
  get modules(): number {
    return this.#modules.size;
  }

  /** Graphs that were not given back. */
  get graphs(): number {
    return this.#graphs.size;
  }

  /** Pieces of work not done yet. */
  get queued(): number {
    return this.#work.length;
  }

  /** Does the oldest pieces of work. */
  advance(steps: number = Number.POSITIVE_INFINITY): void {
    for (let step = 0; step < steps && this.#work.length > 0; step++) {
      this.#clock++;
      const work = this.#work.shift()!;
      if (this.sticky === ok) work();
    }
  }

  /** Device memory. Work not done yet does not show. */
  memoryAt(address: Address, bytes: number): Uint8Array {
    const found = this.#device.find(
      (a) => !a.freed && address >= a.address && address + bytes <= a.address + a.bytes.length,
    );
    if (found === undefined)
      throw new Error(`device address ${address.toString(16)} (${bytes} bytes) is not allocated`);
    return found.bytes.subarray(address - found.address, address - found.address + bytes);
  }

  /** Host memory that native code was given the address of. */
  hostAt(address: Address, bytes: number): Uint8Array {
    for (const [start, buffer] of this.#pinned) {
      if (address >= start && address + bytes <= start + buffer.byteLength) {
        return new Uint8Array(buffer, address - start, bytes);
      }
    }
    for (const block of this.#blocks) {
      if (address < block.address || address + bytes > block.address + block.bytes) continue;
      const memory = block.memory.deref();
      if (memory === undefined)
        throw new Error(`the garbage collector took host address ${address.toString(16)}`);
      return new Uint8Array(memory, address - block.address, bytes);
    }
    throw new Error(`host address ${address.toString(16)} (${bytes} bytes) is unknown`);
  }

  hostBlock(bytes: number, alignment: number): HostBlock {
    const memory = new ArrayBuffer(bytes);
    const address = Math.ceil(this.#nextHost / alignment) * alignment;
    // The next block is at an odd place, so that only asking for alignment gives any.
    this.#nextHost = address + bytes + 8;
    this.#blocks.push({ address, bytes, memory: new WeakRef(memory) });
    return { address, bytes: new Uint8Array(memory) };
  }

  view(address: Address, bytes: number): ArrayBuffer {
    const buffer = this.#pinned.get(address);
    if (buffer?.byteLength !== bytes) throw new Error("a view of unknown memory");
    return buffer;
  }

  errorName(status: Status): string | undefined {
    return names[status]?.[0];
  }

  errorText(status: Status): string | undefined {
    return names[status]?.[1];
  }

  cuInit(): Status {
    return this.settings.initStatus ?? ok;
  }

  cuDriverGetVersion(version: Int32Array): Status {
    version[0] = this.settings.driverVersion ?? 13000;
    return ok;
  }

  cuDeviceGetCount(count: Int32Array): Status {
    count[0] = this.settings.devices ?? 1;
    return ok;
  }

  cuDeviceGet(device: Int32Array, ordinal: number): Status {
    device[0] = ordinal;
    return ok;
  }

  cuDeviceGetName(name: Uint8Array): Status {
    name.set(new TextEncoder().encode("Fake H200\0"));
    return ok;
  }

  cuDeviceTotalMem(bytes: BigUint64Array): Status {
    bytes[0] = BigInt(this.#memoryBytes);
    return ok;
  }

  cuDeviceGetAttribute(value: Int32Array, attribute: number): Status {
    const [major, minor] = this.settings.computeCapability ?? [9, 0];
    const attributes: Record<number, number> = {
      1: 1024,
      16: 132,
      38: 50 << 20,
      75: major,
      76: minor,
      81: 233472,
      82: 65536,
      97: 232448,
      115: this.settings.pools === false ? 0 : 1,
    };
    const found = attributes[attribute];
    if (found === undefined) return invalidValue;
    value[0] = found;
    return ok;
  }

  cuDevicePrimaryCtxRetain(context: BigUint64Array): Status {
    this.contextReferences++;
    context[0] = BigInt(this.context);
    return ok;
  }

  cuDevicePrimaryCtxRelease(): Status {
    this.contextReferences--;
    return ok;
  }

  cuCtxSetCurrent(context: Address): Status {
    this.current = context;
    return ok;
  }

  cuStreamCreate(stream: BigUint64Array, flags: number): Status {
    return this.#call(`cuStreamCreate ${flags}`, () => this.#give(stream));
  }

  cuStreamDestroy(): Status {
    return this.#call("cuStreamDestroy");
  }

  cuStreamSynchronize(): Status {
    return this.#call("cuStreamSynchronize", () => {
      this.advance();
      return this.sticky;
    });
  }

  cuEventCreate(event: BigUint64Array, flags: number): Status {
    return this.#call(`cuEventCreate ${flags}`, () => {
      this.#give(event);
      this.#events.add(Number(event[0]));
      return ok;
    });
  }

  cuEventDestroy(event: Address): Status {
    this.#events.delete(event);
    return ok;
  }

  cuEventRecord(event: Address): Status {
    return this.#call("cuEventRecord", () => {
      if (!this.#events.has(event)) return invalidHandle;
      this.#done.delete(event);
      this.#work.push(() => {
        this.#done.add(event);
        this.#times.set(event, this.#clock);
      });
      return ok;
    });
  }

  cuEventQuery(event: Address): Status {
    this.advance(this.settings.stepsPerQuery ?? 0);
    if (this.sticky !== ok) return this.sticky;
    if (this.current !== this.context) return invalidContext;
    return this.#done.has(event) ? ok : notReady;
  }

  cuEventSynchronize(event: Address): Status {
    return this.#call("cuEventSynchronize", () => {
      while (!this.#done.has(event) && this.#work.length > 0 && this.sticky === ok) this.advance(1);
      return this.sticky;
    });
  }

  cuEventElapsedTime(milliseconds: Float32Array, start: Address, end: Address): Status {
    milliseconds[0] = this.#times.get(end)! - this.#times.get(start)!;
    return ok;
  }

  cuMemGetInfo(free: BigUint64Array, total: BigUint64Array): Status {
    free[0] = BigInt(this.#memoryBytes - this.allocated);
    total[0] = BigInt(this.#memoryBytes);
    return ok;
  }

  cuMemAlloc(out: BigUint64Array, bytes: number): Status {
    return this.#allocate(out, bytes);
  }

  cuMemFree(address: Address): Status {
    return this.#call("cuMemFree", () => this.#free(address));
  }

  cuMemHostAlloc(out: BigUint64Array, bytes: number): Status {
    return this.#call(`cuMemHostAlloc ${bytes}`, () => {
      const address = Math.ceil(this.#nextHost / 4096) * 4096;
      this.#nextHost = address + bytes;
      this.#pinned.set(address, new ArrayBuffer(bytes));
      out[0] = BigInt(address);
      return ok;
    });
  }

  cuMemFreeHost(address: Address): Status {
    return this.#call("cuMemFreeHost", () => (this.#pinned.delete(address) ? ok : invalidValue));
  }

  cuMemcpyHtoDAsync(target: Address, source: Address, bytes: number): Status {
    return this.#enqueue(`cuMemcpyHtoDAsync ${bytes}`, () => {
      this.memoryAt(target, bytes).set(this.hostAt(source, bytes));
    });
  }

  cuMemcpyDtoHAsync(target: Address, source: Address, bytes: number): Status {
    return this.#enqueue(`cuMemcpyDtoHAsync ${bytes}`, () => {
      this.hostAt(target, bytes).set(this.memoryAt(source, bytes));
    });
  }

  cuMemcpyDtoDAsync(target: Address, source: Address, bytes: number): Status {
    return this.#enqueue(`cuMemcpyDtoDAsync ${bytes}`, () => {
      this.memoryAt(target, bytes).set(this.memoryAt(source, bytes));
    });
  }

  cuMemcpyDtoH(target: Uint8Array, source: Address, bytes: number): Status {
    return this.#call(`cuMemcpyDtoH ${bytes}`, () => {
      target.set(this.memoryAt(source, bytes));
      return ok;
    });
  }

  cuMemsetD8Async(target: Address, value: number, count: number): Status {
    return this.#fill(8, target, value, count);
  }

  cuMemsetD16Async(target: Address, value: number, count: number): Status {
    return this.#fill(16, target, value, count);
  }

  cuMemsetD32Async(target: Address, value: number, count: number): Status {
    return this.#fill(32, target, value, count);
  }

  cuMemPoolDestroy(): Status {
    return this.#call("cuMemPoolDestroy", () => (this.allocated === 0 ? ok : invalidValue));
  }

  cuMemPoolSetAttribute(_pool: Address, attribute: number, value: BigUint64Array): Status {
    return this.#call(`cuMemPoolSetAttribute ${attribute} ${value[0]}`);
  }

  cuMemPoolGetAttribute(_pool: Address, attribute: number, value: BigUint64Array): Status {
    value[0] = BigInt(attribute === 5 ? this.allocated + 4096 : this.allocated);
    return ok;
  }

  cuMemPoolTrimTo(): Status {
    return this.#call("cuMemPoolTrimTo");
  }

  cuMemFreeAsync(address: Address): Status {
    return this.#enqueue("cuMemFreeAsync", () => {
      if (this.#free(address) !== ok) throw new Error("freed twice");
    });
  }

  /** Kernels are what `.entry` lines name; the word `wrong` is an error, `newer` is too new. */
  cuModuleLoadDataEx(
    module: BigUint64Array,
    image: Uint8Array,
    optionCount: number,
    options: Int32Array,
    values: BigUint64Array,
  ): Status {
    return this.#call("cuModuleLoadDataEx", () => {
      if (image[image.length - 1] !== 0) return invalidValue;
      const given = new Map(Array.from({ length: optionCount }, (_, i) => [options[i]!, Number(values[i])]));
      const write = (buffer: number, size: number, text: string): void =>
        this.hostAt(given.get(buffer)!, given.get(size)!).set(new TextEncoder().encode(`${text}\0`));
      const text = new TextDecoder().decode(image);
      if (text.includes("newer")) return 222;
      if (text.includes("wrong")) {
        write(5, 6, "ptxas application ptx input, line 3; error   : Unknown symbol 'wrong'");
        return 218;
      }
      write(3, 4, "ptxas info : Used 32 registers");
      this.#give(module);
      this.#modules.set(
        Number(module[0]),
        [...text.matchAll(/\.entry (\w+)/g)].map((match) => match[1]!),
      );
      return ok;
    });
  }

  cuModuleUnload(module: Address): Status {
    return this.#call("cuModuleUnload", () => (this.#modules.delete(module) ? ok : invalidHandle));
  }

  cuModuleGetFunction(kernel: BigUint64Array, module: Address, name: string): Status {
    return this.#call(`cuModuleGetFunction ${name}`, () => {
      if (!this.#modules.get(module)?.includes(name)) return notFound;
      this.#give(kernel);
      this.#functions.set(Number(kernel[0]), name);
      return ok;
    });
  }

  cuFuncGetAttribute(value: Int32Array, attribute: number, kernel: Address): Status {
    const known: Record<number, number> = { 0: 1024, 1: 0, 3: 0, 4: 32 };
    value[0] = this.#kernel(kernel).attributes?.[attribute] ?? known[attribute] ?? -1;
    return ok;
  }

  cuFuncSetAttribute(_kernel: Address, attribute: number, value: number): Status {
    this.attributesSet.push([attribute, value]);
    return ok;
  }

  cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: Int32Array): Status {
    blocks[0] = 2;
    return ok;
  }

  cuLaunchKernel(
    kernel: Address,
    gridX: number,
    gridY: number,
    gridZ: number,
    blockX: number,
    blockY: number,
    blockZ: number,
    dynamicSharedBytes: number,
    _stream: Address,
    parameters: Address,
  ): Status {
    const grid = [gridX, gridY, gridZ];
    return this.#launch(
      "cuLaunchKernel",
      kernel,
      grid,
      [blockX, blockY, blockZ],
      undefined,
      dynamicSharedBytes,
      parameters,
    );
  }

  cuLaunchKernelEx(configuration: Address, kernel: Address, parameters: Address): Status {
    const words = new DataView(this.hostAt(configuration, 56).slice().buffer);
    const three = (view: DataView, at: number): number[] =>
      [0, 4, 8].map((o) => view.getUint32(at + o, true));
    const attribute = new DataView(this.hostAt(Number(words.getBigUint64(40, true)), 72).slice().buffer);
    if (words.getUint32(48, true) !== 1 || attribute.getUint32(0, true) !== 4) return invalidValue;
    return this.#launch(
      "cuLaunchKernelEx",
      kernel,
      three(words, 0),
      three(words, 12),
      three(attribute, 8),
      words.getUint32(24, true),
      parameters,
    );
  }

  cuStreamBeginCapture(_stream: Address, mode: number): Status {
    return this.#call(`cuStreamBeginCapture ${mode}`, () => {
      if (this.#captured !== undefined) return illegalState;
      this.#captured = [];
      return ok;
    });
  }

  cuStreamEndCapture(_stream: Address, graph: BigUint64Array): Status {
    return this.#call("cuStreamEndCapture", () => {
      if (this.#captured === undefined) return illegalState;
      this.#give(graph);
      this.#graphs.set(Number(graph[0]), this.#captured);
      this.#captured = undefined;
      return ok;
    });
  }

  cuGraphInstantiateWithFlags(executable: BigUint64Array, graph: Address): Status {
    return this.#call("cuGraphInstantiateWithFlags", () => {
      const work = this.#graphs.get(graph);
      if (work === undefined) return invalidHandle;
      this.#give(executable);
      this.#graphs.set(Number(executable[0]), work);
      return ok;
    });
  }

  cuGraphLaunch(executable: Address): Status {
    return this.#call("cuGraphLaunch", () => {
      const work = this.#graphs.get(executable);
      if (work === undefined) return invalidHandle;
      this.#work.push(...work);
      return ok;
    });
  }

  cuGraphDestroy(graph: Address): Status {
    return this.#call("cuGraphDestroy", () => (this.#graphs.delete(graph) ? ok : invalidHandle));
  }

  cuGraphExecDestroy(executable: Address): Status {
    return this.#call("cuGraphExecDestroy", () => (this.#graphs.delete(executable) ? ok : invalidHandle));
  }

  cuTensorMapEncodeTiled(map: Address, ...rest: unknown[]): Status {
    if (map % 64 !== 0) return invalidValue;
    this.hostAt(map, 128).fill(0xab);
    this.maps.push(rest);
    return ok;
  }

  cuTensorMapEncodeIm2col(map: Address, ...rest: unknown[]): Status {
    return this.cuTensorMapEncodeTiled(map, ...rest);
  }

  get #memoryBytes(): number {
    return this.settings.memoryBytes ?? 1 << 30;
  }

  #handle(): Address {
    this.#nextHandle += 0x10;
    return this.#nextHandle;
  }

  #give(out: BigUint64Array): Status {
    out[0] = BigInt(this.#handle());
    return ok;
  }

  #call(name: string, action: () => Status = () => ok): Status {
    this.calls.push(name);
    if (this.sticky !== ok) return this.sticky;
    if (this.current !== this.context) return invalidContext;
    return action();
  }

  #enqueue(name: string, work: () => void): Status {
    return this.#call(name, () => {
      this.#push(work);
      return ok;
    });
  }

  #push(work: () => void): void {
    (this.#captured ?? this.#work).push(work);
  }

  #allocate(out: BigUint64Array, bytes: number): Status {
    return this.#call(`allocate ${bytes}`, () => {
      if (bytes <= 0) return invalidValue;
      if (this.allocated + bytes > this.#memoryBytes) return outOfMemory;
      const address = this.#nextDevice;
      this.#nextDevice += Math.ceil(bytes / 512) * 512 + 512;
      this.#device.push({ address, bytes: new Uint8Array(bytes).fill(0xcd), freed: false });
      out[0] = BigInt(address);
      return ok;
    });
  }

  #free(address: Address): Status {
    const allocation = this.#device.find((a) => a.address === address && !a.freed);
    if (allocation === undefined) return invalidValue;
    allocation.freed = true;
    return ok;
  }

  #fill(bits: 8 | 16 | 32, target: Address, value: number, count: number): Status {
    if (target % (bits / 8) !== 0) return invalidValue;
    return this.#enqueue(`fill ${bits} x ${count}`, () => {
      const memory = this.memoryAt(target, (count * bits) / 8);
      for (let i = 0; i < memory.length; i++) memory[i] = value >>> (8 * (i % (bits / 8)));
    });
  }

  #kernel(handle: Address): FakeKernel {
    const name = this.#functions.get(handle);
    if (name === undefined) throw new Error("an unknown kernel handle");
    return this.kernels.get(name) ?? { parameterBytes: [] };
  }

  #launch(
    call: string,
    handle: Address,
    grid: readonly number[],
    block: readonly number[],
    cluster: readonly number[] | undefined,
    dynamicSharedBytes: number,
    parameters: Address,
  ): Status {
    return this.#call(call, () => {
      if (this.launchStatus !== ok) return this.launchStatus;
      const kernel = this.#kernel(handle);
      const addresses = new DataView(
        this.hostAt(parameters, 8 * kernel.parameterBytes.length).slice().buffer,
      );
      // A driver copies the arguments now, and only these bytes of each.
      const copied = kernel.parameterBytes.map((bytes, i) => {
        const address = Number(addresses.getBigUint64(8 * i, true));
        if (address % (bytes === 128 ? 64 : bytes) !== 0) throw new Error(`argument ${i} is not aligned`);
        return this.hostAt(address, bytes).slice();
      });
      const name = this.#functions.get(handle)!;
      const launch = { kernel: name, grid, block, cluster, dynamicSharedBytes, parameters: copied };
      this.launches.push(launch);
      this.#push(() => {
        this.sticky = kernel.run?.(launch) ?? ok;
      });
      return ok;
    });
  }
}
