/**
 * @file The packed operator for 8-bit integers: one instruction multiplies four neighbours along K and adds them to a
 * 32-bit sum (dp4a in PTX, `dot4I8Packed` and `dot4U8Packed` in WGSL). For machines without matrix instructions.
 *
 * The lanes of a warp form a grid of `laneRows` x `laneColumns`; each holds every `laneRows`-th row and every
 * `laneColumns`-th column of the operator's tile. K is contiguous in shared memory, whatever the global matrix does.
 */
import { ArgumentError, UnsupportedError } from "../../errors.ts";
import {
  type AnyValue,
  type AnyVector,
  byteSize,
  dot4,
  type I32,
  i32,
  type StorageType,
  subgroup,
  type U32,
  u32,
  type Value,
  type Variable,
  Vector,
  variables,
  vector,
} from "../../lang/index.ts";
import type { TargetFacts } from "../../target/facts.ts";
import { type Tile, translate } from "../../tile/index.ts";
import { type Interner, interner } from "../interner.ts";
import { separate } from "../transforms.ts";
import type { FragmentTransform, Operator, OperatorFactory, OperatorTypes, SharedTile } from "./operator.ts";

/** The lane grid, what each lane holds, and how far along K one call goes. */
export interface Dot4Shape {
  readonly laneRows: number;
  readonly laneColumns: number;
  readonly rows: number;
  readonly columns: number;
  /** Elements along K of one call, loaded as one access. */
  readonly depth: 4 | 8 | 16;
}

/** Words of a lane's rows (or columns): `words[i]` holds four elements each along K. */
interface PackedLines {
  words: readonly (readonly Value<U32>[])[];
}

const operators: Interner<OperatorFactory> = interner();

/** The packed operator. `shape` gives another lane grid; the same shape is the same operator. */
export function dot4Operator(shape?: Dot4Shape): OperatorFactory {
  const name =
    shape === undefined
      ? "dot4"
      : `dot4 ${shape.laneRows}x${shape.laneColumns} lanes of ${shape.rows}x${shape.columns}x${shape.depth}`;
  return operators(name, () => ({
    name,
    create: (types, facts) => createDot4(types, facts, shape ?? defaultShape(facts.subgroup.width)),
  }));
}

/** The packed operator with its default lane grid. */
export const dot4Packed: OperatorFactory = dot4Operator();

/** As square as can be, wider than high. Machines with narrow subgroups have few registers a lane. */
function defaultShape(width: number): Dot4Shape {
  const laneRows = 2 ** Math.floor(Math.log2(width) / 2);
  const held = width < 16 ? 4 : 8;
  return { laneRows, laneColumns: width / laneRows, rows: held, columns: held, depth: 4 };
}

/** Whether a target multiplies these types four at a time. */
export function hasDot4({ a, b, accumulator }: OperatorTypes, { packedDot }: TargetFacts): boolean {
  return accumulator === i32 && packedDot.some(([left, right]) => left === a.name && right === b.name);
}

function checkShape({ laneRows, laneColumns, rows, columns, depth }: Dot4Shape, width: number): void {
  if (laneRows * laneColumns !== width) {
    throw new ArgumentError(
      `the packed operator's lane grid ${laneRows}x${laneColumns} must have the subgroup's ${width} lanes`,
    );
  }
  if (![laneRows, laneColumns, rows, columns].every((size) => Number.isInteger(size) && size > 0)) {
    throw new ArgumentError("the packed operator's lane grid and what a lane holds are positive integers");
  }
  if (![4, 8, 16].includes(depth)) {
    throw new ArgumentError(`the packed operator loads 4, 8 or 16 elements along K at once, not ${depth}`);
  }
}

