/**
 * @file Epilogues: how D leaves.
 *
 * A block's accumulators pass through shared memory a few rows of operator tiles at a time, warp by warp, so that lanes
 * read and write whole lines of C and D whatever the operator's register layout is.
 */
import {
  type AnyValue,
  type Bool,
  type Condition,
  type ElementType,
  type GlobalArray,
  type I32,
  type Index,
  type StorageType,
  type Value,
  when,
} from "../../lang/index.ts";
import { parallelise, plus, tile, translate } from "../../tile/index.ts";
import type { Algebra } from "../algebras/algebra.ts";
import type { ExtrasOf, ExtraValue } from "../extras.ts";
import { columnsPerResult, gateColumn, gateGroup } from "../gate-columns.ts";
import type { Layout, MatrixPlace, MatrixTile } from "../layouts/layout.ts";
import type { Operator, SharedTile } from "../operators/operator.ts";
import { joined, separate, type Transform, type Transforms } from "../transforms.ts";
import type { Collectors, LaneGrid, LaneOffsets } from "./collector.ts";
import { combine } from "./combination.ts";
import type { StepKind } from "./step.ts";
import type { StepOperand } from "./step-operand.ts";

/** A matrix in global memory as the epilogue needs it. */
export interface GlobalMatrix {
  readonly memory: GlobalArray<StorageType>;
  readonly layout: Layout;
  readonly leading: Value<Index>;
  /** What the layout takes at run time. */
  readonly extras?: readonly ExtraValue[];
}

/** What an epilogue works with. */
export interface EpilogueContext {
  readonly operator: Operator;
  /** This warp's accumulators by operator tile, [row][column]. */
  readonly accumulators: readonly (readonly unknown[])[];
  /** First element of the warp's tile in D. */
  readonly row: Value<I32>;
  readonly column: Value<I32>;
  readonly rows: Value<I32>;
  readonly columns: Value<I32>;
  /** Whether the block's whole tile lies inside D. */
  readonly whole: Condition;
  /** Shared memory of this warp alone: `tilesPerTurn` operator tiles side by side. */
  readonly staging: SharedTile;
  readonly tilesPerTurn: number;
  readonly lane: Value<I32>;
  readonly lanes: number;
  /** Orders the warp's stores to `staging` before its loads, and the reverse. */
  readonly barrier: () => void;
  /** Type that alpha and beta have and that the combination is computed in. */
  readonly scaleType: ElementType;
  readonly alpha: AnyValue;
  /** Undefined when beta is zero: then C is not read. */
  readonly source: { readonly matrix: GlobalMatrix; readonly beta: AnyValue } | undefined;
  readonly target: GlobalMatrix;
  /** Values of one access to C and D. */
  readonly width: number;
  readonly transforms: Transforms;
  /** Of a gated product; then `column`, `columns` and `whole` are D's, and accumulators have two columns for each of those. */
  readonly gate: Transform | undefined;
  /** What components take at run time, by owner. */
  readonly extras: ExtrasOf<ExtraValue>;
  readonly steps: readonly StepKind[];
  readonly stepOperands: readonly (readonly StepOperand[])[];
  /** Collectors of the steps that reduce, for lanes in a grid; undefined where none does. */
  readonly collectors: ((grid: LaneGrid) => Collectors) | undefined;
}

/** How D leaves. */
export interface Epilogue {
  readonly name: string;
  /** What elements are, of the epilogue that combines elements with several components. */
  readonly algebra?: Algebra;
  run(context: EpilogueContext): void;
}

/** One access: what is staged at `part` goes to D at `global`. */
export type WriteAccess = (
  context: EpilogueContext,
  collectors: Collectors | undefined,
  part: MatrixTile,
  global: MatrixTile,
) => void;

