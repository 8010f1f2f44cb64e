/**
 * @file The axes of the GEMM table: types, majorness, operators, sizes, factors; and rows of it that meet every pair.
 */
import {
  bf16,
  type ElementType,
  e4m3,
  e5m2,
  f16,
  f32,
  f64,
  i8,
  i16,
  i32,
  i64,
  type StorageType,
  type TargetFacts,
  tf32,
  u8,
  u32,
} from "tilewright";
import { fmaOperator, mmaSync, type OperatorFactory, type OperatorTypes, wmmaSync } from "tilewright/gemm";
import { findInstruction } from "tilewright/lang";
import { operatorTypes } from "../../src/gemm/problem.ts";
import { type GemmCase, pairwise } from "./gemm-cases.ts";

/** Types of one product. */
export interface TypeRow {
  readonly name: string;
  readonly a: StorageType;
  readonly b: StorageType;
  readonly d: StorageType;
  readonly accumulate?: ElementType;
  readonly compute?: ElementType;
}

const typeRow = (
  a: StorageType,
  b: StorageType,
  d: StorageType,
  choices: Pick<TypeRow, "accumulate" | "compute"> = {},
): TypeRow => {
  const { accumulate, compute } = choices;
  const suffix = `${accumulate === undefined ? "" : `, summed in ${accumulate.name}`}${compute === undefined ? "" : `, as ${compute.name}`}`;
  return { name: `${a.name}·${b.name} to ${d.name}${suffix}`, a, b, d, ...choices };
};

/** Every type of the library that matrices can be multiplied in, and the mixed pairs. */
export const typeRows: readonly TypeRow[] = [
  typeRow(f16, f16, f32),
  typeRow(f16, f16, f16),
  typeRow(f16, f16, f16, { accumulate: f16 }),
  typeRow(bf16, bf16, f32),
  typeRow(bf16, bf16, bf16),
  typeRow(f32, f32, f32),
  typeRow(f32, f32, f32, { compute: tf32 }),
  typeRow(f64, f64, f64),
  typeRow(i8, i8, i32),
  typeRow(u8, u8, i32),
  typeRow(u8, i8, i32),
  typeRow(i16, i16, i32),
  typeRow(i32, i32, i32),
  typeRow(u32, u32, u32),
  typeRow(i64, i64, i64),
  typeRow(e4m3, e4m3, f16),
  typeRow(e5m2, e5m2, f32),
  typeRow(e4m3, e5m2, f32),
  typeRow(f16, f32, f32),
];

export const layouts = ["nn", "nt", "tn", "tt"] as const;

/** Sizes around those of instructions, warps and blocks. */
export const smallSizes: readonly number[] = [0, 1, 2, 3, 7, 16, 17, 33, 64, 100, 129];
/** Sizes for a device that is fast. */
export const largeSizes: readonly number[] = [1000, 2048, 4095, 4096];

const floatFactors = [
  [1, 0],
  [1, 1],
  [-1.5, 0],
  [0.5, -2],
  [0, 0.75],
  [0, 0],
] as const;
const integerFactors = [
  [1, 0],
  [1, 1],
  [3, 0],
  [2, 5],
  [0, 2],
  [0, 0],
] as const;

/** The plain operator with a small block a lane, which compiles in a moment; types without tensor cores get the usual one. */
export const plain: OperatorFactory = fmaOperator({ laneRows: 4, laneColumns: 8, rows: 4, columns: 4 });

/** The same for subgroups of another width. */
function plainOf({ subgroup: { width } }: TargetFacts): OperatorFactory {
  if (width === 32) return plain;
  const laneRows = 2 ** Math.floor(Math.log2(width) / 2);
  return fmaOperator({ laneRows, laneColumns: width / laneRows, rows: 4, columns: 4 });
}

/** Whether a target can multiply these types at all. */
export function multiplies({ a, b, d, ...choices }: TypeRow, facts: TargetFacts): boolean {
  const { accumulator, a: factor } = operatorTypes(a, b, choices);
  const products = factor !== tf32 || [...facts.mma, ...facts.wmma].some((one) => one.a === "tf32");
  return (
    products &&
    [a, b, d].every(({ name }) => facts.storage.has(name)) &&
    facts.arithmetic.has(accumulator.name)
  );
}

