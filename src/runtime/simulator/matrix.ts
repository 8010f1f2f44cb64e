/** @file Matrix operations of one subgroup: ldmatrix, stmatrix, mma.sync, wmma. */
import { UnsupportedError } from "../../errors.ts";
import { type TypeName, types } from "../../types/types.ts";
import { readGlobal, readShared, readTable, writeGlobal, writeShared } from "./access.ts";
import type { BufferBinding } from "./arguments.ts";
import type { SharedArrayFacts, TableFacts } from "./array-facts.ts";
import { requireTogether } from "./barriers.ts";
import { laneFault } from "./faults.ts";
import {
  type ElementMap,
  elementsIn,
  mapA,
  mapAccumulator,
  mapB,
  mapOpaque,
  matrixLanes,
  type RangePlan,
  readFragment,
  readWords,
  writeFragment,
  writeHalfWords,
} from "./fragments.ts";
import { decode, encode, halfTable } from "./numbers.ts";
import { type IndexSource, readIndex } from "./operands.ts";
import { operandView, type Product, productOf } from "./product.ts";
import { checkRange, noteWritten } from "./registers.ts";
import type { LaneSet, Warp } from "./state.ts";
import { viewOf } from "./views.ts";

/** Where an access of a matrix operation goes. */
export interface AccessPlan {
  readonly parameter?: number;
  readonly array?: SharedArrayFacts;
  readonly table?: TableFacts;
  readonly element: TypeName;
  readonly offset: number;
  readonly index: IndexSource;
}

function requireWidth(warp: Warp, m: LaneSet, site: number): void {
  requireTogether(warp, m, site, false);
  if (warp.width !== matrixLanes || m.count !== matrixLanes) {
    laneFault(
      warp,
      m.lanes[0]!,
      site,
      "divergentCollective",
      `a matrix operation needs a subgroup of ${matrixLanes} lanes, here ${m.count} of ${warp.width},`,
    );
  }
}

// Eight by eight --------------------------------------------------------------------------------------------------------

interface EightByEightPlan {
  readonly count: number;
  readonly transpose: boolean;
  readonly access: AccessPlan;
  readonly ranges: readonly [RangePlan];
}

export function eightByEightPlan(plan: EightByEightPlan): EightByEightPlan {
  return plan;
}

/** Element positions of the rows, by lane; checked. */
const rowPositions = new Int32Array(matrixLanes);

function findRows(warp: Warp, site: number, plan: EightByEightPlan, write: boolean): void {
  const { access, count } = plan;
  const array = access.array!;
  const perRow = 16 / array.size;
  for (let lane = 0; lane < 8 * count; lane++) {
    const element = readIndex(warp, access.index, lane) + access.offset;
    rowPositions[lane] = array.byteOffset + element * array.size;
    if (warp.block.shadow === undefined) continue;
    if (write) writeShared(warp, lane, site, array, element, perRow);
    else readShared(warp, lane, site, array, element, perRow);
  }
  if (warp.counters !== undefined) {
    for (let matrix = 0; matrix < count; matrix++)
      warp.counters.addSharedAccess([...rowPositions.subarray(8 * matrix, 8 * matrix + 8)], 16);
    warp.counters.addMatrix(write ? "stmatrix" : "ldmatrix");
  }
}

const loadedWords = new Uint32Array(4 * matrixLanes);

export function loadMatrix(warp: Warp, m: LaneSet, site: number, plan: EightByEightPlan): void {
  requireWidth(warp, m, site);
  const [range] = plan.ranges;
  findRows(warp, site, plan, false);
  const { u16, u32 } = warp.block.shared;
  for (let matrix = 0; matrix < plan.count; matrix++) {
    for (let lane = 0; lane < matrixLanes; lane++) {
      const target = matrix * matrixLanes + lane;
      if (plan.transpose) {
        const column = lane >> 2;
        const row = 8 * matrix + 2 * (lane & 3);
        loadedWords[target] =
          u16[(rowPositions[row]! >> 1) + column]! | (u16[(rowPositions[row + 1]! >> 1) + column]! << 16);
      } else loadedWords[target] = u32[(rowPositions[8 * matrix + (lane >> 2)]! >> 2) + (lane & 3)]!;
    }
  }
  noteWritten(warp, site, range);
  writeHalfWords(warp, range, loadedWords, halfTable(range.element));
}

