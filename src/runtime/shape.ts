/**
 * @file Shapes and strides: plain arithmetic on extents, in elements, outermost dimension first.
 */
import { ArgumentError, ShapeError } from "../errors.ts";

/** Where the elements of an array lie: extents, distances between neighbours, and the first element's position. */
export interface StridedLayout {
  readonly shape: readonly number[];
  readonly strides: readonly number[];
  readonly offset: number;
}

/** Part of a dimension: from, up to (not including), and every how many; negative positions count from the end. */
export type SliceRange =
  | readonly []
  | readonly [from: number]
  | readonly [from: number, to: number | undefined, step?: number];

/** Largest rank of an array. */
export const largestRank = 6;

/** Extents are i32 on every device. */
export const largestExtent: number = 2 ** 31 - 1;

/** `f32[4, 5]`-like text of extents. */
export function formatShape(shape: readonly number[]): string {
  return `[${shape.join(", ")}]`;
}

/** @throws ShapeError unless the shape has rank 0 to 6 and whole extents from 0 to 2^31 - 1 */
export function checkShape(shape: readonly number[]): void {
  if (!Array.isArray(shape)) {
    throw new ShapeError(
      `a shape is an array of extents, [${String(shape)}] for a vector, not ${typeof shape}`,
    );
  }
  if (shape.length > largestRank) {
    throw new ShapeError(
      `shape ${formatShape(shape)} has rank ${shape.length}; arrays have rank 0 to ${largestRank}`,
    );
  }
  if (!shape.every((extent) => Number.isInteger(extent) && extent >= 0 && extent <= largestExtent)) {
    throw new ShapeError(`shape ${formatShape(shape)}: extents are whole numbers from 0 to 2^31 - 1`);
  }
  if (!Number.isSafeInteger(elementCount(shape))) {
    throw new ShapeError(`shape ${formatShape(shape)} has more than 2^53 elements`);
  }
}

/** Number of elements; 1 for rank 0. */
export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, extent) => product * extent, 1);
}

/** Strides of a dense array, last dimension fastest. */
export function rowMajorStrides(shape: readonly number[]): readonly number[] {
  const strides = new Array<number>(shape.length);
  let stride = 1;
  for (let dimension = shape.length - 1; dimension >= 0; dimension--) {
    strides[dimension] = stride;
    stride *= Math.max(shape[dimension]!, 1);
  }
  return strides;
}

/** Whether the elements lie one after the other in row-major order. Strides of extents 1, and of nothing, do not count. */
export function isRowMajor(shape: readonly number[], strides: readonly number[]): boolean {
  if (elementCount(shape) === 0) return true;
  let stride = 1;
  for (let dimension = shape.length - 1; dimension >= 0; dimension--) {
    if (shape[dimension] === 1) continue;
    if (strides[dimension] !== stride) return false;
    stride *= shape[dimension]!;
  }
  return true;
}

/** Number of elements from the first to the last position that a layout reaches; 0 for an empty array. */
export function span(shape: readonly number[], strides: readonly number[]): number {
  if (elementCount(shape) === 0) return 0;
  return shape.reduce((reached, extent, dimension) => reached + (extent - 1) * strides[dimension]!, 1);
}

/** Whether two different coordinates may share an element, as in a broadcast view. */
export function repeatsElements({ shape, strides }: StridedLayout): boolean {
  if (elementCount(shape) === 0) return false;
  const dimensions = shape
    .map((extent, dimension) => ({ extent, stride: strides[dimension]! }))
    .filter(({ extent }) => extent > 1)
    .sort((a, b) => a.stride - b.stride);
  // Sufficient, not necessary: each dimension steps over all that the faster ones span.
  let reached = 1;
  for (const { extent, stride } of dimensions) {
    if (stride < reached) return true;
    reached += stride * (extent - 1);
  }
  return false;
}

