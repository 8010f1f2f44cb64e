/**
 * @file Runs a launch: groups of blocks one after another, the warps of a group in turns.
 *
 * A warp runs until it must wait. A group whose warps only look at memory for others to change it (*spin*) lets the next
 * groups start beside it. When nobody can go on and nothing asynchronous is under way, the launch is dead, and the error
 * says who waits where.
 */
import { forgetSharedClocks } from "./access.ts";
import { leaveBlock, leaveCluster } from "./barriers.ts";
import { faultError } from "./faults.ts";
import { NodePool, Shadow } from "./shadow-cells.ts";
import { Block, Group, type Launch, type Schedule, Warp } from "./state.ts";
import { requireLoadsLanded } from "./tensor-loads.ts";
import { requireStoresRead } from "./tensor-stores.ts";

/** Groups that may wait for each other at the same time. */
const mostGroups = 1024;
/** Rounds in which everybody spins and no memory changes, until that is called a deadlock. */
const patience = 2000;

type Outcome = "done" | "spinning" | "paused";

/** A launch on its way. */
export class LaunchRun {
  private readonly active: Group[] = [];
  private readonly idle: Group[] = [];
  private next = 0;
  private readonly total: number;
  private readonly extents: readonly [number, number, number];
  private idleRounds = 0;
  private lastChanges = -1;
  private finishedGroups = 0;

  constructor(
    readonly launch: Launch,
    private readonly chosen: readonly (readonly [number, number, number])[] | undefined,
  ) {
    const { cluster } = launch.program.kernel;
    const [x, y, z] = cluster ?? [1, 1, 1];
    this.extents = [launch.gridX / x, launch.gridY / y, launch.gridZ / z];
    this.total = chosen === undefined ? this.extents[0] * this.extents[1] * this.extents[2] : chosen.length;
  }

  /** Blocks done and blocks in all. */
  get progress(): { readonly done: number; readonly total: number } {
    const [x, y, z] = this.launch.program.kernel.cluster ?? [1, 1, 1];
    const blocks = x * y * z;
    return { done: this.finishedGroups * blocks, total: this.total * blocks };
  }

  /** Runs until the launch is done (true) or a time has come. @throws SimulationError */
  advance(deadline: number): boolean {
    for (;;) {
      if (this.active.length === 0 && !this.startNext()) return true;
      let everyoneSpins = true;
      for (const group of [...this.active]) {
        const outcome = runGroup(group, deadline);
        if (outcome === "paused") return false;
        if (outcome === "done") {
          this.retire(group);
          everyoneSpins = false;
        }
      }
      if (everyoneSpins && !(this.active.length < mostGroups && this.startNext())) this.countIdleRound();
      if (performance.now() >= deadline) return this.active.length === 0 && this.next >= this.total;
    }
  }

  private countIdleRound(): void {
    if (this.launch.changes !== this.lastChanges) {
      this.lastChanges = this.launch.changes;
      this.idleRounds = 0;
    } else if (++this.idleRounds > patience) throw deadlock(this.active);
  }

  private retire(group: Group): void {
    this.active.splice(this.active.indexOf(group), 1);
    this.idle.push(group);
    this.finishedGroups++;
    const { counters } = this.launch.options;
    if (counters !== undefined) counters.blocks += group.blocks.length;
  }

  private startNext(): boolean {
    if (this.next >= this.total) return false;
    const number = this.next++;
    const group = this.idle.pop() ?? makeGroup(this.launch);
    const [width, height] = this.extents;
    const place = this.chosen?.[number] ?? [
      number % width,
      Math.floor(number / width) % height,
      Math.floor(number / (width * height)),
    ];
    beginGroup(group, number, place, this.chosen !== undefined);
    this.active.push(group);
    return true;
  }
}

// Groups ----------------------------------------------------------------------------------------------------------------

function makeGroup(launch: Launch): Group {
  const { kernel, generated, numbering } = launch.program;
  const [x, y, z] = kernel.cluster ?? [1, 1, 1];
  const group = new Group(launch, x * y * z * numbering.size);
  for (let rank = 0; rank < x * y * z; rank++) {
    const shadow = generated.checks ? new Shadow(generated.sharedGranules, new NodePool(), true) : undefined;
    const block = new Block(
      launch,
      group,
      rank,
      rank * numbering.size,
      numbering.threads,
      kernel.sharedBytes,
      shadow,
    );
    for (let index = 0; index < numbering.warps; index++) {
      const warp = new Warp(launch, block, index, kernel.subgroupSize);
      block.warps.push(warp);
      group.warps.push(warp);
    }
    group.blocks.push(block);
  }
  return group;
}

