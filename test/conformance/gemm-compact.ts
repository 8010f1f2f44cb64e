/**
 * @file The table for devices that compile slowly and run quickly, as the processor does under WebGPU: few kernels, many
 * sizes for each.
 */
import { f32, type TargetFacts } from "tilewright";
import { fmaOperator, type GemmParams, type OperatorFactory } from "tilewright/gemm";
import { type GemmCase, pairwise } from "./gemm-cases.ts";
import { layouts, multiplies, type TypeRow, typeRows } from "./gemm-table.ts";

/** One kernel, and the cases that it serves. */
export interface CompactRow {
  readonly name: string;
  readonly cases: readonly GemmCase[];
}

/** What chooses a kernel, the types aside. Lines are padded to multiples of 16 elements before `padding` comes. */
const columns = {
  layout: layouts,
  padding: [0, 1, 2, 8],
  addend: [false, true],
  columnMajorD: [false, true],
} as const;

const sizes: readonly number[] = [2, 3, 7, 16, 17, 33, 64, 100, 129];
/** Matrices with one line or none count as row-major and aligned: a kernel for such ones serves them and all others. */
const leastSizes: readonly number[] = [0, 1, 2, 5, 17];

/** A few lanes with a few elements each: every loop and edge that larger tiles have, in a text that compiles soon. */
function shortForm({ subgroup: { width } }: TargetFacts): { operator: OperatorFactory; params: GemmParams } {
  const laneRows = 2 ** Math.floor(Math.log2(width) / 2);
  const laneColumns = width / laneRows;
  return {
    operator: shortOperator(laneRows, laneColumns),
    params: { block: { m: 8 * laneRows, n: 4 * laneColumns, k: 4 }, warps: { m: 2, n: 2 }, groupRows: 2 },
  };
}

const operators = new Map<string, OperatorFactory>();

/** Kernels are found by their components' identity. */
function shortOperator(laneRows: number, laneColumns: number): OperatorFactory {
  const key = `${laneRows}x${laneColumns}`;
  const made = operators.get(key) ?? fmaOperator({ laneRows, laneColumns, rows: 2, columns: 2 });
  operators.set(key, made);
  return made;
}

/** Factors of the product and of C for cases with a C and for those without. */
function factorsOf(addend: boolean, float: boolean): readonly (readonly [number, number])[] {
  const [factor, second] = float ? [-1.5, -2] : [3, 5];
  const without = [
    [1, 0],
    [factor, 0],
    [0, 0],
  ] as const;
  const withC = [
    [1, 1],
    [factor, second],
    [0, 2],
  ] as const;
  return addend ? withC : without;
}

type KernelChoice = { readonly [K in keyof typeof columns]: (typeof columns)[K][number] } & {
  readonly types: TypeRow;
};

/**
 * Kernels in which each pair of layout, padding, C and D's majorness occurs, the types taken in turn; over all of them
 * each pair of two sizes up to `largest`. `every` 2 leaves out every second kernel.
 */
export function compactTable(facts: TargetFacts, largest: number, every = 1): readonly CompactRow[] {
  const usable = typeRows.filter((types) => multiplies(types, facts));
  const covering = pairwise(columns);
  const kernels = Array.from({ length: Math.max(usable.length, covering.length) }, (_, i) => ({
    ...covering[i % covering.length]!,
    types: usable[i % usable.length]!,
  })).filter((_, i) => i % every === 0);
  const upTo = sizes.filter((size) => size <= largest);
  const triples = pairwise({ m: upTo, n: upTo, k: upTo });
  const f32Row = typeRows.find(({ a, b, d }) => a === f32 && b === f32 && d === f32)!;
  const plain = { layout: "nn", padding: 0, addend: true, columnMajorD: false, types: f32Row } as const;
  return [
    rowOf(plain, pairwise({ m: leastSizes, n: leastSizes, k: leastSizes }), facts),
    ...kernels.map((choice, i) =>
      rowOf(
        choice,
        triples.filter((_, at) => at % kernels.length === i),
        facts,
      ),
    ),
  ];
}

function rowOf(
  { types, addend, ...rest }: KernelChoice,
  triples: readonly Pick<GemmCase, "m" | "n" | "k">[],
  facts: TargetFacts,
): CompactRow {
  const { a, b, d, accumulate, compute } = types;
  const factors = factorsOf(addend, d.class === "float");
  const options = {
    ...shortForm(facts),
    ...(accumulate === undefined ? {} : { accumulate }),
    ...(compute === undefined ? {} : { compute }),
  };
  const cases = triples.map((size, at) => {
    const [alpha, beta] = factors[at % factors.length]!;
    return { ...rest, ...size, a, b, d, alpha, beta, lineMultiple: 16, options };
  });
  const name = `${types.name}, ${rest.layout}, lines + ${rest.padding}${addend ? ", with C" : ""}${rest.columnMajorD ? ", D column-major" : ""}`;
  return { name, cases };
}