/** A layout with its dimensions in the given order. @throws ShapeError unless `order` names each dimension once */
export function permuteLayout(layout: StridedLayout, order: readonly number[]): StridedLayout {
  const rank = layout.shape.length;
  const isPermutation =
    order.length === rank &&
    [...order].sort((a, b) => a - b).every((dimension, position) => dimension === position);
  if (!isPermutation) {
    throw new ShapeError(
      `permute(${formatShape(order)}): an array of rank ${rank} wants each of 0 to ${rank - 1} once`,
    );
  }
  return {
    shape: order.map((dimension) => layout.shape[dimension]!),
    strides: order.map((dimension) => layout.strides[dimension]!),
    offset: layout.offset,
  };
}

/** The part of a layout in the given ranges. @throws ShapeError for a range outside the array */
export function sliceLayout(
  layout: StridedLayout,
  ranges: readonly (SliceRange | undefined)[],
): StridedLayout {
  const rank = layout.shape.length;
  if (ranges.length > rank) {
    throw new ShapeError(`slice() got ${ranges.length} ranges for an array of rank ${rank}`);
  }
  const shape = [...layout.shape];
  const strides = [...layout.strides];
  let offset = layout.offset;
  for (const [dimension, range] of ranges.entries()) {
    if (range === undefined || range.length === 0) continue;
    const extent = shape[dimension]!;
    const [first, last, step = 1] = range;
    const from = fromEnd(first, extent);
    const to = fromEnd(last ?? extent, extent);
    const valid = Number.isInteger(from) && Number.isInteger(to) && from >= 0 && from <= to && to <= extent;
    if (!valid) {
      throw new ShapeError(
        `slice of dimension ${dimension} from ${first} to ${last ?? "its end"}: it has ${extent} elements, positions are whole, and from is not behind to`,
      );
    }
    if (!Number.isInteger(step) || step < 1) {
      throw new ShapeError(
        `slice of dimension ${dimension}: a step is a whole number from 1 on, not ${step}`,
      );
    }
    shape[dimension] = Math.ceil((to - from) / step);
    // A slice of nothing may begin at the very end; its offset must not leave the array.
    if (shape[dimension]! > 0) offset += from * strides[dimension]!;
    strides[dimension]! *= step;
  }
  return { shape, strides, offset };
}

function fromEnd(position: number, extent: number): number {
  return position < 0 ? position + extent : position;
}

/** The layout repeated to a larger shape, by stride 0. Dimensions align at the last one. @throws ShapeError */
export function broadcastLayout(layout: StridedLayout, shape: readonly number[]): StridedLayout {
  checkShape(shape);
  const extra = shape.length - layout.shape.length;
  const strides = shape.map((extent, dimension) => {
    const own = layout.shape[dimension - extra];
    if (own === extent) return layout.strides[dimension - extra]!;
    if (own === undefined || own === 1) return 0;
    throw new ShapeError(
      `an array of shape ${formatShape(layout.shape)} cannot be repeated to ${formatShape(shape)}`,
    );
  });
  if (extra < 0) {
    throw new ShapeError(
      `an array of shape ${formatShape(layout.shape)} cannot be repeated to ${formatShape(shape)}`,
    );
  }
  return { shape, strides, offset: layout.offset };
}

/** The shape that several arrays can be repeated to, dimensions aligned at the last one. @throws ShapeError */
export function commonShape(shapes: readonly (readonly number[])[]): readonly number[] {
  const rank = Math.max(0, ...shapes.map((shape) => shape.length));
  return Array.from({ length: rank }, (_, dimension) => {
    const extents = shapes
      .map((shape) => shape[dimension - (rank - shape.length)])
      .filter((extent): extent is number => extent !== undefined && extent !== 1);
    if (extents.some((extent) => extent !== extents[0])) {
      throw new ShapeError(`shapes ${shapes.map(formatShape).join(" and ")} do not go together`);
    }
    return extents[0] ?? 1;
  });
}

/** Several layouts of one shape, with as few dimensions as describe all of them. */
export interface CollapsedLayouts {
  readonly shape: readonly number[];
  /** One list of strides for each layout. */
  readonly strides: readonly (readonly number[])[];
}

