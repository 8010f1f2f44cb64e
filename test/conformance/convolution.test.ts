/** @file Convolutions against sums in float64: layouts, strides, padding, dilation, groups, types, epilogues. */
import { ArgumentError, bf16, f16, f32, i8, i32, ShapeError, type StorageType } from "tilewright";
import { type ConvolutionOptions, conv2d, fmaOperator, planConv2d, relu } from "tilewright/gemm";
import { byteSize, tf32 } from "tilewright/lang";
import { describe, expect, it } from "vitest";
import { normals } from "../support/random.ts";
import { pairwise } from "./gemm-cases.ts";
import { expectClose, onEveryDevice } from "./table.ts";

interface Case {
  readonly layout: "NHWC" | "NCHW";
  readonly type: StorageType;
  readonly image: readonly [height: number, width: number];
  readonly filter: readonly [height: number, width: number];
  readonly channels: number;
  readonly outputs: number;
  readonly groups: number;
  readonly stride: number | readonly [number, number];
  readonly dilation: number | readonly [number, number];
  readonly padding: NonNullable<ConvolutionOptions["padding"]>;
  readonly beta: number;
  readonly biased: boolean;
}

const columns = {
  layout: ["NHWC", "NCHW"],
  type: [f32, f16, i8],
  image: [
    [5, 7],
    [6, 4],
  ],
  filter: [
    [3, 3],
    [1, 1],
    [2, 3],
  ],
  channels: [4, 8, 12],
  outputs: [4, 8],
  groups: [1, 2, 4],
  stride: [1, 2, [1, 3]],
  dilation: [1, [2, 1]],
  padding: ["valid", "same", 1, { top: 2, bottom: 0, left: 1, right: 3 }],
  beta: [0, 2],
  biased: [false, true],
} as const;

const batch = 2;

/** What the library says it does, once more and simply. */
function oracle(test: Case, x: ArrayLike<number>, w: ArrayLike<number>, bias: readonly number[]) {
  const { layout, channels, outputs, groups, padding } = test;
  const two = (value: number | readonly [number, number]) =>
    typeof value === "number" ? ([value, value] as const) : value;
  const [[ih, iw], [fh, fw]] = [test.image, test.filter];
  const [[sh, sw], [dh, dw]] = [two(test.stride), two(test.dilation)];
  const sides = (extent: number, filter: number, stride: number, which: "height" | "width") => {
    if (padding === "valid") return [0, 0] as const;
    if (padding === "same") {
      const missing = Math.max(0, (Math.ceil(extent / stride) - 1) * stride + filter - extent);
      return [Math.floor(missing / 2), Math.ceil(missing / 2)] as const;
    }
    if (typeof padding === "object" && "top" in padding) {
      return which === "height" ? [padding.top, padding.bottom] : [padding.left, padding.right];
    }
    const [height, width] = two(padding);
    return which === "height" ? [height, height] : [width, width];
  };
  const [eh, ew] = [(fh - 1) * dh + 1, (fw - 1) * dw + 1];
  const [[top, bottom], [left, right]] = [sides(ih, eh, sh, "height"), sides(iw, ew, sw, "width")];
  const oh = Math.floor((ih + top! + bottom! - eh) / sh) + 1;
  const ow = Math.floor((iw + left! + right! - ew) / sw) + 1;
  const each = channels / groups;
  const nhwc = layout === "NHWC";
  const xAt = (n: number, c: number, h: number, v: number): number =>
    x[nhwc ? ((n * ih + h) * iw + v) * channels + c : ((n * channels + c) * ih + h) * iw + v]!;
  const wAt = (o: number, c: number, h: number, v: number): number =>
    w[nhwc ? ((o * fh + h) * fw + v) * each + c : ((o * each + c) * fh + h) * fw + v]!;
  const values = new Float64Array(batch * outputs * oh * ow);
  const magnitudes = new Float64Array(values.length);
  for (let n = 0; n < batch; n++)
    for (let o = 0; o < outputs; o++)
      for (let y = 0; y < oh; y++)
        for (let v = 0; v < ow; v++) {
          const at = nhwc ? ((n * oh + y) * ow + v) * outputs + o : ((n * outputs + o) * oh + y) * ow + v;
          const first = Math.floor(o / (outputs / groups)) * each;
          for (let c = 0; c < each; c++)
            for (let r = 0; r < fh; r++)
              for (let s = 0; s < fw; s++) {
                const [h, u] = [y * sh + r * dh - top!, v * sw + s * dw - left!];
                if (h < 0 || h >= ih || u < 0 || u >= iw) continue;
                const product = xAt(n, first + c, h, u) * wAt(o, c, r, s);
                values[at]! += product;
                magnitudes[at]! += Math.abs(product);
              }
          values[at]! += bias[o] ?? 0;
          magnitudes[at]! += Math.abs(bias[o] ?? 0);
        }
  const shape = nhwc ? [batch, oh, ow, outputs] : [batch, outputs, oh, ow];
  return { values, magnitudes, shape };
}

