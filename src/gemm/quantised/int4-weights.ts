/**
 * @file Matrices of 4-bit integers with a scale for each group of K: the weights of language models, in the order in which
 * the kernel multiplies them.
 *
 * A column's numbers come in groups along K; element (k, n) stands for scale[k / group, n] · q with q from -8 to 7. Blocks of
 * 64 elements of K by 16 columns lie together, 512 bytes: 16 for each lane of a warp, four words for the four matrix
 * instructions of a block, a nibble for each element of the lane's fragment. The order of K within a block is the one in
 * which a lane's elements of the other operand are neighbours in memory.
 */
import { ArgumentError, ShapeError } from "../../errors.ts";
import { type BF16, bf16, type F16, f16, type U32, u32 } from "../../lang/index.ts";
import type { Device, DeviceArray } from "../../runtime/array.ts";
import { decode, encode } from "../../types/host.ts";

/** Elements of K and columns of a block; words of a lane's share of it. */
export const blockDepth = 64;
export const blockColumns = 16;
export const wordsPerLane = 4;
const lanes = 32;
const blockWords = lanes * wordsPerLane;

/** Elements of K that share a scale. */
export type Int4Group = 32 | 64 | 128;

/** How weights are quantised or given. */
export interface Int4Options {
  /** Elements of K with one scale; 128 unless given. */
  readonly group?: Int4Group;
  /** Type of the scales, and of the activations that they will be multiplied with; bf16 unless given. */
  readonly type?: F16 | BF16;
}

/** The weights of one layer on a device, K x N. Made by {@link quantiseInt4} or {@link int4Weights}. */
export class Int4Weights {
  /** @internal */
  constructor(
    readonly k: number,
    readonly n: number,
    readonly group: Int4Group,
    readonly type: F16 | BF16,
    /** [⌈n / 16⌉, k / 64, 32 lanes, 4]: blocks as the kernel loads them. */
    readonly words: DeviceArray<U32>,
    /** [⌈n / 16⌉, k / group, 8]: the scales of columns c and c + 8 of a block, as one word. */
    readonly scales: DeviceArray<U32>,
  ) {}

  get device(): Device {
    return this.words.device;
  }
  /** Bytes that a product reads of it. */
  get bytes(): number {
    return 4 * (this.words.size + this.scales.size);
  }

  /** What the weights stand for, [k, n] in row-major order, read back from the device. */
  async read(): Promise<Float32Array> {
    const { k, n, group, type } = this;
    const [words, scales] = [await this.words.read(), await this.scales.read()];
    const halves = decode(type, new Uint16Array(scales.buffer, scales.byteOffset, 2 * scales.length));
    const result = new Float32Array(k * n);
    eachPlace(k, n, (word, shift, row, column) => {
      const q = ((words[word]! >>> shift) << 28) >> 28;
      const scale = halves[scalePlace(k / group, Math.floor(row / group), column)] as number;
      result[row * n + column] = q * scale;
    });
    return result;
  }

  dispose(): void {
    this.words.dispose();
    this.scales.dispose();
  }
  [Symbol.dispose](): void {
    this.dispose();
  }
}

/** Half of a word of scales, counted in halves. */
function scalePlace(groups: number, group: number, column: number): number {
  const block = Math.floor(column / blockColumns);
  const within = column % blockColumns;
  return 2 * ((block * groups + group) * 8 + (within % 8)) + (within >= 8 ? 1 : 0);
}

/** Calls `visit` with the word and the bit of each element. */
function eachPlace(
  k: number,
  n: number,
  visit: (word: number, shift: number, row: number, column: number) => void,
): void {
  const chunks = k / blockDepth;
  for (let row = 0; row < k; row++) {
    const inner = row % blockDepth;
    // 32 elements of K are two words of eight lanes' neighbours: lane column, word, pair of the fragment, half of the pair.
    const lane = Math.floor((inner % 32) / 8);
    const word = 2 * Math.floor(inner / 32) + Math.floor((inner % 8) / 4);
    const pair = 2 * Math.floor((inner % 4) / 2);
    const half = 4 * (inner % 2);
    const chunk = Math.floor(row / blockDepth);
    for (let column = 0; column < n; column++) {
      const within = column % blockColumns;
      const block = Math.floor(column / blockColumns) * chunks + chunk;
      const at = block * blockWords + ((within % 8) * 4 + lane) * wordsPerLane + word;
      visit(at, 4 * (pair + (within >= 8 ? 1 : 0) + half), row, column);
    }
  }
}