/** Columns of the table beside the types. */
const columns = {
  layout: layouts,
  operator: ["default", "mma", "wmma", "fma"],
  m: smallSizes,
  n: smallSizes,
  k: smallSizes,
  padding: [0, 1, 2, 8],
  factors: [0, 1, 2, 3, 4, 5],
  columnMajorD: [false, true],
  schedule: ["default", "register-staged"],
} as const;

/** A row before a device says which operators it has. */
export type TableRow = Omit<GemmCase, "options"> & {
  readonly types: TypeRow;
  readonly operator: (typeof columns.operator)[number];
  readonly schedule: (typeof columns.schedule)[number];
};

function rowsOf(
  rows: readonly { [K in keyof typeof columns]: (typeof columns)[K][number] }[],
  types: TypeRow,
): TableRow[] {
  return rows.map(({ factors, ...rest }) => {
    const [alpha, beta] = (types.d.class === "float" ? floatFactors : integerFactors)[factors]!;
    const { a, b, d } = types;
    return { ...rest, a, b, d, alpha, beta, types };
  });
}

/** For each row of types the rows of one table that meets every pair of two columns, types counted as a column. */
export function pairwiseTable(): ReadonlyMap<TypeRow, readonly TableRow[]> {
  const rows = pairwise({ types: typeRows, ...columns });
  return new Map(
    typeRows.map((types) => [
      types,
      rowsOf(
        rows.filter((row) => row.types === types),
        types,
      ),
    ]),
  );
}

/** For one row of types a table of its own that meets every pair. */
export function thoroughRows(types: TypeRow, seed: number): readonly TableRow[] {
  return rowsOf(pairwise(columns, seed), types);
}

/** Every size triple for one row of types, the other columns taken in turn. */
export function cubeRows(types: TypeRow): readonly TableRow[] {
  const others = pairwise({
    layout: columns.layout,
    operator: columns.operator,
    padding: columns.padding,
    factors: columns.factors,
    columnMajorD: columns.columnMajorD,
    schedule: columns.schedule,
  });
  let next = 0;
  const rows = smallSizes.flatMap((m) =>
    smallSizes.flatMap((n) => smallSizes.map((k) => ({ ...others[next++ % others.length]!, m, n, k }))),
  );
  return rowsOf(rows, types);
}

/** The large sizes as cubes: rows that meet every pair of two columns, types counted as a column. */
export function diagonalTable(): ReadonlyMap<TypeRow, readonly TableRow[]> {
  const { layout, operator, padding, factors, columnMajorD, schedule } = columns;
  const rows = pairwise({
    types: typeRows,
    size: largeSizes,
    layout,
    operator,
    padding,
    factors,
    columnMajorD,
    schedule,
  });
  const cubes = rows.map(({ size, ...rest }) => ({ ...rest, m: size, n: size, k: size }));
  return new Map(
    typeRows.map((types) => [
      types,
      rowsOf(
        cubes.filter((row) => row.types === types),
        types,
      ),
    ]),
  );
}

/** The operators that a target has for types, the default aside. */
export function operatorsFor(
  { a, b, ...choices }: Omit<TypeRow, "name" | "d">,
  facts: TargetFacts,
): Readonly<Record<string, OperatorFactory>> {
  const types: OperatorTypes = operatorTypes(a, b, choices);
  const wanted = { a: types.a.name, b: types.b.name, accumulator: types.accumulator.name };
  const has = (list: TargetFacts["mma"]): boolean => findInstruction(list, wanted) !== undefined;
  return {
    ...(has(facts.mma) ? { mma: mmaSync } : {}),
    ...(has(facts.wmma) ? { wmma: wmmaSync } : {}),
    fma: plainOf(facts),
  };
}

/** A row as a case for one device: an operator that there is not for its types is left to the default. */
export function caseOf({ types, operator, schedule, ...row }: TableRow, facts: TargetFacts): GemmCase {
  const factory = operatorsFor(types, facts)[operator];
  const { accumulate, compute } = types;
  return {
    ...row,
    options: {
      ...(factory === undefined ? {} : { operator: factory }),
      ...(schedule === "default" ? {} : { schedule }),
      ...(accumulate === undefined ? {} : { accumulate }),
      ...(compute === undefined ? {} : { compute }),
    },
  };
}
