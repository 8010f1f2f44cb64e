/**
 * @file The shape of a warpgroup product: its instruction, tiles, stages and boxes.
 */
import { ArgumentError, UnsupportedError } from "../../errors.ts";
import { byteSize, f32, type StorageType, tf32 } from "../../lang/index.ts";
import type { MatrixInstruction, TargetFacts } from "../../target/facts.ts";
import { componentsOf, type GemmKind } from "../kind.ts";
import { factsOf } from "../layouts/layout.ts";
import type { OperatorTypes } from "../operators/operator.ts";
import { checkSplit } from "../split.ts";
import { everyStepCounts } from "./counted-steps.ts";
import { storeBytes, storesBoxes } from "./warpgroup-store.ts";
import { dividesK } from "./work.ts";

/** Bytes of a swizzled line: one K step of a K-major operand, 64 elements of 16 bits. */
export const lineBytes = 128;
/** Rows that one warpgroup multiplies. */
export const groupRows = 64;
export const threadsPerGroup = 128;

/** Columns of a tile of which one warpgroup sums 128 rows: more would take more registers than there are. */
const widestOfTwo = 128;
/** Registers of a lane for sums of elements with several components; addresses and the epilogue's values take the others. */
const mostSums = 168;
/** Warpgroups that multiply, at most: three leave a thread too few registers for wide tiles. */
const mostConsumers = 2;

/** Whether K is the contiguous direction of an operand. */
export function kMajor(kind: Pick<GemmKind, "a" | "b">, operand: "a" | "b"): boolean {
  return kind[operand].layout.major === (operand === "a" ? "row" : "column");
}

/** The instruction for a kind's types at its widest; undefined where the target has none. */
export function instructionOf(
  kind: Pick<GemmKind, "types">,
  facts: TargetFacts,
): MatrixInstruction | undefined {
  const { a, b, accumulator } = kind.types;
  return facts.warpgroupMma.find(
    (candidate) =>
      candidate.a === a.name && candidate.b === b.name && candidate.accumulator === accumulator.name,
  );
}

/** The instruction at the width of a block's tile. */
export function sized(kind: GemmKind, facts: TargetFacts): MatrixInstruction {
  const instruction = instructionOf(kind, facts);
  if (instruction === undefined) {
    throw new UnsupportedError(
      `${facts.name} has no warpgroup instruction for ${kind.types.a.name}·${kind.types.b.name}`,
    );
  }
  return { ...instruction, n: kind.params.block.n };
}

/**
 * The types in which warpgroups multiply 8-bit floats as they are stored, where nothing happens to them on the way. The
 * instruction's sums keep about 14 bits; unless that is good enough (`fast`), it sums one K step of 128 elements alone.
 */
export function narrowTypes(
  kind: Pick<GemmKind, "a" | "b" | "transforms" | "types">,
  facts: TargetFacts,
  fast: boolean,
): OperatorTypes | undefined {
  const { a, b, transforms, types } = kind;
  const narrow = [a, b].every(({ type }) => type.class === "float" && type.bits === 8);
  const changed = (["a", "b"] as const).some((operand) => isChanged({ a, b, transforms }, operand));
  if (!narrow || changed || types.accumulator !== f32) return undefined;
  const stored = { a: a.type, b: b.type, accumulator: f32 };
  if (instructionOf({ types: stored }, facts) === undefined) return undefined;
  return fast ? stored : { ...stored, promotionInterval: lineBytes };
}

/** The widest tile: where sums are promoted, a lane holds two sets of accumulators. */
function widestTile(kind: Pick<GemmKind, "types">, facts: TargetFacts): number {
  const widest = instructionOf(kind, facts)?.n ?? 256;
  return kind.types.promotionInterval === undefined ? widest : Math.min(widest, 192);
}

/** Type of an operand's tiles in shared memory, where instructions find them. */
export function tileType({ types }: Pick<GemmKind, "types">, operand: "a" | "b"): StorageType {
  return types[operand] === tf32 ? f32 : (types[operand] as StorageType);
}