/**
 * Drops dimensions of extent 1 and merges neighbours that all layouts step through as through one. The order of the
 * elements stays. An array of one element gets rank 0.
 */
export function collapse(
  shape: readonly number[],
  strides: readonly (readonly number[])[],
): CollapsedLayouts {
  const extents: number[] = [];
  const steps: number[][] = strides.map(() => []);
  for (const [dimension, extent] of shape.entries()) {
    if (extent === 1) continue;
    const last = extents.length - 1;
    const merges =
      last >= 0 &&
      extents[last]! * extent <= largestExtent &&
      strides.every((list, which) => steps[which]![last] === list[dimension]! * extent);
    if (merges) {
      extents[last]! *= extent;
      for (const [which, list] of strides.entries()) steps[which]![last] = list[dimension]!;
    } else {
      extents.push(extent);
      for (const [which, list] of strides.entries()) steps[which]!.push(list[dimension]!);
    }
  }
  return { shape: extents, strides: steps };
}

/** A run of consecutive elements in memory, and the layout of its elements' places in the row-major list of values. */
export interface MemoryOrder {
  /** Extents in the order of falling strides; the last `inner` of them are dense in memory. */
  readonly shape: readonly number[];
  readonly strides: readonly number[];
  /** Strides of the same dimensions in a dense row-major array of the original shape. */
  readonly denseStrides: readonly number[];
  /** Elements that lie together: the product of the last `inner` extents. */
  readonly run: number;
  /** Number of trailing dimensions that a run covers. */
  readonly inner: number;
}

/** Dimensions sorted by how far they step in memory, with the dense tail found. */
export function memoryOrder(shape: readonly number[], strides: readonly number[]): MemoryOrder {
  const dense = rowMajorStrides(shape);
  const order = shape
    .map((_, dimension) => dimension)
    .filter((dimension) => shape[dimension] !== 1)
    .sort((a, b) => strides[b]! - strides[a]!);
  const sorted = {
    shape: order.map((dimension) => shape[dimension]!),
    strides: order.map((dimension) => strides[dimension]!),
    denseStrides: order.map((dimension) => dense[dimension]!),
  };
  let run = 1;
  let inner = 0;
  while (inner < order.length && sorted.strides[order.length - 1 - inner] === run) {
    run *= sorted.shape[order.length - 1 - inner]!;
    inner++;
  }
  return { ...sorted, run, inner };
}

/** Calls `visit` with the positions of each element of a shape under two lists of strides, last dimension fastest. */
export function visitPositions(
  shape: readonly number[],
  first: readonly number[],
  second: readonly number[],
  visit: (first: number, second: number) => void,
): void {
  if (elementCount(shape) === 0) return;
  const rank = shape.length;
  const walk = (dimension: number, a: number, b: number): void => {
    if (dimension === rank) {
      visit(a, b);
      return;
    }
    const extent = shape[dimension]!;
    const stepA = first[dimension]!;
    const stepB = second[dimension]!;
    if (dimension === rank - 1) {
      for (let i = 0; i < extent; i++) visit(a + i * stepA, b + i * stepB);
      return;
    }
    for (let i = 0; i < extent; i++) walk(dimension + 1, a + i * stepA, b + i * stepB);
  };
  walk(0, 0, 0);
}

/** Checks coordinates of one element and gives its position. @throws ArgumentError */
export function elementPosition(layout: StridedLayout, coordinates: readonly number[]): number {
  const { shape, strides } = layout;
  const valid =
    coordinates.length === shape.length &&
    coordinates.every((at, dimension) => Number.isInteger(at) && at >= 0 && at < shape[dimension]!);
  if (!valid) {
    throw new ArgumentError(
      `${formatShape(coordinates)} is no element of an array of shape ${formatShape(shape)}: one whole coordinate a dimension, from 0`,
    );
  }
  return coordinates.reduce((position, at, dimension) => position + at * strides[dimension]!, layout.offset);
}
