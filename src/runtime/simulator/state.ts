/** @file The state of a running launch: launch, groups (clusters or single blocks), blocks, warps. Data only. */
import type { ArgumentBinding } from "./arguments.ts";
import type { Clock, ForeignClock } from "./clock.ts";
import type { Counters, RegionTrace } from "./counters.ts";
import type { CopyGroups, DeferredWork, StoreGroups } from "./pending-work.ts";
import type { Program } from "./program.ts";
import type { Shadow } from "./shadow-cells.ts";

/** Some lanes of a warp, in the order in which they run. */
export class LaneSet {
  readonly lanes: Int32Array;
  count = 0;
  constructor(width: number) {
    this.lanes = new Int32Array(width);
  }
}

/** In what order warps, lanes and asynchronous work are taken. */
export type Schedule = "forward" | "reverse" | { readonly seed: number };

/** A fault that has a defined result: it is reported, and the kernel goes on. */
export interface Report {
  readonly kind: "integerDivision";
  readonly message: string;
}

/** Everything of one launch. */
export class Launch {
  /** Time of the finest ordering: rises with every release. */
  now: number;
  /** Accesses up to this time belong to earlier launches. */
  readonly startTime: number;
  /** How often memory that others may watch has changed. */
  changes = 0;

  constructor(
    readonly program: Program,
    readonly number: number,
    readonly gridX: number,
    readonly gridY: number,
    readonly gridZ: number,
    readonly args: readonly ArgumentBinding[],
    readonly options: LaunchOptions,
  ) {
    this.now = options.startTime + 1;
    this.startTime = options.startTime;
  }
}

export interface LaunchOptions {
  readonly startTime: number;
  readonly schedule: Schedule;
  readonly strictIntegers: boolean;
  readonly counters: Counters | undefined;
  readonly print: (text: string) => void;
  readonly report: (report: Report) => void;
}

/** Typed views of a block's shared memory. */
export class SharedViews {
  readonly bytes: ArrayBuffer;
  readonly u8: Uint8Array;
  readonly i8: Int8Array;
  readonly u16: Uint16Array;
  readonly i16: Int16Array;
  readonly u32: Uint32Array;
  readonly i32: Int32Array;
  readonly f32: Float32Array;
  readonly f64: Float64Array;
  readonly i64: BigInt64Array;
  readonly u64: BigUint64Array;
  constructor(bytes: number) {
    this.bytes = new ArrayBuffer(Math.ceil(bytes / 16) * 16);
    this.u8 = new Uint8Array(this.bytes);
    this.i8 = new Int8Array(this.bytes);
    this.u16 = new Uint16Array(this.bytes);
    this.i16 = new Int16Array(this.bytes);
    this.u32 = new Uint32Array(this.bytes);
    this.i32 = new Int32Array(this.bytes);
    this.f32 = new Float32Array(this.bytes);
    this.f64 = new Float64Array(this.bytes);
    this.i64 = new BigInt64Array(this.bytes);
    this.u64 = new BigUint64Array(this.bytes);
  }
}

/** Blocks that run together. */
export class Group {
  /** First of the group's participant numbers in the launch. */
  firstId = 0;
  /** Accesses up to this time are ordered by a cluster barrier. */
  base = 0;
  readonly blocks: Block[] = [];
  readonly warps: Warp[] = [];
  readonly deferred: DeferredWork[] = [];
  readonly clusterArrivals: {
    arrived: number;
    phase: number;
    clock: Clock | undefined;
    completed: Clock | undefined;
  } = {
    arrived: 0,
    phase: 0,
    clock: undefined,
    completed: undefined,
  };
  random = 1;
  running = 0;
  constructor(
    readonly launch: Launch,
    readonly size: number,
  ) {}
}

/** A block and what its threads share. */
export class Block {
  x = 0;
  y = 0;
  z = 0;
  clusterX = 0;
  clusterY = 0;
  clusterZ = 0;
  /** Accesses up to this time are ordered by a block barrier. */
  base = 0;
  liveWarps = 0;
  arrivedWarps = 0;
  barrierSite = -1;
  finished = false;
  readonly warps: Warp[] = [];
  /** Knowledge of other threads' times beyond the bases, by thread. */
  readonly knowledge: (Clock | undefined)[];
  readonly foreign: (ForeignClock | undefined)[];
  /** Knowledge at the last fence, that relaxed atomics publish. */
  readonly fenced: (ForeignClock | undefined)[];
  /** What relaxed atomics have seen, that a fence makes known. */
  readonly seen: (ForeignClock | undefined)[];
  /** Time of the last proxy fence, by thread; `proxyPublic` is what a block barrier made known of it. */
  readonly proxyTime: Int32Array;
  readonly proxyPublic: Int32Array;
  readonly initFenceTime: Int32Array;
  readonly shared: SharedViews;
  readonly shadow: Shadow | undefined;
  readonly phaseBarriers: (PhaseBarrier | undefined)[] = [];
  readonly namedBarriers: (NamedBarrier | undefined)[] = [];
  readonly meetings: (WarpgroupMeeting | undefined)[] = [];
  /** Tensor loads into the block's shared memory that have not landed. */
  readonly arriving: Set<ArrivingLoad> = new Set();

