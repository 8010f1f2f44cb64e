/**
 * @file The block: where it is, how big, its barriers and reductions.
 */
import type { StorageType } from "../types/types.ts";
import { type I32, i32 } from "../types/types.ts";
import { type ReductionName, subgroup } from "./collective.ts";
import { when } from "./control.ts";
import { select } from "./math.ts";
import { shared } from "./memory.ts";
import { blockId, type Coordinates, thread } from "./thread.ts";
import { tracer } from "./trace.ts";
import { constant, type Operand, typedOperand, use, type Value } from "./value.ts";

/** All threads of the block together. */
export const block: {
  readonly id: Coordinates;
  /** Threads in the block. */
  readonly size: number;
  readonly sizeX: number;
  readonly sizeY: number;
  readonly sizeZ: number;
  /** Waits for all threads of the block and orders their memory accesses. */
  barrier(): void;
  /** Reduction over all threads of the block, any subgroup width; every thread gets the result. */
  reduce<T extends StorageType>(operation: ReductionName, value: Value<T>): Value<T>;
  sum<T extends StorageType>(value: Value<T>): Value<T>;
  min<T extends StorageType>(value: Value<T>): Value<T>;
  max<T extends StorageType>(value: Value<T>): Value<T>;
} = {
  get id() {
    return blockId;
  },
  get size() {
    const [x, y, z] = tracer().block;
    return x * y * z;
  },
  get sizeX() {
    return tracer().block[0];
  },
  get sizeY() {
    return tracer().block[1];
  },
  get sizeZ() {
    return tracer().block[2];
  },
  barrier() {
    tracer().emit("blockBarrier", undefined, [], {});
  },
  reduce: reduceBlock,
  sum: (value) => reduceBlock("add", value),
  min: (value) => reduceBlock("min", value),
  max: (value) => reduceBlock("max", value),
};

/**
 * Each subgroup reduces its values; the partial results meet in shared memory, where every subgroup reduces them again.
 * With more subgroups than lanes, a lane first folds several partial results.
 */
function reduceBlock<T extends StorageType>(operation: ReductionName, value: Value<T>): Value<T> {
  const { size: width, count } = subgroup;
  if (block.size % width !== 0) {
    throw tracer().error(
      `a block reduction needs whole subgroups: ${block.size} threads are no multiple of ${width}`,
    );
  }
  const partial = subgroup.reduce(operation, value);
  if (count === 1) return partial;
  const slots = shared(value.type, count);
  const { lane } = subgroup;
  when(lane.eq(0), () => slots.store(subgroup.index, partial));
  block.barrier();
  // Lanes beyond the partial results repeat the first of them for min, max, and, or; add and xor need their zero.
  let gathered: Value<T> | undefined;
  for (let first = 0; first < count; first += width) {
    const last = Math.min(count, first + width) - first;
    const within = last === width ? undefined : lane.lt(last);
    const position =
      within === undefined ? lane.add(first) : select(within, lane.add(first), constant(i32, 0));
    const loaded = slots.loadAt(position);
    const repeats = operation !== "add" && operation !== "xor";
    const term = within === undefined || repeats ? loaded : select(within, loaded, constant(value.type, 0));
    gathered = gathered === undefined ? term : combine(operation, gathered, term);
  }
  const total = subgroup.reduce(operation, gathered as Value<T>);
  // The slots may be written again by a later reduction of the same kernel in a loop.
  block.barrier();
  return total;
}

function combine<T extends StorageType>(operation: ReductionName, a: Value<T>, b: Value<T>): Value<T> {
  return (a as unknown as Record<ReductionName, (other: Value<T>) => Value<T>>)[operation](b);
}

/** A barrier for some of the block's threads, by number 1 to 15 (0 is the whole block's). */
export const namedBarrier: {
  /** Arrives and waits for `threads` threads in all. */
  sync(id: Operand<I32>, threads: number): void;
  /** Arrives without waiting. */
  arrive(id: Operand<I32>, threads: number): void;
} = {
  sync: (id, threads) => namedBarrierStep("sync", id, threads),
  arrive: (id, threads) => namedBarrierStep("arrive", id, threads),
};

function namedBarrierStep(action: "sync" | "arrive", id: Operand<I32>, threads: number): void {
  const trace = tracer();
  const { width } = trace.facts.subgroup;
  if (threads % width !== 0 || threads <= 0) {
    throw trace.error(
      `a named barrier counts whole subgroups of ${width} threads; ${threads} is no multiple`,
    );
  }
  trace.emit("namedBarrier", undefined, [use(typedOperand(id, i32))], { action, threads });
}

/** All blocks of the cluster together. */
export const cluster: { barrier(): void; arrive(): void; wait(): void } = {
  barrier() {
    tracer().emit("clusterBarrier", undefined, [], { action: "arrive" });
    tracer().emit("clusterBarrier", undefined, [], { action: "wait" });
  },
  arrive() {
    tracer().emit("clusterBarrier", undefined, [], { action: "arrive" });
  },
  wait() {
    tracer().emit("clusterBarrier", undefined, [], { action: "wait" });
  },
};

/** @internal Linear thread index, re-exported for role code. */
export { thread };
