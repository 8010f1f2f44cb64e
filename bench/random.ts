/** @file Inputs: normal random numbers, the same on every run. Constant or small-integer inputs flatter a GPU's clock. */

import type { BackendBuffer } from "../src/runtime/backend.ts";
import type { CudaBackend } from "../src/runtime/cuda/index.ts";
import { encode } from "../src/types/host.ts";
import { byteSize, isFloat, type StorageType } from "../src/types/types.ts";

/** Uniform numbers in [0, 1): SplitMix32. */
export function uniform(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let z = state ^ (state >>> 16);
    z = Math.imul(z, 0x21f0aaad);
    z ^= z >>> 15;
    z = Math.imul(z, 0x735a2d97);
    return ((z ^ (z >>> 15)) >>> 0) / 2 ** 32;
  };
}

/** Numbers of mean 0 and standard deviation 1 (Box and Muller). */
export function normalValues(count: number, seed: number): Float64Array {
  const next = uniform(seed);
  const values = new Float64Array(count);
  for (let i = 0; i < count; i += 2) {
    const radius = Math.sqrt(-2 * Math.log(1 - next()));
    const angle = 2 * Math.PI * next();
    values[i] = radius * Math.cos(angle);
    if (i + 1 < count) values[i + 1] = radius * Math.sin(angle);
  }
  return values;
}

/** Integers as large as fit: three standard deviations fill the range of `bits` bits. */
function integers(values: Float64Array, signed: boolean, bits: number): Float64Array {
  const half = 2 ** (Math.min(bits, 16) - 1);
  return values.map((value) => {
    const scaled = Math.round((value * half) / 3);
    const clamped = Math.max(-half, Math.min(half - 1, scaled));
    return signed ? clamped : clamped + half;
  });
}

/** Distinct values in a large array; a prime, so that no two rows of a matrix are equal for long. */
const distinct = 1_000_003;

/** A device array of `count` normal random elements; integers fill the range of their type. The caller frees it. */
export function randomBuffer(
  backend: CudaBackend,
  type: StorageType,
  count: number,
  seed: number,
  scale = 1,
): BackendBuffer {
  const normal = normalValues(Math.min(count, distinct), seed).map((value) => value * scale);
  const values = isFloat(type) ? normal : integers(normal, type.class === "signed", type.bits);
  const raw =
    type.bits === 64 && !isFloat(type) ? encode(type, Array.from(values, BigInt)) : encode(type, values);
  const bytes = count * byteSize(type);
  const buffer = backend.allocate(bytes);
  backend.write(buffer, 0, new Uint8Array(raw.buffer, raw.byteOffset, raw.byteLength));
  for (let filled = raw.byteLength; filled < bytes; filled *= 2) {
    backend.copy(buffer, 0, buffer, filled, Math.min(filled, bytes - filled));
  }
  return buffer;
}
