/**
 * @file Matrix products of a warpgroup (wgmma): four subgroups multiply together, operands in shared memory. Numbers are
 * computed when the product is issued; until the wait that covers it, its registers and its operands count as in use.
 */
import type { SwizzleBytes } from "../../ir/nodes.ts";
import { type TypeName, types } from "../../types/types.ts";
import { requireTogether } from "./barriers.ts";
import { unassigned } from "./diagnostics.ts";
import { faultError, laneFault } from "./faults.ts";
import {
  type ElementMap,
  mapA,
  mapAccumulator,
  matrixLanes,
  type RangePlan,
  readFragment,
  writeFragment,
} from "./fragments.ts";
import type { AccessPlan } from "./matrix.ts";
import { decode } from "./numbers.ts";
import { readIndex } from "./operands.ts";
import { acquire, advance, emptyClock } from "./ordering.ts";
import { operandView, type Product, productOf } from "./product.ts";
import { readGranuleAsynchronously } from "./shadow.ts";
import { beside } from "./shadow-cells.ts";
import type { Block, LaneSet, Warp } from "./state.ts";
import { swizzled } from "./swizzle.ts";
import { sharedView } from "./views.ts";

/** A matrix in shared memory, as a descriptor says. */
interface SharedMatrixPlan {
  readonly access: AccessPlan;
  readonly swizzle: SwizzleBytes;
  readonly major: "k" | "mn";
  readonly leadingBytes: number;
  readonly strideBytes: number;
}

interface WarpgroupSpecification {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly a: TypeName;
  readonly b: TypeName;
  readonly accumulator: TypeName;
  readonly left: SharedMatrixPlan | undefined;
  readonly right: SharedMatrixPlan;
  /** Slot of the truth value. */
  readonly accumulate: number;
  readonly negateA: boolean;
  readonly negateB: boolean;
  readonly ranges: readonly RangePlan[];
}

interface WarpgroupPlan extends WarpgroupSpecification {
  readonly kind: string;
  readonly depth: number;
  readonly leftBytes: Int32Array | undefined;
  readonly rightBytes: Int32Array;
  readonly mapA: ElementMap;
  readonly mapC: ElementMap;
  readonly matrixA: Float64Array;
  readonly matrixB: Float64Array;
  readonly matrixC: Float64Array;
  readonly fragmentA: Float64Array;
  readonly fragmentC: Float64Array;
  readonly multiply: Product;
}

const warpsTogether = 4;
const rowsPerWarp = 16;

/**
 * Byte distance of (row of M or N, k) from the descriptor's start, before swizzling (PTX ISA, "Shared memory matrix
 * layout"). K-major: rows of `swizzle` bytes, 8 to an atom, atoms `stride` apart; without swizzle 8 x 16-byte core
 * matrices, `leading` apart along K and `stride` along M or N. MN-major: the same with the roles exchanged, atoms
 * `leading` apart along M or N and `stride` along K (without swizzle the other way round).
 */
function descriptorBytes(
  { swizzle, major, leadingBytes, strideBytes }: SharedMatrixPlan,
  row: number,
  column: number,
  size: number,
): number {
  const along = major === "k" ? column * size : row * size;
  const across = major === "k" ? row : column;
  if (swizzle === 0) {
    const chunk = along >> 4;
    const eight = across >> 3;
    const within = (across & 7) * 16 + (along & 15);
    return major === "k"
      ? within + chunk * leadingBytes + eight * strideBytes
      : within + chunk * strideBytes + eight * leadingBytes;
  }
  const within = (across & 7) * swizzle + (along % swizzle) + (across >> 3) * strideBytes;
  return within + Math.floor(along / swizzle) * leadingBytes;
}

function bytesOf(plan: SharedMatrixPlan, rows: number, k: number, size: number): Int32Array {
  const bytes = new Int32Array(rows * k);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < k; column++)
      bytes[row * k + column] = descriptorBytes(plan, row, column, size);
  return bytes;
}