/** `place` is that of the group; of a block within its cluster when blocks were chosen. */
function beginGroup(
  group: Group,
  number: number,
  place: readonly [number, number, number],
  chosen: boolean,
): void {
  const { launch } = group;
  const [x, y, z] = launch.program.kernel.cluster ?? [1, 1, 1];
  const [cx, cy, cz] = chosen
    ? [Math.floor(place[0] / x), Math.floor(place[1] / y), Math.floor(place[2] / z)]
    : place;
  const mostNumbers = Math.max(1, Math.floor(2 ** 30 / group.size));
  group.firstId = (number % mostNumbers) * group.size;
  group.base = launch.startTime;
  group.running = group.warps.length;
  group.deferred.length = 0;
  Object.assign(group.clusterArrivals, { arrived: 0, phase: 0, clock: undefined, completed: undefined });
  group.random = seedOf(launch.options.schedule) + number * 7919;
  for (const block of group.blocks) {
    block.clusterX = block.rank % x;
    block.clusterY = Math.floor(block.rank / x) % y;
    block.clusterZ = Math.floor(block.rank / (x * y));
    block.x = cx * x + block.clusterX;
    block.y = cy * y + block.clusterY;
    block.z = cz * z + block.clusterZ;
    beginBlock(block);
  }
}

function seedOf(schedule: Schedule): number {
  return typeof schedule === "object" ? schedule.seed | 1 : 1;
}

function beginBlock(block: Block): void {
  const { launch } = block;
  block.base = launch.now;
  launch.now++;
  block.liveWarps = block.warps.length;
  block.arrivedWarps = 0;
  block.barrierSite = -1;
  block.finished = false;
  for (const list of [block.knowledge, block.foreign, block.fenced, block.seen]) list.fill(undefined);
  for (const times of [block.proxyTime, block.proxyPublic, block.initFenceTime]) times.fill(-1);
  block.phaseBarriers.length = 0;
  block.namedBarriers.length = 0;
  block.meetings.length = 0;
  block.arriving.clear();
  // What a block finds in shared memory is chance: NaN for floats, -1 for integers.
  block.shared.u8.fill(0xff);
  if (block.shadow !== undefined) {
    block.shadow.pool.reset();
    block.shadow.reset();
    forgetSharedClocks(block.shadow);
  }
  for (const warp of block.warps) beginWarp(warp);
}

function beginWarp(warp: Warp): void {
  const { numbering } = warp.launch.program;
  const lanes = Math.min(warp.width, numbering.threads - warp.first);
  const { schedule } = warp.launch.options;
  for (let lane = 0; lane < lanes; lane++)
    warp.live.lanes[lane] = schedule === "reverse" ? lanes - 1 - lane : lane;
  if (typeof schedule === "object") shuffleInPlace(warp.live.lanes, lanes, warp.block.group);
  warp.live.count = lanes;
  warp.liveCount = lanes;
  warp.state.fill(0);
  warp.left.fill(-1);
  warp.assigned.fill(0);
  warp.waiting = "nothing";
  warp.waitBarrier = undefined;
  warp.clusterPhase = -1;
  warp.copies.fill(undefined);
  warp.stores.fill(undefined);
  warp.closedGroups = 0;
  warp.doneGroups = 0;
  warp.accumulating.fill(0);
  warp.multiplying.fill(0);
  warp.touched.fill(1);
  warp.groupTimes.length = 0;
  warp.trace = undefined;
  warp.run = warp.launch.program.generated.main(warp);
}

/** A number from 0 to `below`, from the group's own sequence. */
function random(group: Group, below: number): number {
  group.random = (Math.imul(group.random, 1664525) + 1013904223) >>> 0;
  return Math.floor((group.random / 2 ** 32) * below);
}

function shuffleInPlace(list: { [position: number]: number }, count: number, group: Group): void {
  for (let last = count - 1; last > 0; last--) {
    const other = random(group, last + 1);
    const kept = list[last]!;
    list[last] = list[other]!;
    list[other] = kept;
  }
}

/** Runs a group until it is done, only spins, or a time has come. */
function runGroup(group: Group, deadline: number): Outcome {
  const { schedule } = group.launch.options;
  const order = group.warps.map((_, position) => position);
  if (schedule === "reverse") order.reverse();
  for (;;) {
    if (typeof schedule === "object") shuffleInPlace(order, order.length, group);
    const turn = oneRound(group, order);
    if (group.running === 0) {
      finishDeferred(group);
      return "done";
    }
    const worked = doDeferred(group, turn.progressed);
    if (!turn.progressed && !worked) {
      if (turn.spun) return "spinning";
      throw deadlock([group]);
    }
    if (performance.now() >= deadline) return "paused";
  }
}

