/**
 * @file Collectors: each lane joins the elements it meets in registers, the lanes of a subgroup join theirs by shuffles, and
 * what a subgroup has of its part of D becomes one partial state for each of the part's rows or columns.
 *
 * Nothing here goes through shared memory, and nothing waits: lanes may meet their elements in divergent code, as edges want
 * it, because joining begins when all of them are back together.
 */
import {
  type AnyValue,
  type AnyVariable,
  type Bool,
  constant,
  type GlobalArray,
  type I32,
  i32,
  index,
  type StorageType,
  type Value,
  variable,
  when,
} from "../../lang/index.ts";
import { acrossLanes, type Exchanged, type Line, type State } from "./across-lanes.ts";
import type { Collection, ReductionAxis } from "./reduction.ts";
import { partialsOf, type StepKind } from "./step.ts";
import type { StepRun } from "./step-operand.ts";

/** How the lanes of a subgroup divide a part of D: a grid of lanes, of which neighbours along `fastest` count up. */
export interface LaneGrid {
  readonly fastest: "R" | "C";
  readonly R: number;
  readonly C: number;
}

/** What of D one subgroup holds, and where this lane's share begins. */
export interface CollectorPlace {
  /** First element of the subgroup's part. */
  readonly part: { readonly row: Value<I32>; readonly column: Value<I32> };
  /** The lane's elements lie at these coordinates plus offsets known while tracing. */
  readonly lane: { readonly row: Value<I32>; readonly column: Value<I32> };
}

/** Offsets at which a lane has elements, each once. */
export interface LaneOffsets {
  readonly rows: readonly number[];
  readonly columns: readonly number[];
}

/** What collectors know of the kernel. */
export interface CollectorContext {
  readonly steps: readonly StepKind[];
  readonly args: Readonly<Record<string, unknown>>;
  /** Extents of D. */
  readonly rows: Value<I32>;
  readonly columns: Value<I32>;
  /** Extents of the parts that D is divided into. */
  readonly parts: PartExtents;
  readonly grid: LaneGrid;
}

/** Extents of the part of D for which one partial state per row, column or part is left. */
export interface PartExtents {
  readonly rows: number;
  readonly columns: number;
}

interface Open {
  readonly place: CollectorPlace;
  readonly states: ReadonlyMap<number, readonly AnyVariable[]>;
}

/** The collecting steps of a kernel. */
export class Collectors {
  readonly #open: Map<number, Open> = new Map();

  constructor(private readonly context: CollectorContext) {}

  /** Whether any step collects. */
  get needed(): boolean {
    return this.context.steps.some(({ behaviour }) => behaviour.collects !== undefined);
  }

