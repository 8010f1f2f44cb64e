/**
 * @file `blas.gemmEx` and `blas.gemv`, for matrices of numbers of any type and for matrices over algebras alike: a function
 * that is written against these runs unchanged on complex and dual numbers and on a user's own algebra.
 */
import { ArgumentError, ShapeError } from "../../errors.ts";
import type { DeviceArray } from "../../runtime/array.ts";
import { AlgebraMatrix } from "../algebras/matrix.ts";
import { gemm } from "../plan.ts";
import type { GemmOptions } from "../resolve.ts";

/** A dense matrix: an array of rank 2, or a matrix over an algebra. */
export type BlasMatrix = DeviceArray | AlgebraMatrix;

/** op(X): "N" X itself, "T" transposed, "C" conjugate transposed, which for numbers is "T". */
export type Operation = "N" | "T" | "C";

/** A number; over an algebra also an element, by its components. */
export type BlasFactor = number | bigint | readonly number[];

/** What BLAS has no arguments for: the component and type choices of `gemm`. */
export type BlasOptions = Pick<
  GemmOptions,
  "accumulate" | "compute" | "operator" | "pack" | "params" | "signal"
>;

function applied(operation: Operation, matrix: BlasMatrix, name: string): BlasMatrix {
  switch (operation) {
    case "N":
      return matrix;
    case "T":
      return matrix.transposed;
    case "C":
      return matrix instanceof AlgebraMatrix ? matrix.adjoint : matrix.transposed;
    default:
      throw new ArgumentError(`blas: op(${name}) is "N", "T" or "C", not ${JSON.stringify(operation)}`);
  }
}

/** Whether a factor makes nothing of what it multiplies, which then is not read. */
export function isZero(factor: BlasFactor): boolean {
  return Array.isArray(factor) ? factor.every((part) => Number(part) === 0) : Number(factor) === 0;
}

/**
 * C = alpha · op(A) · op(B) + beta · C. With beta = 0, C is not read; with alpha = 0, A and B are not. Types may differ: C's is
 * what is written, sums are made as `gemm` makes them. C must not overlap A or B. Resolves when the work is enqueued.
 * @throws ShapeError, ArgumentError, TypeMismatchError, UnsupportedError before anything reaches the device
 */
export async function gemmEx(
  transA: Operation,
  transB: Operation,
  alpha: BlasFactor,
  a: BlasMatrix,
  b: BlasMatrix,
  beta: BlasFactor,
  c: BlasMatrix,
  options: BlasOptions = {},
): Promise<void> {
  const [left, right] = [applied(transA, a, "A"), applied(transB, b, "B")];
  await gemm(left, right, { ...options, alpha, beta, d: c, ...(isZero(beta) ? {} : { c }) });
}

/** A vector as a matrix of one column. */
function column(vector: BlasMatrix, name: string): BlasMatrix {
  const [, columns] = vector.shape;
  if (columns === 1 && vector.shape.length === 2) return vector;
  if (vector instanceof AlgebraMatrix || vector.shape.length !== 1)
    throw new ShapeError(
      `blas: ${name} is a vector (rank 1, or a matrix of one column); it is ${vector.label}`,
    );
  return vector.strided([vector.shape[0], 1], [vector.strides[0], 1]);
}

/**
 * y = alpha · op(A) · x + beta · y. x and y are arrays of rank 1 (any stride) or matrices of one column, over an algebra the
 * latter. With beta = 0, y is not read; with alpha = 0, A and x are not.
 * @throws as {@link gemmEx}
 */
export async function gemv(
  transA: Operation,
  alpha: BlasFactor,
  a: BlasMatrix,
  x: BlasMatrix,
  beta: BlasFactor,
  y: BlasMatrix,
  options: BlasOptions = {},
): Promise<void> {
  await gemmEx(transA, "N", alpha, a, column(x, "x"), beta, column(y, "y"), options);
}

/** A new matrix like another: same device, type and, over an algebra, same elements; of whatever the memory holds. */
export function emptyLike(matrix: BlasMatrix, shape: readonly [rows: number, columns: number]): BlasMatrix {
  if (!(matrix instanceof AlgebraMatrix)) return matrix.device.empty(matrix.type, shape);
  const { algebra, device, type } = matrix;
  return new AlgebraMatrix(algebra, device.empty(type, [...shape, algebra.dimension]), false);
}
