/**
 * @file The start of a `.npy` file: magic, version, length, dictionary; versions 1, 2 and 3 of numpy's format
 * (numpy.lib.format).
 */

import { FileError } from "../errors.ts";
import { byteSize, type StorageType } from "../types/index.ts";
import { type ByteSource, readExactly } from "./bytes.ts";
import { type ByteOrder, descrOf, elementFormat } from "./descr.ts";
import { type HeaderFields, parseHeaderLiteral } from "./header-literal.ts";

/** Which index varies fastest in memory: the last (C, row-major) or the first (Fortran, column-major). */
export type AxisOrder = "row-major" | "column-major";

/** Version of the file format. */
export type NpyVersion = 1 | 2 | 3;

/** What the header says, word for word. */
export interface NpyHeader extends HeaderFields {
  readonly version: NpyVersion;
  /** Where the elements begin, in bytes from the start of the file. */
  readonly dataOffset: number;
}

/** What a file holds, checked against its size. */
export interface NpyDescription<T extends StorageType = StorageType> {
  readonly type: T;
  readonly shape: readonly number[];
  readonly order: AxisOrder;
  /** Distance of neighbours along each axis, in elements. */
  readonly strides: readonly number[];
  /** Number of elements, the product of the shape. */
  readonly elements: number;
  readonly byteOrder: ByteOrder;
  readonly version: NpyVersion;
  /** Where the elements begin, in bytes from the start of the file. */
  readonly dataOffset: number;
  /** What to know about the reading chosen, where it is not plain. */
  readonly note?: string;
}

/** Choices in reading. */
export interface NpyReadOptions {
  /**
   * The type of elements that numpy calls opaque, `"<V2"` or `"|V1"`: so ml_dtypes saves bfloat16 and float8_e4m3fn.
   * Without it such files are refused; it does not matter for others.
   */
  readonly opaqueAs?: StorageType;
}

/** `\x93NUMPY`, as bytes. */
const magic: readonly number[] = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];
/** Bytes before the dictionary: magic, version, and a length of 2 bytes (version 1) or 4. */
const longestPreamble = 12;
/** Longest dictionary that is read. With at most 64 dimensions an honest one has some 1,400 characters. */
const longestDictionary = 65535;

interface Preamble {
  readonly version: NpyVersion;
  readonly start: number;
  readonly length: number;
}

function parsePreamble(bytes: Uint8Array, file: string): Preamble {
  if (bytes.length < 10 || magic.some((byte, i) => bytes[i] !== byte)) {
    throw new FileError(
      `${file}: not a .npy file (it does not begin with \\x93NUMPY); write one with numpy.save. ` +
        "A .npz archive holds .npy files and must be unpacked",
    );
  }
  const version = bytes[6]!;
  if ((version !== 1 && version !== 2 && version !== 3) || bytes[7] !== 0) {
    throw new FileError(
      `${file}: .npy format ${version}.${bytes[7]} is not known; 1.0, 2.0 and 3.0 are, which numpy.save writes`,
    );
  }
  const start = version === 1 ? 10 : 12;
  if (bytes.length < start) throw truncated(file, start, bytes.length);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = version === 1 ? view.getUint16(8, true) : view.getUint32(8, true);
  if (length > longestDictionary) {
    throw new FileError(
      `${file}: the .npy header claims ${length} bytes, more than the ${longestDictionary} that are read; ` +
        "save a plain numeric array with numpy.save",
    );
  }
  return { version, start, length };
}

function truncated(file: string, needed: number, present: number): FileError {
  return new FileError(
    `${file}: the file is truncated: its .npy header needs ${needed} bytes, ${present} are there; copy or save it anew`,
  );
}

/**
 * Reads the header at the start of `bytes`, which must hold all of it and may hold more.
 *
 * @param file what to call the file in messages
 * @throws FileError for what is no `.npy` header or ends too early
 */
export function parseHeader(bytes: Uint8Array, file: string = "npy data"): NpyHeader {
  const { version, start, length } = parsePreamble(bytes, file);
  const dataOffset = start + length;
  if (bytes.length < dataOffset) throw truncated(file, dataOffset, bytes.length);
  const text = decodeText(bytes.subarray(start, dataOffset), version, file);
  return { version, ...parseHeaderLiteral(text, file), dataOffset };
}

