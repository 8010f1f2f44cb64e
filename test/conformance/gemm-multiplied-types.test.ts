import { bf16, e4m3, f16, f32, i8, TypeMismatchError } from "tilewright";
import { bound, type GemmOptions, planGemm, type Transform } from "tilewright/gemm";
import { expect, it } from "vitest";
import { onEveryDevice } from "./table.ts";

const half: Transform = (x) => x.to(f16).mul(0.5);
const brain: Transform = (x) => x.to(bf16);
const wide: Transform = (x) => x.to(f32).mul(0.5);

onEveryDevice((device) => {
  /** A of small whole numbers times B of ones: sums of A's rows. */
  const product = async (a: typeof f32, b: typeof f32, options: GemmOptions) => {
    const values = [1, 2, 3, -4, 5, 6];
    using left = device().array(a, [2, 3], values);
    using right = device().array(b, [3, 2], new Array(6).fill(1));
    using plan = await planGemm(left, right, { type: f32, ...options });
    plan.run();
    const sums = [...(await plan.d.read())].map(Number);
    plan.d.dispose();
    return { types: plan.kind.types, sums: [sums[0], sums[2]] };
  };

  it("a transform decides in which type an operand is multiplied", async () => {
    const bytes = await product(i8 as never, f16 as never, { transforms: { a: { globalToShared: half } } });
    expect([bytes.types.a, bytes.types.b, bytes.sums]).toEqual([f16, f16, [3, 3.5]]);
    const both = { a: { globalToShared: brain }, b: { globalToShared: brain } };
    const rounded = await product(f32, f32, { transforms: both });
    expect([rounded.types.a, rounded.types.b, rounded.sums]).toEqual([bf16, bf16, [6, 7]]);
    const widened = await product(e4m3 as never, bf16 as never, {
      transforms: { a: { globalToShared: brain } },
    });
    expect([widened.types.a, widened.types.b]).toEqual([bf16, bf16]);
    // What is wider than the storage is so for the transform's own arithmetic.
    const kept = await product(f16 as never, f16 as never, { transforms: { a: { globalToShared: wide } } });
    expect([kept.types.a, kept.sums]).toEqual([f16, [3, 3.5]]);
  });

  it("scales of rows go with it", async () => {
    using factors = device().array(f16, [2], [0.5, 2]);
    const scaled = bound((x, { row }, [v]) => x.to(f16).mul(v.loadAt(row)), factors);
    const { types, sums } = await product(i8 as never, f16 as never, {
      transforms: { a: { globalToShared: scaled } },
    });
    expect([types.a, sums]).toEqual([f16, [3, 14]]);
  });

  it("compute names the type for both", async () => {
    const { types, sums } = await product(f32, f32, { compute: bf16 });
    expect([types.a, types.b, types.accumulator, sums]).toEqual([bf16, bf16, f32, [6, 7]]);
  });

  it("kinds of numbers that do not meet are refused", async () => {
    const truth: Transform = (x) => x.gt(0) as never;
    await expect(product(i8 as never, f16 as never, {})).rejects.toThrow(/a transform such as/);
    const work = product(f32, f32, { transforms: { a: { globalToShared: truth } } });
    await expect(work).rejects.toThrow(TypeMismatchError);
  });
});