function checkExtents(shape: readonly number[], group: number, type: F16 | BF16, who: string): void {
  if (type !== f16 && type !== bf16)
    throw new ArgumentError(`${who}: type is f16 or bf16, not ${String((type as { name?: string }).name)}`);
  if (![32, 64, 128].includes(group))
    throw new ArgumentError(`${who}: group is 32, 64 or 128 elements of K, not ${String(group)}`);
  const [k, n] = shape;
  if (shape.length !== 2 || ![k, n].every((extent) => Number.isInteger(extent) && extent! > 0))
    throw new ShapeError(`${who}: weights have the shape [K, N], both positive, not [${shape.join(", ")}]`);
  const unit = Math.max(group, blockDepth);
  if (k! % unit !== 0)
    throw new ShapeError(
      `${who}: K is a multiple of ${unit} (${group} elements share a scale, blocks have ${blockDepth}), not ${k}; more rows of zeros, and zeros in the other operand, make it one`,
    );
}

/**
 * Weights that are quantised already: `values` from -8 to 7 in row-major order [K, N] (checkpoints with nibbles from 0 to 15
 * and a zero of 8: subtract it), `scales` in row-major order [K / group, N].
 * @throws ArgumentError, ShapeError
 */
export function int4Weights(
  device: Device,
  shape: readonly [k: number, n: number],
  values: ArrayLike<number>,
  scales: ArrayLike<number>,
  { group = 128, type = bf16 }: Int4Options = {},
): Int4Weights {
  checkExtents(shape, group, type, "int4Weights()");
  const [k, n] = shape;
  const groups = k / group;
  if (values.length !== k * n || scales.length !== groups * n) {
    throw new ShapeError(
      `int4Weights(): ${k} x ${n} weights are ${k * n} values and ${groups * n} scales; ${values.length} and ${scales.length} were given`,
    );
  }
  const blocks = Math.ceil(n / blockColumns);
  const words = new Uint32Array(blocks * (k / blockDepth) * blockWords);
  eachPlace(k, n, (word, shift, row, column) => {
    const value = values[row * n + column]!;
    if (!(Number.isInteger(value) && value >= -8 && value <= 7))
      throw new ArgumentError(
        `int4Weights(): value [${row}, ${column}] is ${value}; 4-bit integers are from -8 to 7`,
      );
    words[word]! |= (value & 15) << shift;
  });
  const halves = new Float32Array(blocks * groups * blockColumns);
  for (let row = 0; row < groups; row++)
    for (let column = 0; column < n; column++)
      halves[scalePlace(groups, row, column)] = scales[row * n + column]!;
  const bits = encode(type, halves as never) as Uint16Array;
  return new Int4Weights(
    k,
    n,
    group,
    type,
    device.array(u32, [blocks, k / blockDepth, lanes, wordsPerLane], words),
    device.array(u32, [blocks, groups, 8], new Uint32Array(bits.buffer, bits.byteOffset, bits.length / 2)),
  );
}

/**
 * Quantises weights, [K, N] in row-major order: the largest magnitude of a group becomes 7, the others the nearest of -8 to 7.
 * @throws ArgumentError, ShapeError
 */
export function quantiseInt4(
  device: Device,
  shape: readonly [k: number, n: number],
  weights: ArrayLike<number>,
  options: Int4Options = {},
): Int4Weights {
  const { group = 128, type = bf16 } = options;
  checkExtents(shape, group, type, "quantiseInt4()");
  const [k, n] = shape;
  if (weights.length !== k * n)
    throw new ShapeError(`quantiseInt4(): ${k} x ${n} weights are ${k * n} numbers, not ${weights.length}`);
  const largest = new Float32Array((k / group) * n);
  for (let row = 0; row < k; row++) {
    const start = Math.floor(row / group) * n;
    for (let column = 0; column < n; column++) {
      const magnitude = Math.abs(weights[row * n + column]!);
      if (!Number.isFinite(magnitude))
        throw new ArgumentError(`quantiseInt4(): weight [${row}, ${column}] is ${weights[row * n + column]}`);
      largest[start + column] = Math.max(largest[start + column]!, magnitude);
    }
  }
  // Numbers are divided by the scale as it is stored.
  const scales = decode(type, encode(type, largest.map((magnitude) => magnitude / 7) as never) as never);
  const values = new Int8Array(k * n);
  for (let row = 0; row < k; row++) {
    const start = Math.floor(row / group) * n;
    for (let column = 0; column < n; column++) {
      const scale = scales[start + column] as number;
      const quotient = scale === 0 ? 0 : Math.round(weights[row * n + column]! / scale);
      values[row * n + column] = Math.max(-8, Math.min(7, quotient));
    }
  }
  return int4Weights(device, shape, values, scales as ArrayLike<number>, options);
}