function createDot4(
  types: OperatorTypes,
  facts: TargetFacts,
  shape: Dot4Shape,
): Operator<PackedLines, PackedLines, readonly (readonly Variable<I32>[])[]> {
  if (!hasDot4(types, facts)) {
    const { a, b, accumulator } = types;
    throw new UnsupportedError(
      `${facts.name} has no packed dot product for ${a.name}·${b.name}→${accumulator.name}; the plain operator (fma) works for any type`,
    );
  }
  checkShape(shape, facts.subgroup.width);
  const { laneRows, laneColumns, rows, columns, depth } = shape;
  const shared = { a: types.a as StorageType, b: types.b as StorageType };
  const signs = { signedA: types.a.class === "signed", signedB: types.b.class === "signed" };
  const down = (): Value<I32> => subgroup.lane.floorDiv(laneColumns);
  const across = (): Value<I32> => subgroup.lane.floorMod(laneColumns);
  return {
    name: `dot4 k${depth}`,
    shape: { m: laneRows * rows, n: laneColumns * columns, k: depth },
    types,
    shared,
    opaque: false,
    byLanes: true,
    sharedMajor: (operand) => (operand === "a" ? "row" : "column"),
    // Lines that are 16 bytes longer than a power of two: neighbouring lines lie in different banks, and stores stay wide.
    sharedPadding: () => 16,
    createA: () => ({ words: [] }),
    createB: () => ({ words: [] }),
    createAccumulator: () => Array.from({ length: rows }, () => variables(i32, columns, 0)),
    loadA(target, source, tile, transform) {
      target.words = loadLines(source, translate(tile, { R: down() }), "R", laneRows, rows, depth, transform);
    },
    loadB(target, source, tile, transform) {
      const moved = translate(tile, { C: across() });
      target.words = loadLines(source, moved, "C", laneColumns, columns, depth, transform);
    },
    multiply(held, a, b) {
      held.forEach((row, i) => {
        row.forEach((cell, j) => {
          a.words[i]!.forEach((word, at) => {
            cell.value = dot4(word, b.words[j]![at]!, cell.value, signs);
          });
        });
      });
    },
    combineAccumulators(target, terms) {
      target.forEach((row, i) => {
        row.forEach((cell, j) => {
          const [first, ...others] = terms.map(({ fragment, sign }) => ({
            value: fragment[i]![j]!.value,
            sign,
          }));
          const start = first!.sign < 0 ? first!.value.neg() : first!.value;
          cell.value = others.reduce(
            (sum, { value, sign }) => (sign < 0 ? sum.sub(value) : sum.add(value)),
            start,
          );
        });
      });
    },
    storeD(held, target, tile) {
      const place = { origin: target.origin, leading: target.leading };
      const base = translate(tile, { R: down(), C: across() });
      held.forEach((row, i) => {
        row.forEach((cell, j) => {
          const at = translate(base, { R: i * laneRows, C: j * laneColumns }).resize({ R: 1, C: 1 });
          target.layout.store(target.memory, place, at, cell.value.to(target.memory.type));
        });
      });
    },
  };
}

/** A lane's lines: `count` of them, `apart` lines from each other, `depth` elements along K from each. */
function loadLines(
  source: SharedTile,
  tile: Tile<"R" | "C">,
  across: "R" | "C",
  apart: number,
  count: number,
  depth: number,
  transform: FragmentTransform | undefined,
): readonly (readonly Value<U32>[])[] {
  const along = across === "R" ? "C" : "R";
  const place = { origin: source.origin, leading: source.leading };
  const size = across === "R" ? { R: 1, C: depth } : { R: depth, C: 1 };
  return Array.from({ length: count }, (_, i) => {
    const part = translate(tile, { [across]: i * apart } as never).resize(size) as Tile<"R" | "C">;
    const loaded = source.layout.load(source.memory, place, part) as AnyVector;
    if (transform === undefined) return wordsOf(loaded);
    const changed = separate(loaded).map((value, e) => {
      const at = translate(part, { [along]: e } as never) as Tile<"R" | "C">;
      return transform(value, at.origin("R"), at.origin("C")).to(source.memory.type) as AnyValue;
    });
    return wordsOf(vector(...changed));
  });
}

/** Four bytes a word, the first of them lowest. */
function wordsOf(bytes: AnyVector): readonly Value<U32>[] {
  const words = (bytes.lanes * byteSize(bytes.type)) / 4;
  if (words === 1) return [bytes.bitcast(u32, 1)];
  const packed = bytes.bitcast(u32, words as 2 | 4);
  return packed instanceof Vector ? packed.elements() : [packed];
}
