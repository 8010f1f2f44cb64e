/**
 * @file The plain operator: multiply-add on the ordinary cores, for every type with arithmetic.
 *
 * The lanes of a warp form a grid of `laneRows` x `laneColumns`; each holds `rows` x `columns` accumulators. A lane's rows
 * come in runs of as many elements as one access moves, a run per lane in turn, so that the shared loads of a warp are wide
 * and free of bank conflicts.
 */
import { ArgumentError, UnsupportedError } from "../../errors.ts";
import {
  type AnyValue,
  type AnyVariable,
  binary,
  byteSize,
  type ElementType,
  type I32,
  isArithmetic,
  type StorageType,
  subgroup,
  tf32,
  type Value,
  variables,
} from "../../lang/index.ts";
import type { TargetFacts } from "../../target/facts.ts";
import { type Tile, translate } from "../../tile/index.ts";
import { type Interner, interner } from "../interner.ts";
import { joined, separate } from "../transforms.ts";
import type { FragmentTransform, Operator, OperatorFactory, OperatorTypes, SharedTile } from "./operator.ts";
import { plusTimes, type Semiring } from "./semiring.ts";
import { sharedType } from "./shared-tile.ts";

/** The lane grid and what each lane holds. */
export interface FmaShape {
  readonly laneRows: number;
  readonly laneColumns: number;
  readonly rows: number;
  readonly columns: number;
}

type Run = AnyValue[];
interface LaneVector {
  values: Run;
}

/**
 * A lane grid for a subgroup width: as square as can be, wider than high. Machines with narrow subgroups have few
 * registers a lane.
 */
function defaultShape(width: number): FmaShape {
  const laneRows = 2 ** Math.floor(Math.log2(width) / 2);
  const held = width < 16 ? 4 : 8;
  return { laneRows, laneColumns: width / laneRows, rows: held, columns: held };
}

/** Shared memory in which eight warps can leave the 32 x 64 sums that lanes with 8 x 8 hold. */
const roomForTiles = 72 * 1024;

/** Fewer elements a lane where shared memory is small: a warp multiplies several such tiles as fast, and leaves them in turn. */
function withRoom(shape: FmaShape, { limits }: TargetFacts): FmaShape {
  if (limits.sharedBytes >= roomForTiles) return shape;
  return { ...shape, rows: Math.min(shape.rows, 4), columns: Math.min(shape.columns, 4) };
}

/** The plain operator. `shape` gives another lane grid. */
export function fmaOperator(shape?: FmaShape): OperatorFactory {
  return semiringOperator(plusTimes, shape);
}

/** The plain operator over another semiring. The same semiring and lane grid are the same operator. */
export function semiringOperator(semiring: Semiring, shape?: FmaShape): OperatorFactory {
  const own = operators.get(semiring) ?? interner<OperatorFactory>();
  operators.set(semiring, own);
  const plain = semiring === plusTimes ? "fma" : semiring.name;
  const lanes =
    shape === undefined
      ? ""
      : ` ${shape.laneRows}x${shape.laneColumns} lanes of ${shape.rows}x${shape.columns}`;
  return own(`${plain}${lanes}`, (name) => ({
    name,
    ring: semiring === plusTimes,
    zero: (type: ElementType) => semiring.zero(type),
    ...(shape === undefined
      ? { semiring, narrowed: (count: number) => narrowedOperator(semiring, own, name, count) }
      : {}),
    create: (types, facts) =>
      createFma(types, facts, shape ?? withRoom(defaultShape(facts.subgroup.width), facts), semiring),
  }));
}

const operators: WeakMap<Semiring, Interner<OperatorFactory>> = new WeakMap();

function narrowedOperator(
  semiring: Semiring,
  own: Interner<OperatorFactory>,
  name: string,
  count: number,
): OperatorFactory {
  return own(`${name} beside ${count - 1}`, () => ({
    name,
    ring: semiring === plusTimes,
    zero: (type: ElementType) => semiring.zero(type),
    create: (types, facts) =>
      createFma(
        types,
        facts,
        withRoom(narrowShape(defaultShape(facts.subgroup.width), count), facts),
        semiring,
      ),
  }));
}

/** A lane grid with fewer elements a lane, halved until `count` times as many take no more than those of `shape`. */
function narrowShape({ rows, columns, ...lanes }: FmaShape, count: number): FmaShape {
  let held = { rows, columns };
  while (held.rows * held.columns * count > rows * columns && held.rows * held.columns > 4) {
    held =
      held.columns >= held.rows ? { ...held, columns: held.columns / 2 } : { ...held, rows: held.rows / 2 };
  }
  return { ...lanes, ...held };
}

/** The plain operator with its default lane grid. */
export const fma: OperatorFactory = fmaOperator();

