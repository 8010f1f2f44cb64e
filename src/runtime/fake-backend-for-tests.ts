/**
 * @file A backend of plain memory that notes launches and runs nothing.
 */
import type { TargetFacts } from "../target/facts.ts";
import type {
  ArgumentValue,
  Backend,
  BackendBuffer,
  CapturedWork,
  Executable,
  Module,
  PreparedLaunch,
} from "./backend.ts";
import { Recorder } from "./recorder.ts";

class FakeBuffer implements BackendBuffer {
  readonly memory: Uint8Array;
  freed = false;
  constructor(readonly bytes: number) {
    this.memory = new Uint8Array(bytes).fill(0xcd);
  }
}

export interface NotedLaunch {
  readonly kernel: string;
  readonly grid: readonly [number, number, number];
  readonly values: readonly ArgumentValue[];
}

export const fakeFacts: TargetFacts = {
  name: "simulator",
  language: "javascript",
  subgroup: { width: 32 },
  arithmetic: new Set(["f16", "bf16", "f32", "f64", "i32", "i64", "u32", "u64", "index"]),
  storage: new Set([
    "f16",
    "bf16",
    "f32",
    "f64",
    "e4m3",
    "e5m2",
    "i8",
    "i16",
    "i32",
    "i64",
    "u8",
    "u16",
    "u32",
    "u64",
  ]),
  limits: {
    threadsPerBlock: 1024,
    sharedBytes: 49152,
    registersPerThread: 255,
    namedBarriers: 16,
    gridX: 2 ** 31 - 1,
    gridY: 65535,
    gridZ: 65535,
    blocksPerCluster: 8,
  },
  mma: [],
  wmma: [],
  warpgroupMma: [],
  loadMatrix: false,
  storeMatrix: false,
  asyncCopy: true,
  packedDot: [],
  bulkCopy: true,
  barriers: true,
  registerReallocation: false,
  namedBarriers: true,
  subgroupOperations: true,
  fp8Conversion: true,
  byteAddressable: true,
  atomics: new Map(),
  machine: {
    multiprocessors: 4,
    sharedBytesPerMultiprocessor: 65536,
    registersPerMultiprocessor: 65536,
    l2Bytes: 2 ** 20,
    memoryBytes: 2 ** 30,
  },
};

export class FakeBackend implements Backend {
  readonly kind = "simulator";
  readonly name = "a fake";
  readonly facts = fakeFacts;
  readonly launches: NotedLaunch[] = [];
  readonly loaded: Module[] = [];
  writes = 0;
  liveBytes = 0;
  disposed = false;
  readonly #recorder = new Recorder();
  /** Thrown by the next load. */
  refusal: Error | undefined;

  allocate(bytes: number): FakeBuffer {
    this.liveBytes += bytes;
    return new FakeBuffer(bytes);
  }
  free(buffer: FakeBuffer): void {
    if (buffer.freed) throw new Error("freed twice");
    buffer.freed = true;
    this.liveBytes -= buffer.bytes;
  }
  write(buffer: FakeBuffer, byteOffset: number, data: Uint8Array): void {
    this.writes++;
    buffer.memory.set(data, byteOffset);
  }
  async read(buffer: FakeBuffer, byteOffset: number, target: Uint8Array): Promise<void> {
    target.set(buffer.memory.subarray(byteOffset, byteOffset + target.length));
  }
  copy(
    source: FakeBuffer,
    sourceOffset: number,
    target: FakeBuffer,
    targetOffset: number,
    bytes: number,
  ): void {
    target.memory.set(source.memory.subarray(sourceOffset, sourceOffset + bytes), targetOffset);
  }
  fill(buffer: FakeBuffer, byteOffset: number, bytes: number, pattern: number): void {
    buffer.memory.fill(pattern, byteOffset, byteOffset + bytes);
  }
  async load(module: Module): Promise<Executable> {
    const { refusal } = this;
    this.refusal = undefined;
    if (refusal !== undefined) throw refusal;
    this.loaded.push(module);
    return { module, registersPerThread: 32, spilledBytes: 0, blocksPerMultiprocessor: 2, log: "fine" };
  }
  prepare(
    _executable: Executable,
    values: readonly ArgumentValue[],
  ): PreparedLaunch & { readonly values: readonly ArgumentValue[] } {
    return { values, dispose() {} };
  }
  launch(executable: Executable, grid: readonly [number, number, number], prepared: PreparedLaunch): void {
    const { values } = prepared as ReturnType<FakeBackend["prepare"]>;
    if (this.#recorder.takes(() => this.launch(executable, grid, prepared))) return;
    this.launches.push({ kernel: executable.module.name, grid, values });
  }
  capture(enqueue: () => void): CapturedWork {
    return this.#recorder.record(enqueue);
  }
  async sync(): Promise<void> {}
  async time(enqueue: () => void): Promise<number> {
    enqueue();
    return 1e-3;
  }
  memory(): { readonly free: number; readonly total: number } {
    return { free: 1, total: 2 };
  }
  dispose(): void {
    this.disposed = true;
  }
}