onEveryDevice((device) => {
  const check = async (test: Case, seed: number, more: ConvolutionOptions = {}): Promise<void> => {
    const { layout, type, image, filter, channels, outputs, groups, stride, dilation, padding, beta } = test;
    const round = (list: readonly number[]): number[] =>
      list.map((value) => (type.class === "float" ? value : Math.round(value * 3)));
    const nhwc = layout === "NHWC";
    const each = channels / groups;
    const x = device().array(
      type,
      nhwc ? [batch, ...image, channels] : [batch, channels, ...image],
      round(normals(batch * image[0] * image[1] * channels, seed)),
    );
    const w = device().array(
      type,
      nhwc ? [outputs, ...filter, each] : [outputs, each, ...filter],
      round(normals(outputs * filter[0] * filter[1] * each, seed + 1)),
    );
    const result = type.class === "float" ? f32 : i32;
    const offsets = test.biased ? round(normals(outputs, seed + 2)).map(Math.fround) : [];
    const bias = test.biased ? device().array(result, [outputs], offsets) : undefined;
    const [held, weights] = [Array.from(await x.read(), Number), Array.from(await w.read(), Number)];
    const { values, magnitudes, shape } = oracle(test, held, weights, offsets);
    const c = beta === 0 ? undefined : device().array(result, shape, round(normals(values.length, seed + 3)));
    const added = c === undefined ? [] : Array.from(await c.read(), Number);
    using plan = await planConv2d(x, w, {
      layout,
      groups,
      stride,
      dilation,
      padding,
      type: result,
      ...(bias === undefined ? {} : { bias }),
      ...(c === undefined ? {} : { c, beta }),
      ...more,
    });
    plan.run();
    expect(plan.d.shape).toEqual(shape);
    const got = Array.from(await plan.d.read(), Number);
    // The bias is a step after C is added, so that sums do not depend on the order.
    const expected = Array.from(values, (value, i) => value + beta * (added[i] ?? 0));
    const precision = more.compute === tf32 ? 2 ** -9 : 1e-5;
    const tolerance = (_: number, i: number): number =>
      type.class === "float" ? precision * (magnitudes[i]! + Math.abs(beta * (added[i] ?? 0)) + 1) : 0;
    got.forEach((value, i) => {
      if (!(Math.abs(value - expected[i]!) <= tolerance(value, i)))
        expect.fail(`${JSON.stringify(test)}: element ${i} is ${value}, not ${expected[i]}`);
    });
    for (const array of [x, w, plan.d, ...(bias ? [bias] : []), ...(c ? [c] : [])]) array.dispose();
  };

  describe("conv2d", () => {
    it("over layouts, types, strides, padding, dilation, groups", { timeout: 600_000 }, async () => {
      const cases = pairwise(columns) as unknown as readonly Case[];
      for (const [seed, test] of cases.entries()) {
        if (!device().facts.storage.has(test.type.name)) continue;
        await check(test, 10 * seed + 1);
      }
    });

    it("of channels wide enough for whole accesses, in place", async () => {
      const usual: Case = {
        layout: "NHWC",
        type: f32,
        image: [9, 8],
        filter: [3, 3],
        channels: 16,
        outputs: 12,
        groups: 1,
        stride: 1,
        dilation: 1,
        padding: "same",
        beta: 0,
        biased: true,
      };
      await check(usual, 3);
      await check({ ...usual, padding: "valid", stride: 2 }, 5);
    });

    describe("of whole lines of channels, through tensor maps of windows", () => {
      const usual: Case = {
        layout: "NHWC",
        type: f16,
        image: [9, 8],
        filter: [3, 3],
        channels: 64,
        outputs: 12,
        groups: 1,
        stride: 1,
        dilation: 1,
        padding: "same",
        beta: 0,
        biased: false,
      };
      const cases: readonly Partial<Case>[] = [
        {},
        { padding: "valid", biased: true },
        { stride: 2, padding: 1, beta: 2 },
        { stride: [1, 3], dilation: [2, 1], padding: { top: 2, bottom: 0, left: 1, right: 3 } },
        { filter: [2, 3], channels: 128, groups: 2, outputs: 24 },
        { type: bf16, filter: [1, 1], stride: 2, padding: "valid" },
        { type: i8, channels: 128, image: [5, 7] },
        { type: f32, channels: 32, image: [5, 7] },
      ];
      it.for(cases)("%o", async (difference, { skip }) => {
        const test = { ...usual, ...difference };
        skip(device().facts.warpgroupMma.length === 0, "the target has no warpgroup products");
        const k = 128 / byteSize(test.type);
        const params = { block: { m: 128, n: 64, k }, warps: { m: 8, n: 1 }, groupRows: 2 };
        const numbers = test.type === f32 ? { compute: tf32 } : {};
        await check(test, 7, { schedule: "warpgroup", params, ...numbers });
      });

      it("as explain() says, with tiles in turn and with changed elements, too", async ({ skip }) => {
        skip(device().facts.warpgroupMma.length === 0, "the target has no warpgroup products");
        const x = device().array(f16, [2, 9, 8, 64]);
        const w = device().array(f16, [16, 3, 3, 64]);
        using plan = await planConv2d(x, w, { padding: 1, schedule: "warpgroup" });
        expect(plan.explain()).toMatch(/A by a tensor map of windows \(im2col\)/);
        for (const array of [x, w, plan.d]) array.dispose();
        const block = { m: 128, n: 64, k: 64 };
        await check({ ...usual, image: [11, 13] }, 3, {
          schedule: "warpgroup",
          params: { block, warps: { m: 4, n: 1 }, groupRows: 2 },
        });
        const negated: ConvolutionOptions["transforms"] = { a: { sharedToRegister: (x) => x.neg() } };
        const more = { schedule: "warpgroup", alpha: -1, transforms: negated } as const;
        await check(usual, 5, { ...more, params: { block, warps: { m: 8, n: 1 }, groupRows: 2 } });
      });
    });

    it("with one weight on every pixel is the plain product", async () => {
      const x = device().array(f32, [2, 3, 4, 8], normals(192, 1));
      const w = device().array(f32, [5, 1, 1, 8], normals(40, 2));
      using plan = await planConv2d(x, w);
      expect(plan.products).toHaveLength(1);
      expect(plan.products[0]!.kind.a.layout.name).toBe("row-major");
      expect(plan.products[0]!.kind.b.layout.name).toBe("column-major");
      for (const array of [x, w, plan.d]) array.dispose();
    });

    it("loads one module for many sizes", async () => {
      const modules = new Set<unknown>();
      const narrow =
        device().facts.subgroup.width === 32
          ? {
              operator: fmaOperator({ laneRows: 4, laneColumns: 8, rows: 4, columns: 4 }),
              params: { block: { m: 16, n: 32, k: 8 }, warps: { m: 1, n: 1 }, groupRows: 2 },
            }
          : {};
      for (let i = 0; i < 8; i++) {
        const x = device().array(f32, [1, 5 + i, 6 + (i % 3), 4]);
        const w = device().array(f32, [4, 2 + (i % 2), 3, 4]);
        using plan = await planConv2d(x, w, { padding: 1 + (i % 2), stride: 1 + (i % 3), ...narrow });
        modules.add(plan.products[0]!.compiled?.executable);
        for (const array of [x, w, plan.d]) array.dispose();
      }
      expect(modules.size).toBe(1);
    });

    it("has gemm's epilogue", async () => {
      const x = device().array(f32, [1, 2, 2, 1], [1, -2, 3, -4]);
      const w = device().array(f32, [1, 1, 1, 1], [2]);
      const y = await conv2d(x, w, { epilogue: [relu] });
      expectClose((await y.read()) as Float32Array, [2, 0, 6, 0], 0);
      for (const array of [x, w, y]) array.dispose();
    });

    it("refuses what is none", async () => {
      const x = device().array(f32, [1, 4, 4, 6]);
      const w = device().array(f32, [4, 3, 3, 6]);
      const wrong = async (
        options: ConvolutionOptions,
        type: abstract new (...args: never) => Error,
        message: RegExp,
        filters = w,
      ): Promise<void> => {
        const error = await planConv2d(x, filters, options).then(
          () => undefined,
          (reason: unknown) => reason,
        );
        expect(error).toBeInstanceOf(type);
        expect((error as Error).message).toMatch(message);
      };
      await wrong({ groups: 4 }, ShapeError, /4 groups do not divide 6 channels/);
      await wrong({ groups: 2 }, ShapeError, /6 channels and the filters 6 in 2 groups; they need 3/);
      await wrong({ groups: 1.5 }, ArgumentError, /groups is a positive whole number/);
      await wrong({ dilation: 2 }, ShapeError, /spans 5 pixels along the height, and the padded image has 4/);
      await wrong({ stride: 0 }, ArgumentError, /stride is a whole number from 1, not 0/);
      await wrong({ stride: 1.5 }, ArgumentError, /not 1.5/);
      await wrong({ padding: -1 }, ArgumentError, /padding is a whole number from 0, not -1/);
      await wrong({ padding: "full" as never }, ArgumentError, /"same" or "valid"/);
      await wrong({ layout: "HWCN" as never }, ArgumentError, /"NHWC" or "NCHW"/);
      await wrong({ bias: device().array(f32, [5]) }, ShapeError, /vector of 4 output channels/);
      await wrong({ d: device().empty(f32, [1, 4, 4, 4]) }, ShapeError, /1 x 2 x 2 x 4/);
      await wrong({}, ShapeError, /filters have rank 4, .* has rank 3/, w.reshape([12, 3, 6]));
      await wrong({ layout: "NCHW" }, ShapeError, /4 channels and the filters 3/);
      for (const array of [x, w]) array.dispose();
    });
  });
});
