/** @file Writing arrays as `.npy`, whole or in pieces. */

import { ArgumentError, ShapeError, TypeMismatchError } from "../errors.ts";
import { byteSize, isRawArray, type StorageArray, type StorageType } from "../types/index.ts";
import { type ByteSink, swapBytes } from "./bytes.ts";
import type { ByteOrder } from "./descr.ts";
import { type AxisOrder, countElements, formatHeader, type NpyVersion } from "./header.ts";

/** Most bytes handed to the sink at once. */
const chunkBytes: number = 16 * 2 ** 20;

/** What an array to be written is. */
export interface NpyShape<T extends StorageType = StorageType> {
  readonly type: T;
  /** Sizes; none for a single number. */
  readonly shape: readonly number[];
  /** Which index varies fastest; default row-major. */
  readonly order?: AxisOrder;
}

/** An array to be written: raw storage without gaps, in the given order. */
export interface NpyInput<T extends StorageType = StorageType> extends NpyShape<T> {
  readonly data: StorageArray<T>;
}

/** Choices in writing. */
export interface NpyWriteOptions {
  /** Format version; default 1, which everything reads. */
  readonly version?: NpyVersion;
  /** Default little. In Python, big-endian bf16 needs `.view(numpy.dtype(ml_dtypes.bfloat16).newbyteorder(">"))`. */
  readonly byteOrder?: ByteOrder;
}

/**
 * Writes an array. bf16 and fp8 are written as opaque bytes (`"<V2"`, `"|V1"`), which `numpy.load` reads and
 * `.view(ml_dtypes.bfloat16)` makes numbers of.
 *
 * @throws ShapeError when data and shape differ in length, TypeMismatchError when data is not raw storage of the type;
 * before anything is written
 */
export async function writeNpy<T extends StorageType>(
  sink: ByteSink,
  array: NpyInput<T>,
  options: NpyWriteOptions = {},
): Promise<void> {
  const elements = checkedElements(array);
  checkRaw(array.type, array.data);
  if (array.data.length !== elements) {
    throw new ShapeError(
      `the shape [${array.shape.join(", ")}] has ${elements} elements, the data ${array.data.length}; make them agree`,
    );
  }
  await sink.write(headerOf(array, options));
  await writeElements(sink, array.type, array.data, options);
}

/**
 * Writes an array that comes in pieces, each raw storage of the type, together as many elements as the shape has.
 *
 * @throws ShapeError when the pieces hold more or fewer elements than the shape; by then bytes have been written, and
 * the output is to be thrown away (as `writeFileBeside` does)
 */
export async function writeNpyChunks<T extends StorageType>(
  sink: ByteSink,
  array: NpyShape<T>,
  chunks: Iterable<StorageArray<T>> | AsyncIterable<StorageArray<T>>,
  options: NpyWriteOptions = {},
): Promise<void> {
  const elements = checkedElements(array);
  await sink.write(headerOf(array, options));
  let written = 0;
  for await (const chunk of chunks) {
    checkRaw(array.type, chunk);
    written += chunk.length;
    if (written > elements) break;
    await writeElements(sink, array.type, chunk, options);
  }
  if (written !== elements) {
    throw new ShapeError(
      `the shape [${array.shape.join(", ")}] has ${elements} elements, the pieces hold ` +
        `${written > elements ? "more" : `only ${written}`}; make them agree`,
    );
  }
}

function headerOf(array: NpyShape, options: NpyWriteOptions): Uint8Array {
  const { type, shape, order = "row-major" } = array;
  const { version = 1, byteOrder = "little" } = options;
  return formatHeader({ type, shape, order, byteOrder, version });
}

function checkedElements(array: NpyShape): number {
  if (array.shape.length > 64 || array.shape.some((size) => !Number.isSafeInteger(size) || size < 0)) {
    throw new ArgumentError(
      `the shape [${array.shape.join(", ")}] cannot be written; it takes at most 64 integers of 0 or more`,
    );
  }
  return countElements(array.shape);
}

function checkRaw(type: StorageType, data: unknown): void {
  if (isRawArray(type, data)) return;
  throw new TypeMismatchError(
    `the data is not raw storage of ${type.name}; encode(${type.name}, values) makes it`,
  );
}

async function writeElements(
  sink: ByteSink,
  type: StorageType,
  data: StorageArray,
  options: NpyWriteOptions,
): Promise<void> {
  for (let start = 0; start < data.byteLength; start += chunkBytes) {
    const length = Math.min(chunkBytes, data.byteLength - start);
    const bytes = new Uint8Array(data.buffer, data.byteOffset + start, length);
    await sink.write(options.byteOrder === "big" ? swapped(bytes, byteSize(type)) : bytes);
  }
}

function swapped(bytes: Uint8Array, size: number): Uint8Array {
  const copy = bytes.slice();
  swapBytes(copy, size);
  return copy;
}
