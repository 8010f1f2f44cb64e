/**
 * @file What a bundler or minifier rewrites: kernels with helpers, closures and a class, and a product with functions of
 * the author's. Says what text they became and what numbers they made.
 */
import { f16, f32, i32, open } from "tilewright";
import { gelu, planGemm, type Transform } from "tilewright/gemm";
import {
  block,
  type F32,
  type I32,
  input,
  kernel,
  loop,
  output,
  shared,
  subgroup,
  thread,
  type Value,
  variable,
  when,
} from "tilewright/lang";
import { emit } from "../../../src/runtime/compile.ts";
import { nvidiaTarget } from "../../../src/target/nvidia.ts";

const threads = 64;

/** Keeps the largest value and where it was. */
class Champion {
  readonly value = variable(f32, Number.NEGATIVE_INFINITY);
  readonly place = variable(i32, -1);
  meet(value: Value<F32>, place: Value<I32>): void {
    when(value.gt(this.value.value), () => {
      this.value.value = value;
      this.place.value = place;
    });
  }
}

function weighted(value: Value<F32>, weight = 0.5): Value<F32> {
  const square = (x: Value<F32>): Value<F32> => x.mul(x);
  return square(value).mul(weight).sub(value);
}

const largest = kernel("largest", {
  params: { x: input(f32), n: i32, y: output(f32), at: output(i32) },
  block: threads,
  body({ x, n, y, at }) {
    const champion = new Champion();
    loop({ from: thread.index, to: n, step: threads }, (i) => champion.meet(weighted(x.load(i)), i));
    const values = shared(f32, threads);
    values.store(thread.index, champion.value.value);
    block.barrier();
    const sum = variable(f32, 0);
    for (const step of [0, 1, 2, 3]) {
      sum.value = sum.value.add(values.load(thread.index.add(step * 16).floorMod(threads)));
    }
    y.store(thread.index, subgroup.sum(sum.value));
    at.store(thread.index, champion.place.value);
  },
});

const tilted: Transform = (x, { row, column }) => x.to(f32).mul(2).add(row.sub(column).to(f32));

/** Texts and numbers. */
export interface Outcome {
  readonly texts: Readonly<Record<string, string>>;
  readonly numbers: readonly (readonly number[])[];
}

export async function evaluate(): Promise<Outcome> {
  const device = await open("simulator");
  const count = 200;
  const x = device.array(
    f32,
    [count],
    Array.from({ length: count }, (_, i) => ((i * 37) % 101) / 7 - 5),
  );
  const y = device.array(f32, [threads]);
  const at = device.array(i32, [threads]);
  await device.run(largest, { blocks: 1, args: { x, n: count, y, at } });

  const a = device.array(
    f16,
    [20, 24],
    Array.from({ length: 480 }, (_, i) => (i % 13) / 4 - 1),
  );
  const b = device.array(
    f16,
    [24, 18],
    Array.from({ length: 432 }, (_, i) => (i % 11) / 8 - 0.5),
  );
  const plan = await planGemm(a, b, {
    type: f32,
    transforms: { a: { globalToShared: tilted } },
    epilogue: [gelu, (value) => value.mul(3)],
  });
  plan.run();
  const numbers = [await y.read(), await at.read(), await plan.d.read()].map((list) =>
    Array.from(list, Number),
  );
  const texts = {
    simulator: (await device.compile(largest)).text,
    ptx: emit(largest as never, nvidiaTarget("sm_80")).text,
    product: plan.compiled!.text,
    "product in PTX": emit(plan.compiled!.kernel, nvidiaTarget("sm_90")).text,
  };
  device.dispose();
  return { texts, numbers };
}
