/**
 * @file From an algebra to matrix operations: which sums of A's and B's components are multiplied, into which accumulators,
 * and which sums of accumulators are the components of D.
 */
import type { Algebra } from "./algebra.ts";

/** A sum of things with signs: one coefficient, -1, 0 or 1, for each of them. */
export type Combination = readonly number[];

/** Which operands count conjugated. */
export interface Conjugated {
  readonly a: boolean;
  readonly b: boolean;
}

/** The matrix operations of one product. */
export interface ProductPlan {
  /** Factors on either side, as sums of components. */
  readonly left: readonly Combination[];
  readonly right: readonly Combination[];
  /** Matrix operations: a left and a right factor, and the accumulator that takes their product. */
  readonly products: readonly {
    readonly left: number;
    readonly right: number;
    readonly accumulator: number;
  }[];
  readonly accumulators: number;
  /** Each component of D as a sum of accumulators. */
  readonly result: readonly Combination[];
}

/** The one thing that a combination is, if it is just that. */
export function single(combination: Combination): number | undefined {
  const position = combination.findIndex((c) => c !== 0);
  const alone = combination.every((c, i) => (i === position ? c === 1 : c === 0));
  return position >= 0 && alone ? position : undefined;
}

const basis = (n: number, i: number, sign = 1): Combination =>
  Array.from({ length: n }, (_, j) => (i === j ? sign : 0));

/** A list in which equal combinations are one. */
class Combinations {
  readonly all: Combination[] = [];
  add(combination: Combination): number {
    const known = this.all.findIndex((other) => other.every((c, i) => c === combination[i]));
    return known >= 0 ? known : this.all.push(combination) - 1;
  }
}

/**
 * The matrix operations for an algebra. Conjugation is in the signs and costs nothing. `negates` says whether factors can be
 * negated; where they cannot, negative terms have accumulators of their own, which the result subtracts.
 */
export function planProducts(algebra: Algebra, conjugated: Conjugated, negates: boolean): ProductPlan {
  const { dimension: n, algorithm } = algebra;
  if (algorithm !== undefined) {
    const signs = signsOf(algebra, conjugated);
    const [left, right] = [new Combinations(), new Combinations()];
    const products = algorithm.left.map((row, r) => ({
      left: left.add(row.map((c, i) => c * signs.a[i] + 0)),
      right: right.add(algorithm.right[r].map((c, j) => c * signs.b[j] + 0)),
      accumulator: r,
    }));
    return {
      left: left.all,
      right: right.all,
      products,
      accumulators: products.length,
      result: algorithm.result,
    };
  }
  const terms = termsOf(algebra, conjugated);
  return negates ? planNegating(n, terms) : planSubtracting(n, terms);
}

/** What component i of A times component j of B adds to component k of D, or subtracts. */
export interface Term {
  readonly i: number;
  readonly j: number;
  readonly k: number;
  readonly sign: number;
}

/** The products of single components that the table asks for, conjugation in their signs. */
export function termsOf(algebra: Algebra, conjugated: Conjugated): readonly Term[] {
  const signs = signsOf(algebra, conjugated);
  return algebra.table.flatMap((row, i) =>
    row.flatMap((product, j) =>
      product.flatMap((c, k) => (c === 0 ? [] : [{ i, j, k, sign: c * signs.a[i] * signs.b[j] }])),
    ),
  );
}

/** Signs of the components of operands, conjugated or not. */
function signsOf(
  { dimension: n, conjugation }: Algebra,
  { a, b }: Conjugated,
): Readonly<Record<"a" | "b", readonly number[]>> {
  const of = (counts: boolean): readonly number[] =>
    Array.from({ length: n }, (_, i) => (counts ? (conjugation?.[i] ?? 1) : 1));
  return { a: of(a), b: of(b) };
}

/** Negative terms negate a factor, on the side where fewer of them have to be kept besides. */
function planNegating(n: number, terms: readonly Term[]): ProductPlan {
  const negative = terms.filter(({ sign }) => sign < 0);
  const onLeft = new Set(negative.map(({ i }) => i)).size < new Set(negative.map(({ j }) => j)).size;
  const [left, right] = [new Combinations(), new Combinations()];
  const products = terms.map(({ i, j, k, sign }) => ({
    left: left.add(basis(n, i, onLeft ? sign : 1)),
    right: right.add(basis(n, j, onLeft ? 1 : sign)),
    accumulator: k,
  }));
  const result = Array.from({ length: n }, (_, k) => basis(n, k));
  return { left: left.all, right: right.all, products, accumulators: n, result };
}

function planSubtracting(n: number, terms: readonly Term[]): ProductPlan {
  const subtracted = [...new Set(terms.filter(({ sign }) => sign < 0).map(({ k }) => k))];
  const accumulators = n + subtracted.length;
  const [left, right] = [new Combinations(), new Combinations()];
  const products = terms.map(({ i, j, k, sign }) => ({
    left: left.add(basis(n, i)),
    right: right.add(basis(n, j)),
    accumulator: sign > 0 ? k : n + subtracted.indexOf(k),
  }));
  const result = Array.from({ length: n }, (_, k) => {
    const minus = subtracted.indexOf(k);
    return Array.from({ length: accumulators }, (_, at) =>
      at === k ? 1 : minus >= 0 && at === n + minus ? -1 : 0,
    );
  });
  return { left: left.all, right: right.all, products, accumulators, result };
}