/** Latin-1 up to version 2, UTF-8 from version 3 on. */
function decodeText(bytes: Uint8Array, version: NpyVersion, file: string): string {
  if (version < 3) return Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new FileError(`${file}: the .npy header is not valid UTF-8; save the array anew with numpy.save`, {
      cause,
    });
  }
}

/**
 * Reads and checks the header of a source: type, shape and whether all elements are there. Reads only the header.
 * Bytes after the last element are left alone, as numpy does.
 *
 * @throws FileError naming the source, what is wrong and what would work
 */
export async function describeNpy(source: ByteSource, options: NpyReadOptions = {}): Promise<NpyDescription> {
  const preamble = await readExactly(source, 0, Math.min(longestPreamble, source.size));
  const { start, length } = parsePreamble(preamble, source.name);
  if (start + length > source.size) throw truncated(source.name, start + length, source.size);
  const header = parseHeader(await readExactly(source, 0, start + length), source.name);
  return describeHeader(header, source, options);
}

function describeHeader(header: NpyHeader, source: ByteSource, options: NpyReadOptions): NpyDescription {
  const { shape, version, dataOffset } = header;
  const format = elementFormat(header.descr, options.opaqueAs);
  if ("problem" in format) throw new FileError(`${source.name}: ${format.problem}; ${format.remedy}`);
  const order = header.fortranOrder ? "column-major" : "row-major";
  const elements = countElements(shape);
  const needed = elements * byteSize(format.type);
  const present = source.size - dataOffset;
  if (!(needed <= present)) {
    throw new FileError(
      `${source.name}: the shape [${shape.join(", ")}] of ${format.type.name} needs ${needed} bytes after the header, ` +
        `${present} are there; the file is truncated, copy or save it anew`,
    );
  }
  return { ...format, shape, order, strides: stridesOf(shape, order), elements, version, dataOffset };
}

/** The product of a shape; infinity where it (zeros left out) is beyond what a double counts. */
export function countElements(shape: readonly number[]): number {
  const product = shape.reduce((sum, size) => sum * Math.max(size, 1), 1);
  if (product > Number.MAX_SAFE_INTEGER / 8) return Infinity;
  return shape.includes(0) ? 0 : product;
}

/** Strides in elements of an array without gaps. */
export function stridesOf(shape: readonly number[], order: AxisOrder): readonly number[] {
  const strides = new Array<number>(shape.length);
  let stride = 1;
  for (let i = 0; i < shape.length; i++) {
    const axis = order === "column-major" ? i : shape.length - 1 - i;
    strides[axis] = stride;
    stride *= Math.max(shape[axis]!, 1);
  }
  return strides;
}

/** What a header to be written says. */
export interface NewHeader {
  readonly type: StorageType;
  readonly shape: readonly number[];
  readonly order: AxisOrder;
  readonly byteOrder: ByteOrder;
  readonly version: NpyVersion;
}

/** Elements begin at a multiple of this, so that the file can be mapped into memory. */
const dataAlignment = 64;

/** The bytes of a header, padded with spaces as numpy pads it. */
export function formatHeader(header: NewHeader): Uint8Array {
  const { type, shape, order, byteOrder, version } = header;
  const tuple = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
  const fortranOrder = order === "column-major" ? "True" : "False";
  const dictionary = `{'descr': '${descrOf(type, byteOrder)}', 'fortran_order': ${fortranOrder}, 'shape': ${tuple}, }`;
  const start = version === 1 ? 10 : 12;
  const size = Math.ceil((start + dictionary.length + 1) / dataAlignment) * dataAlignment;
  const bytes = new Uint8Array(size).fill(0x20);
  bytes.set([...magic, version, 0]);
  const view = new DataView(bytes.buffer);
  if (version === 1) view.setUint16(8, size - start, true);
  else view.setUint32(8, size - start, true);
  for (let i = 0; i < dictionary.length; i++) bytes[start + i] = dictionary.charCodeAt(i);
  bytes[size - 1] = 0x0a;
  return bytes;
}
