/**
 * @file Modes: the dimensions of a contraction, each with its stride in every array, sorted into those of rows, columns,
 * the sum and the batch, and fused where all arrays step through two as through one.
 *
 * After Springer and Bientinesi, "Design of a high-performance GEMM-like Tensor-Tensor Multiplication" (ACM TOMS 44(3),
 * 2018): a group of modes is one dimension of a matrix product, whose elements lie where its modes say.
 */

/** One array of a contraction. */
export type ModeArray = "a" | "b" | "c" | "d";

/** A dimension: its extent, and its stride in each array that has it. In elements. */
export interface Mode {
  readonly extent: number;
  readonly strides: Readonly<Partial<Record<ModeArray, number>>>;
}

/** A dimension of one array. */
export interface StridedMode {
  readonly extent: number;
  readonly stride: number;
}

const strideList = ({ strides }: Mode): readonly [ModeArray, number][] =>
  Object.entries(strides) as [ModeArray, number][];

/** Whether `slow` begins, in every array, where `fast` ends. */
function follows(slow: Mode, fast: Mode): boolean {
  return strideList(fast).every(([array, stride]) => slow.strides[array] === stride * fast.extent);
}

function fused(slow: Mode, fast: Mode): Mode {
  return { extent: slow.extent * fast.extent, strides: fast.strides };
}

/** Modes that take part: those of one element say nothing, and with one of none there are no elements at all. */
export function essential(modes: readonly Mode[]): readonly Mode[] {
  const empty = modes.find(({ extent }) => extent === 0);
  return empty === undefined ? modes.filter(({ extent }) => extent !== 1) : [empty];
}

/** Modes, fastest first, with neighbours fused: their order stays, and what a number along all of them means. */
export function fuseInOrder(modes: readonly Mode[]): readonly Mode[] {
  const result: Mode[] = [];
  for (const mode of essential(modes)) {
    const fast = result.at(-1);
    if (fast !== undefined && follows(mode, fast)) result[result.length - 1] = fused(mode, fast);
    else result.push(mode);
  }
  return result;
}

/**
 * Modes fused wherever that is possible and sorted fastest first by their strides in one array: the first of `by` in which
 * a mode has stride 1, the first of all where none has.
 */
export function fuseAndSort(modes: readonly Mode[], by: readonly ModeArray[]): readonly Mode[] {
  const result = [...essential(modes)];
  for (let joined = true; joined; ) {
    joined = false;
    for (const fast of result) {
      const slow = result.find((other) => other !== fast && follows(other, fast));
      if (slow === undefined) continue;
      result.splice(result.indexOf(slow), 1);
      result[result.indexOf(fast)] = fused(slow, fast);
      joined = true;
      break;
    }
  }
  const order = by.find((array) => result.some(({ strides }) => strides[array] === 1)) ?? by[0];
  const stride = (mode: Mode): number => mode.strides[order] ?? 0;
  // A stride of 0 repeats one element: it is no neighbour of anything.
  const rank = (mode: Mode): number => (stride(mode) === 0 ? Number.POSITIVE_INFINITY : stride(mode));
  return result.sort((x, y) => (rank(x) < rank(y) ? -1 : rank(x) > rank(y) ? 1 : 0));
}

/** Elements along modes together. */
export function extentOf(modes: readonly { readonly extent: number }[]): number {
  return modes.reduce((product, { extent }) => product * extent, 1);
}

/** Modes as one array has them. */
export function modesIn(modes: readonly Mode[], array: ModeArray): readonly StridedMode[] {
  return modes.map(({ extent, strides }) => ({ extent, stride: strides[array] ?? 0 }));
}

/** Where each matrix of a batch starts in every array, for all numbers along its modes. */
export function outerModes(modes: readonly Mode[]): readonly Readonly<Partial<Record<ModeArray, number>>>[] {
  let starts: readonly Readonly<Partial<Record<ModeArray, number>>>[] = [{}];
  for (const { extent, strides } of modes) {
    starts = Array.from({ length: extent }, (_, i) => i).flatMap((i) =>
      starts.map((before) =>
        Object.fromEntries(
          Object.entries(strides).map(([array, stride]) => [
            array,
            (before[array as ModeArray] ?? 0) + i * stride,
          ]),
        ),
      ),
    );
  }
  return starts;
}
