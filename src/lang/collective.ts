/**
 * @file Subgroup collectives: shuffles, votes, reductions. All lanes of the subgroup must arrive together; none of them
 * orders memory.
 */
import {
  type Bool,
  bool,
  type ElementType,
  type F16,
  type F32,
  type I32,
  i32,
  type U32,
  u32,
} from "../types/types.ts";
import { subgroupId } from "./thread.ts";
import { tracer } from "./trace.ts";
import {
  type Condition,
  conditionValue,
  type Operand,
  operation,
  typedOperand,
  type Value,
} from "./value.ts";

type ShuffleMode = "index" | "up" | "down" | "xor";

function shuffle<T extends ElementType>(
  mode: ShuffleMode,
  value: Value<T>,
  by: Operand<I32>,
  width: number | undefined,
): Value<T> {
  const trace = tracer();
  const size = width ?? trace.facts.subgroup.width;
  if (size < 1 || (size & (size - 1)) !== 0 || size > trace.facts.subgroup.width) {
    throw trace.error(
      `shuffle width ${size}: a power of two up to the subgroup's ${trace.facts.subgroup.width} is wanted`,
    );
  }
  return operation("shuffle", value.type, [value, typedOperand(by, i32)], { mode, width: size });
}

/** Reductions that a subgroup and a block know. */
export type ReductionName = "add" | "min" | "max" | "and" | "or" | "xor";

/** Lanes of the subgroup working together. `width` splits the subgroup into segments of that many lanes. */
export const subgroup: {
  readonly lane: Value<I32>;
  readonly index: Value<I32>;
  readonly size: number;
  readonly count: number;
  /** The value of lane `lane`. */
  shuffle<T extends ElementType>(value: Value<T>, lane: Operand<I32>, width?: number): Value<T>;
  /** The value of the lane `delta` below; lanes without one keep their own. */
  shuffleUp<T extends ElementType>(value: Value<T>, delta: Operand<I32>, width?: number): Value<T>;
  /** The value of the lane `delta` above; lanes without one keep their own. */
  shuffleDown<T extends ElementType>(value: Value<T>, delta: Operand<I32>, width?: number): Value<T>;
  /** The value of the lane whose number differs by the bits of `mask`. */
  shuffleXor<T extends ElementType>(value: Value<T>, mask: Operand<I32>, width?: number): Value<T>;
  any(condition: Condition): Value<Bool>;
  all(condition: Condition): Value<Bool>;
  /** Bit i is lane i's condition; subgroups of at most 32 lanes. */
  ballot(condition: Condition): Value<U32>;
  /** Reduction over all lanes; every lane gets the result. */
  reduce<T extends I32 | U32 | F16 | F32 | ElementType>(operation: ReductionName, value: Value<T>): Value<T>;
  sum<T extends ElementType>(value: Value<T>): Value<T>;
  /** Orders memory among the lanes of the subgroup. */
  barrier(): void;
  /** True in exactly one lane. */
  electOne(): Value<Bool>;
} = {
  get lane() {
    return subgroupId.lane;
  },
  get index() {
    return subgroupId.index;
  },
  get size() {
    return subgroupId.size;
  },
  get count() {
    return subgroupId.count;
  },
  shuffle: (value, lane, width) => shuffle("index", value, lane, width),
  shuffleUp: (value, delta, width) => shuffle("up", value, delta, width),
  shuffleDown: (value, delta, width) => shuffle("down", value, delta, width),
  shuffleXor: (value, mask, width) => shuffle("xor", value, mask, width),
  any: (condition) => operation("vote", bool, [conditionValue(condition)], { mode: "any" }),
  all: (condition) => operation("vote", bool, [conditionValue(condition)], { mode: "all" }),
  ballot(condition) {
    const trace = tracer();
    if (trace.facts.subgroup.width > 32)
      throw trace.error("ballot() holds 32 lanes; this target's subgroups are wider");
    return operation("ballot", u32, [conditionValue(condition)], {});
  },
  reduce: (name, value) => operation("subgroupReduce", value.type, [value], { operation: name }),
  sum: (value) => operation("subgroupReduce", value.type, [value], { operation: "add" }),
  barrier() {
    tracer().emit("subgroupBarrier", undefined, [], {});
  },
  electOne: () => operation("electOne", bool, [], {}),
};
