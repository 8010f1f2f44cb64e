/**
 * @file Work that goes on beside the threads: barriers that count arrivals and bytes (mbarrier), asynchronous copies
 * (cp.async), tensor copies (TMA), and the fences between them.
 */
import type { SharedArray, TensorMapParameter } from "../ir/nodes.ts";
import type { MemoryScope } from "../ir/operations.ts";
import { byteSize, type I32, i32, type StorageType, type U32, u32 } from "../types/types.ts";
import {
  type GlobalArray,
  type IndexOperand,
  indexOperand,
  type SharedMemory,
  sharedBarriers,
} from "./memory.ts";
import { tracer } from "./trace.ts";
import { type Operand, typedOperand, use } from "./value.ts";

/** Barriers in shared memory, each with a phase that completes when the expected arrivals and bytes have come. */
export class BarrierArray {
  constructor(
    readonly count: number,
    /** @internal */ readonly array: SharedArray,
  ) {}

  /** Prepares barrier `index` for `arrivals` arrivals a phase. One thread does it; {@link barrierInitFence} and a block barrier follow. */
  initialise(index: IndexOperand, arrivals: number): void {
    const trace = tracer();
    if (!Number.isInteger(arrivals) || arrivals < 1 || arrivals >= 2 ** 20) {
      throw trace.error(`a barrier expects 1 to ${2 ** 20 - 1} arrivals, not ${arrivals}`);
    }
    trace.emit("barrierInit", undefined, [indexOperand(index)], {
      array: this.array,
      offset: 0,
      count: arrivals,
    });
  }
  /** Arrives; with `rank`, on the same barrier of another block of the cluster. */
  arrive(index: IndexOperand, rank?: Operand<I32>): void {
    const operands = [indexOperand(index)];
    if (rank !== undefined) operands.push(use(typedOperand(rank, i32)));
    tracer().emit("barrierArrive", undefined, operands, { array: this.array, offset: 0 });
  }
  /** Arrives and announces bytes that asynchronous copies will deliver in this phase. */
  arriveExpect(index: IndexOperand, bytes: Operand<I32>): void {
    tracer().emit("barrierArriveExpect", undefined, [indexOperand(index), use(typedOperand(bytes, i32))], {
      array: this.array,
      offset: 0,
    });
  }
  /** Waits until the phase of this parity (0 first, then 1, 0, …) has completed; parity 1 passes at once on a fresh barrier. */
  wait(index: IndexOperand, parity: Operand<I32>): void {
    tracer().emit("barrierWait", undefined, [indexOperand(index), use(typedOperand(parity, i32))], {
      array: this.array,
      offset: 0,
    });
  }
  /** Arrives once this thread's earlier {@link copyAsync} calls are done. */
  arriveAfterCopies(index: IndexOperand): void {
    tracer().emit("copyAsyncArrive", undefined, [indexOperand(index)], { array: this.array, offset: 0 });
  }
}

/** `count` barriers in shared memory. */
export function barriers(count: number): BarrierArray {
  return new BarrierArray(count, sharedBarriers(count));
}

/** Makes barrier initialisation visible to the cluster and to asynchronous copies. */
export function barrierInitFence(): void {
  tracer().emit("barrierInitFence", undefined, [], {});
}

/** Makes this thread's ordinary writes to shared memory visible to asynchronous readers (tensor stores, warpgroup matrix products). */
export function proxyFence(): void {
  tracer().emit("proxyFence", undefined, [], {});
}

/** Orders this thread's memory accesses for observers in `scope`. */
export function fence(scope: MemoryScope): void {
  tracer().emit("fence", undefined, [], { scope });
}

/** Options of {@link copyAsync}. */
export interface CopyAsyncOptions {
  /** Bytes that count, 0 to all; the rest of the target becomes zero, and nothing is read for it. */
  readonly validBytes?: Operand<I32>;
  /** "second" passes the first-level cache by: what 16 bytes do by default, and smaller copies cannot. */
  readonly cache?: "first" | "second";
  /** Asks the second-level cache to fetch as many bytes around the source. */
  readonly prefetchBytes?: 64 | 128 | 256;
}

/** Starts copying `elements` consecutive elements (4, 8 or 16 bytes in all) from global to shared memory. */
export function copyAsync<T extends StorageType>(
  target: SharedMemory<T>,
  targetPosition: IndexOperand,
  source: GlobalArray<T>,
  sourcePosition: IndexOperand,
  elements: number,
  options: CopyAsyncOptions = {},
): void {
  const trace = tracer();
  const bytes = elements * byteSize(target.type);
  if (bytes !== 4 && bytes !== 8 && bytes !== 16) {
    throw trace.error(
      `an asynchronous copy moves 4, 8 or 16 bytes; ${elements} x ${target.type.name} is ${bytes}`,
    );
  }
  const operands = [indexOperand(targetPosition), indexOperand(source.positionOf(sourcePosition))];
  if (options.validBytes !== undefined) operands.push(use(typedOperand(options.validBytes, i32)));
  trace.emit("copyAsync", undefined, operands, {
    target: target.array,
    targetOffset: 0,
    source: source.reference,
    sourceOffset: 0,
    bytes,
    ...(options.cache && { cache: options.cache }),
    ...(options.prefetchBytes && { prefetchBytes: options.prefetchBytes }),
  });
}

