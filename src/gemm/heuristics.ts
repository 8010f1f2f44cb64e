/**
 * @file Params for those who give none: from types, operator and the device's facts.
 */
import { UnsupportedError } from "../errors.ts";
import type { TargetFacts } from "../target/facts.ts";
import { holdsGate } from "./gate.ts";
import type { GemmKind } from "./kind.ts";
import { factsOf } from "./layouts/layout.ts";
import type { Operator } from "./operators/operator.ts";
import { checkParams, type GemmParams } from "./params.ts";
import type { Assembly } from "./schedules/assembly.ts";
import { heldRegisters } from "./schedules/held-registers.ts";
import { operandCopy } from "./schedules/operand-copies.ts";
import { sharedBytesOf } from "./schedules/shared-plan.ts";

/** A shape in units of the operator's own: operator tiles per warp, warps per block, K depth in elements. */
interface Candidate {
  readonly warps: { readonly m: number; readonly n: number };
  readonly warpTile: { readonly m: number; readonly n: number };
  readonly depthBytes: number;
  /** 8 unless given. */
  readonly groupRows?: number;
  /** Most stages of a ring that asynchronous copies fill. */
  readonly stages?: number;
  /** Has registers enough only where asynchronous copies pass by them. */
  readonly asynchronous?: true;
}

/**
 * Largest first. Warp tiles of 64x64 feed tensor cores from shared memory without starving them; a depth of 128 bytes
 * halves the barriers where the shared memory allows it (on an H200 344 TFLOP/s instead of 270 in f16 at 4096).
 */
const tensorCandidates: readonly Candidate[] = [
  { warps: { m: 2, n: 4 }, warpTile: { m: 64, n: 64 }, depthBytes: 128 },
  { warps: { m: 4, n: 2 }, warpTile: { m: 64, n: 64 }, depthBytes: 128, asynchronous: true },
  { warps: { m: 2, n: 4 }, warpTile: { m: 64, n: 64 }, depthBytes: 64 },
  { warps: { m: 2, n: 2 }, warpTile: { m: 64, n: 64 }, depthBytes: 128 },
  { warps: { m: 2, n: 2 }, warpTile: { m: 64, n: 64 }, depthBytes: 64 },
  { warps: { m: 2, n: 2 }, warpTile: { m: 32, n: 32 }, depthBytes: 64 },
  { warps: { m: 2, n: 2 }, warpTile: { m: 16, n: 16 }, depthBytes: 64 },
  { warps: { m: 1, n: 1 }, warpTile: { m: 16, n: 16 }, depthBytes: 64 },
  { warps: { m: 1, n: 1 }, warpTile: { m: 8, n: 8 }, depthBytes: 32 },
];

/** Stages of rings that asynchronous copies fill: what hides a memory's latency, and what more would not. */
const fewestStages = 3;
const mostStages = 5;

/**
 * For a thin A and a thin B: what counts of one tile is one K step, and several blocks of few registers share a
 * multiprocessor. On an H200 in f16 at 4096, a diagonal A took 1.22 times as long as a copy of B, instead of 1.88 in the
 * largest tiles; a diagonal B took 1.42 times as long, instead of 2.99.
 */
const thinCandidates: Readonly<Record<"a" | "b", Candidate>> = {
  a: {
    warps: { m: 1, n: 2 },
    warpTile: { m: 16, n: 64 },
    depthBytes: 32,
    groupRows: 1,
    stages: 2,
  },
  b: {
    warps: { m: 2, n: 1 },
    warpTile: { m: 32, n: 32 },
    depthBytes: 64,
    groupRows: 1,
    stages: 2,
  },
};

/** On an H200 in f32 at 4096 the first makes 45.6 TFLOP/s, the second 38.6 (cuBLASLt 50.2 in the same run). */
const plainCandidates: readonly Candidate[] = [
  { warps: { m: 4, n: 2 }, warpTile: { m: 64, n: 64 }, depthBytes: 64 },
  { warps: { m: 4, n: 2 }, warpTile: { m: 32, n: 64 }, depthBytes: 64 },
  { warps: { m: 2, n: 1 }, warpTile: { m: 32, n: 64 }, depthBytes: 64 },
  { warps: { m: 2, n: 2 }, warpTile: { m: 32, n: 64 }, depthBytes: 32 },
  { warps: { m: 2, n: 2 }, warpTile: { m: 16, n: 16 }, depthBytes: 32 },
  { warps: { m: 1, n: 1 }, warpTile: { m: 1, n: 1 }, depthBytes: 32 },
];

/** Bytes are a quarter as deep: every element along K is code of its own. */
const packedCandidates: readonly Candidate[] = plainCandidates.map((one) => ({
  ...one,
  depthBytes: Math.min(one.depthBytes, 32),
}));

