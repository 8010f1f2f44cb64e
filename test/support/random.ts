/** @file Seeded random numbers for tests. */

/** Numbers in [0, 1): mulberry32, small and the same everywhere. */
export function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Standard normal numbers (Box and Muller). */
export function normals(count: number, seed: number): number[] {
  const random = generator(seed);
  return Array.from(
    { length: count },
    () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()),
  );
}

/** Whole numbers from `least` to below `bound`. */
export function integers(count: number, seed: number, least: number, bound: number): number[] {
  const random = generator(seed);
  return Array.from({ length: count }, () => Math.floor(least + random() * (bound - least)));
}
