/** @file Where bytes come from and go to: the little that reading and writing need of files, memory or the network. */

import { FileError } from "../errors.ts";

/** Bytes of known number, readable at any place. */
export interface ByteSource {
  /** What to call it in messages: a path, a URL. */
  readonly name: string;
  /** Number of bytes. */
  readonly size: number;
  /** The `length` bytes from `offset` on. The result may be a view of memory that is not the caller's to change. */
  read(offset: number, length: number): Promise<Uint8Array>;
}

/** Takes bytes in order. */
export interface ByteSink {
  /** Takes all of `bytes`, which may change once the promise is settled. */
  write(bytes: Uint8Array): Promise<void>;
}

/** Bytes in memory as a source, without a copy. */
export function memorySource(bytes: Uint8Array, name: string = "npy data in memory"): ByteSource {
  return {
    name,
    size: bytes.length,
    read: (offset, length) => Promise.resolve(bytes.subarray(offset, offset + length)),
  };
}

/** A sink that gathers bytes in memory. */
export interface MemorySink extends ByteSink {
  /** Everything written so far, in one new array. */
  bytes(): Uint8Array;
}

/** An empty {@link MemorySink}. */
export function memorySink(): MemorySink {
  const parts: Uint8Array[] = [];
  return {
    write: (bytes) => {
      parts.push(bytes.slice());
      return Promise.resolve();
    },
    bytes: () => joined(parts),
  };
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}

/** Reads exactly so many bytes. @throws FileError when the source gives another number */
export async function readExactly(source: ByteSource, offset: number, length: number): Promise<Uint8Array> {
  const bytes = await source.read(offset, length);
  if (bytes.length === length) return bytes;
  throw new FileError(
    `${source.name}: asked for ${length} bytes at ${offset}, got ${bytes.length}; ` +
      "the file changed while it was read, read it again",
  );
}

/** Reverses the bytes of each element of `size` bytes, in place. */
export function swapBytes(bytes: Uint8Array, size: number): void {
  if (size === 1) return;
  for (let start = 0; start + size <= bytes.length; start += size) {
    for (let low = start, high = start + size - 1; low < high; low++, high--) {
      const byte = bytes[low]!;
      bytes[low] = bytes[high]!;
      bytes[high] = byte;
    }
  }
}
