/** @file Whatever is wrong with what `gemm` is given is said before a device sees it, with what would work. */
import {
  ArgumentError,
  bf16,
  type Device,
  DisposedError,
  f16,
  f32,
  i8,
  i32,
  i64,
  open,
  ShapeError,
  TypeMismatchError,
  tf32,
  UnsupportedError,
  u32,
} from "tilewright";
import {
  auxiliary,
  fma,
  type GemmOptions,
  gemm,
  maxPlus,
  mmaSync,
  planGemm,
  semiringOperator,
  triangular,
  wmmaSync,
} from "tilewright/gemm";
import { input, kernel, output, thread } from "tilewright/lang";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

let device: Device;
beforeAll(async () => {
  device = await open("simulator");
});
afterAll(() => device.dispose());

type Constructor = abstract new (...args: never) => Error;

/** The promise is rejected with an error of this class and message. */
async function refuses(work: Promise<unknown>, type: Constructor, message: string | RegExp): Promise<void> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(type);
  expect((error as Error).message).toMatch(message);
}

const matrix = (rows: number, columns: number, type: Parameters<Device["array"]>[0] = f16) =>
  device.array(type, [rows, columns]);

describe("transforms", () => {
  it.each([
    [{ a: (x: unknown) => x }, /transforms\.a is a function/],
    [{ e: { globalToShared: (x: unknown) => x } }, /transforms\.e is no operand/],
    [{ a: { sharedToGlobal: (x: unknown) => x } }, /a has no stream sharedToGlobal; .* globalToShared/],
  ])("of no stream: %#", async (transforms, message) => {
    const options = { transforms } as unknown as GemmOptions;
    await refuses(planGemm(matrix(4, 4), matrix(4, 4), options), ArgumentError, message);
  });
});

describe("shapes", () => {
  it("inner dimensions that differ, with the transpose that would fit", async () => {
    await refuses(
      gemm(matrix(4, 5), matrix(6, 7)),
      ShapeError,
      "A is 4 x 5 and B is 6 x 7; A's columns must equal B's rows",
    );
    await refuses(gemm(matrix(4, 5), matrix(7, 5)), ShapeError, "(b.transposed would fit)");
    await refuses(gemm(matrix(5, 4), matrix(5, 7)), ShapeError, "(a.transposed would fit)");
  });
  it("operands that are no matrices", async () => {
    await refuses(
      gemm(device.array(f16, []), matrix(8, 8)),
      ShapeError,
      "A is a matrix (rank 2), a batch of them or a vector; f16[] has rank 0",
    );
  });
  it("batches that do not go together", async () => {
    const batch = (...shape: number[]) => device.array(f16, shape);
    await refuses(
      gemm(batch(2, 8, 8), batch(3, 8, 8)),
      ShapeError,
      "the batches of A (f16[2, 8, 8]) and B (f16[3, 8, 8]) do not go together",
    );
    await refuses(
      gemm(batch(3, 8, 8), matrix(8, 8), { d: matrix(8, 8) }),
      ShapeError,
      "D must be 3 x 8 x 8 like the product; it is f16[8, 8]",
    );
    await refuses(
      gemm(batch(3, 8, 8), matrix(8, 8), { c: batch(2, 8, 8) }),
      ShapeError,
      "C must be 3 x 8 x 8 like the product; it is f16[2, 8, 8]",
    );
    await refuses(
      gemm(batch(3, 8, 8), matrix(8, 8), { d: batch(200).strided([3, 8, 8], [32, 8, 1]) }),
      ShapeError,
      "lines or matrices that hold elements of each other: they overlap",
    );
    await refuses(
      gemm(batch(2, 3, 8, 8), batch(3, 2, 8, 8).permute([1, 0, 2, 3])),
      ShapeError,
      "cannot be walked with one stride for each array",
    );
    const all = batch(6, 8, 8);
    await refuses(
      gemm(all.slice([0, 3]), matrix(8, 8), { d: all.slice([2, 5]) }),
      ArgumentError,
      "D overlaps A",
    );
    await refuses(
      gemm(batch(3, 8, 8), matrix(8, 8), { epilogue: [auxiliary(matrix(8, 8))] }),
      UnsupportedError,
      "writes one array, and every matrix of the batch",
    );
  });
  it("C or D of another shape", async () => {
    const [a, b] = [matrix(4, 5), matrix(5, 6)];
    await refuses(
      gemm(a, b, { c: matrix(6, 4) }),
      ShapeError,
      "C must be 4 x 6 like the product; it is f16[6, 4]",
    );
    await refuses(
      gemm(a, b, { d: matrix(4, 5) }),
      ShapeError,
      "D must be 4 x 6 like the product; it is f16[4, 5]",
    );
    await refuses(
      gemm(a, b, { d: device.array(f16, [24]) }),
      ShapeError,
      "D must be 4 x 6 like the product; it is f16[24]",
    );
  });
  it("extents that are no sizes", () => {
    expect(() => matrix(-1, 4)).toThrow("shape [-1, 4]: extents are whole numbers from 0");
    expect(() => matrix(2.5, 4)).toThrow("shape [2.5, 4]: extents are whole numbers from 0");
    expect(() => matrix(Number.NaN, 4)).toThrow("extents are whole numbers from 0");
  });
  it("a matrix without neighbouring elements", async () => {
    const every = matrix(8, 16).slice([], [0, 16, 2]);
    await refuses(
      gemm(every, matrix(8, 8)),
      ShapeError,
      /A \(f16\[8, 8\], strides 16, 2\) has neighbouring elements along neither dimension; copy\(\)/,
    );
  });
  it("a strided view where a kernel takes a contiguous array", async () => {
    const twice = kernel("twice", {
      params: { x: input(f32), y: output(f32) },
      block: 32,
      body: ({ x, y }) => y.store(thread.index, x.load(thread.index).mul(2)),
    });
    const args = { x: matrix(32, 2, f32).column(0) as never, y: device.array(f32, [32]) };
    await refuses(device.run(twice, { blocks: 1, args }), ShapeError, /contiguous/);
  });
  it("a D whose lines run into each other", async () => {
    const d = device.array(f16, [64]).strided([4, 6], [3, 1]);
    await refuses(gemm(matrix(4, 5), matrix(5, 6), { d }), ShapeError, "they overlap");
  });
});

