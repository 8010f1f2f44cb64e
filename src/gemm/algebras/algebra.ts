/**
 * @file Algebras: what the elements of a matrix are made of, and how two of them multiply.
 *
 * An algebra over the real numbers has a basis e_0 … e_(n-1) and a table of products e_i · e_j = Σ c_ijk e_k. That is all
 * a matrix product needs to know: complex and dual numbers, quaternions and whatever else is bilinear are data.
 */
import { ArgumentError } from "../../errors.ts";

/** -1, 0 or 1. */
type Sign = number;

/**
 * A way to multiply with other products than those of the table: product r is (Σ_i left[r][i] a_i) · (Σ_j right[r][j] b_j),
 * component k of the result is Σ_r result[k][r] · (product r).
 */
export interface BilinearAlgorithm {
  readonly left: readonly (readonly Sign[])[];
  readonly right: readonly (readonly Sign[])[];
  readonly result: readonly (readonly Sign[])[];
}

/** A bilinear algebra. Made by {@link defineAlgebra}; compared by identity. */
export interface Algebra {
  readonly name: string;
  /** Components of an element. */
  readonly dimension: number;
  /** `table[i][j][k]` is c_ijk of e_i · e_j = Σ c_ijk e_k. */
  readonly table: readonly (readonly (readonly Sign[])[])[];
  /** The conjugate of e_i is conjugation[i] · e_i; undefined where elements have no conjugates. */
  readonly conjugation: readonly Sign[] | undefined;
  /** How matrices are multiplied where it is not product by product of the table. */
  readonly algorithm?: BilinearAlgorithm;
}

/** How an algebra is written down. */
export interface AlgebraDefinition {
  readonly name: string;
  /** Names of the basis elements, separated by spaces: "1 i j k". */
  readonly basis: string;
  /** The multiplication table: row i lists e_i · e_0, e_i · e_1 …, separated by spaces: "i -1 k -j". Sums are "i+j", nothing is "0". */
  readonly table: readonly string[];
  /**
   * The conjugates of the basis elements: "1 -i -j -k". Unless given, each is its own conjugate where products commute, and
   * there are no conjugates where they do not.
   */
  readonly conjugate?: string;
  readonly algorithm?: BilinearAlgorithm;
}

/** Σ ± basis elements as coefficients. */
function coefficients(text: string, basis: readonly string[], where: string): readonly Sign[] {
  const found = basis.map(() => 0);
  if (text === "0") return found;
  for (const term of text.match(/[+-]?[^+-]*/g)?.filter((part) => part !== "") ?? []) {
    const position = basis.indexOf(term.replace(/^[+-]/, ""));
    if (position < 0)
      throw new ArgumentError(
        `${where}: ${JSON.stringify(term)} is none of ${basis.join(", ")} with a sign, and not 0`,
      );
    if (found[position] !== 0)
      throw new ArgumentError(`${where}: ${basis[position]} occurs twice; coefficients are -1, 0 and 1`);
    found[position] = term.startsWith("-") ? -1 : 1;
  }
  return found;
}

const words = (text: string): readonly string[] => text.trim().split(/\s+/);

/**
 * Makes an algebra of its multiplication table, as textbooks write it.
 *
 *     const complex = defineAlgebra({ name: "complex", basis: "1 i", table: ["1 i", "i -1"], conjugate: "1 -i" });
 *
 * @throws ArgumentError for a table that is not square, names that are not of the basis, a conjugation that is not
 * conj(x · y) = conj(y) · conj(x), an algorithm that is not the table's product
 */
export function defineAlgebra({
  name,
  basis: names,
  table: rows,
  conjugate,
  algorithm,
}: AlgebraDefinition): Algebra {
  const basis = words(names);
  const n = basis.length;
  const where = `algebra ${name}`;
  if (new Set(basis).size !== n || basis.some((one) => one === "" || one === "0" || /[+-]/.test(one)))
    throw new ArgumentError(
      `${where}: the basis ${JSON.stringify(names)} wants different names without signs, none of them 0`,
    );
  const table = rows.map((row) => words(row).map((entry) => coefficients(entry, basis, where)));
  if (table.length !== n || table.some((row) => row.length !== n)) {
    throw new ArgumentError(
      `${where}: the table of ${n} basis elements is ${n} x ${n}; it was given as rows of ${table.map((row) => row.length).join(", ")}`,
    );
  }
  const commutes = table.every((row, i) =>
    row.every((product, j) => product.every((c, k) => c === table[j][i][k])),
  );
  const conjugates = conjugate ?? (commutes ? names : undefined);
  const conjugation = conjugates === undefined ? undefined : conjugationOf(conjugates, basis, where);
  const algebra: Algebra = {
    name,
    dimension: n,
    table,
    conjugation,
    ...(algorithm === undefined ? {} : { algorithm }),
  };
  checkConjugation(algebra);
  checkAlgorithm(algebra);
  return algebra;
}