export function warpgroupPlan(specification: WarpgroupSpecification): WarpgroupPlan {
  const { m, n, k, a, b, accumulator, left, right } = specification;
  const depth = a === "b1" ? k / 32 : k;
  const element = a === "b1" ? types.u32 : types[a];
  const size = (element.name === "tf32" ? 32 : element.bits) / 8;
  return {
    ...specification,
    kind: `wgmma.m${m}n${n}k${k}.${a}${a === b ? "" : `.${b}`}.${accumulator}`,
    depth,
    leftBytes: left === undefined ? undefined : bytesOf(left, m, depth, size),
    rightBytes: bytesOf(right, n, depth, size),
    mapA: mapA(rowsPerWarp, depth, element),
    mapC: mapAccumulator(rowsPerWarp, n),
    matrixA: new Float64Array(m * depth),
    matrixB: new Float64Array(n * depth),
    matrixC: new Float64Array(rowsPerWarp * n),
    fragmentA: new Float64Array(rowsPerWarp * depth),
    fragmentC: new Float64Array(rowsPerWarp * n),
    multiply: productOf(types[a], types[accumulator]),
  };
}

export function warpgroupFence(warp: Warp, m: LaneSet, site: number): void {
  requireTogether(warp, m, site, false);
  warp.touched.fill(0);
}

/** The last of the four subgroups lets the product happen. */
export function warpgroupMma(warp: Warp, m: LaneSet, site: number, plan: WarpgroupPlan): boolean {
  requireTogether(warp, m, site, false);
  const { block } = warp;
  if (warp.width !== matrixLanes || m.count !== matrixLanes) {
    laneFault(
      warp,
      m.lanes[0]!,
      site,
      "divergentCollective",
      `a warpgroup product needs four subgroups of ${matrixLanes} lanes, here ${m.count} of ${warp.width},`,
    );
  }
  const number = warp.index >> 2;
  const meeting = block.meetings[number] ?? { arrived: [], site };
  block.meetings[number] = meeting;
  if (meeting.arrived.length > 0 && meeting.site !== site) {
    throw faultError(
      block,
      "divergentCollective",
      `subgroup ${warp.index} is at the product at {0} while subgroup ${meeting.arrived[0]!.index} of its warpgroup is at another one at {1}`,
      [warp.first, meeting.arrived[0]!.first],
      [site, meeting.site],
    );
  }
  meeting.site = site;
  meeting.arrived.push(warp);
  if (meeting.arrived.length < warpsTogether) {
    warp.waiting = "warpgroupMma";
    warp.waitSite = site;
    return true;
  }
  const warps = meeting.arrived.sort((a, b) => a.index - b.index);
  meeting.arrived = [];
  multiply(block, warps, warp, site, plan);
  for (const other of warps) if (other.waiting === "warpgroupMma") other.waiting = "nothing";
  return false;
}

function multiply(block: Block, warps: readonly Warp[], last: Warp, site: number, plan: WarpgroupPlan): void {
  const [first] = warps as [Warp];
  const { matrixA, matrixB, matrixC, depth, n, fragmentC } = plan;
  const [rangeC, rangeA] = plan.ranges as [RangePlan, RangePlan | undefined];
  const accumulate = first.i[plan.accumulate]! !== 0;
  for (const warp of warps) holdRegisters(warp, site, rangeC, rangeA, accumulate);
  if (plan.left !== undefined)
    readOperand(block, warps, site, plan.left, plan.leftBytes!, plan.a, plan.negateA, matrixA);
  readOperand(block, warps, site, plan.right, plan.rightBytes, plan.b, plan.negateB, matrixB);
  const c = types[plan.accumulator];
  const rowsA = rowsPerWarp * depth;
  for (const [position, warp] of warps.entries()) {
    const part = matrixA.subarray(position * rowsA, (position + 1) * rowsA);
    if (rangeA !== undefined) readRegisters(warp, rangeA, plan, part);
    if (accumulate) {
      readFragment(warp, rangeC, c, fragmentC);
      for (let e = 0; e < matrixC.length; e++) matrixC[e] = fragmentC[plan.mapC[e]!]!;
    } else matrixC.fill(0);
    plan.multiply(part, matrixB, matrixC, rowsPerWarp, n, depth);
    for (let e = 0; e < matrixC.length; e++) fragmentC[plan.mapC[e]!] = matrixC[e]!;
    writeFragment(warp, rangeC, c, fragmentC);
    if (block.shadow !== undefined) warp.groupTimes[warp.closedGroups + 1] = block.launch.now;
  }
  if (block.shadow !== undefined) advance(block);
  if (last.counters !== undefined) last.counters.addMatrix(plan.kind);
}