function candidatesFor(kind: Pick<GemmKind, "a" | "b">, { shape, byLanes }: Operator): readonly Candidate[] {
  const thin = (["a", "b"] as const).filter((operand) => factsOf(kind[operand].layout).thin === true);
  const usual = byLanes === true ? packedCandidates : shape.k > 1 ? tensorCandidates : plainCandidates;
  return [...thin.map((operand) => thinCandidates[operand]), ...usual];
}

/** Blocks of small tiles that a multiprocessor is to have room for, and what it keeps of shared memory for each. */
const mostResident = 4;
const reservedBytes = 1024;
/** Asynchronous copies of a thread in a K step: narrow ones of a large tile leave no registers to multiply with. */
const mostCopies = 32;

/** Elements that tiles may compute for each that the smallest tiles would: large ones stand far over a small matrix. */
const mostWaste = 2;

function tilesOver({ m, n }: { readonly m: number; readonly n: number }, block: GemmParams["block"]): number {
  return Math.ceil(m / block.m) * Math.ceil(n / block.n);
}

/**
 * Params for a kind and a size; `repeats` is how often each tile is computed: by matrices of a batch, by parts of K. Of a
 * few shapes, the largest that fits the device, whose tiles still occupy half of the multiprocessors and do not stand far
 * over the matrix. Sizes beyond that play no part, so that many sizes share one module.
 */
export function chooseParams(
  kind: Omit<GemmKind, "params" | "schedule">,
  size: { readonly m: number; readonly n: number; readonly repeats?: number },
  facts: TargetFacts,
  assembly: Assembly,
): GemmParams {
  const operator = kind.operator.create(kind.types, facts);
  const candidates = candidatesFor(kind, operator);
  const fitting: GemmParams[] = [];
  for (const candidate of candidates) {
    // A deep step of 8-bit elements has more registers on their way than a lane has beside its sums.
    if (operator.shared.a.bits === 8 && candidate.depthBytes > 64) continue;
    if (candidate.asynchronous === true && !assembly.asynchronous) continue;
    const usual = paramsOf(
      shared(candidate, facts.subgroup.width),
      operator.shape,
      operator.shared.a.bits / 8,
      operator.types.accumulator.bits / 8,
    );
    const params =
      operator.held === undefined ? usual : lightened({ ...kind, params: usual }, operator, facts);
    if (!holdsGate({ ...kind, params })) continue;
    const named = { ...kind, schedule: assembly.name, params };
    const staged = withStages(named, facts, assembly, candidate.stages ?? mostStages);
    if (staged !== undefined) fitting.push(staged);
  }
  const computed = fitting.map(({ block }) => tilesOver(size, block) * block.m * block.n);
  const least = Math.min(...computed);
  const busy = fitting.find(({ block }, i) => {
    const blocks = tilesOver(size, block) * (size.repeats ?? 1);
    return blocks * 2 >= facts.machine.multiprocessors && computed[i]! <= mostWaste * least;
  });
  const chosen = busy === undefined ? fitting.at(-1) : inFewestRounds(busy, fitting, size, facts);
  if (chosen === undefined) {
    throw new UnsupportedError(
      `gemm: no tile shape of the ${operator.name} operator fits ${facts.name}; give params of your own`,
    );
  }
  return chosen;
}

/** The params, or others of as large tiles in which the last round of blocks leaves fewer multiprocessors idle. */
function inFewestRounds(
  best: GemmParams,
  fitting: readonly GemmParams[],
  size: { readonly m: number; readonly n: number; readonly repeats?: number },
  facts: TargetFacts,
): GemmParams {
  const rounds = ({ block }: GemmParams): number =>
    Math.ceil((tilesOver(size, block) * (size.repeats ?? 1)) / facts.machine.multiprocessors);
  const equals = fitting.filter(
    ({ block }) => block.m * block.n === best.block.m * best.block.n && block.k === best.block.k,
  );
  return equals.reduce((least, other) => (rounds(other) < rounds(least) ? other : least), best);
}

/**
 * Candidates are for subgroups of 32 lanes; several narrower ones together do what one of those does. Machines with narrow
 * ones have few registers a lane, which a deep tile on its way to shared memory would fill.
 */
function shared({ warps, warpTile, depthBytes, ...order }: Candidate, width: number): Candidate {
  const down = 2 ** Math.floor(Math.log2(Math.max(1, 32 / width)) / 2);
  const across = Math.max(1, 32 / width) / down;
  return {
    warps: { m: warps.m * down, n: warps.n * across },
    warpTile: { m: Math.ceil(warpTile.m / down), n: Math.ceil(warpTile.n / across) },
    depthBytes: width < 16 ? Math.min(depthBytes, 16) : depthBytes,
    ...order,
  };
}