function createFma(
  types: OperatorTypes,
  facts: TargetFacts,
  shape: FmaShape,
  semiring: Semiring,
): Operator<LaneVector, LaneVector, AnyVariable[][]> {
  const { laneRows, laneColumns, rows, columns } = shape;
  const { accumulator } = types;
  if (laneRows * laneColumns !== facts.subgroup.width) {
    throw new ArgumentError(
      `the plain operator's lane grid ${laneRows}x${laneColumns} must have the subgroup's ${facts.subgroup.width} lanes`,
    );
  }
  if (!isArithmetic(accumulator) || !facts.arithmetic.has(accumulator.name)) {
    throw new UnsupportedError(
      `the plain operator cannot accumulate in ${accumulator.name} on ${facts.name}; accumulate in f32 or i32`,
    );
  }
  // Elements narrower than the accumulator stay narrow in shared memory and widen on the way to registers; but where they
  // would be put into words and taken out again, they widen once, on the way to shared memory.
  const inShared = (type: ElementType): StorageType =>
    !facts.byteAddressable && type.bits < accumulator.bits ? (accumulator as StorageType) : sharedType(type);
  const shared = { a: inShared(types.a), b: inShared(types.b) };
  const runOf = (type: StorageType, count: number): number => {
    let run = 1;
    while (run * 2 <= count && run * 2 * byteSize(type) <= 16 && count % (run * 2) === 0) run *= 2;
    return run;
  };
  const load = (
    target: LaneVector,
    source: SharedTile,
    tile: Tile<"R" | "C">,
    along: "R" | "C",
    lane: Value<I32>,
    lanes: number,
    count: number,
    compute: ElementType,
    transform: FragmentTransform | undefined,
  ): void => {
    const type = source.memory.type;
    const wide = (source.layout.major === "column") === (along === "R");
    const run = runOf(type, count);
    const values: Run = [];
    for (let first = 0; first < count; first += run) {
      const moved = translate(tile, { [along]: lane.mul(run) } as never);
      const at = translate(moved, { [along]: first * lanes } as never) as Tile<"R" | "C">;
      const place = { origin: source.origin, leading: source.leading };
      const step = wide ? run : 1;
      for (let e = 0; e < run; e += step) {
        const part = resized(translate(at, { [along]: e } as never) as Tile<"R" | "C">, along, step);
        const elements = separate(source.layout.load(source.memory, place, part));
        elements.forEach((value, i) => {
          const row = along === "R" ? translate(part, { R: i }).origin("R") : part.origin("R");
          const column = along === "C" ? translate(part, { C: i }).origin("C") : part.origin("C");
          const changed =
            transform === undefined ? value : transform(value.to(sharedType(compute)), row, column);
          // tf32 operands are rounded as tensor cores round them.
          values.push((compute === tf32 ? changed.to(tf32) : changed).to(accumulator));
        });
      }
    }
    target.values = values;
  };
  return {
    name: semiring === plusTimes ? "fma" : semiring.name,
    outside: semiring.zero(accumulator),
    shape: { m: laneRows * rows, n: laneColumns * columns, k: 1 },
    types,
    shared,
    opaque: false,
    // Lanes read runs along M and N: those are to be neighbours, whatever the global matrix does.
    sharedMajor: (operand) => (operand === "a" ? "column" : "row"),
    sharedPadding: (operand) => Math.max(1, 16 / byteSize(shared[operand])),
    createA: () => ({ values: [] }),
    createB: () => ({ values: [] }),
    createAccumulator: () =>
      Array.from({ length: rows }, () => variables(accumulator, columns, semiring.zero(accumulator))),
    loadA: (target, source, tile, transform) =>
      load(
        target,
        source,
        tile,
        "R",
        subgroup.lane.floorDiv(laneColumns),
        laneRows,
        rows,
        types.a,
        transform,
      ),
    loadB: (target, source, tile, transform) =>
      load(
        target,
        source,
        tile,
        "C",
        subgroup.lane.floorMod(laneColumns),
        laneColumns,
        columns,
        types.b,
        transform,
      ),
    multiply(held, a, b) {
      held.forEach((row, i) => {
        row.forEach((cell, j) => {
          cell.value = semiring.accumulate(a.values[i], b.values[j], cell.value);
        });
      });
    },
    storeD(held, target, tile) {
      const type = target.memory.type;
      const rowRun = runOf(shared.a, rows);
      const columnRun = runOf(shared.b, columns);
      const lanesDown = subgroup.lane.floorDiv(laneColumns).mul(rowRun);
      const lanesAcross = subgroup.lane.floorMod(laneColumns).mul(columnRun);
      const base = translate(tile, { R: lanesDown, C: lanesAcross });
      const wide = target.layout.major === "row" ? Math.min(columnRun, Math.floor(16 / byteSize(type))) : 1;
      held.forEach((row, i) => {
        const down = (i % rowRun) + Math.floor(i / rowRun) * rowRun * laneRows;
        for (let j = 0; j < columns; j += wide) {
          const across = (j % columnRun) + Math.floor(j / columnRun) * columnRun * laneColumns;
          const part = resized(translate(base, { R: down, C: across }), "C", wide, 1);
          const values = row.slice(j, j + wide).map((cell) => cell.value.to(type));
          target.layout.store(
            target.memory,
            { origin: target.origin, leading: target.leading },
            part,
            joined(values),
          );
        }
      });
    },
    // Operands wait in registers as accumulators do: sums of them are exact as far as sums of those are.
    combineFactors(target, terms) {
      target.values = terms[0].fragment.values.map((_, i) =>
        combined(terms.map(({ fragment, sign }) => ({ value: fragment.values[i], sign }))),
      );
    },
    combineAccumulators(target, terms) {
      target.forEach((row, i) => {
        row.forEach((cell, j) => {
          cell.value = combined(terms.map(({ fragment, sign }) => ({ value: fragment[i][j].value, sign })));
        });
      });
    },
  };
}

function combined([first, ...others]: readonly {
  readonly value: AnyValue;
  readonly sign: number;
}[]): AnyValue {
  const start = first.sign < 0 ? first.value.neg() : first.value;
  return others.reduce((sum, { value, sign }) => binary(sign < 0 ? "sub" : "add", sum, value), start);
}

/** The first `extent` elements of a tile along one dimension; 1 along the other unless given. */
export function resized(
  whole: Tile<"R" | "C">,
  along: "R" | "C",
  extent: number,
  other = 1,
): Tile<"R" | "C"> {
  const size = along === "R" ? { R: extent, C: other } : { R: other, C: extent };
  return whole.resize(size);
}
