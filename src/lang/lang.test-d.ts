import { assertType, expectTypeOf, it } from "vitest";
import {
  type ArrayArgument,
  type Bool,
  block,
  constant,
  type F16,
  type F32,
  type FloatType,
  f16,
  f32,
  type HostArguments,
  type I32,
  type Index,
  i32,
  i64,
  inout,
  input,
  type Kernel,
  kernel,
  loop,
  type Operand,
  output,
  select,
  sqrt,
  tensorMap,
  thread,
  type U32,
  u32,
  type Value,
  type Vector,
  variable,
  vector,
  when,
} from "./index.ts";

declare const x: Value<F32>;
declare const y: Value<F32>;
declare const half: Value<F16>;
declare const n: Value<I32>;
declare const unsigned: Value<U32>;
declare const position: Value<Index>;
declare const condition: Value<Bool>;

it("operators take the same type or a number, and give the same type", () => {
  expectTypeOf(x.add(y)).toEqualTypeOf<Value<F32>>();
  expectTypeOf(x.mul(2).fma(y, 1)).toEqualTypeOf<Value<F32>>();
  expectTypeOf(n.rem(3)).toEqualTypeOf<Value<I32>>();
  expectTypeOf(x.lt(0)).toEqualTypeOf<Value<Bool>>();
  expectTypeOf(half.to(f32)).toEqualTypeOf<Value<F32>>();
  assertType<Operand<F32>>(3);
  // @ts-expect-error: f16 is no f32
  x.add(half);
  // @ts-expect-error: nor is a text
  x.add("1");
  // @ts-expect-error: u32 is no i32
  n.add(unsigned);
  // @ts-expect-error: comparisons convert nothing either
  x.lt(n);
});

it("operators exist where the type has them", () => {
  // @ts-expect-error: floats do not shift
  x.shiftLeft(1);
  // @ts-expect-error: floats have no bits to combine
  x.and(1);
  // @ts-expect-error: floats have no remainder
  x.rem(2);
  // @ts-expect-error: conditions do not add
  condition.add(1);
  // @ts-expect-error: integers are never NaN
  n.isNaN();
  expectTypeOf(condition.and(true).not()).toEqualTypeOf<Value<Bool>>();
  // @ts-expect-error: roots are of floats
  sqrt(n);
});

it("a value is no condition and no promise", async () => {
  // @ts-expect-error: JavaScript cannot test it
  if (x.lt(y)) thread.x;
  // @ts-expect-error: nor choose by it
  x.lt(y) ? 1 : 2;
  // @ts-expect-error: nor negate it, nor combine it
  if (x.lt(y) && n.lt(3)) thread.x;
  // @ts-expect-error: a value that was awaited is none
  (await x).add(1);
  // @ts-expect-error: nor add it
  x + 1;
  // @ts-expect-error: nor compare it
  n < 3;
  // @ts-expect-error: nor index with it
  [1, 2, 3][n];
  when(x.lt(y), () => {}).otherwise(() => {});
  // @ts-expect-error: a number is no condition
  when(n, () => {});
});

it("Value is invariant in its type", () => {
  // @ts-expect-error: not wider
  assertType<Value<FloatType>>(x);
  // @ts-expect-error: not narrower
  assertType<Value<F32>>(null as unknown as Value<FloatType>);
});

it("select, vectors and variables keep the type", () => {
  expectTypeOf(select(condition, x, 0)).toEqualTypeOf<Value<F32>>();
  expectTypeOf(select(condition, 0, n)).toEqualTypeOf<Value<I32>>();
  // @ts-expect-error: two types
  select(condition, x, n);
  expectTypeOf(variable(f16, 0).value).toEqualTypeOf<Value<F16>>();
  const sum = variable(f32, 0);
  sum.value = 1;
  sum.value = x;
  // @ts-expect-error: f16 is no f32
  sum.value = half;
  expectTypeOf(vector(x, y).to(f16)).toEqualTypeOf<Vector<F16>>();
  // @ts-expect-error: two types
  vector(x, n);
  expectTypeOf(constant(f32, 1)).toEqualTypeOf<Value<F32>>();
});

it("loops count in the type of their bounds", () => {
  loop(4, (i) => expectTypeOf(i).toEqualTypeOf<Value<I32>>());
  loop(n, (i) => expectTypeOf(i).toEqualTypeOf<Value<I32>>());
  loop({ from: 0, to: position, step: 4 }, (i) => expectTypeOf(i).toEqualTypeOf<Value<Index>>());
  // @ts-expect-error: not in floats
  loop(x, () => {});
});

const saxpy = kernel("saxpy", {
  params: {
    x: input(f32),
    y: inout(f32, 2),
    alpha: f32,
    count: i32,
    wide: i64,
    a: tensorMap(f16, [64, 64], 128),
  },
  block: 256,
  body({ x, y, alpha, a }) {
    expectTypeOf(x.load(thread.index)).toEqualTypeOf<Value<F32>>();
    expectTypeOf(alpha).toEqualTypeOf<Value<F32>>();
    expectTypeOf(y.size(0)).toEqualTypeOf<Value<I32>>();
    expectTypeOf(y.stride(0)).toEqualTypeOf<Value<Index>>();
    expectTypeOf(a.boxBytes).toEqualTypeOf<number>();
    y.store(0, 1, x.load(3));
    // @ts-expect-error: f16 into f32
    y.storeAt(0, half);
  },
});

it("descriptors say what the host passes", () => {
  type Arguments = HostArguments<(typeof saxpy)["params"]>;
  expectTypeOf<Arguments["x"]>().toEqualTypeOf<ArrayArgument<F32>>();
  expectTypeOf<Arguments["a"]>().toEqualTypeOf<ArrayArgument<F16>>();
  expectTypeOf<Arguments["alpha"]>().toEqualTypeOf<number>();
  expectTypeOf<Arguments["wide"]>().toEqualTypeOf<number | bigint>();
  expectTypeOf<keyof Arguments>().toEqualTypeOf<"x" | "y" | "alpha" | "count" | "wide" | "a">();
});

it("generic kernel factories check without casts", () => {
  function scaled<T extends FloatType>(type: T, factor: number) {
    return kernel("scaled", {
      params: { source: input(type), target: output(type) },
      block: 128,
      body({ source, target }) {
        const i = block.id.x.mul(block.size).add(thread.index);
        const sum = variable(type, 0);
        sum.value = sum.value.add(source.load(i).mul(factor));
        when(i.lt(target.size()), () => target.store(i, sum.value.max(0)));
      },
    });
  }
  const made = scaled(f16, 2);
  expectTypeOf<HostArguments<(typeof made)["params"]>["source"]>().toEqualTypeOf<ArrayArgument<F16>>();
  assertType<Kernel>(made);
  void u32;
});
