/**
 * @file Content hashes of texts, synchronous and the same in every environment. The mixing is MurmurHash3's (Austin
 * Appleby, x86, 128 bits) over UTF-16 code units, with the last block padded. Not for secrets.
 */
import type { KernelIr } from "./nodes.ts";
import { print } from "./printer.ts";

const c1 = 0x239b961b;
const c2 = 0xab0e9789 | 0;
const c3 = 0x38b34ae5;
const c4 = 0xa1e38b93 | 0;

function rotate(x: number, count: number): number {
  return (x << count) | (x >>> (32 - count));
}

/** MurmurHash3's finaliser: every input bit flips every output bit about half the time. */
function mix(x: number): number {
  let h = x ^ (x >>> 16);
  h = Math.imul(h, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  return h ^ (h >>> 16);
}

function hex(x: number): string {
  return (x >>> 0).toString(16).padStart(8, "0");
}

/** 128-bit hash of a text's UTF-16 code units, as 32 hexadecimal digits. */
export function hashText(text: string): string {
  let h1 = 0;
  let h2 = 0;
  let h3 = 0;
  let h4 = 0;
  // charCodeAt past the end is NaN, which the bit operations turn into 0: the last block is padded with zeros, and the
  // length, mixed in below, tells texts apart that differ in the padding alone.
  const pair = (at: number): number => text.charCodeAt(at) | (text.charCodeAt(at + 1) << 16);
  for (let at = 0; at < text.length; at += 8) {
    h1 ^= Math.imul(rotate(Math.imul(pair(at), c1), 15), c2);
    h1 = (Math.imul(rotate(h1, 19) + h2, 5) + 0x561ccd1b) | 0;
    h2 ^= Math.imul(rotate(Math.imul(pair(at + 2), c2), 16), c3);
    h2 = (Math.imul(rotate(h2, 17) + h3, 5) + 0x0bcaa747) | 0;
    h3 ^= Math.imul(rotate(Math.imul(pair(at + 4), c3), 17), c4);
    h3 = (Math.imul(rotate(h3, 15) + h4, 5) + 0x96cd1c35) | 0;
    h4 ^= Math.imul(rotate(Math.imul(pair(at + 6), c4), 18), c1);
    h4 = (Math.imul(rotate(h4, 13) + h1, 5) + 0x32ac3b17) | 0;
  }
  h1 ^= text.length;
  h2 ^= text.length;
  h3 ^= text.length;
  h4 ^= text.length;
  h1 = (h1 + h2 + h3 + h4) | 0;
  h2 = (h2 + h1) | 0;
  h3 = (h3 + h1) | 0;
  h4 = (h4 + h1) | 0;
  h1 = mix(h1);
  h2 = mix(h2);
  h3 = mix(h3);
  h4 = mix(h4);
  h1 = (h1 + h2 + h3 + h4) | 0;
  h2 = (h2 + h1) | 0;
  h3 = (h3 + h1) | 0;
  h4 = (h4 + h1) | 0;
  return hex(h1) + hex(h2) + hex(h3) + hex(h4);
}

/** Hash of a kernel's meaning: of its printed text, hence without source positions and value ids. */
export function hashKernel(kernel: KernelIr): string {
  return hashText(print(kernel));
}