export function storeMatrix(warp: Warp, m: LaneSet, site: number, plan: EightByEightPlan): void {
  requireWidth(warp, m, site);
  const [range] = plan.ranges;
  checkRange(warp, site, range);
  findRows(warp, site, plan, true);
  const words = readWords(warp, range);
  const { u16, u32 } = warp.block.shared;
  for (let matrix = 0; matrix < plan.count; matrix++) {
    for (let lane = 0; lane < matrixLanes; lane++) {
      const word = words[matrix * matrixLanes + lane]!;
      if (plan.transpose) {
        const column = lane >> 2;
        const row = 8 * matrix + 2 * (lane & 3);
        u16[(rowPositions[row]! >> 1) + column] = word & 0xffff;
        u16[(rowPositions[row + 1]! >> 1) + column] = word >>> 16;
      } else u32[(rowPositions[8 * matrix + (lane >> 2)]! >> 2) + (lane & 3)] = word;
    }
  }
}

// Products --------------------------------------------------------------------------------------------------------------

interface ProductSpecification {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly a: TypeName;
  readonly b: TypeName;
  readonly accumulator: TypeName;
  readonly ranges: readonly [RangePlan, RangePlan, RangePlan];
}

/** A product made ready: where elements lie and how they are multiplied. */
interface ProductPlan extends ProductSpecification {
  readonly kind: string;
  /** k, or words of k for single bits. */
  readonly depth: number;
  readonly mapA: ElementMap;
  readonly mapB: ElementMap;
  readonly mapC: ElementMap;
  readonly fragments: readonly [Float64Array, Float64Array, Float64Array];
  readonly matrices: readonly [Float64Array, Float64Array, Float64Array];
  readonly multiply: Product;
}

function productPlan(
  kind: string,
  specification: ProductSpecification,
  maps: (depth: number) => readonly [ElementMap, ElementMap, ElementMap],
): ProductPlan {
  const { m, n, k, a, b, accumulator, ranges } = specification;
  const depth = a === "b1" ? k / 32 : k;
  const [forA, forB, forC] = maps(depth);
  const buffer = (range: RangePlan, element: TypeName, least: number): Float64Array =>
    new Float64Array(Math.max(elementsIn(range, types[element]) * matrixLanes, least));
  return {
    ...specification,
    kind: `${kind}.m${m}n${n}k${k}.${a}${a === b ? "" : `.${b}`}.${accumulator}`,
    depth,
    mapA: forA,
    mapB: forB,
    mapC: forC,
    fragments: [
      buffer(ranges[1], a, m * depth),
      buffer(ranges[2], b, n * depth),
      buffer(ranges[0], accumulator, m * n),
    ],
    matrices: [new Float64Array(m * depth), new Float64Array(n * depth), new Float64Array(m * n)],
    multiply: productOf(types[a], types[accumulator]),
  };
}

export function mmaPlan(specification: ProductSpecification): ProductPlan {
  const { m, n, k, a, b } = specification;
  if (m === 8 && n === 8 && k === 4 && a === "f16") {
    throw new UnsupportedError("the simulator has no Volta mma m8n8k4 on f16; use m16n8k8 or m16n8k16");
  }
  // Words of bits lie as elements of 32 bits do.
  const elementA = a === "b1" ? types.u32 : types[a];
  const elementB = b === "b1" ? types.u32 : types[b];
  return productPlan("mma", specification, (depth) => [
    mapA(m, depth, elementA),
    mapB(n, depth, elementB),
    mapAccumulator(m, n),
  ]);
}

export function wmmaPlan(specification: ProductSpecification): ProductPlan {
  const { m, n } = specification;
  return productPlan("wmma", specification, (depth) => [
    mapOpaque(m * depth),
    mapOpaque(n * depth),
    mapOpaque(m * n),
  ]);
}

function gather(
  matrix: Float64Array,
  fragment: Float64Array,
  map: ElementMap,
  view: ((x: number) => number) | undefined,
): void {
  if (view === undefined) for (let n = 0; n < map.length; n++) matrix[n] = fragment[map[n]!]!;
  else for (let n = 0; n < map.length; n++) matrix[n] = view(fragment[map[n]!]!);
}

