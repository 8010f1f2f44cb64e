/**
 * @file The register-staged copy engine: global memory → registers → shared memory, one K step ahead of the arithmetic.
 *
 * `fetch` starts the loads of a tile; `store` transforms what has arrived and puts it into shared memory. What lies outside
 * the matrix becomes zero (or what the operator wants there), after the transform: it then contributes nothing, whatever
 * the transform makes of it.
 *
 * A thread brings at least a word of the shared tile, if need be by several accesses to global memory: single 8- or 16-bit
 * stores would be more of them, and on targets whose memory is made of words they would be exchanges.
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
import { plus, quotient, remainder, times } from "../../tile/coordinate.ts";
import { type Coordinate, type Tile, tile, translate } from "../../tile/index.ts";
import { integerRange } from "../../types/integer-range.ts";
import type { ElementCoordinates } from "../coordinates.ts";
import type { ExtraValue } from "../extras.ts";
import {
  type ComponentStream,
  type Elements,
  factsOf,
  firstElement,
  type Layout,
  type MatrixTile,
  runOf,
  streamsOf,
} from "../layouts/layout.ts";
import type { SharedTile } from "../operators/operator.ts";
import { planeOf } from "../operators/shared-tile.ts";
import { convertedRuns, joined, separate, type Transform } from "../transforms.ts";
import { type CopyEngine, type CopyOptions, type CopyStep, shareOf } from "./copy-engine.ts";

/** What a register-staged copy moves, and what becomes of it on the way. */
export interface StagedCopyOptions extends CopyOptions {
  readonly transform: Transform | undefined;
  /** Neighbours that a thread brings together, a multiple of `width`. */
  readonly run: number;
  /** What elements beyond the matrix count as. */
  readonly outside: number;
}

/** A copy in two halves, of all components of the matrix's elements. */
export class StagedCopy implements CopyEngine {
  readonly asynchronous: boolean = false;
  readonly #streams: readonly StreamCopy[];

  constructor(options: StagedCopyOptions) {
    this.#streams = streamsOf(options.layout).map((stream) => new StreamCopy(options, stream));
  }

