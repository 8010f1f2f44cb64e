/** @file Reading the elements of a `.npy` file, whole or in pieces. */

import { ArgumentError, FileError } from "../errors.ts";
import { byteSize, rawArray, type StorageArray, type StorageType } from "../types/index.ts";
import { type ByteSource, readExactly, swapBytes } from "./bytes.ts";
import { describeNpy, type NpyDescription, type NpyReadOptions } from "./header.ts";

/** Bytes that are read at once unless told otherwise. */
const defaultChunkBytes: number = 16 * 2 ** 20;

/** An array as a file holds it: raw storage and how it is to be read. */
export interface NpyArray<T extends StorageType = StorageType> extends NpyDescription<T> {
  /** Raw storage, `elements` long, little-endian whatever the file was. */
  readonly data: StorageArray<T>;
}

/** Consecutive elements of a file. */
export interface NpyChunk<T extends StorageType = StorageType> {
  /** Position of the first one in the file's order. */
  readonly start: number;
  /** Raw storage; the caller's to keep. */
  readonly data: StorageArray<T>;
}

/**
 * Reads an array whole, in pieces of some MiB into one typed array.
 *
 * @throws FileError naming the source, what is wrong and what would work; also when the array is larger than one typed
 * array can be here, in which case {@link readNpyChunks} serves
 */
export async function readNpy(source: ByteSource, options: NpyReadOptions = {}): Promise<NpyArray> {
  const description = await describeNpy(source, options);
  const data = allocate(description, source);
  const size = byteSize(description.type);
  const target = new Uint8Array(data.buffer);
  const step = Math.floor(defaultChunkBytes / size);
  for (let start = 0; start < description.elements; start += step) {
    const count = Math.min(step, description.elements - start);
    target.set(await readElements(source, description, start, count), start * size);
  }
  if (description.byteOrder === "big") swapBytes(target, size);
  return { ...description, data };
}

function allocate(description: NpyDescription, source: ByteSource): StorageArray {
  try {
    return rawArray(description.type, description.elements);
  } catch (cause) {
    const { type, elements } = description;
    throw new FileError(
      `${source.name}: ${elements} elements of ${type.name} do not fit one typed array here; read them with readNpyChunks`,
      { cause },
    );
  }
}

/**
 * Reads an array in pieces, for files larger than memory or one typed array. Each piece is new, little-endian raw
 * storage; pieces come in the file's order and together are `description.elements` long.
 *
 * @param description from {@link describeNpy} of the same source
 * @param chunkBytes most bytes of one piece, at least one element; default 16 MiB
 * @throws ArgumentError for a bad `chunkBytes`, FileError when the source ends early
 */
export async function* readNpyChunks<T extends StorageType>(
  source: ByteSource,
  description: NpyDescription<T>,
  chunkBytes: number = defaultChunkBytes,
): AsyncGenerator<NpyChunk<T>, void, void> {
  const size = byteSize(description.type);
  if (!(chunkBytes >= size)) {
    throw new ArgumentError(
      `chunkBytes is ${chunkBytes}; one element of ${description.type.name} has ${size} bytes`,
    );
  }
  const step = Math.floor(chunkBytes / size);
  for (let start = 0; start < description.elements; start += step) {
    const count = Math.min(step, description.elements - start);
    const data = rawArray(description.type, count);
    const bytes = new Uint8Array(data.buffer);
    bytes.set(await readElements(source, description, start, count));
    if (description.byteOrder === "big") swapBytes(bytes, size);
    yield { start, data };
  }
}

function readElements(
  source: ByteSource,
  description: NpyDescription,
  first: number,
  count: number,
): Promise<Uint8Array> {
  const size = byteSize(description.type);
  return readExactly(source, description.dataOffset + first * size, count * size);
}