export function mma(warp: Warp, m: LaneSet, site: number, plan: ProductPlan): void {
  requireWidth(warp, m, site);
  const [rangeC, rangeA, rangeB] = plan.ranges;
  const [fragmentA, fragmentB, fragmentC] = plan.fragments;
  const [matrixA, matrixB, matrixC] = plan.matrices;
  const [a, b, c] = [types[plan.a], types[plan.b], types[plan.accumulator]];
  checkRange(warp, site, rangeA);
  checkRange(warp, site, rangeB);
  checkRange(warp, site, rangeC);
  noteWritten(warp, site, rangeC);
  readFragment(warp, rangeA, a, fragmentA);
  readFragment(warp, rangeB, b, fragmentB);
  readFragment(warp, rangeC, c, fragmentC);
  gather(matrixA, fragmentA, plan.mapA, operandView(a));
  gather(matrixB, fragmentB, plan.mapB, operandView(b));
  gather(matrixC, fragmentC, plan.mapC, undefined);
  plan.multiply(matrixA, matrixB, matrixC, plan.m, plan.n, plan.depth);
  const { mapC } = plan;
  for (let n = 0; n < mapC.length; n++) fragmentC[mapC[n]!] = matrixC[n]!;
  writeFragment(warp, rangeC, c, fragmentC);
  if (warp.counters !== undefined) warp.counters.addMatrix(plan.kind);
}

// wmma loads and stores -------------------------------------------------------------------------------------------------

interface WmmaMemoryPlan {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly use: "a" | "b" | "accumulator";
  readonly element: TypeName;
  readonly major: "row" | "column";
  readonly access: AccessPlan;
  readonly leading: IndexSource;
  readonly ranges: readonly [RangePlan];
}

export function wmmaMemoryPlan(plan: WmmaMemoryPlan): WmmaMemoryPlan {
  return plan;
}

/** Calls `visit` with the position in the fragment and in the array of every element. B lies n-major in its fragment. */
function eachWmmaElement(
  warp: Warp,
  m: LaneSet,
  site: number,
  plan: WmmaMemoryPlan,
  visit: (fragment: number, element: number) => void,
): void {
  const { use, major, access } = plan;
  const rows = use === "b" ? plan.k : plan.m;
  const columns = use === "a" ? plan.k : plan.n;
  const base = readIndex(warp, access.index, m.lanes[0]!) + access.offset;
  const leading = readIndex(warp, plan.leading, m.lanes[0]!);
  for (let n = 1; n < m.count; n++) {
    const lane = m.lanes[n]!;
    if (
      readIndex(warp, access.index, lane) + access.offset !== base ||
      readIndex(warp, plan.leading, lane) !== leading
    ) {
      laneFault(
        warp,
        lane,
        site,
        "divergentCollective",
        "lanes of one subgroup give a wmma access different addresses",
      );
    }
  }
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const fragment = use === "b" ? column * rows + row : row * columns + column;
      visit(fragment, base + (major === "row" ? row * leading + column : column * leading + row));
    }
  }
}

function checkElement(
  warp: Warp,
  lane: number,
  site: number,
  access: AccessPlan,
  element: number,
  write: boolean,
): void {
  if (warp.block.shadow === undefined) return;
  if (access.array !== undefined)
    (write ? writeShared : readShared)(warp, lane, site, access.array, element, 1);
  else if (access.table !== undefined) readTable(warp, lane, site, access.table, element, 1);
  else
    (write ? writeGlobal : readGlobal)(
      warp,
      lane,
      site,
      warp.args[access.parameter!] as BufferBinding,
      element,
      1,
    );
}

export function wmmaLoad(warp: Warp, m: LaneSet, site: number, plan: WmmaMemoryPlan): void {
  requireWidth(warp, m, site);
  const [range] = plan.ranges;
  const element = types[plan.element];
  const fragment = new Float64Array(elementsIn(range, element) * matrixLanes);
  const { view, base } = viewOf(warp, plan.access);
  eachWmmaElement(warp, m, site, plan, (position, index) => {
    checkElement(warp, position % matrixLanes, site, plan.access, index, false);
    fragment[position] = decode(plan.access.element, view[base + index]!);
  });
  noteWritten(warp, site, range);
  writeFragment(warp, range, element, fragment);
}

export function wmmaStore(warp: Warp, m: LaneSet, site: number, plan: WmmaMemoryPlan): void {
  requireWidth(warp, m, site);
  const [range] = plan.ranges;
  checkRange(warp, site, range);
  const element = types[plan.element];
  const fragment = new Float64Array(Math.max(elementsIn(range, element) * matrixLanes, plan.m * plan.n));
  readFragment(warp, range, element, fragment);
  const { view, base } = viewOf(warp, plan.access);
  eachWmmaElement(warp, m, site, plan, (position, index) => {
    checkElement(warp, position % matrixLanes, site, plan.access, index, true);
    (view as Float64Array)[base + index] = encode(plan.access.element, fragment[position]!) as number;
  });
}