/** Stages the accumulators and writes them to D, `context.width` elements an access. */
export function stageAndWrite(context: EpilogueContext, write: WriteAccess): void {
  const { accumulators, tilesPerTurn, operator, staging, barrier } = context;
  const { m, n } = operator.shape;
  const across = n / columnsPerResult(context);
  const share = laneShare(context, m, tilesPerTurn * across);
  const collectors = context.collectors?.(share.grid);
  const part = { row: context.row, column: context.column };
  const place = { part, lane: share.origin };
  const turns = Array.from({ length: accumulators[0].length / tilesPerTurn }, (_, t) => t * tilesPerTurn);
  const columns = turns.flatMap((j) => share.offsets.columns.map((column) => column + j * across));
  collectors?.open(["column", "all"], place, { rows: [], columns });
  accumulators.forEach((line, i) => {
    const rows = share.offsets.rows.map((row) => row + i * m);
    collectors?.open(["row"], place, { rows, columns });
    for (let j = 0; j < line.length; j += tilesPerTurn) {
      // What the turn before has staged must have been read.
      if (i > 0 || j > 0) barrier();
      const group = line.slice(j, j + tilesPerTurn);
      group.forEach((accumulator, t) => {
        const at = translate(tile({ R: operator.shape.m, C: operator.shape.n }), {
          C: t * operator.shape.n,
        });
        operator.storeD(accumulator, staging, at);
      });
      barrier();
      leave(context, write, share, collectors, i * m, j * across);
    }
    collectors?.close(["row"]);
  });
  collectors?.close(["column", "all"]);
}

/** D = alpha · (A · B) + beta · C, converted to D's type (integers saturate as conversions do). */
export const defaultEpilogue: Epilogue = {
  name: "default",
  run: (context) => stageAndWrite(context, writeCombined),
};

/** What of the rows staged in a turn one lane writes. */
interface LaneShare {
  readonly parts: readonly MatrixTile[];
  /** Whether this lane writes at all. */
  readonly active: Condition;
  readonly along: "R" | "C";
  /** Coordinates in D of the first element, for the warp's first turn. */
  readonly origin: { readonly row: Value<I32>; readonly column: Value<I32> };
  readonly grid: LaneGrid;
  readonly offsets: LaneOffsets;
}

/** Divides `rows` x `columns` staged elements among the lanes. */
function laneShare(context: EpilogueContext, rows: number, columns: number): LaneShare {
  const { target, width, lane, lanes, row, column } = context;
  const along = target.layout.major === "row" ? "C" : "R";
  const staged = tile({ R: rows, C: columns });
  const size = along === "C" ? { R: 1, C: width } : { R: width, C: 1 };
  const total = (rows * columns) / width;
  let entities = Math.min(lanes, total);
  while (total % entities !== 0) entities--;
  const parts = parallelise(staged, size, lane, entities, { fastest: along });
  const of = (dimension: "R" | "C"): readonly number[] => {
    const within = Array.from({ length: size[dimension] }, (_, e) => e);
    const starts = [...new Set(parts.map((part) => part.offset[dimension]))];
    return starts.flatMap((start) => within.map((e) => start + e)).sort((a, b) => a - b);
  };
  const offsets = { rows: of("R"), columns: of("C") };
  const down = rows / offsets.rows.length;
  const [{ base }] = parts;
  return {
    parts,
    active: entities === lanes ? true : lane.lt(entities),
    along,
    origin: { row: plus(base.R, row) as Value<I32>, column: plus(base.C, column) as Value<I32> },
    grid: { fastest: along, R: down, C: columns / offsets.columns.length },
    offsets,
  };
}

/** Writes the staged rows, which begin `down` and `across` into the warp's tile, to D. */
function leave(
  context: EpilogueContext,
  write: WriteAccess,
  { parts, active, along }: LaneShare,
  collectors: Collectors | undefined,
  down: number,
  across: number,
): void {
  const { row, column, whole } = context;
  const at = (part: MatrixTile): MatrixTile => place(part, down, across, row, column);
  when(active, () => {
    when(whole, () => {
      for (const part of parts) write(context, collectors, part, at(part));
    }).otherwise(() => {
      for (const part of parts) writeGuarded(context, write, collectors, part, at(part), along);
    });
  });
}

