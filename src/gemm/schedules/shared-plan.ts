/**
 * @file Shared memory of a schedule that stages through it: how the tiles lie, and how much they take.
 */
import { byteSize, type I32, type StorageType, type Value } from "../../lang/index.ts";
import type { TargetFacts } from "../../target/facts.ts";
import { gatePair } from "../gate-columns.ts";
import type { GemmKind } from "../kind.ts";
import { columnMajor, denseLayout, type Layout, padded, rowMajor } from "../layouts/layout.ts";
import { canSwizzle, swizzled } from "../layouts/swizzled.ts";
import type { Operator, SharedTile } from "../operators/operator.ts";
import { type Assembly, stagesOf } from "./assembly.ts";

/** Swizzle patterns repeat every eight lines of 16 bytes. */
const stageAlignment = 128;

/** How a shared tile lies: `length` elements, for each component of its elements. */
export interface TilePlan {
  readonly layout: Layout;
  readonly leading: number;
  readonly length: number;
}

/** How the shared tiles of A and B lie, and the bytes that everything takes. */
export interface SharedPlan {
  readonly stages: number;
  readonly a: TilePlan;
  readonly b: TilePlan;
  readonly stageBytes: { readonly a: number; readonly b: number };
  /** Of all stages. */
  readonly ringBytes: number;
}

/** A number of elements that takes a multiple of so many bytes. */
function wholeAccesses(length: number, type: StorageType, bytes: number): number {
  const unit = bytes / byteSize(type);
  return Math.ceil(length / unit) * unit;
}

export function planShared(kind: GemmKind, operator: Operator, assembly: Assembly): SharedPlan {
  const { m, n, k } = kind.params.block;
  const plan = (operand: "a" | "b", rows: number, columns: number): SharedPlan["a"] => {
    const layout = sharedLayout(kind, operator, operand, [rows, columns], assembly);
    const length = wholeAccesses(layout.length(rows, columns), operator.shared[operand], stageAlignment);
    return { layout, leading: layout.leading(rows, columns), length };
  };
  const a = plan("a", m, k);
  const b = plan("b", k, n);
  const { components = 1 } = operator;
  const bytes = (length: number, type: StorageType): number => length * byteSize(type) * components;
  const stageBytes = { a: bytes(a.length, operator.shared.a), b: bytes(b.length, operator.shared.b) };
  const stages = stagesOf(kind, assembly);
  return { a, b, stages, stageBytes, ringBytes: stages * (stageBytes.a + stageBytes.b) };
}

/** Padded by what the operator takes of a line at a time, or swizzled in pieces of that. */
function sharedLayout(
  kind: GemmKind,
  operator: Operator,
  operand: "a" | "b",
  [rows, columns]: readonly [number, number],
  { swizzled: wanted }: Assembly,
): Layout {
  const major = operator.sharedMajor(operand, kind[operand].layout.major);
  const inner = denseLayout(major);
  const type = operator.shared[operand];
  const padding = operator.sharedPadding(operand, major);
  const unit = padding * byteSize(type);
  const fits = operator.swizzles === true && canSwizzle(inner.leading(rows, columns) * byteSize(type), unit);
  return wanted && fits ? swizzled(inner, type, unit) : padded(inner, padding);
}

/** Bytes of shared memory that a block of a kind takes: the ring, or the epilogue in its place. */
export function sharedBytesOf(kind: GemmKind, facts: TargetFacts, assembly: Assembly): number {
  const operator = kind.operator.create(kind.types, facts);
  const plan = planShared(kind, operator, assembly);
  return Math.max(plan.ringBytes, stagingOf(kind, operator, plan, facts).bytes);
}

/** The epilogue's shared memory: per warp one row of operator tiles, or as many of them as fit the stages. */
export function stagingOf(
  kind: GemmKind,
  operator: Operator,
  { ringBytes }: SharedPlan,
  facts: TargetFacts,
): {
  readonly layout: Layout;
  readonly leading: number;
  /** Elements of one component of a warp's part. */
  readonly length: number;
  readonly tiles: number;
  readonly bytes: number;
} {
  const { block: extents, warps } = kind.params;
  const type = operator.types.accumulator as StorageType;
  const across = extents.n / warps.n / operator.shape.n;
  // Both factors of a gated product's element are staged in one turn.
  const fewest = kind.gate === undefined ? 1 : Math.max(1, gatePair / operator.shape.n);
  const available = Math.min(Math.max(ringBytes, 16384), facts.limits.sharedBytes);
  const layout = padded(
    kind.d.layout.major === "row" ? rowMajor : columnMajor,
    Math.max(1, 16 / byteSize(type)),
  );
  for (let tiles = across; ; tiles -= fewest) {
    const rows = operator.shape.m;
    const columns = tiles * operator.shape.n;
    const length = wholeAccesses(layout.length(rows, columns), type, 16);
    const bytes = length * byteSize(type) * (operator.components ?? 1) * warps.m * warps.n;
    if (tiles === fewest || (bytes <= available && across % tiles === 0)) {
      return { layout, leading: layout.leading(rows, columns), length, tiles, bytes };
    }
  }
}

/** One stage of a tile's ring. */
export function stageTile(
  memory: SharedTile["memory"],
  plan: SharedPlan["a"],
  stage: Value<I32> | number,
  length: number,
): SharedTile {
  const origin = typeof stage === "number" ? stage * length : stage.mul(length);
  return { memory, layout: plan.layout, leading: plan.leading, origin, planeLength: plan.length };
}