/** Whether an operand is windows of images, of which tensor maps bring zeros where nothing counts. */
export function isWindowed(kind: Pick<GemmKind, "a" | "b">, operand: "a" | "b"): boolean {
  return factsOf(kind[operand].layout).windowLine !== undefined;
}

/** Whether something happens to an operand's elements on their way, or not all of them count. */
export function isChanged(kind: Pick<GemmKind, "a" | "b" | "transforms">, operand: "a" | "b"): boolean {
  if (kind.transforms[operand] !== undefined) return true;
  return kind[operand].layout.counts !== undefined && !isWindowed(kind, operand);
}

/**
 * How an operand comes to the instruction: straight from the tile that a tensor map brought; through registers, where A's
 * elements are changed; or out of a tile that a warpgroup of its own has rewritten in shared memory, where B's are changed
 * or stored elements have another type.
 */
export type Passage = "direct" | "registers" | "rewritten";

type PassingKind = Pick<GemmKind, "a" | "b" | "transforms" | "types">;

export function passageOf(kind: PassingKind, operand: "a" | "b"): Passage {
  if (kind[operand].type !== tileType(kind, operand)) return "rewritten";
  if (!isChanged(kind, operand)) return "direct";
  return operand === "a" ? "registers" : "rewritten";
}

/** The operands whose tiles are rewritten. */
export function rewrittenOf(kind: PassingKind): readonly ("a" | "b")[] {
  return (["a", "b"] as const).filter((operand) => passageOf(kind, operand) === "rewritten");
}

/** Whether the tile that a tensor map brings and the one that instructions read are two. */
export function isWidened(kind: PassingKind, operand: "a" | "b"): boolean {
  return kind[operand].type !== tileType(kind, operand);
}

/**
 * Whether each of two consumer warpgroups computes tiles of its own, in turn, so that one's epilogue runs beside the
 * other's products (CUTLASS's ping-pong form): tiles of 128 rows by four warps. Otherwise both share each tile.
 */
export function isPingPong({ params }: Pick<GemmKind, "params">): boolean {
  return params.block.m === 2 * groupRows && params.warps.m === 4;
}

/** Warpgroups that multiply. */
export function consumersOf({ params }: Pick<GemmKind, "params">): number {
  return Math.min(mostConsumers, params.block.m / groupRows);
}

/** How many times 64 rows of a tile each of the warpgroups sums that share it, or the one whose turn it is. */
export function partsOf(kind: Pick<GemmKind, "params">): number {
  const { m } = kind.params.block;
  return m / groupRows / (isPingPong(kind) ? 1 : consumersOf(kind));
}

/** Warps of a tile. */
function warpsOf(rows: number): number {
  return Math.min(rows / 16, mostConsumers * 4);
}

/** Why a warpgroup cannot sum 128 rows of a kind; undefined when it can. */
function twoPartsRefusal(kind: GemmKind): string | undefined {
  const { n } = kind.params.block;
  if (n > widestOfTwo) return `block.n is at most ${widestOfTwo}, not ${n}`;
  if (kind.types.promotionInterval !== undefined)
    return "wants sums in one level; block.m = 128 with 8 warps does without";
  if (passageOf(kind, "a") === "registers")
    return "wants A straight from memory; block.m = 128 with 8 warps does without";
  return undefined;
}

/** Why tiles of a kind cannot be taken in turn; undefined when they can. */
function turnRefusal(kind: GemmKind): string | undefined {
  const held = twoPartsRefusal(kind);
  if (held !== undefined) return held;
  const whole = everyStepCounts(kind) && !dividesK(kind);
  const direct = (["a", "b"] as const).every((operand) => passageOf(kind, operand) === "direct");
  if (whole && direct) return undefined;
  return "wants all of K for every tile and operands straight from memory; 8 warps do without";
}

/** Whether tiles can be taken in turn. */
export function canTurn(kind: GemmKind): boolean {
  return turnRefusal(kind) === undefined;
}

