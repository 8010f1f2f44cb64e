/**
 * Makes the matrices of `tilewright demo`: normal random numbers, the same ones every time.
 *
 *   npx tsx --conditions=tilewright-source examples/make-data.ts [folder]
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { encode, f16 } from "tilewright";
import { memorySink, writeNpy } from "tilewright/npy";

/** Uniform numbers in (0, 1] from a seed (Mulberry32, by Tommy Ettinger). */
function uniformNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (((mixed ^ (mixed >>> 14)) >>> 0) + 1) / 2 ** 32;
  };
}

/** Standard normal numbers (Box and Muller). */
function normalNumbers(count: number, seed: number): number[] {
  const uniform = uniformNumbers(seed);
  return Array.from({ length: count }, () => {
    const radius = Math.sqrt(-2 * Math.log(uniform()));
    return radius * Math.cos(2 * Math.PI * uniform());
  });
}

async function save(path: string, rows: number, columns: number, seed: number): Promise<void> {
  const sink = memorySink();
  const data = encode(f16, normalNumbers(rows * columns, seed));
  await writeNpy(sink, { type: f16, shape: [rows, columns], data });
  writeFileSync(path, sink.bytes());
  console.log(`${path}: f16 [${rows}, ${columns}]`);
}

const folder = process.argv[2] ?? join(import.meta.dirname, "data");
await save(join(folder, "a.npy"), 129, 200, 1);
await save(join(folder, "b.npy"), 200, 97, 2);