/** Closes the group of this thread's copies since the last commit. */
export function copyAsyncCommit(): void {
  tracer().emit("copyAsyncCommit", undefined, [], {});
}

/** Waits until at most `pending` of this thread's newest groups are unfinished. */
export function copyAsyncWait(pending: number): void {
  tracer().emit("copyAsyncWait", undefined, [], { pending });
}

/** Which stage a load's bytes are received by. */
type Receiver = { readonly barriers: BarrierArray; readonly index: IndexOperand };

/** What all maps of global memory can do. */
abstract class GlobalMap<T extends StorageType> {
  constructor(
    readonly type: T,
    /** @internal */ readonly parameter: TensorMapParameter,
  ) {}

  /** Bytes that one load brings. */
  get boxBytes(): number {
    return this.parameter.box.reduce((product, extent) => product * extent, byteSize(this.type));
  }
  /** Fetches the map itself into cache. */
  prefetch(): void {
    tracer().emit("prefetchTensorMap", undefined, [], { map: this.parameter });
  }

  /** @internal */
  protected startLoad(
    target: SharedMemory<T>,
    targetPosition: IndexOperand,
    numbers: readonly Operand<I32>[],
    barrier: Receiver,
    multicast?: Operand<U32>,
  ): void {
    const operands = [
      indexOperand(targetPosition),
      indexOperand(barrier.index),
      ...numbers.map((number) => use(typedOperand(number, i32))),
    ];
    if (multicast !== undefined) operands.push(use(typedOperand(multicast, u32)));
    tracer().emit("tensorLoad", undefined, operands, {
      map: this.parameter,
      target: target.array,
      targetOffset: 0,
      barrier: barrier.barriers.array,
      barrierOffset: 0,
      multicast: multicast !== undefined,
    });
  }
}

/** A tensor in global memory, addressed by boxes. */
export class TensorMap<T extends StorageType> extends GlobalMap<T> {
  /**
   * Starts loading the box at `coordinates` (innermost first) into shared memory; `barrier` receives its bytes. Parts
   * outside the tensor become zero and count. `multicast` is a mask of the cluster's blocks that receive it.
   */
  load(
    target: SharedMemory<T>,
    targetPosition: IndexOperand,
    coordinates: readonly Operand<I32>[],
    barrier: Receiver,
    multicast?: Operand<U32>,
  ): void {
    this.#checkRank(coordinates);
    this.startLoad(target, targetPosition, coordinates, barrier, multicast);
  }

  /**
   * Starts storing shared memory to the box at `coordinates`; parts outside the tensor are dropped. Where a line of the
   * tensor ends, so must one of the 16 bytes that the engine writes at once: it overwrites the rest of them, too.
   */
  store(source: SharedMemory<T>, sourcePosition: IndexOperand, coordinates: readonly Operand<I32>[]): void {
    this.#checkRank(coordinates);
    const numbers = coordinates.map((coordinate) => use(typedOperand(coordinate, i32)));
    tracer().emit("tensorStore", undefined, [indexOperand(sourcePosition), ...numbers], {
      map: this.parameter,
      source: source.array,
      sourceOffset: 0,
    });
  }

  #checkRank(coordinates: readonly Operand<I32>[]): void {
    const { name, rank } = this.parameter;
    if (coordinates.length === rank) return;
    throw tracer().error(`${name} has rank ${rank}; ${coordinates.length} coordinates were given`);
  }
}

/** Images in global memory, seen through the weights of a filter. */
export class WindowMap<T extends StorageType> extends GlobalMap<T> {
  /**
   * Starts loading channels from `channel` on of the pixels that the places from (x, y) of `image` on see through the weight
   * that lies `offset` pixels after the filter's first, into shared memory; `barrier` receives the bytes. x and y are those
   * of the place, so -padding for the first. What lies outside the images becomes zero and counts.
   */
  load(
    target: SharedMemory<T>,
    targetPosition: IndexOperand,
    place: Readonly<Record<"channel" | "x" | "y" | "image", Operand<I32>>>,
    offset: Readonly<Record<"x" | "y", Operand<I32>>>,
    barrier: Receiver,
  ): void {
    const numbers = [place.channel, place.x, place.y, place.image, offset.x, offset.y];
    this.startLoad(target, targetPosition, numbers, barrier);
  }
}

/** Closes the group of this thread's tensor stores since the last commit. */
export function tensorStoreCommit(): void {
  tracer().emit("tensorStoreCommit", undefined, [], {});
}

/** Waits until at most `pending` groups of tensor stores are unfinished; with `read`, only until their sources may be rewritten. */
export function tensorStoreWait(pending: number, options: { readonly read?: boolean } = {}): void {
  tracer().emit("tensorStoreWait", undefined, [], { pending, read: options.read ?? false });
}
