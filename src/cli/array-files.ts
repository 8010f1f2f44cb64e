/**
 * @file Arrays between `.npy` files and devices, in pieces: neither a file nor an array needs to fit one typed array.
 */
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { AbortedError, FileError, ShapeError } from "../errors.ts";
import {
  type ByteSink,
  describeNpy,
  type NpyDescription,
  type NpyReadOptions,
  readNpyChunks,
  writeNpyChunks,
} from "../npy/index.ts";
import { type FileSource, openFile, writeFileBeside } from "../npy/node.ts";
import type { DeviceArray } from "../runtime/array.ts";
import type { Device } from "../runtime/device.ts";
import { byteSize, type StorageArray, type StorageType } from "../types/index.ts";

/** Most bytes that are on the host at once. */
const defaultChunkBytes: number = 32 * 2 ** 20;

/** Says how much of a file is done, from 0 to 1. */
export type ReportProgress = (fraction: number) => void;

/** Choices in moving a matrix. */
export interface MoveOptions {
  readonly report?: ReportProgress;
  /** Most bytes on the host at once, at least one element; default 32 MiB. */
  readonly chunkBytes?: number;
  readonly signal?: AbortSignal;
}

/** An array in a file, its header read and checked. */
export interface ArrayFile {
  readonly path: string;
  readonly type: StorageType;
  readonly shape: readonly number[];
  /** What to know about the reading chosen, where it is not plain. */
  readonly note: string | undefined;
  /** Copies the elements to a device. A file in Fortran's order becomes a transposed view. */
  load(device: Device, options?: MoveOptions): Promise<DeviceArray>;
  close(): Promise<void>;
}

/** A matrix in a file. */
export interface MatrixFile extends ArrayFile {
  readonly rows: number;
  readonly columns: number;
}

/** Opens a `.npy` file. @throws FileError for what cannot be read */
export async function openArray(path: string, options: NpyReadOptions = {}): Promise<ArrayFile> {
  const source = await openFile(path);
  try {
    const description = await describeNpy(source, options);
    return {
      path,
      type: description.type,
      shape: description.shape,
      note: description.note,
      load: (device, moving) => loadArray(source, description, device, moving),
      close: () => source.close(),
    };
  } catch (error) {
    await source.close();
    throw error;
  }
}

/**
 * Opens a `.npy` file that holds a matrix, of numbers or of elements that have `components` each, along the last dimension.
 * @throws FileError for what cannot be read, ShapeError for what is no matrix
 */
export async function openMatrix(
  path: string,
  options: NpyReadOptions = {},
  components?: number,
): Promise<MatrixFile> {
  const file = await openArray(path, options);
  try {
    const [rows, columns] = matrixShape(path, file.shape, components);
    return { ...file, rows, columns };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Opens a `.npy` file that holds a vector. @throws FileError, ShapeError */
export async function openVector(path: string, options: NpyReadOptions = {}): Promise<ArrayFile> {
  const file = await openArray(path, options);
  if (file.shape.length === 1) return file;
  await file.close();
  throw new ShapeError(
    `${path}: holds ${held(file.shape)}; a vector has rank 1, a.reshape(-1) makes one in Python`,
  );
}

function held(shape: readonly number[]): string {
  return shape.length === 0
    ? "a single number"
    : `an array of rank ${shape.length}, shape [${shape.join(", ")}]`;
}

function matrixShape(
  path: string,
  shape: readonly number[],
  components: number | undefined,
): readonly [rows: number, columns: number] {
  const [rows, columns, last] = shape;
  if (components === undefined) {
    if (shape.length === 2) return [rows!, columns!];
    throw new ShapeError(
      `${path}: holds ${held(shape)}; a matrix has rank 2, a.reshape(rows, columns) makes one in Python`,
    );
  }
  if (shape.length === 3 && last === components) return [rows!, columns!];
  throw new ShapeError(
    `${path}: holds ${held(shape)}; a matrix of elements with ${components} components has the shape [rows, columns, ${components}]`,
  );
}

async function loadArray(
  source: FileSource,
  description: NpyDescription,
  device: Device,
  { report = () => {}, chunkBytes = defaultChunkBytes, signal }: MoveOptions = {},
): Promise<DeviceArray> {
  const { type, shape, order, elements } = description;
  const isTransposed = order === "column-major";
  const array = device.empty(type, isTransposed ? [...shape].reverse() : shape);
  try {
    for await (const { start, data } of readNpyChunks(source, description, chunkBytes)) {
      if (signal?.aborted === true) throw new AbortedError(`stopped while reading ${source.name}`);
      array.strided([data.length], [1], start).writeBits(data);
      report((start + data.length) / elements);
    }
    return isTransposed ? array.permute(shape.map((_, i) => shape.length - 1 - i)) : array;
  } catch (error) {
    array.dispose();
    throw error;
  }
}

/**
 * Writes a contiguous array to a `.npy` file, replacing what is there only when all is written.
 * @throws FileError, DeviceError, AbortedError; the old content stays then
 */
export async function saveArray(path: string, array: DeviceArray, options: MoveOptions = {}): Promise<void> {
  const { type, shape } = array;
  const { signal } = options;
  const stopIfAsked = (): void => {
    if (signal?.aborted === true) throw new AbortedError(`stopped; ${path} was not written`);
  };
  await writeFileBeside(path, async (sink) => {
    const checked: ByteSink = {
      write: async (bytes) => {
        stopIfAsked();
        await sink.write(bytes);
      },
    };
    await writeNpyChunks(checked, { type, shape }, chunksOf(array, options));
    stopIfAsked();
  });
}

async function* chunksOf(
  array: DeviceArray,
  { report = () => {}, chunkBytes = defaultChunkBytes }: MoveOptions,
): AsyncGenerator<StorageArray, void, void> {
  const step = Math.floor(chunkBytes / byteSize(array.type));
  for (let start = 0; start < array.size; start += step) {
    const count = Math.min(step, array.size - start);
    yield await array.strided([count], [1], array.offset + start).readBits();
    report((start + count) / array.size);
  }
}

/** Checks, before any work is done, that a file can be put where it is wanted. @throws FileError */
export async function checkWritable(path: string): Promise<void> {
  const refuse = (why: string, cause?: unknown): FileError =>
    new FileError(`${path}: cannot be written: ${why}`, { cause });
  const present = await stat(path).catch(() => undefined);
  if (present?.isDirectory()) throw refuse("it is a folder; give the path of a file");
  const folder = dirname(path);
  const status = await stat(folder).catch(() => undefined);
  if (status === undefined) throw refuse(`there is no folder ${folder}; make it or choose another path`);
  if (!status.isDirectory()) throw refuse(`${folder} is not a folder; choose another path`);
  await access(folder, constants.W_OK).catch((cause: unknown) => {
    throw refuse(`permission denied in ${folder}; choose another path or change the permissions`, cause);
  });
}