  constructor(
    readonly launch: Launch,
    readonly group: Group,
    /** Rank in the cluster; `offset` is the first participant number in the group. */
    readonly rank: number,
    readonly offset: number,
    threads: number,
    sharedBytes: number,
    shadow: Shadow | undefined,
  ) {
    this.knowledge = new Array(threads).fill(undefined);
    this.foreign = new Array(threads).fill(undefined);
    this.fenced = new Array(threads).fill(undefined);
    this.seen = new Array(threads).fill(undefined);
    this.proxyTime = new Int32Array(threads);
    this.proxyPublic = new Int32Array(threads);
    this.initFenceTime = new Int32Array(threads);
    this.shared = new SharedViews(sharedBytes);
    this.shadow = shadow;
  }
}

/** A barrier that counts threads. */
export interface NamedBarrier {
  arrived: number;
  threads: number;
  site: number;
  clock: Clock | undefined;
  readonly waiters: Warp[];
}

/** An mbarrier: a phase completes when the arrivals and the bytes it expects have come. */
export class PhaseBarrier {
  pending: number;
  bytes = 0;
  phase = 0;
  clock: Clock | undefined;
  completed: Clock | undefined;
  readonly waiters: Warp[] = [];
  /** Site of the last arrival that announced bytes. */
  expectSite = -1;
  constructor(
    readonly word: number,
    readonly count: number,
    readonly initThread: number,
    readonly initTime: number,
    readonly initSite: number,
  ) {
    this.pending = count;
  }
}

/** A tensor load on its way, started by a thread of a block of the cluster. */
export interface ArrivingLoad {
  readonly rank: number;
  readonly thread: number;
  readonly site: number;
}

/** Subgroups of a warpgroup that have come to a product. */
export interface WarpgroupMeeting {
  arrived: Warp[];
  site: number;
}

/** Why a warp does not run. */
export type Waiting =
  | "nothing"
  | "blockBarrier"
  | "namedBarrier"
  | "barrierWait"
  | "clusterWait"
  | "warpgroupMma"
  | "spin"
  | "finished";

/** One subgroup: the banks of its slots and the state of its lanes. Generated text uses the short names. */
export class Warp {
  readonly f: Float64Array;
  readonly i: Int32Array;
  readonly b: bigint[];
  /** First thread of the warp in its block. */
  readonly first: number;
  readonly live: LaneSet;
  liveCount = 0;
  readonly sets: LaneSet[];
  /** By lane: 0 runs; -1 has exited; 2n leaves loop n, 2n + 1 goes to its next turn. */
  readonly state: Int32Array;
  /** Site where a lane last went another way than others. */
  readonly left: Int32Array;
  /** By element and lane: whether it was written, where the kernel might read too early. */
  readonly assigned: Uint8Array;
  readonly args: readonly ArgumentBinding[];
  waiting: Waiting = "nothing";
  waitSite = -1;
  waitDetail = "";
  waitBarrier: PhaseBarrier | undefined;
  /** Phase of the cluster's barrier at which the warp arrived, -1 if it did not. */
  clusterPhase = -1;
  clusterWaiter: LaneSet | undefined;
  run: Generator<void, void, void> | undefined;
  readonly copies: (CopyGroups | undefined)[];
  readonly stores: (StoreGroups | undefined)[];
  // Asynchronous matrix products: groups closed and done, and per register element the group that holds it.
  closedGroups = 0;
  doneGroups = 0;
  readonly accumulating: Int32Array;
  readonly multiplying: Int32Array;
  readonly productSite: Int32Array;
  /** Elements that ordinary operations touched since the last warpgroup fence. */
  readonly touched: Uint8Array;
  /** Time of the matrix engine's reads, by open or closed group number. */
  readonly groupTimes: number[] = [];
  trace: RegionTrace | undefined;
  readonly counters: Counters | undefined;

  constructor(
    readonly launch: Launch,
    readonly block: Block,
    readonly index: number,
    readonly width: number,
  ) {
    const { generated } = launch.program;
    this.first = index * width;
    this.f = new Float64Array(generated.floats * width);
    this.i = new Int32Array(generated.integers * width);
    this.b = new Array(generated.bigints * width).fill(0n);
    for (const [bank, slot, value] of generated.constants) {
      if (bank === "b") this.b.fill(value as bigint, slot, slot + width);
      else this[bank].fill(value as number, slot, slot + width);
    }
    this.live = new LaneSet(width);
    this.sets = Array.from({ length: generated.sets }, () => new LaneSet(width));
    this.state = new Int32Array(width);
    this.left = new Int32Array(width);
    this.assigned = new Uint8Array(generated.elements * width);
    this.args = launch.args;
    this.copies = new Array(width).fill(undefined);
    this.stores = new Array(width).fill(undefined);
    this.accumulating = new Int32Array(generated.elements);
    this.multiplying = new Int32Array(generated.elements);
    this.productSite = new Int32Array(generated.elements);
    this.touched = new Uint8Array(generated.elements);
    this.counters = launch.options.counters;
  }
}