function oneRound(
  group: Group,
  order: readonly number[],
): { readonly progressed: boolean; readonly spun: boolean } {
  let progressed = false;
  let spun = false;
  for (const position of order) {
    const warp = group.warps[position]!;
    if (warp.waiting === "spin") {
      warp.waiting = "nothing";
      spun = true;
    } else if (warp.waiting === "nothing") progressed = true;
    else continue;
    resume(warp);
  }
  return { progressed, spun };
}

function resume(warp: Warp): void {
  if (warp.run!.next().done !== true) return;
  const { block } = warp;
  warp.waiting = "finished";
  block.liveWarps--;
  block.group.running--;
  if (block.liveWarps === 0) finishBlock(block);
  leaveBlock(block);
  leaveCluster(block.group);
}

/** @throws SimulationError if asynchronous work still needs the shared memory that the block gives back */
function finishBlock(block: Block): void {
  block.finished = true;
  if (block.shadow === undefined) return;
  requireStoresRead(block);
  requireLoadsLanded(block);
}

/**
 * Asynchronous work is done after each round; in reverse order only when nobody can go on otherwise, so that those who do
 * not wait for it never find it done by luck.
 */
function doDeferred(group: Group, progressed: boolean): boolean {
  const { deferred } = group;
  if (deferred.length === 0) return false;
  const { schedule } = group.launch.options;
  if (schedule === "forward") {
    for (const work of deferred.splice(0)) work.run();
    return true;
  }
  if (schedule === "reverse") {
    if (progressed) return false;
    deferred.pop()!.run();
    return true;
  }
  if (progressed && random(group, 3) !== 0) return false;
  deferred.splice(random(group, deferred.length), 1)[0]!.run();
  return true;
}

function finishDeferred(group: Group): void {
  while (group.deferred.length > 0) group.deferred.shift()!.run();
}

// Deadlock --------------------------------------------------------------------------------------------------------------

function deadlock(groups: readonly Group[]): Error {
  const waiting = groups.flatMap(({ warps }) => warps.filter((warp) => warp.waiting !== "finished"));
  const [first] = waiting as [Warp];
  const short = waiting.find(
    ({ waiting: kind, waitBarrier }) => kind === "barrierWait" && waitBarrier!.pending === 0,
  );
  if (short !== undefined) return shortOfBytes(short);
  const lines = new Map<string, { readonly count: number; readonly site: number; readonly text: string }>();
  for (const warp of waiting) {
    const text = describeWait(warp);
    const key = `${text}:${warp.waitSite}`;
    lines.set(key, { count: (lines.get(key)?.count ?? 0) + 1, site: warp.waitSite, text });
  }
  const places = [...lines.values()].slice(0, 9);
  const sites = places.map(({ site }) => site);
  const list = places.map(
    ({ count, text }, position) =>
      `${count} ${count === 1 ? "subgroup waits" : "subgroups wait"} ${text} at {${position}}`,
  );
  return faultError(
    first.block,
    "deadlock",
    `no thread can go on: ${list.join("; ")}. (Lanes of one subgroup that wait for each other in two branches count as waiting forever, too.)`,
    waiting.map((warp) => warp.first),
    sites,
  );
}

function describeWait(warp: Warp): string {
  switch (warp.waiting) {
    case "blockBarrier":
      return "for the block barrier";
    case "namedBarrier":
      return `for named barrier ${warp.waitDetail}`;
    case "barrierWait": {
      const { pending, count, bytes } = warp.waitBarrier!;
      return `for a barrier (${warp.waitDetail}; ${count - pending} of ${count} arrivals, ${bytes} bytes to come)`;
    }
    case "clusterWait":
      return "for the cluster barrier";
    case "warpgroupMma":
      return "for the rest of its warpgroup";
    default:
      return "in a loop for memory to change";
  }
}

function shortOfBytes(warp: Warp): Error {
  const { bytes, expectSite } = warp.waitBarrier!;
  return faultError(
    warp.block,
    "expectedBytes",
    `subgroup ${warp.index} waits at {0} for ${bytes} bytes that were announced at {1} and that no copy brings`,
    [warp.first],
    [warp.waitSite, expectSite],
  );
}