function paramsOf(
  candidate: Candidate,
  shape: { readonly m: number; readonly n: number; readonly k: number },
  operandBytes: number,
  accumulatorBytes: number,
): GemmParams {
  const upTo = (size: number, unit: number): number => Math.ceil(size / unit) * unit;
  // A lane holds the whole warp tile's accumulators in registers: with 8-byte ones the tile is half as wide.
  const narrower = accumulatorBytes > 4 && candidate.warpTile.n > 32 ? 2 : 1;
  const warpTile = {
    m: upTo(candidate.warpTile.m, shape.m),
    n: upTo(candidate.warpTile.n / narrower, shape.n),
  };
  return {
    block: {
      m: warpTile.m * candidate.warps.m,
      n: warpTile.n * candidate.warps.n,
      k: upTo(Math.max(candidate.depthBytes / operandBytes, 8), shape.k),
    },
    warps: candidate.warps,
    groupRows: candidate.groupRows ?? 8,
  };
}

/**
 * Registers of accumulators, fragments and staging that leave a lane enough for everything else, which is less where
 * ldmatrix loads the fragments: as ptxas assembles products over complex and dual numbers and quaternions.
 */
function mostHeld({ shared: { a } }: Operator): number {
  return a.bits <= 16 ? 240 : 208;
}

/**
 * Params with smaller tiles, so that a lane has registers for all the fragments that the operator holds of one: sides
 * halved, the longer first, until there is room for a shallow step, and then the depth for which there is room.
 */
function lightened(
  kind: Pick<GemmKind, "a" | "b" | "params">,
  operator: Operator,
  facts: TargetFacts,
): GemmParams {
  const { params } = kind;
  const { shape, shared: operand } = operator;
  const most = mostHeld(operator);
  const hasRoom = (extents: GemmParams["block"]): boolean => {
    const candidate = { ...kind, params: { ...params, block: extents } };
    return heldRegisters(candidate, operator, { buffers: 1, staged: ["a", "b"] }, facts) <= most;
  };
  const shallow = Math.max(shape.k, 256 / operand.a.bits, 8);
  let extents = { ...params.block, k: Math.min(params.block.k, shallow) };
  while (!hasRoom(extents)) {
    const warp = { m: extents.m / params.warps.m, n: extents.n / params.warps.n };
    const [side] = (["n", "m"] as const)
      .filter((one) => warp[one] % (2 * shape[one]) === 0)
      .sort((x, y) => warp[y] - warp[x]);
    if (side === undefined) break;
    extents = { ...extents, [side]: extents[side] / 2 };
  }
  let { k } = params.block;
  while (k % (2 * shape.k) === 0 && !hasRoom({ ...extents, k })) k /= 2;
  return { ...params, block: { ...extents, k } };
}

/** The params with as many stages as are worth having and leave room for the other blocks of a multiprocessor. */
function withStages(
  kind: GemmKind,
  facts: TargetFacts,
  assembly: Assembly,
  most: number,
): GemmParams | undefined {
  if (!assembly.asynchronous) return fits(kind, facts, assembly) ? kind.params : undefined;
  const { warps } = kind.params;
  const threads = warps.m * warps.n * facts.subgroup.width;
  if (asynchronousCopies(kind, facts, assembly) > mostCopies * threads) return undefined;
  const { registersPerMultiprocessor, sharedBytesPerMultiprocessor } = facts.machine;
  // Accumulators and two buffers of fragments take nearly all the registers that a thread can have.
  const blocks = Math.max(1, Math.floor(registersPerMultiprocessor / (threads * 256)));
  const room = sharedBytesPerMultiprocessor / Math.min(blocks, mostResident) - reservedBytes;
  for (let stages = most; stages >= Math.min(fewestStages, most); stages--) {
    const staged = { ...kind, params: { ...kind.params, stages } };
    if (sharedBytesOf(staged, facts, assembly) <= room && fits(staged, facts, assembly)) return staged.params;
  }
  return undefined;
}

/** Asynchronous copies of a K step, of all threads. */
function asynchronousCopies(kind: GemmKind, facts: TargetFacts, assembly: Assembly): number {
  const operator = kind.operator.create(kind.types, facts);
  const { m, n, k } = kind.params.block;
  return (["a", "b"] as const)
    .map((operand) => {
      const { width, throughRegisters } = operandCopy(kind, operand, operator, facts, assembly);
      return throughRegisters === undefined ? ((operand === "a" ? m : n) * k) / width : 0;
    })
    .reduce((sum, count) => sum + count, 0);
}

/** Whether a kind has room on a device. @throws ArgumentError for params that do not fit the operator */
export function fits(kind: GemmKind, facts: TargetFacts, assembly: Assembly): boolean {
  const operator = kind.operator.create(kind.types, facts);
  checkParams(kind.params, operator, facts.subgroup.width);
  const { warps } = kind.params;
  const threads = warps.m * warps.n * facts.subgroup.width;
  return (
    threads <= facts.limits.threadsPerBlock &&
    sharedBytesOf(kind, facts, assembly) <= facts.limits.sharedBytes
  );
}
