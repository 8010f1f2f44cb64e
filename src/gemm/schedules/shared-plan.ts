/**
 * @file Shared memory of a schedule that stages through it: how the tiles lie, and how much they take.
 */
import { byteSize, type I32, type StorageType, type Value } from "../../lang/index.ts";
import type { TargetFacts } from "../../target/facts.ts";
import type { GemmKind } from "../kind.ts";
import { columnMajor, type Layout, padded, rowMajor } from "../layouts/layout.ts";
import type { Operator, SharedTile } from "../operators/operator.ts";

/** How the shared tiles of A and B lie, and the bytes that everything takes. */
export interface SharedPlan {
  readonly a: { readonly layout: Layout; readonly leading: number; readonly length: number };
  readonly b: { readonly layout: Layout; readonly leading: number; readonly length: number };
  readonly stageBytes: { readonly a: number; readonly b: number };
}

export function planShared(kind: GemmKind, operator: Operator): SharedPlan {
  const { m, n, k } = kind.params.block;
  const plan = (operand: "a" | "b", rows: number, columns: number): SharedPlan["a"] => {
    const major = operator.sharedMajor(operand, kind[operand].layout.major);
    const layout = padded(major === "row" ? rowMajor : columnMajor, operator.sharedPadding(operand, major));
    return { layout, leading: layout.leading(rows, columns), length: layout.length(rows, columns) };
  };
  const a = plan("a", m, k);
  const b = plan("b", k, n);
  const bytes = (length: number, type: StorageType): number => Math.ceil((length * byteSize(type)) / 16) * 16;
  return {
    a,
    b,
    stageBytes: { a: bytes(a.length, operator.shared.a), b: bytes(b.length, operator.shared.b) },
  };
}

/** Bytes of shared memory that a kind takes with two stages. */
export function sharedBytesOf(kind: GemmKind, facts: TargetFacts): number {
  const operator = kind.operator.create(kind.types, facts);
  const { stageBytes } = planShared(kind, operator);
  return Math.max(2 * (stageBytes.a + stageBytes.b), stagingOf(kind, operator, facts).bytes);
}

/** The epilogue's shared memory: per warp one row of operator tiles, or as many of them as fit the stages. */
export function stagingOf(
  kind: GemmKind,
  operator: Operator,
  facts: TargetFacts,
): {
  readonly layout: Layout;
  readonly leading: number;
  readonly length: number;
  readonly tiles: number;
  readonly bytes: number;
} {
  const { block: extents, warps } = kind.params;
  const { stageBytes } = planShared(kind, operator);
  const type = operator.types.accumulator as StorageType;
  const across = extents.n / warps.n / operator.shape.n;
  const available = Math.min(Math.max(2 * (stageBytes.a + stageBytes.b), 16384), facts.limits.sharedBytes);
  const layout = padded(
    kind.d.layout.major === "row" ? rowMajor : columnMajor,
    Math.max(1, 16 / byteSize(type)),
  );
  for (let tiles = across; ; tiles--) {
    const rows = operator.shape.m;
    const columns = tiles * operator.shape.n;
    const length = layout.length(rows, columns);
    const bytes = Math.ceil((length * byteSize(type)) / 16) * 16 * warps.m * warps.n;
    if (tiles === 1 || (bytes <= available && across % tiles === 0)) {
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
  return { memory, layout: plan.layout, leading: plan.leading, origin };
}
