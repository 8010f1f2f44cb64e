/**
 * @file Batches: arrays with dimensions before a matrix's own two, and vectors, as NumPy's matmul reads them.
 *
 * The dimensions in front are broadcast against each other and walked as one: matrix i of an operand begins i strides
 * after its first. A stride of 0 is one matrix for all, shared weights say. Strides and the count are arguments of the
 * kernel; that there is a batch is compiled in.
 */
import { ShapeError } from "../errors.ts";
import { collapse, commonShape, type DeviceArray } from "../runtime/array.ts";

/** Dimensions before a matrix's own two; strides in elements. */
export interface OuterDimensions {
  readonly shape: readonly number[];
  readonly strides: readonly number[];
}

/** How a kernel finds its matrices: there is one of each, they lie at equal distances, or tables say where and how large they are. */
export type BatchScheme = "single" | "strided" | "grouped";

/** The matrices of a launch. */
export interface Batch {
  readonly scheme: BatchScheme;
  readonly count: number;
  /** Elements from each operand's matrix to its next; 0 for one matrix for all. */
  readonly strides: { readonly a: number; readonly b: number; readonly c: number; readonly d: number };
}

/** One matrix of each. */
export const singleBatch: Batch = { scheme: "single", count: 1, strides: { a: 0, b: 0, c: 0, d: 0 } };

/** What a batch asks of its operands. */
interface Batched {
  readonly label: string;
  readonly outer?: OuterDimensions | undefined;
}

/**
 * Shape of the batch that two operands span together.
 * @throws ShapeError if dimensions are neither equal nor 1
 */
export function batchShape(a: Batched, b: Batched): readonly number[] {
  try {
    return commonShape([a.outer?.shape ?? [], b.outer?.shape ?? []]);
  } catch (error) {
    if (!(error instanceof ShapeError)) throw error;
    throw new ShapeError(
      `gemm: the batches of A (${a.label}) and B (${b.label}) do not go together; dimensions before the last two must be equal, or 1, or absent`,
    );
  }
}

/**
 * Walks the outer dimensions of all operands as one.
 * @throws ShapeError where no single stride does that
 */
export function batchOf(
  shape: readonly number[],
  operands: {
    readonly a: Batched;
    readonly b: Batched;
    readonly c?: Batched | undefined;
    readonly d: Batched;
  },
): Batch {
  if (shape.length === 0) return singleBatch;
  const count = shape.reduce((product, extent) => product * extent, 1);
  const names = ["a", "b", "c", "d"] as const;
  const collapsed = collapse(
    shape,
    names.map((name) => broadcastStrides(operands[name]?.outer, shape)),
  );
  if (count > 0 && collapsed.shape.length > 1) {
    const labels = names.flatMap((name) => (operands[name] === undefined ? [] : [operands[name].label]));
    throw new ShapeError(
      `gemm: the batch [${shape.join(", ")}] of ${labels.join(", ")} cannot be walked with one stride for each array; copy() of tilewright/array-ops makes contiguous arrays, or multiply slice by slice`,
    );
  }
  const [a, b, c, d] = collapsed.strides.map((strides) => strides[0] ?? 0);
  return { scheme: "strided", count, strides: { a, b, c, d } };
}

/** Strides of an operand's outer dimensions in the batch's shape: 0 along those in which it has one matrix for all. */
function broadcastStrides(outer: OuterDimensions | undefined, shape: readonly number[]): readonly number[] {
  const own = outer ?? { shape: [], strides: [] };
  const missing = shape.length - own.shape.length;
  return shape.map((extent, dimension) => {
    const at = dimension - missing;
    return at < 0 || (own.shape[at] === 1 && extent !== 1) ? 0 : own.strides[at];
  });
}

/** A vector as a matrix of one row or one column; other arrays as they are. */
export function vectorAs(which: "row" | "column", array: DeviceArray, name: string): DeviceArray {
  if (array.rank !== 1) return array;
  const [extent] = array.shape;
  const [stride] = array.strides;
  if (extent > 1 && stride < 0) {
    throw new ShapeError(
      `gemm: ${name} (${array.label}) runs backwards (stride ${stride}); copy() of tilewright/array-ops turns it round`,
    );
  }
  const step = extent > 1 ? stride : 1;
  return which === "row"
    ? array.strided([1, extent], [Math.max(1, extent * step), step])
    : array.strided([extent, 1], [step, 1]);
}

/** Which of A and B are vectors, whose dimension the result does not have. */
export interface VectorOperands {
  readonly a: boolean;
  readonly b: boolean;
}

/** Shape of the result: the batch, then m unless A is a vector, then n unless B is one. */
export function resultShape(
  outer: readonly number[],
  m: number,
  n: number,
  vectors: VectorOperands,
): readonly number[] {
  return [...outer, ...(vectors.a ? [] : [m]), ...(vectors.b ? [] : [n])];
}

/** An array of the result's shape with the dimensions that vectors took away. */
export function withVectorDimensions(array: DeviceArray, vectors: VectorOperands): DeviceArray {
  if (!vectors.a && !vectors.b) return array;
  const own = (vectors.a ? 0 : 1) + (vectors.b ? 0 : 1);
  const at = array.rank - own;
  const [shape, strides] = [array.shape.slice(0, at), array.strides.slice(0, at)];
  const rest = array.strides.slice(at);
  const extents = array.shape.slice(at);
  const [m, down] = vectors.a ? [1, Math.max(1, (extents[0] ?? 1) * (rest[0] ?? 1))] : [extents[0], rest[0]];
  const [n, across] = vectors.b ? [1, 1] : [extents.at(-1) as number, rest.at(-1) as number];
  return array.strided([...shape, m, n], [...strides, down, across]);
}