/** Marks accumulator and A registers as held by the open group; they must be fenced. */
function holdRegisters(
  warp: Warp,
  site: number,
  rangeC: RangePlan,
  rangeA: RangePlan | undefined,
  accumulate: boolean,
): void {
  if (warp.block.shadow === undefined) return;
  const group = warp.closedGroups + 1;
  const { checkedElements } = warp.launch.program;
  for (const range of [rangeC, rangeA]) {
    if (range === undefined) continue;
    for (let element = range.first; element < range.first + range.elements; element++) {
      if (warp.touched[element] !== 0) {
        throw faultError(
          warp.block,
          "missingFence",
          `the product at {0} uses registers that subgroup ${warp.index} touched since its last warpgroupFence; put one before the product`,
          [warp.first],
          [site],
        );
      }
      if (
        (range === rangeA || accumulate) &&
        (checkedElements[element]! & 1) !== 0 &&
        warp.assigned[element * warp.width] === 0
      ) {
        const [variable, position] = warp.launch.program.elementName(element);
        unassigned(warp, 0, site, variable, position);
      }
      (range === rangeA ? warp.multiplying : warp.accumulating)[element] = group;
      warp.productSite[element] = site;
      if (range === rangeC && (checkedElements[element]! & 1) !== 0)
        warp.assigned.fill(1, element * warp.width, (element + 1) * warp.width);
    }
  }
}

function readRegisters(warp: Warp, range: RangePlan, plan: WarpgroupPlan, part: Float64Array): void {
  const element = types[plan.a];
  readFragment(warp, range, element, plan.fragmentA);
  const view = operandView(element);
  const sign = plan.negateA ? -1 : 1;
  for (let e = 0; e < part.length; e++) {
    const value = plan.fragmentA[plan.mapA[e]!]!;
    part[e] = sign * (view === undefined ? value : view(value));
  }
}

function readOperand(
  block: Block,
  warps: readonly Warp[],
  site: number,
  matrix: SharedMatrixPlan,
  bytes: Int32Array,
  type: TypeName,
  negate: boolean,
  target: Float64Array,
): void {
  const [first] = warps as [Warp];
  const array = matrix.access.array!;
  const element = readIndex(first, matrix.access.index, 0) + matrix.access.offset;
  const start = array.byteOffset + element * array.size;
  if (start % 16 !== 0)
    laneFault(
      first,
      0,
      site,
      "misaligned",
      `a matrix descriptor at byte ${start} of shared memory, no multiple of 16,`,
    );
  const name = type === "b1" ? "u32" : type === "tf32" ? "f32" : type;
  const view = sharedView(block.shared, name as "f32");
  const size = view.BYTES_PER_ELEMENT;
  const cut = operandView(types[type]);
  const sign = negate ? -1 : 1;
  const { shadow } = block;
  const end = array.byteOffset + array.length * array.size;
  const engine =
    block.group.firstId + block.offset + block.launch.program.numbering.matrixEngines + (first.index >> 2);
  let lastGranule = -1;
  for (let e = 0; e < bytes.length; e++) {
    const address = swizzled(start + bytes[e]!, matrix.swizzle);
    if (shadow !== undefined) {
      if (address < array.byteOffset || address + size > end) {
        laneFault(
          first,
          0,
          site,
          "outOfBounds",
          `a warpgroup product reads byte ${address - array.byteOffset} of a shared array of ${end - array.byteOffset} bytes`,
        );
      }
      const granule = array.base + ((address - array.start) >> array.shift);
      if (granule !== lastGranule) {
        for (const warp of warps)
          readGranuleAsynchronously(
            shadow,
            granule,
            block,
            warp.first,
            engine,
            site,
            block.launch.now + beside,
          );
        lastGranule = granule;
      }
    }
    const value = decode(name, view[Math.floor(address / size)]!);
    target[e] = sign * (cut === undefined ? value : cut(value));
  }
}

export function warpgroupCommit(warp: Warp, m: LaneSet, site: number): void {
  requireTogether(warp, m, site, false);
  warp.closedGroups++;
}

/** Groups older than the newest `pending` are done: their registers are free, their reads over. */
export function warpgroupWait(warp: Warp, m: LaneSet, site: number, pending: number): void {
  requireTogether(warp, m, site, false);
  const done = Math.max(warp.doneGroups, warp.closedGroups - pending);
  const { block } = warp;
  if (block.shadow !== undefined) {
    let time = 0;
    for (let group = warp.doneGroups + 1; group <= done; group++)
      time = Math.max(time, warp.groupTimes[group] ?? 0);
    if (time > 0) {
      const clock = emptyClock(block.group);
      clock[block.offset + block.launch.program.numbering.matrixEngines + (warp.index >> 2)] = time;
      for (let n = 0; n < m.count; n++) acquire(block, warp.first + m.lanes[n]!, clock);
    }
  }
  warp.doneGroups = done;
}