describe("types", () => {
  it("floats with integers", async () => {
    const work = gemm(matrix(4, 4), matrix(4, 4, i8));
    await refuses(work, TypeMismatchError, /A is f16 and B is i8; convert\(\) of tilewright\/array-ops/);
  });
  it("integers of different widths", async () => {
    await refuses(gemm(matrix(4, 4, i32), matrix(4, 4, i64)), TypeMismatchError, "A is i32 and B is i64");
    await refuses(gemm(matrix(4, 4, i32), matrix(4, 4, u32)), TypeMismatchError, "A is i32 and B is u32");
  });
  it("sums that would lose what they hold", async () => {
    const work = (options: GemmOptions) => gemm(matrix(4, 4, bf16), matrix(4, 4, bf16), options);
    await refuses(work({ accumulate: f16 }), UnsupportedError, "bf16·bf16 sums in f32, not in f16");
    await refuses(
      gemm(matrix(4, 4), matrix(4, 4), { accumulate: i32 }),
      UnsupportedError,
      "f16·f16 sums in f16 or f32, not in i32",
    );
  });
  it("tf32 of anything but f32", async () => {
    await refuses(
      gemm(matrix(4, 4), matrix(4, 4), { compute: tf32 }),
      UnsupportedError,
      "tf32 is for f32 operands",
    );
  });
  it("a D and a type that disagree", async () => {
    const d = matrix(4, 4, f32);
    await refuses(
      gemm(matrix(4, 4), matrix(4, 4), { d, type: f16 }),
      ArgumentError,
      "D is f32[4, 4] and type is f16; give one of them",
    );
  });
  it("operators without an instruction for the types, naming one that serves", async () => {
    await refuses(
      gemm(matrix(4, 4, i32), matrix(4, 4, i32), { operator: mmaSync }),
      UnsupportedError,
      /no mma instruction for i32·i32→i32; the plain operator \(fma\) works for any type/,
    );
    await refuses(
      gemm(matrix(4, 4, i64), matrix(4, 4, i64), { operator: wmmaSync }),
      UnsupportedError,
      /no wmma instruction for i64·i64→i64/,
    );
  });
});

