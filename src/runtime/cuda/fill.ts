/** @file Filling memory with a repeated 32-bit word. */
import { ArgumentError } from "../../errors.ts";
import type { DriverContext } from "./context.ts";
import type { Address } from "./driver-library.ts";

/**
 * Enqueues the fill of `bytes` bytes from `target` on with `pattern`, lowest byte first, cut off at the end. Any
 * alignment works; most words are written as such. The context must be current.
 */
export function fillRange(context: DriverContext, target: Address, bytes: number, pattern: number): void {
  if (!Number.isInteger(pattern) || pattern < -(2 ** 31) || pattern >= 2 ** 32) {
    throw new ArgumentError(`A fill's pattern is a 32-bit word; ${pattern} was given.`);
  }
  if (bytes === 0) return;
  const { library, stream } = context;
  const word = pattern >>> 0;
  const set = (code: number): void => context.check(code, `Filling ${bytes} bytes`);
  const byteAt = (index: number): number => (word >>> (8 * (index % 4))) & 0xff;
  if (word === (word & 0xff) * 0x01010101) {
    set(library.cuMemsetD8Async(target, word & 0xff, bytes, stream));
    return;
  }
  if (word === (word & 0xffff) * 0x00010001 && target % 2 === 0 && bytes % 2 === 0) {
    set(library.cuMemsetD16Async(target, word & 0xffff, bytes / 2, stream));
    return;
  }
  const head = Math.min(bytes, (4 - (target % 4)) % 4);
  const words = Math.floor((bytes - head) / 4);
  for (let index = 0; index < head; index++) {
    set(library.cuMemsetD8Async(target + index, byteAt(index), 1, stream));
  }
  if (words > 0) {
    const turned = rotateRight(word, 8 * head);
    set(library.cuMemsetD32Async(target + head, turned, words, stream));
  }
  for (let index = head + 4 * words; index < bytes; index++) {
    set(library.cuMemsetD8Async(target + index, byteAt(index), 1, stream));
  }
}

function rotateRight(word: number, bits: number): number {
  return bits === 0 ? word : ((word >>> bits) | (word << (32 - bits))) >>> 0;
}