  /** Begins empty states for the steps that reduce along one of these axes. All lanes together. */
  open(axes: readonly ReductionAxis[], place: CollectorPlace, offsets: LaneOffsets): void {
    this.#each(axes, ({ axis, reduction, type }, i) => {
      const keys = axis === "row" ? offsets.rows : axis === "column" ? offsets.columns : [0];
      const states = new Map(
        keys.map((key) => [
          key,
          reduction.identity(type).map((x) => variable(type, constant(type, x)) as AnyVariable),
        ]),
      );
      this.#open.set(i, { place, states });
    });
  }

  /** Joins a run's values as step `i` sees them. Lanes need not be together. */
  add(i: number, values: readonly AnyValue[], run: StepRun): void {
    const collects = this.context.steps[i].behaviour.collects;
    if (collects === undefined) return;
    const { axis, reduction, type } = collects;
    const groups = new Map<number, State>();
    values.forEach((x, e) => {
      const row = run.offset.row + (run.along === "R" ? e : 0);
      const column = run.offset.column + (run.along === "C" ? e : 0);
      const key = axis === "row" ? row : axis === "column" ? column : 0;
      const state = reduction.enter(x.to(type), run.at(e));
      const held = groups.get(key);
      groups.set(key, held === undefined ? state : reduction.combine(held, state));
    });
    for (const [key, state] of groups) {
      const registers = this.#open.get(i)?.states.get(key) as readonly AnyVariable[];
      const joined = reduction.combine(
        registers.map(({ value }) => value),
        state,
      );
      registers.forEach((register, c) => {
        register.value = joined[c];
      });
    }
  }

  /** Joins the lanes' states and stores what the part has. All lanes together. */
  close(axes: readonly ReductionAxis[]): void {
    this.#each(axes, (collects, i) => {
      const { place, states } = this.#open.get(i) as Open;
      const lines = [...states].map(([offset, registers]) => ({
        offset,
        state: registers.map(({ value }) => value),
      }));
      const { lines: joined, shift, owner } = this.#acrossLanes(collects, lines);
      this.#open.delete(i);
      const partials = this.context.args[partialsOf(i)] as GlobalArray<StorageType>;
      for (const line of joined) {
        this.#store(collects, partials, place, { ...line, shift, owner });
      }
    });
  }

  #each(axes: readonly ReductionAxis[], body: (collects: Collection, i: number) => void): void {
    this.context.steps.forEach(({ behaviour }, i) => {
      if (behaviour.collects !== undefined && axes.includes(behaviour.collects.axis))
        body(behaviour.collects, i);
    });
  }

  #place(axis: ReductionAxis, part: CollectorPlace["part"]): PartialPlace {
    const { rows, columns, parts } = this.context;
    const [down, across] = [part.row.div(parts.rows), part.column.div(parts.columns)];
    const [partsDown, partsAcross] = [rows.ceilDiv(parts.rows), columns.ceilDiv(parts.columns)];
    switch (axis) {
      case "row":
        return { lines: rows, slot: across, slots: partsAcross, inside: part.column.lt(columns) };
      case "column":
        return { lines: columns, slot: down, slots: partsDown, inside: part.row.lt(rows) };
      case "all":
        return {
          lines: constant(i32, 1),
          slot: down.mul(partsAcross).add(across),
          slots: partsDown.mul(partsAcross),
          inside: part.row.lt(rows).and(part.column.lt(columns)),
        };
    }
  }

  #acrossLanes(collects: Collection, lines: readonly Line[]): Exchanged {
    const { fastest, R, C } = this.context.grid;
    const { reduction } = collects;
    if (collects.axis === "all") return acrossLanes(reduction, lines, R * C, 1);
    const [size, along] = collects.axis === "row" ? ([C, "C"] as const) : ([R, "R"] as const);
    return acrossLanes(reduction, lines, size, fastest === along ? 1 : fastest === "C" ? C : R);
  }

  /** One line's state to its place among the partial ones: [component][part][line]. */
  #store(
    { axis, reduction, atomics }: Collection,
    partials: GlobalArray<StorageType>,
    { part, lane }: CollectorPlace,
    { offset, state, shift, owner }: Line & Pick<Exchanged, "shift" | "owner">,
  ): void {
    const target = this.#place(axis, part);
    const base = { row: lane.row, column: lane.column, all: undefined }[axis];
    const shifted = base === undefined || shift === undefined ? base : base.add(shift);
    const line = shifted === undefined ? constant(i32, 0) : shifted.add(offset);
    when(target.inside.and(line.lt(target.lines)).and(owner), () => {
      if (atomics) {
        partials.atomicAt(reduction.atomic as "add", line.to(index), state[0]);
        return;
      }
      state.forEach((x, c) => {
        const slot = target.slots.mul(c).add(target.slot);
        partials.storeAt(slot.to(index).mul(target.lines.to(index)).add(line.to(index)), x);
      });
    });
  }
}

/** Where a part's states go among those of all parts. */
interface PartialPlace {
  /** Lines of the axis: rows, columns, or one. */
  readonly lines: Value<I32>;
  /** Which of the parts that share a line this is, and how many there are. */
  readonly slot: Value<I32>;
  readonly slots: Value<I32>;
  /** Whether the part has elements along the axis; across it, lines tell. */
  readonly inside: Value<Bool>;
}