describe("memory", () => {
  it("D over A or B", async () => {
    const whole = device.array(f16, [3 * 64]);
    const [a, b] = [whole.strided([8, 8], [8, 1], 0), whole.strided([8, 8], [8, 1], 64)];
    const over = (offset: number) => gemm(a, b, { d: whole.strided([8, 8], [8, 1], offset) });
    await refuses(
      over(0),
      ArgumentError,
      "D overlaps A in memory; blocks would read what others have written",
    );
    await refuses(over(63), ArgumentError, "D overlaps A");
    await refuses(over(64), ArgumentError, "D overlaps B");
    await refuses(over(127), ArgumentError, "D overlaps B");
    await expect(over(128)).resolves.toBeDefined();
  });
  it("D between the columns of A, which is no overlap", async () => {
    const whole = device.array(
      f16,
      [8, 32],
      Array.from({ length: 256 }, (_, i) => i % 5),
    );
    const a = whole.slice([], [0, 8]);
    const d = whole.slice([], [8, 16]);
    const b = device.array(
      f16,
      [8, 8],
      Array.from({ length: 64 }, (_, i) => (i % 9 === 0 ? 1 : 0)),
    );
    await gemm(a, b, { d });
    expect(await d.read()).toEqual(await a.read());
  });
  it("D over C without being it; D exactly C works", async () => {
    const whole = device.array(f32, [80], new Array(80).fill(1));
    const [a, b] = [matrix(8, 3, f32), matrix(3, 8, f32)];
    const c = whole.strided([8, 8], [8, 1], 0);
    await refuses(
      gemm(a, b, { c, d: whole.strided([8, 8], [8, 1], 8) }),
      ArgumentError,
      "D overlaps C without being it; D may be exactly C",
    );
    await refuses(gemm(a, b, { c, d: c.transposed }), ArgumentError, "D overlaps C without being it");
    for (const schedule of ["register-staged", undefined] as const) {
      await gemm(a, b, { c, d: c, beta: 2, schedule } as GemmOptions);
    }
    expect([...(await c.read())]).toEqual(new Array(64).fill(4));
  });
  it("operands of two devices", async () => {
    const other = await open({ kind: "simulator", simulator: { name: "another simulator" } });
    const there = other.array(f16, [4, 4]);
    await refuses(
      gemm(matrix(4, 4), there),
      ArgumentError,
      "A is on simulator and B on another simulator; both must be on one device",
    );
    await refuses(
      gemm(matrix(4, 4), matrix(4, 4), { d: there }),
      ArgumentError,
      "D is on another simulator, A and B on simulator",
    );
    await refuses(gemm(matrix(4, 4), matrix(4, 4), { c: there }), ArgumentError, "C is on another simulator");
    other.dispose();
  });
  it("arrays that are gone", async () => {
    const a = matrix(4, 4);
    a.dispose();
    await refuses(gemm(a, matrix(4, 4)), DisposedError, "gemm: A: the array f16[4, 4] was disposed");
    await refuses(gemm(matrix(4, 4), matrix(4, 4), { c: a }), DisposedError, "gemm: C");
  });
  it("a plan that was disposed", async () => {
    const plan = await planGemm(matrix(4, 4), matrix(4, 4));
    plan.dispose();
    expect(() => plan.run()).toThrow(DisposedError);
  });
});

describe("factors and components", () => {
  const product = (options: GemmOptions, type = f32 as Parameters<Device["array"]>[0]) =>
    gemm(matrix(4, 4, type), matrix(4, 4, type), options);
  it("an alpha or beta that is no number", async () => {
    await refuses(product({ alpha: "2" as never }), ArgumentError, 'alpha is a number, not "2"');
    await refuses(product({ alpha: {} as never }), ArgumentError, "alpha is a number, not object");
    await refuses(product({ alpha: Number.NaN }), ArgumentError, "alpha = NaN is no f32");
    await refuses(
      product({ alpha: 1e300 }),
      ArgumentError,
      "alpha = 1e+300 is no f32, the type in which product and C are combined",
    );
    await refuses(product({ alpha: 0.5 }, i32), ArgumentError, "alpha = 0.5 is no i32");
    await refuses(
      product({ beta: "1" as never, c: matrix(4, 4, f32) }),
      ArgumentError,
      'beta is a number, not "1"',
    );
  });
  it("beta without C", async () => {
    await refuses(product({ beta: 2 }), ArgumentError, "beta = 2 needs a C to multiply");
  });
  it("ones on a diagonal where one is not neutral", async () => {
    const unit = triangular(matrix(4, 4, f32), "lower", { unit: true });
    const operator = semiringOperator(maxPlus);
    await refuses(
      gemm(unit, matrix(4, 4, f32), { operator }),
      UnsupportedError,
      /the number 1 on its diagonal/,
    );
    (await gemm(triangular(matrix(4, 4, f32), "lower"), matrix(4, 4, f32), { operator })).dispose();
    (await gemm(unit, matrix(4, 4, f32), { operator: fma })).dispose();
  });
  it("a schedule that there is not, and one that cannot serve", async () => {
    await refuses(
      product({ schedule: "fast" as never }),
      ArgumentError,
      'no schedule "fast"; there are matrix-vector, warpgroup, multistage, register-staged',
    );
    await refuses(product({ schedule: "warpgroup", operator: fma }), UnsupportedError, /warpgroup/);
  });
  it("params that one schedule cannot take go to the next, and explain() says so", async () => {
    const params = { block: { m: 32, n: 32, k: 32 }, warps: { m: 1, n: 1 }, groupRows: 1 };
    using plan = await planGemm(matrix(16, 16, f16), matrix(16, 16, f16), { params });
    expect(plan.kind.schedule).toBe(device.facts.asyncCopy ? "multistage" : "register-staged");
    if (device.facts.warpgroupMma.length > 0)
      expect(plan.explain()).toContain("params.block.m is 64, 128 or 256 with warpgroups");
    plan.d.dispose();
    const odd = { ...params, block: { ...params.block, n: 33 } };
    await refuses(product({ params: odd }), ArgumentError, "block.n = 33 is no multiple");
  });
  it("a kernel's name that is no identifier", () => {
    const named = (name: string) => () => kernel(name, { params: {}, block: 32, body: () => undefined });
    expect(named("my kernel")).toThrow('"my kernel" is no name for a kernel or parameter');
    expect(named("a;b")).toThrow(ArgumentError);
    expect(named("")).toThrow(ArgumentError);
    expect(() =>
      kernel("fine", { params: { "not fine": input(f32) }, block: 32, body: () => undefined }),
    ).toThrow('"not fine" is no name');
  });
});
