/**
 * @file Products with a triangular or symmetric matrix, and those of which half is computed, as level 3 of BLAS has them
 * (Dongarra, Du Croz, Hammarling, Duff, "A set of level 3 basic linear algebra subprograms", 1990).
 */
import { ArgumentError, ShapeError, UnsupportedError } from "../../errors.ts";
import { DeviceArray } from "../../runtime/array.ts";
import { checkHalf, type Half } from "../dense-source.ts";
import { halfOf, stepsOfHalf } from "../layouts/half.ts";
import { symmetric } from "../layouts/symmetric.ts";
import { triangular } from "../layouts/triangular.ts";
import { packedOperand } from "../packing/operands.ts";
import { gemm } from "../plan.ts";
import { matrixOperand } from "../problem.ts";
import { bindStages } from "../stages.ts";
import { type BlasOptions, isZero, type Operation } from "./general.ts";

/** Where the structured matrix stands: "L", left of the other, or "R". */
export type Side = "L" | "R";

/** Whether the diagonal of a triangular matrix is stored, "N", or ones, "U", whatever is stored there. */
export type Diagonal = "N" | "U";

function check(routine: string, what: string, value: unknown, known: readonly string[]): void {
  if (known.includes(value as string)) return;
  const names = known.map((one) => JSON.stringify(one)).join(" or ");
  throw new ArgumentError(
    `blas.${routine}: ${what} is ${names}, not ${JSON.stringify(value) ?? String(value)}`,
  );
}

/** @throws UnsupportedError, ShapeError unless it is a matrix of numbers */
function checkMatrix(routine: string, name: string, matrix: unknown): void {
  if (!(matrix instanceof DeviceArray)) {
    throw new UnsupportedError(
      `blas.${routine}: ${name} is a device array of numbers; over algebras there are gemmEx and gemv, which take whole matrices`,
    );
  }
  if (matrix.rank !== 2)
    throw new ShapeError(`blas.${routine}: ${name} is a matrix (rank 2); it is ${matrix.label}`);
}

/** @throws ShapeError unless it is square */
function checkSquare(routine: string, name: string, matrix: DeviceArray): void {
  if (matrix.shape[0] === matrix.shape[1]) return;
  throw new ShapeError(`blas.${routine}: ${name} is square; it is ${matrix.label}`);
}

/**
 * C = alpha · A · B + beta · C (side "L") or alpha · B · A + beta · C ("R") with a symmetric A of which one half is read.
 * With beta = 0, C is not read; with alpha = 0, A and B are not. C must not overlap A or B.
 * @throws ShapeError, ArgumentError, TypeMismatchError, UnsupportedError before anything reaches the device
 */
export async function symm(
  side: Side,
  half: Half,
  alpha: number | bigint,
  a: DeviceArray,
  b: DeviceArray,
  beta: number | bigint,
  c: DeviceArray,
  options: BlasOptions = {},
): Promise<void> {
  check("symm", "side", side, ["L", "R"]);
  checkHalf(half, "blas.symm");
  for (const [name, matrix] of Object.entries({ A: a, B: b, C: c })) checkMatrix("symm", name, matrix);
  checkSquare("symm", "A", a);
  const whole = symmetric(a, half);
  const [left, right] = side === "L" ? [whole, b] : [b, whole];
  await gemm(left, right, { ...options, alpha, beta, d: c, ...(isZero(beta) ? {} : { c }) });
}

/**
 * C = alpha · A · Aᵀ + beta · C (operation "N") or alpha · Aᵀ · A + beta · C ("T", "C"), of which one half is computed; what
 * lies in the other half of C is neither read nor changed. With beta = 0, C is not read; with alpha = 0, A is not. C must
 * not overlap A.
 * @throws ShapeError, ArgumentError, TypeMismatchError, UnsupportedError before anything reaches the device
 */
export async function syrk(
  half: Half,
  operation: Operation,
  alpha: number | bigint,
  a: DeviceArray,
  beta: number | bigint,
  c: DeviceArray,
  options: BlasOptions = {},
): Promise<void> {
  checkHalf(half, "blas.syrk");
  check("syrk", "the operation", operation, ["N", "T", "C"]);
  for (const [name, matrix] of Object.entries({ A: a, C: c })) checkMatrix("syrk", name, matrix);
  checkSquare("syrk", "C", c);
  const [left, right] = operation === "N" ? [a, a.transposed] : [a.transposed, a];
  const d = halfOf(c, half);
  const predicate = stepsOfHalf[half];
  await gemm(left, right, { ...options, alpha, beta, predicate, d, ...(isZero(beta) ? {} : { c: d }) });
}

/**
 * B = alpha · op(A) · B (side "L") or alpha · B · op(A) ("R") with a triangular A of which one half is read, and with
 * `diagonal` "U" not its diagonal either. B is copied to a workspace first. With alpha = 0, neither A nor B is read.
 * @throws ShapeError, ArgumentError, TypeMismatchError, UnsupportedError before anything reaches the device
 */
export async function trmm(
  side: Side,
  half: Half,
  transA: Operation,
  diagonal: Diagonal,
  alpha: number | bigint,
  a: DeviceArray,
  b: DeviceArray,
  options: BlasOptions = {},
): Promise<void> {
  check("trmm", "side", side, ["L", "R"]);
  checkHalf(half, "blas.trmm");
  check("trmm", "op(A)", transA, ["N", "T", "C"]);
  check("trmm", "the diagonal", diagonal, ["N", "U"]);
  for (const [name, matrix] of Object.entries({ A: a, B: b })) checkMatrix("trmm", name, matrix);
  checkSquare("trmm", "A", a);
  const whole = triangular(a, half, { unit: diagonal === "U" });
  const triangle = transA === "N" ? whole : whole.transposed;
  const stored = matrixOperand(b, "B");
  const { workspace, stages, matrix } = packedOperand(stored, side === "L" ? "b" : "a", stored.layout.major);
  try {
    if (!isZero(alpha) && b.size > 0) {
      const copy = await bindStages(b.device, stages, options.signal);
      copy.launch();
      copy.dispose();
    }
    const [left, right] = side === "L" ? [triangle, matrix] : [matrix, triangle];
    await gemm(left, right, { ...options, alpha, d: b });
  } finally {
    workspace.dispose();
  }
}