/** Why tiles of elements with several components do not fit; undefined when they do. */
export function componentsShapeRefusal(kind: GemmKind, facts: TargetFacts): string | undefined {
  const components = componentsOf(kind);
  if (components === 1) return undefined;
  const { m, n } = kind.params.block;
  const sums = (components * partsOf(kind) * groupRows * n) / threadsPerGroup;
  if (sums > mostSums)
    return `the sums of ${components} components take ${sums} registers of a lane, and at most ${mostSums} are there for them; fewer columns take fewer`;
  if (stagesWithin(kind, facts) < 2)
    return `two stages of ${m} x ${n} tiles of ${components} components take more shared memory than there is; smaller tiles take less`;
  return undefined;
}

/** Elements of K in one step: a line of shared memory. */
export function depthOf(kind: Pick<GemmKind, "types">): number {
  return lineBytes / byteSize(tileType(kind, "a"));
}

/** @throws ArgumentError for params that warpgroups do not take */
export function check(kind: GemmKind, facts: TargetFacts): void {
  checkSplit(kind);
  const { block: extents } = kind.params;
  const depth = depthOf(kind);
  const widest = widestTile(kind, facts);
  if (![1, 2, 4].includes(extents.m / groupRows)) {
    throw new ArgumentError(
      `params.block.m is 64, 128 or 256 with warpgroups (64 rows each, or twice 64 each of two), not ${extents.m}`,
    );
  }
  if (extents.n % 64 !== 0 || extents.n > widest) {
    throw new ArgumentError(
      `params.block.n is a multiple of 64 up to ${widest} with warpgroups, not ${extents.n}`,
    );
  }
  const { m, n } = kind.params.warps;
  const warps = warpsOf(extents.m);
  if (n !== 1 || (m !== warps && !isPingPong(kind))) {
    const inTurn = extents.m === 2 * groupRows ? ", or 4 x 1 for tiles in turn" : "";
    throw new ArgumentError(
      `params.warps are ${warps} x 1 with warpgroups and ${extents.m} rows${inTurn}; not ${m} x ${n}`,
    );
  }
  const turn = isPingPong(kind);
  const reason = turn ? turnRefusal(kind) : partsOf(kind) > 1 ? twoPartsRefusal(kind) : undefined;
  if (reason !== undefined) {
    const who = turn ? `params.warps.m = 4 (tiles of each warpgroup in turn) with ` : "params.";
    throw new ArgumentError(`${who}block.m = ${extents.m}: ${reason}`);
  }
  if (extents.k !== depth)
    throw new ArgumentError(
      `params.block.k is ${depth} with ${tileType(kind, "a").name} in 128-byte lines, not ${extents.k}`,
    );
  const unfit = componentsShapeRefusal(kind, facts);
  if (unfit !== undefined) throw new ArgumentError(`params.block of ${extents.m} x ${extents.n}: ${unfit}`);
}

/** Elements of one stage of each operand, all planes of components together. */
export function stageElements(kind: GemmKind): { readonly a: number; readonly b: number } {
  const { m, n, k } = kind.params.block;
  const planes = componentsOf(kind);
  return { a: planes * m * k, b: planes * n * k };
}

/** Stages of the ring: as many as shared memory holds, up to eight. */
export function stageCount(kind: GemmKind, facts: TargetFacts): number {
  return Math.max(2, Math.min(8, stagesWithin(kind, facts)));
}

/** Stages that shared memory has room for. */
export function stagesWithin(kind: GemmKind, facts: TargetFacts): number {
  const elements = stageElements(kind);
  const bytes = (["a", "b"] as const)
    .map((operand) => {
      const brought = isWidened(kind, operand) ? byteSize(kind[operand].type) : 0;
      return elements[operand] * (byteSize(tileType(kind, operand)) + brought);
    })
    .reduce((sum, one) => sum + one, 0);
  // Beside the ring there are the boxes in which results leave, and a little for barriers and alignment.
  const boxes = storesBoxes(kind) ? consumersOf(kind) * storeBytes : 0;
  return Math.floor((facts.limits.sharedBytes - boxes - 2048) / bytes);
}
