/** A matrix product by tiles, in which no index is written by hand. Run it with `npx tsx --conditions=tilewright-source`. */
import { open } from "tilewright";
import { block, f32, input, kernel, loop, output, shared, thread, variables, vector } from "tilewright/lang";
import { linearise, parallelise, subdivide, tile, translate } from "tilewright/tile";

/** What a block computes, what it copies to shared memory at a time, and what of it one thread computes. */
const blockTile = tile({ M: 32, N: 64, K: 16 });
const threadTile = { M: 4, N: 4 };
const threads = 128;

/** d = a · b, for sizes that the block tile divides. */
const tiledProduct = kernel("tiled_product", {
  params: { a: input(f32, 2), b: input(f32, 2), d: output(f32, 2) },
  block: threads,
  body({ a, b, d }) {
    const { size } = blockTile;
    const stagedA = shared(f32, [size.M, size.K]);
    const stagedB = shared(f32, [size.K, size.N]);
    const corner = { M: block.id.y.mul(size.M), N: block.id.x.mul(size.N) };
    const mine = subdivide(blockTile, threadTile, thread.index, threads, { fastest: "N" });
    const rows = parallelise(mine, { M: 1 }, 0, 1);
    const sums = rows.map(() => variables(f32, threadTile.N, 0));

    loop({ to: a.size(1), step: size.K }, (k) => {
      // All threads share the copies: neighbours take neighbouring fours of numbers.
      for (const four of parallelise(blockTile.MK, { M: 1, K: 4 }, thread.index, threads)) {
        const source = translate(four, { M: corner.M, K: k });
        stagedA.storeVectorAt(linearise(four, size.K), a.loadVectorAt(4, linearise(source, a.stride(0))));
      }
      for (const four of parallelise(blockTile.KN, { K: 1, N: 4 }, thread.index, threads)) {
        const source = translate(four, { K: k, N: corner.N });
        stagedB.storeVectorAt(linearise(four, size.N), b.loadVectorAt(4, linearise(source, b.stride(0))));
      }
      block.barrier();
      for (const step of parallelise(mine, { K: 1 }, 0, 1)) {
        const right = stagedB.loadVectorAt(4, linearise(step.KN, size.N)).elements();
        parallelise(step, { M: 1 }, 0, 1).forEach((row, m) => {
          const left = stagedA.loadAt(linearise(row.MK, size.K));
          right.forEach((value, n) => {
            const sum = sums[m]![n]!;
            sum.value = left.fma(value, sum.value);
          });
        });
      }
      block.barrier();
    });

    rows.forEach((row, m) => {
      const place = linearise(translate(row, corner).MN, d.stride(0));
      d.storeVectorAt(place, vector(...sums[m]!.map((sum) => sum.value)));
    });
  },
});

const [m, n, k] = [64, 128, 48];
const left = Array.from({ length: m * k }, (_, i) => Math.sin(i));
const right = Array.from({ length: k * n }, (_, i) => Math.cos(i));

await using device = await open();
using a = device.array(f32, [m, k], left);
using b = device.array(f32, [k, n], right);
using d = device.empty(f32, [m, n]);
await device.run(tiledProduct, { blocks: [n / blockTile.size.N, m / blockTile.size.M], args: { a, b, d } });
const product = await d.read();

let worst = 0;
for (let row = 0; row < m; row++) {
  for (let column = 0; column < n; column++) {
    let sum = 0;
    for (let i = 0; i < k; i++) sum += left[row * k + i]! * right[i * n + column]!;
    worst = Math.max(worst, Math.abs(sum - product[row * n + column]!));
  }
}
console.log(`the first element is ${product[0]?.toFixed(4)}`);
console.log(`${m} x ${n} elements; the largest error is ${worst < 1e-4 ? "below 1e-4" : worst}`);