function place(
  part: MatrixTile,
  down: number,
  across: number,
  row: Value<I32>,
  column: Value<I32>,
): MatrixTile {
  return translate(translate(part, { R: row, C: column }), { R: down, C: across });
}

function writeGuarded(
  context: EpilogueContext,
  write: WriteAccess,
  collectors: Collectors | undefined,
  part: MatrixTile,
  global: MatrixTile,
  along: "R" | "C",
): void {
  const { width, rows, columns } = context;
  const inside = (at: MatrixTile, last: number): Value<Bool> => {
    const row = at.origin("R") as Value<I32>;
    const column = at.origin("C") as Value<I32>;
    const down = (along === "R" && last > 0 ? row.add(last) : row).lt(rows);
    const over = (along === "C" && last > 0 ? column.add(last) : column).lt(columns);
    return down.and(over);
  };
  const single = (whole: MatrixTile, e: number): MatrixTile =>
    translate(whole, { [along]: e } as never).resize({ R: 1, C: 1 }) as MatrixTile;
  const decision = when(inside(global, width - 1), () => write(context, collectors, part, global));
  if (width === 1) return;
  decision.otherwise(() => {
    for (let e = 0; e < width; e++) {
      const at = single(global, e);
      when(inside(at, 0), () => write(context, collectors, single(part, e), at));
    }
  });
}

/** One access: accumulators from staging, C from memory, the combination, D to memory. */
function writeCombined(
  context: EpilogueContext,
  collectors: Collectors | undefined,
  part: MatrixTile,
  global: MatrixTile,
): void {
  const { staging, target, source, transforms, scaleType, alpha, gate, steps, stepOperands } = context;
  const along: "R" | "C" = part.size.C > 1 ? "C" : "R";
  const values = combine(
    {
      scaleType,
      alpha,
      beta: source?.beta ?? alpha,
      transforms,
      gate: gate === undefined ? undefined : { apply: gate, products: staged(staging, paired(part, 1)) },
      steps,
      stepOperands,
      collectors,
      target: target.memory.type,
      source: source === undefined ? undefined : () => addend(source.matrix, global),
    },
    staged(staging, gate === undefined ? part : paired(part, 0)),
    {
      count: part.size.R * part.size.C,
      along,
      aligned: true,
      offset: { row: global.offset.R, column: global.offset.C },
      at(e) {
        const moved = translate(global, { [along]: e } as never) as MatrixTile;
        return { row: moved.origin("R") as Value<I32>, column: moved.origin("C") as Value<I32> };
      },
    },
  );
  target.layout.store(target.memory, placeOf(target), global, joined(values));
}

function placeOf({ leading, extras = [] }: GlobalMatrix): MatrixPlace {
  return { origin: 0, leading, extras };
}

function addend(source: GlobalMatrix, global: MatrixTile): readonly AnyValue[] {
  return separate(source.layout.load(source.memory, placeOf(source), global));
}

/** Where the first or the second factor of a part of a gated D is staged. */
function paired(part: MatrixTile, factor: 0 | 1): MatrixTile {
  const first = translate(tile(part.size), { R: part.origin("R"), C: gateColumn(part.origin("C")) });
  return translate(first, { C: factor * gateGroup }) as MatrixTile;
}

/** The accumulators of a part, at most 16 bytes an access. */
export function staged(staging: SharedTile, part: MatrixTile): readonly AnyValue[] {
  const { memory, layout, origin, leading } = staging;
  const along: "R" | "C" = part.size.C > 1 ? "C" : "R";
  const count = part.size.R * part.size.C;
  const most = Math.min(count, 128 / memory.type.bits);
  const values: AnyValue[] = [];
  for (let e = 0; e < count; e += most) {
    const size = along === "C" ? { R: 1, C: most } : { R: most, C: 1 };
    const at = translate(part, { [along]: e } as never).resize(size as never) as MatrixTile;
    values.push(...separate(layout.load(memory, { origin, leading }, at)));
  }
  return values;
}
