/**
 * @file Who am I: positions of the thread, its subgroup (warp), block, cluster and grid. All counts are i32.
 */
import type { BuiltinName } from "../ir/operations.ts";
import { type I32, i32 } from "../types/types.ts";
import { tracer } from "./trace.ts";
import { operation, type Value } from "./value.ts";

function builtin(name: BuiltinName): Value<I32> {
  return operation("builtin", i32, [], { builtin: name });
}

/** The thread within its block. */
export const thread: {
  /** Linear index: x fastest. */
  readonly index: Value<I32>;
  readonly x: Value<I32>;
  readonly y: Value<I32>;
  readonly z: Value<I32>;
} = {
  get index() {
    const [x, y, z] = tracer().block;
    let linear = builtin("threadIndexX");
    if (y > 1) linear = linear.add(builtin("threadIndexY").mul(x));
    if (z > 1) linear = linear.add(builtin("threadIndexZ").mul(x * y));
    return linear;
  },
  get x() {
    return builtin("threadIndexX");
  },
  get y() {
    return builtin("threadIndexY");
  },
  get z() {
    return builtin("threadIndexZ");
  },
};

/** Three-dimensional block or grid coordinates. */
export interface Coordinates {
  readonly x: Value<I32>;
  readonly y: Value<I32>;
  readonly z: Value<I32>;
}

/** Where the block lies in the grid. */
export const blockId: Coordinates = {
  get x() {
    return builtin("blockIndexX");
  },
  get y() {
    return builtin("blockIndexY");
  },
  get z() {
    return builtin("blockIndexZ");
  },
};

/** Blocks in the grid. */
export const grid: { readonly size: Coordinates } = {
  size: {
    get x() {
      return builtin("gridSizeX");
    },
    get y() {
      return builtin("gridSizeY");
    },
    get z() {
      return builtin("gridSizeZ");
    },
  },
};

/** The subgroup (warp) of the thread. */
export const subgroupId: {
  readonly lane: Value<I32>;
  readonly index: Value<I32>;
  readonly size: number;
  readonly count: number;
} = {
  /** Position in the subgroup. */
  get lane() {
    return builtin("lane");
  },
  /** Which subgroup of the block. */
  get index() {
    return builtin("subgroupIndex");
  },
  /** Lanes of a subgroup: a fact of the target, known while tracing. */
  get size() {
    return tracer().facts.subgroup.width;
  },
  /** Subgroups of the block. */
  get count() {
    const { block, facts } = tracer();
    return Math.ceil((block[0] * block[1] * block[2]) / facts.subgroup.width);
  },
};

/** The cluster of the block. */
export const clusterId: { readonly rank: Value<I32> } = {
  /** Linear rank of the block in its cluster. */
  get rank() {
    return builtin("clusterRank");
  },
};
