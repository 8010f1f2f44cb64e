/**
 * @file Gated products: D = gate(A · B₁) ⊙ (A · B₂), as SwiGLU and its kin have it (Shazeer, "GLU Variants Improve
 * Transformer", arXiv 2002.05202), in one pass over A: which problems and params have them.
 */
import { ArgumentError, ShapeError, UnsupportedError } from "../errors.ts";
import { isFloat } from "../lang/index.ts";
import { gateGroup, gatePair } from "./gate-columns.ts";
import type { GemmKind } from "./kind.ts";
import type { Problem } from "./problem.ts";

/**
 * Columns of D of a gated product; those of the product where there is no gate.
 * @throws ArgumentError, ShapeError, UnsupportedError for what has no gated product
 */
export function resultColumns(
  { n, types, vectors }: Problem,
  gate: unknown,
  d: { readonly shape: readonly number[] } | undefined,
): number {
  if (gate === undefined) return n;
  if (typeof gate !== "function") {
    throw new ArgumentError(
      `gemm: gate is a function of an element such as silu, not ${gate === null ? "null" : typeof gate}`,
    );
  }
  if (!isFloat(types.accumulator)) {
    throw new UnsupportedError(
      `gemm: gate is for products that are summed in floats, not in ${types.accumulator.name}; transforms such as (x) => x.to(f16) make floats of integers`,
    );
  }
  if (n % gatePair !== 0 || vectors.b) {
    throw new ShapeError(
      `gemm: with gate, B holds the columns of two matrices in turn, ${gateGroup} at a time: a multiple of ${gatePair} columns, not ${n}; interleaveColumns(gate, up) makes such a B`,
    );
  }
  const columns = d?.shape.at(-1) ?? n / 2;
  if (Math.ceil(columns / gateGroup) * gatePair !== n) {
    throw new ShapeError(
      `gemm: with gate and ${n} columns of B, D has ${n / 2 - gateGroup + 1} to ${n / 2} columns; it has ${columns}`,
    );
  }
  return columns;
}

/** Whether each warp holds whole groups of a gated product's columns. */
export function holdsGate({ gate, params }: Pick<GemmKind, "gate" | "params">): boolean {
  return gate === undefined || (params.block.n / params.warps.n) % gatePair === 0;
}

/** @throws ArgumentError for params whose warps do not hold whole groups of a gated product */
export function checkGate(kind: Pick<GemmKind, "gate" | "params">): void {
  if (holdsGate(kind)) return;
  const { block: extents, warps } = kind.params;
  const columns = extents.n / warps.n;
  throw new ArgumentError(
    `params: with gate, block.n / warps.n is a multiple of ${gatePair}, not ${columns}`,
  );
}