function conjugationOf(text: string, basis: readonly string[], where: string): readonly Sign[] {
  const given = words(text);
  const signs = given.map((entry, i) => (entry === basis[i] ? 1 : entry === `-${basis[i]}` ? -1 : 0));
  if (signs.length !== basis.length || signs.includes(0))
    throw new ArgumentError(
      `${where}: the conjugates are the basis ${basis.join(" ")} with signs, not ${JSON.stringify(text)}`,
    );
  return signs;
}

function checkConjugation({ name, table, conjugation }: Algebra): void {
  if (conjugation === undefined) return;
  table.forEach((row, i) => {
    row.forEach((product, j) => {
      product.forEach((c, k) => {
        if (conjugation[k] * c === conjugation[i] * conjugation[j] * table[j][i][k]) return;
        throw new ArgumentError(
          `algebra ${name}: conjugation must turn products round, conj(x · y) = conj(y) · conj(x); it does not for basis elements ${i} and ${j}`,
        );
      });
    });
  });
}

function checkAlgorithm({ name, dimension: n, table, algorithm }: Algebra): void {
  if (algorithm === undefined) return;
  const { left, right, result } = algorithm;
  const count = left.length;
  const fits = (rows: readonly (readonly number[])[], height: number, width: number): boolean =>
    rows.length === height &&
    rows.every((row) => row.length === width && row.every((c) => c === -1 || c === 0 || c === 1));
  if (!fits(left, count, n) || !fits(right, count, n) || !fits(result, n, count)) {
    throw new ArgumentError(
      `algebra ${name}: an algorithm of r products has left and right of r x ${n} and result of ${n} x r, all -1, 0 or 1`,
    );
  }
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) {
      for (let k = 0; k < n; k++) {
        const c = left.reduce((sum, row, r) => sum + result[k][r] * row[i] * right[r][j], 0);
        if (c !== table[i][j][k])
          throw new ArgumentError(
            `algebra ${name}: the algorithm makes ${c} of c_${i}${j}${k}, the table says ${table[i][j][k]}`,
          );
      }
    }
  }
}

/** The complex numbers, by four real products. */
export const complex: Algebra = defineAlgebra({
  name: "complex",
  basis: "1 i",
  table: ["1 i", "i -1"],
  conjugate: "1 -i",
});

/** Dual numbers a + b·e with e² = 0, by three real products: b carries the derivative of a. */
export const dual: Algebra = defineAlgebra({
  name: "dual",
  basis: "1 e",
  table: ["1 e", "e 0"],
  conjugate: "1 -e",
});

/**
 * The complex numbers by three real products (Gauss; `gemm3m` of BLAS): with P = re·re, Q = im·im and
 * R = (re + im)·(re + im) the result is P - Q and R - P - Q. A quarter less work, and a weaker promise: the imaginary
 * part's error is bounded by the sizes of both parts together, not by its own,
 *
 *     |error| ≤ (2u + γ) Σ (|a.re| + |a.im|)(|b.re| + |b.im|),
 *
 * where u is the unit roundoff of the type in which A and B are multiplied (sums of parts are rounded to it: 2^-11 for f16
 * and tf32, 2^-8 for bf16) and γ ≤ (K + 4) · (unit roundoff of the sums). f16 parts whose sum exceeds 65,504 overflow. After
 * Higham, *Stability of a method for multiplying complex matrices with three real matrix multiplications*, SIAM J. Matrix
 * Anal. Appl. 13(3), 1992.
 */
export const complex3m: Algebra = defineAlgebra({
  name: "complex 3m",
  basis: "1 i",
  table: ["1 i", "i -1"],
  conjugate: "1 -i",
  algorithm: {
    left: [
      [1, 0],
      [0, 1],
      [1, 1],
    ],
    right: [
      [1, 0],
      [0, 1],
      [1, 1],
    ],
    result: [
      [1, -1, 0],
      [-1, -1, 1],
    ],
  },
});
