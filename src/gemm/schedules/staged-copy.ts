/**
 * @file The register-staged copy engine: global memory → registers → shared memory, one K step ahead of the arithmetic.
 *
 * `fetch` starts the loads of a tile; `store` transforms what has arrived and puts it into shared memory. What lies outside
 * the matrix becomes zero (or what the operator wants there), after the transform: it then contributes nothing, whatever
 * the transform makes of it.
 */
import {
  type AnyFragment,
  type AnyValue,
  type Bool,
  type Condition,
  constant,
  Fragment,
  type GlobalArray,
  type I32,
  type Lanes,
  type StorageType,
  select,
  type Value,
  variables,
  when,
} from "../../lang/index.ts";
import { type Tile, translate } from "../../tile/index.ts";
import type { ElementCoordinates } from "../coordinates.ts";
import type { ExtraValue } from "../extras.ts";
import { type Elements, factsOf, type Layout, type MatrixTile } from "../layouts/layout.ts";
import type { SharedTile } from "../operators/operator.ts";
import { convertedRuns, joined, separate, type Transform } from "../transforms.ts";
import { type CopyEngine, type CopyOptions, type CopyStep, shareOf } from "./copy-engine.ts";

/** What a register-staged copy moves, and what becomes of it on the way. */
export interface StagedCopyOptions extends CopyOptions {
  readonly transform: Transform | undefined;
  /** What elements beyond the matrix count as. */
  readonly outside: number;
}

/** A copy in two halves. */
export class StagedCopy implements CopyEngine {
  readonly asynchronous: boolean = false;
  readonly #subTiles: readonly Tile<"R" | "C">[];
  readonly #staging: AnyFragment;
  /** Threads beyond the sub-tiles have nothing to do. */
  readonly #active: Condition;

  constructor(private readonly options: StagedCopyOptions) {
    const { width, type, outside } = options;
    const { parts, active } = shareOf(options);
    this.#subTiles = parts;
    this.#active = active;
    this.#staging = new Fragment(type, width as Lanes, parts.length, undefined, "staging");
    if (active !== true) this.#staging.fill(outside);
  }

  issue({ row, column, whole }: CopyStep): void {
    this.fetch(row, column, whole());
  }

  issueInner({ row, column, whole }: CopyStep, part: number): void {
    if (part === 0) this.fetch(row, column, whole());
  }

  arrive({ target, row, column }: CopyStep): void {
    this.store(target, row, column);
  }