  issue({ row, column, whole }: CopyStep): void {
    const inside = whole();
    for (const stream of this.#streams) stream.fetch(row, column, inside);
  }

  issueInner(step: CopyStep, part: number): void {
    if (part === 0) this.issue(step);
  }

  arrive({ target, row, column }: CopyStep): void {
    for (const stream of this.#streams) stream.store(target, row, column);
  }
}

/**
 * The copy of one stream: a matrix of numbers, `components.length` times as long along the major direction as there are
 * elements. Tiles and positions are the numbers' own; elements get their coordinates back for transforms and when they are
 * stored, each component to its plane of the shared tile.
 */
class StreamCopy {
  private readonly options: StreamOptions;
  readonly #components: readonly number[];
  readonly #subTiles: readonly Tile<"R" | "C">[];
  readonly #staging: AnyFragment;
  /** Threads beyond the sub-tiles have nothing to do. */
  readonly #active: Condition;
  /** What stands for no element while elements are on their way: what does in sums, where their stored type holds it. */
  readonly #absent: number;

  constructor(elements: StagedCopyOptions, { layout, components }: ComponentStream) {
    const options = streamOptions(elements, layout, components.length);
    this.options = options;
    this.#components = components;
    const { run, type, outside } = options;
    const { parts, active } = shareOf({ ...options, width: run });
    this.#subTiles = parts;
    this.#active = active;
    this.#staging = new Fragment(type, run as Lanes, parts.length, undefined, "staging");
    const range = integerRange(type);
    this.#absent = range === undefined || (outside >= range.least && outside <= range.greatest) ? outside : 0;
    if (active !== true) this.#staging.fill(this.#absent);
  }

  fetch(elementRow: Value<I32>, elementColumn: Value<I32>, whole: Condition): void {
    const [row, column] = this.#numbers(elementRow, elementColumn);
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

  /** The elements of a tile, in one access or several. */
  #load(at: MatrixTile): Elements {
    const { source, layout, leading, extras, width } = this.options;
    const place = { origin: 0, leading, extras, zero: this.#absent };
    const access = (part: MatrixTile): Elements =>
      layout.load(source as GlobalArray<StorageType>, place, part);
    const { count, along } = runOf(at);
    if (count <= width) return access(at);
    const size = along === "C" ? { R: 1, C: width } : { R: width, C: 1 };
    const pieces = Array.from({ length: count / width }, (_, i) =>
      access(translate(at, { [along]: i * width } as never).resize(size) as MatrixTile),
    );
    return joined(pieces.flatMap(separate));
  }

  /** A run near the edge: whole where it fits, else element by element. */
  #fetchGuarded(part: Tile<"R" | "C">, i: number): void {
    const { type, layout, run } = this.options;
    const absent = this.#absent;
    const along = layout.major === "row" ? "C" : "R";
    when(this.#loadable(part, along, run - 1), () => {
      this.#staging.setRegister(i, this.#load(part));
    }).otherwise(() => {
      if (run === 1) {
        this.#staging.setRegister(i, absent);
        return;
      }
      const values = variables(type, run, absent);
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
   * Whether a run can be loaded whole: when all of it lies inside the matrix, or when it is one access and runs over the
   * edge of M or N into the rest of its line, which is there for all lines but the last. What is read there reaches only
   * rows or columns of D that do not exist.
   */
  #loadable(part: Tile<"R" | "C">, along: "R" | "C", last: number): Value<Bool> {
    const inside = this.#inside(part, along, last);
    const { rows, columns, layout, depth, run, width } = this.options;
    // Lines are at least as far apart as an access is wide, but not as a run of several.
    if (run === 1 || run > width || along === depth || factsOf(layout).movement !== "box") return inside;
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

  /** Position of an element's first number. */
  #numbers(row: Value<I32>, column: Value<I32>): readonly [Value<I32>, Value<I32>] {
    const { length } = this.#components;
    if (length === 1) return [row, column];
    return this.options.layout.major === "row" ? [row, column.mul(length)] : [row.mul(length), column];
  }

  store(whole: SharedTile, elementRow: Value<I32>, elementColumn: Value<I32>): void {
    const [row, column] = this.#numbers(elementRow, elementColumn);
    const along = this.options.layout.major === "row" ? "C" : "R";
    const target = planeOf(whole, this.#components[0]);
    when(this.#active, () => {
      this.#subTiles.forEach((part, i) => {
        const runs = this.#transformed(translate(part, { R: row, C: column }), i, target.memory.type);
        if (this.#components.length > 1) {
          storeComponents(whole, part, along, this.#components.length, runs.flatMap(separate));
          return;
        }
        let stored = 0;
        for (const run of runs) {
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
    const { layout, transform, outside, extras, elements } = this.options;
    const { rows, columns } = elements;
    const held = this.#staging.register(i);
    if (transform === undefined && this.#absent === outside)
      return held.type === type ? [held] : convertedRuns(separate(held), type);
    const along = layout.major === "row" ? "C" : "R";
    const values = separate(held).map((value, e) => {
      const moved = translate(part, { [along]: e } as never) as Tile<"R" | "C">;
      const at = firstElement(elementTile(moved, along, this.#components.length));
      const inside = counting(at, rows, columns, layout, extras);
      return maskOutside(transform?.(value, at) ?? value.to(type), inside, outside);
    });
    return convertedRuns(values, type);
  }
}

/** The options of a stream: extents in numbers. */
function streamOptions(elements: StagedCopyOptions, layout: Layout, components: number): StreamOptions {
  if (components === 1) return { ...elements, layout, elements };
  const { rows, columns, tile: extents } = elements;
  const longer =
    layout.major === "row"
      ? { columns: columns.mul(components), tile: { ...extents, columns: extents.columns * components } }
      : { rows: rows.mul(components), tile: { ...extents, rows: extents.rows * components } };
  return { ...elements, ...longer, layout, elements };
}

/** The options of one stream, and those of the matrix whose elements it holds. */
interface StreamOptions extends StagedCopyOptions {
  readonly elements: StagedCopyOptions;
}

/** Where the element with a number of a stream is. */
function elementTile(at: MatrixTile, along: "R" | "C", components: number): MatrixTile {
  const single = at.resize({ R: 1, C: 1 }) as MatrixTile;
  if (components === 1) return single;
  const other = along === "R" ? "C" : "R";
  const moved = (from: Readonly<Record<"R" | "C", Coordinate>>): never =>
    ({ [along]: quotient(from[along], components), [other]: from[other] }) as never;
  // Where an access begins with an element, base and offset both do; else only their sum tells the element.
  const apart = (at.offset[along] as number) % components === 0;
  const origin = { [along]: at.origin(along), [other]: at.origin(other) } as Record<"R" | "C", Coordinate>;
  return (
    apart
      ? translate(translate(tile({ R: 1, C: 1 }), moved(at.base)), moved(at.offset))
      : translate(tile({ R: 1, C: 1 }), moved(origin))
  ) as MatrixTile;
}

/**
 * Stores the numbers of one access, in element order, each component to its plane: neighbours together where the access
 * holds whole elements, else one by one.
 */
function storeComponents(
  target: SharedTile,
  part: MatrixTile,
  along: "R" | "C",
  components: number,
  numbers: readonly AnyValue[],
): void {
  const { type } = target.memory;
  if (numbers.length % components !== 0) {
    numbers.forEach((number, e) => {
      const at = translate(part, { [along]: e } as never) as MatrixTile;
      const component = remainder(at.origin(along), components);
      const plane = plus(target.origin, times(component, target.planeLength ?? 0));
      storeRun({ ...target, origin: plane }, elementTile(at, along, components), number);
    });
    return;
  }
  for (let component = 0; component < components; component++) {
    const own = numbers.filter((_, e) => e % components === component);
    let stored = 0;
    for (const run of convertedRuns(own, type)) {
      const { length } = separate(run);
      const size = along === "C" ? { R: 1, C: length } : { R: length, C: 1 };
      const first = translate(elementTile(part, along, components), { [along]: stored } as never);
      storeRun(planeOf(target, component), first.resize(size) as MatrixTile, run);
      stored += length;
    }
  }
}

/**
 * Whether an element is one: inside the matrix, and not left out by its layout. Layouts with arrays of their own are never
 * asked beyond the edges, where they would read outside them.
 */
export function counting(
  { row, column }: ElementCoordinates,
  rows: Value<I32>,
  columns: Value<I32>,
  layout: Layout,
  extras: readonly ExtraValue[],
): Value<Bool> {
  const inside = row.lt(rows).and(column.lt(columns));
  const [r, c] = extras.length === 0 ? [row, column] : [row.min(rows.sub(1)), column.min(columns.sub(1))];
  const counts = layout.counts?.(r, c, extras);
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
