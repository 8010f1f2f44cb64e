/**
 * @file Sums of any number of elements on subgroups of any width: within a block, over many blocks in two launches, and
 * over many blocks in one.
 */
import {
  block,
  constant,
  type FloatType,
  f32,
  fence,
  grid,
  type I32,
  i32,
  inout,
  input,
  kernel,
  type LinearArray,
  loop,
  output,
  select,
  shared,
  thread,
  u32,
  type Value,
  variable,
  when,
} from "tilewright/lang";

/** The thread's share of an array's first `count` elements, added up: those from `first` on, `step` apart. */
function strided<T extends FloatType>(
  x: LinearArray<T>,
  first: Value<I32>,
  count: Value<I32>,
  step: Value<I32> | number,
): Value<T> {
  const sum = variable(x.type, 0);
  loop({ from: first, to: count, step }, (i) => {
    // Partial sums of other blocks may be younger than this block's caches.
    sum.value = sum.value.add(x.loadAt(i, { cache: "volatile" }));
  });
  return sum.value;
}

/** Each block sums its share of `x` into its place of `partial`; one block sums all. */
export function blockSums<T extends FloatType>(type: T, threads: number) {
  return kernel("block_sums", {
    params: { x: input(type), partial: output(type) },
    block: threads,
    body({ x, partial }) {
      const first = block.id.x.mul(block.size).add(thread.index);
      const sum = block.sum(strided(x, first, x.size(), grid.size.x.mul(block.size)));
      when(thread.index.eq(0), () => partial.store(block.id.x, sum));
    },
  });
}

/** The sum of `x` in one launch: the block that is last to finish adds up what the others left. `arrived` starts at 0. */
export const totalSum = kernel("total_sum", {
  params: { x: input(f32), partial: inout(f32), arrived: inout(u32), total: output(f32) },
  block: 128,
  body({ x, partial, arrived, total }) {
    const blocks = grid.size.x;
    const first = block.id.x.mul(block.size).add(thread.index);
    const sum = block.sum(strided(x, first, x.size(), blocks.mul(block.size)));
    const turn = shared(u32, 1);
    when(thread.index.eq(0), () => {
      partial.store(block.id.x, sum);
      fence("device");
      turn.store(0, arrived.atomicAt("add", 0, 1, { order: "acquireRelease" }));
    });
    block.barrier();
    const isLast = turn.load(0).to(i32).eq(blocks.sub(1));
    // All blocks go this way together, so that the barriers in the sum are reached by all threads; the rest add nothing.
    const left = select(isLast, blocks, constant(i32, 0));
    const all = block.sum(strided(partial, thread.index, left, block.size));
    when(isLast.and(thread.index.eq(0)), () => total.store(0, all));
  },
});