  /** Starts loading the tile that begins at (row, column). `whole` promises that all of it lies inside the matrix. */
  fetch(row: Value<I32>, column: Value<I32>, whole: Condition): void {
    when(this.#active, () => {
      when(whole, () => {
        this.#subTiles.forEach((part, i) => {
          const at = translate(part, { R: row, C: column });
          this.#staging.setRegister(i, this.#load(at));
        });
      }).otherwise(() => {
        this.#subTiles.forEach((part, i) => {
          this.#fetchGuarded(translate(part, { R: row, C: column }), i);
        });
      });
    });
  }

  /** One access near the edge: whole where it fits, else element by element. */
  #load(at: MatrixTile): Elements {
    const { source, layout, leading, extras, outside } = this.options;
    return layout.load(source as GlobalArray<StorageType>, { origin: 0, leading, extras, zero: outside }, at);
  }

  #fetchGuarded(part: Tile<"R" | "C">, i: number): void {
    const { type, layout, width, outside } = this.options;
    const along = layout.major === "row" ? "C" : "R";
    when(this.#loadable(part, along, width - 1), () => {
      this.#staging.setRegister(i, this.#load(part));
    }).otherwise(() => {
      if (width === 1) {
        this.#staging.setRegister(i, outside);
        return;
      }
      const values = variables(type, width, outside);
      values.forEach((value, e) => {
        const single = translate(part, { [along]: e } as never).resize({ R: 1, C: 1 }) as Tile<"R" | "C">;
        when(this.#inside(single, along, 0), () => {
          value.value = this.#load(single) as AnyValue;
        });
      });
      this.#staging.setRegister(i, joined(values.map((value) => value.value)));
    });
  }

  /**
   * Whether a run can be loaded as one access: when all of it lies inside the matrix, or when it runs over the edge of M
   * or N into the rest of its line, which is there for all lines but the last. What is read there reaches only rows or
   * columns of D that do not exist.
   */
  #loadable(part: Tile<"R" | "C">, along: "R" | "C", last: number): Value<Bool> {
    const inside = this.#inside(part, along, last);
    const { rows, columns, layout } = this.options;
    if (last === 0 || along === this.options.depth || factsOf(layout).movement !== "box") return inside;
    const start = part.origin(along) as Value<I32>;
    const line = part.origin(along === "R" ? "C" : "R") as Value<I32>;
    const [extent, lines] = along === "R" ? [rows, columns] : [columns, rows];
    return inside.or(start.lt(extent).and(line.lt(lines.sub(1))));
  }

  /** Whether a run of elements, the last of them `last` beyond the first, lies inside the matrix. */
  #inside(part: Tile<"R" | "C">, along: "R" | "C", last: number): Value<Bool> {
    const { rows, columns } = this.options;
    const row = part.origin("R") as Value<I32>;
    const column = part.origin("C") as Value<I32>;
    const down = (along === "R" && last > 0 ? row.add(last) : row).lt(rows);
    const across = (along === "C" && last > 0 ? column.add(last) : column).lt(columns);
    return down.and(across);
  }

  /** Transforms what was fetched from (row, column) and stores it to the shared tile. */
  store(target: SharedTile, row: Value<I32>, column: Value<I32>): void {
    const along = this.options.layout.major === "row" ? "C" : "R";
    when(this.#active, () => {
      this.#subTiles.forEach((part, i) => {
        let stored = 0;
        for (const run of this.#transformed(translate(part, { R: row, C: column }), i, target.memory.type)) {
          const length = separate(run).length;
          const size = along === "C" ? { R: 1, C: length } : { R: length, C: 1 };
          storeRun(target, translate(part, { [along]: stored } as never).resize(size) as never, run);
          stored += length;
        }
      });
    });
  }

  /** The elements of one access in the shared tile's type: one run, or several where that type is wider. */
  #transformed(part: Tile<"R" | "C">, i: number, type: StorageType): readonly Elements[] {
    const { layout, transform, rows, columns, outside, extras } = this.options;
    const held = this.#staging.register(i);
    if (transform === undefined) return held.type === type ? [held] : convertedRuns(separate(held), type);
    const along = layout.major === "row" ? "C" : "R";
    const values = separate(held).map((value, e) => {
      const moved = translate(part, { [along]: e } as never) as Tile<"R" | "C">;
      const at = { row: moved.origin("R") as Value<I32>, column: moved.origin("C") as Value<I32> };
      const inside = counting(at, rows, columns, layout, extras);
      return maskOutside(transform(value, at), inside, outside);
    });
    return convertedRuns(values, type);
  }
}

/** Whether an element is one: inside the matrix, and not left out by its layout. */
export function counting(
  { row, column }: ElementCoordinates,
  rows: Value<I32>,
  columns: Value<I32>,
  layout: Layout,
  extras: readonly ExtraValue[],
): Value<Bool> {
  const inside = row.lt(rows).and(column.lt(columns));
  const counts = layout.counts?.(row, column, extras);
  return counts === undefined ? inside : inside.and(counts);
}

/** The value where the element counts, `outside` elsewhere. */
export function maskOutside(value: AnyValue, counts: Value<Bool>, outside: number): AnyValue {
  return select(counts, value, constant(value.type, outside));
}

/** Stores a run of at most 16 bytes: as one access where the shared tile lies the same way, else element by element. */
function storeRun(target: SharedTile, part: Tile<"R" | "C">, run: Elements): void {
  const { layout, memory, origin, leading } = target;
  const place = { origin, leading };
  const elements = part.size.R * part.size.C;
  const along = part.size.C > 1 ? "C" : "R";
  const sameWay = elements === 1 || (layout.major === "row") === (along === "C");
  const byteWidth = (elements * memory.type.bits) / 8;
  if (sameWay && ((leading * memory.type.bits) / 8) % byteWidth === 0) {
    layout.store(memory, place, part, run);
    return;
  }
  separate(run).forEach((single, e) => {
    const at = translate(part, { [along]: e } as never).resize({ R: 1, C: 1 }) as Tile<"R" | "C">;
    layout.store(memory, place, at, single);
  });
}
