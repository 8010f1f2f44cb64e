/**
 * @file Convolutions of images, forward, as matrix products whose left operand is every window of the images.
 */
import { ArgumentError, ShapeError } from "../../errors.ts";
import { DeviceArray } from "../../runtime/array.ts";
import { fuseInOrder, type Mode, modesIn } from "../contraction/modes.ts";
import { bias } from "../epilogues/steps.ts";
import { type JoinedPlan, joinPlans } from "../joined-plans.ts";
import { type FoldedMode, folded } from "../layouts/folded.ts";
import { type Pair, windows } from "../layouts/windows.ts";
import { type GemmPlan, planGemm } from "../plan.ts";
import { operatorTypes, outputTypeOf } from "../problem.ts";
import type { GemmOptions } from "../resolve.ts";
import { instructionOf } from "../schedules/warpgroup-shape.ts";
import type { MatrixSource } from "../source.ts";
import { type Geometry, type GeometryOptions, geometryOf } from "./geometry.ts";

/** What `conv2d` can be told: what {@link gemm} can, and how the filter moves. */
export interface ConvolutionOptions
  extends GeometryOptions,
    Omit<GemmOptions, "c" | "d" | "predicate" | "gate" | "pack"> {
  /** Order of the images' dimensions: batch, height, width, channels. "NHWC" unless given. */
  readonly layout?: "NHWC" | "NCHW";
  /** Channels are divided among so many convolutions. 1 unless given. */
  readonly groups?: number;
  /** Added to each output channel, before all other steps of the epilogue. */
  readonly bias?: DeviceArray;
  /** Added to the result, times beta; dimensions as the result's. */
  readonly c?: DeviceArray;
  /** Where the result goes; a new contiguous array unless given. */
  readonly d?: DeviceArray;
}

/** A convolution ready to be enqueued: one product for each group. */
export type ConvolutionPlan = JoinedPlan;

/** Places of dimensions in the shapes of images and of filters. */
const orders = {
  NHWC: { n: 0, h: 1, w: 2, c: 3, filter: { out: 0, h: 1, w: 2, in: 3 } },
  NCHW: { n: 0, c: 1, h: 2, w: 3, filter: { out: 0, in: 1, h: 2, w: 3 } },
} as const;
type Order = (typeof orders)[keyof typeof orders];

/**
 * The convolution (as neural networks have it: a correlation) of images with filters. With layout "NHWC" images are
 * [batch, height, width, channels] and filters [outputs, height, width, channels / groups]; with "NCHW" images are [batch,
 * channels, height, width] and filters [outputs, channels / groups, height, width]. The result has the images' layout.
 * Any strides; nothing is copied. Resolves to the result when the work is enqueued.
 *
 * Types, sums and rounding are {@link gemm}'s. Its epilogue sees the result of each group as a matrix: a row for every place,
 * counted along the width, the height, then the images, and a column for every output channel of the group. Filters of one
 * weight that stand on every pixel are an ordinary product.
 *
 * @throws ShapeError, ArgumentError, TypeMismatchError before anything reaches the device
 */
export async function conv2d(
  images: DeviceArray,
  filters: DeviceArray,
  options: ConvolutionOptions = {},
): Promise<DeviceArray> {
  using plan = await planConv2d(images, filters, options);
  plan.run();
  return plan.d;
}

/** Plans {@link conv2d}: checks, chooses, compiles and binds. */
export async function planConv2d(
  images: DeviceArray,
  filters: DeviceArray,
  options: ConvolutionOptions = {},
): Promise<ConvolutionPlan> {
  const {
    layout = "NHWC",
    groups = 1,
    stride,
    padding,
    dilation,
    bias: offsets,
    c,
    d: given,
    ...rest
  } = options;
  const order: Order | undefined = orders[layout];
  if (order === undefined) {
    throw new ArgumentError(`conv2d: layout is "NHWC" or "NCHW", not ${JSON.stringify(layout)}`);
  }
  checkOperands(images, filters, order, layout, groups);
  const image: Pair = { height: images.shape[order.h]!, width: images.shape[order.w]! };
  const filter: Pair = {
    height: filters.shape[order.filter.h]!,
    width: filters.shape[order.filter.w]!,
  };
  const geometry = geometryOf(image, filter, {
    ...(stride === undefined ? {} : { stride }),
    ...(padding === undefined ? {} : { padding }),
    ...(dilation === undefined ? {} : { dilation }),
  });
  const outputs = filters.shape[order.filter.out]!;
  if (offsets !== undefined) checkBias(offsets, outputs);
  const extents = { n: images.shape[0]!, c: outputs, h: geometry.places.height, w: geometry.places.width };
  const shape = [...layout.toLowerCase()].map((name) => extents[name as keyof typeof extents]);
  for (const [name, array] of Object.entries({ c, d: given })) checkResult(name, array, shape);
  const types = operatorTypes(images.type, filters.type, rest);
  const type = given?.type ?? options.type ?? outputTypeOf(images.type, filters.type, types);
  const onWarpgroups =
    rest.operator === undefined && instructionOf({ types }, images.device.facts) !== undefined;
  const d = given ?? images.device.empty(type, shape);
  try {
    const job = { images, filters, d, c, order, geometry, image, filter, onWarpgroups };
    const products = Array.from({ length: groups }, (_, group) => (): Promise<GemmPlan> => {
      const own = offsets?.slice(part(group, groups, outputs));
      const epilogue = own === undefined ? rest.epilogue : withBias(own, rest.epilogue);
      return planGroup(job, group, groups, { ...rest, ...(epilogue === undefined ? {} : { epilogue }) });
    });
    const headline = `conv2d of ${images.label} with ${filters.label}, ${layout}`;
    return await joinPlans(d, headline, shape.includes(0) ? [] : products);
  } catch (error) {
    if (given === undefined) d.dispose();
    throw error;
  }
}

/** The range of a group's channels. */
function part(group: number, groups: number, channels: number): readonly [number, number] {
  return [(group * channels) / groups, ((group + 1) * channels) / groups];
}

function withBias(
  offsets: DeviceArray,
  epilogue: GemmOptions["epilogue"],
): NonNullable<GemmOptions["epilogue"]> {
  if (epilogue !== undefined && "run" in epilogue) {
    throw new ArgumentError(
      "conv2d: bias is a step, and the epilogue given is not made of steps; add the bias there",
    );
  }
  return [bias(offsets), ...(epilogue ?? [])];
}

interface Job {
  readonly images: DeviceArray;
  readonly filters: DeviceArray;
  readonly c: DeviceArray | undefined;
  readonly d: DeviceArray;
  readonly order: Order;
  readonly geometry: Geometry;
  readonly image: Pair;
  readonly filter: Pair;
  /** Whether warpgroups multiply these types, which tensor maps of windows can feed. */
  readonly onWarpgroups: boolean;
}

/** One group's product. */
function planGroup(job: Job, group: number, groups: number, options: GemmOptions): Promise<GemmPlan> {
  const { images, filters, d, c, order } = job;
  const ranges = (at: number, channels: number): (readonly [number, number] | undefined)[] =>
    [0, 1, 2, 3].map((dimension) => (dimension === at ? part(group, groups, channels) : undefined));
  const inputs = images.slice(...(ranges(order.c, images.shape[order.c]!) as []));
  const weights = filters.slice(...(ranges(order.filter.out, filters.shape[order.filter.out]!) as []));
  const of = (array: DeviceArray): DeviceArray =>
    array.slice(...(ranges(order.c, array.shape[order.c]!) as []));
  const result = resultMatrix(of(d), job);
  const addend = c === undefined ? {} : { c: c === d ? result : resultMatrix(of(c), job) };
  const { type: _, ...rest } = options;
  return planGemm(windowMatrix(inputs, job), filterMatrix(weights, job), { ...rest, ...addend, d: result });
}

/** The modes of a dimension or of several, with those that one array steps through as through one fused. */
function modesOf(list: readonly FoldedMode[]): readonly FoldedMode[] {
  const modes: readonly Mode[] = list.map(({ extent, stride }) => ({ extent, strides: { a: stride } }));
  return modesIn(fuseInOrder(modes), "a");
}

const dimension = (array: DeviceArray, at: number): FoldedMode => ({
  extent: array.shape[at]!,
  stride: array.strides[at]!,
});

/** Columns count through channels first where images have them as neighbours. */
function channelsFastest({ order }: Job): boolean {
  return order.c === 3;
}

function windowMatrix(images: DeviceArray, job: Job): DeviceArray | MatrixSource {
  const { order, geometry, image, filter } = job;
  const { stride, dilation, padding, places } = geometry;
  const [n, h, w, channels] = [order.n, order.h, order.w, order.c].map((at) => dimension(images, at));
  const rows = [
    { extent: places.width, stride: w!.stride * stride.width },
    { extent: places.height, stride: h!.stride * stride.height },
    n!,
  ] as const;
  const weights = [
    { extent: filter.width, stride: w!.stride * dilation.width },
    { extent: filter.height, stride: h!.stride * dilation.height },
  ] as const;
  const masked = windows(images, {
    places: rows,
    filter: weights,
    channels: channels!,
    channelsFastest: channelsFastest(job),
    image,
    stride,
    padding,
    dilation,
    start: -padding.height * h!.stride - padding.width * w!.stride,
  });
  if (!geometry.within) return masked;
  // Nothing lies in the padding. A plain matrix is as good as any; of others, those that tensor maps read are better.
  const columns = channelsFastest(job) ? [channels!, ...weights] : [...weights, channels!];
  const plain = folded(images, modesOf(rows), modesOf(columns));
  const mapped = masked.images !== undefined && job.onWarpgroups;
  return mapped && !(plain instanceof DeviceArray) ? masked : plain;
}

function filterMatrix(filters: DeviceArray, job: Job): DeviceArray | MatrixSource {
  const { filter: at } = job.order;
  const [out, h, w, channels] = [at.out, at.h, at.w, at.in].map((one) => dimension(filters, one));
  const rows = channelsFastest(job) ? [channels!, w!, h!] : [w!, h!, channels!];
  return folded(filters, modesOf(rows), modesOf([out!]));
}

function resultMatrix(array: DeviceArray, { order }: Job): DeviceArray | MatrixSource {
  const [n, h, w, channels] = [order.n, order.h, order.w, order.c].map((at) => dimension(array, at));
  return folded(array, modesOf([w!, h!, n!]), modesOf([channels!]));
}

// Checks ------------------------------------------------------------------------------------------------------------------

function checkOperands(
  images: DeviceArray,
  filters: DeviceArray,
  order: Order,
  layout: string,
  groups: number,
): void {
  for (const [name, array] of Object.entries({ images, filters })) {
    if (!(array instanceof DeviceArray)) {
      throw new ArgumentError(`conv2d: the ${name} are a device array, not ${String(array)}`);
    }
    array.check(`conv2d: the ${name}`);
    if (array.rank !== 4) {
      const wanted =
        name === "images"
          ? layout
          : layout === "NHWC"
            ? "[outputs, height, width, channels]"
            : "[outputs, channels, height, width]";
      throw new ShapeError(
        `conv2d: the ${name} have rank 4, ${wanted}; ${array.label} has rank ${array.rank}`,
      );
    }
  }
  if (images.device !== filters.device) {
    throw new ArgumentError(
      `conv2d: the images are on ${images.device.name} and the filters on ${filters.device.name}; both must be on one device`,
    );
  }
  const [channels, outputs, each] = [
    images.shape[order.c]!,
    filters.shape[order.filter.out]!,
    filters.shape[order.filter.in]!,
  ];
  if (!Number.isInteger(groups) || groups < 1) {
    throw new ArgumentError(`conv2d: groups is a positive whole number, not ${String(groups)}`);
  }
  for (const [name, count] of Object.entries({ channels, outputs })) {
    if (count % groups === 0) continue;
    throw new ShapeError(`conv2d: ${groups} groups do not divide ${count} ${name}`);
  }
  if (each * groups !== channels) {
    const suffix = groups === 1 ? "" : ` in ${groups} groups`;
    throw new ShapeError(
      `conv2d: the images have ${channels} channels and the filters ${each}${suffix}; they need ${channels / groups}`,
    );
  }
  if (channels === 0) throw new ShapeError(`conv2d: the images (${images.label}) have no channels`);
}

function checkBias(offsets: DeviceArray, outputs: number): void {
  if (offsets instanceof DeviceArray && offsets.rank === 1 && offsets.size === outputs) return;
  const found = offsets instanceof DeviceArray ? offsets.label : String(offsets);
  throw new ShapeError(`conv2d: bias is a vector of ${outputs} output channels; it is ${found}`);
}

function checkResult(name: string, array: DeviceArray | undefined, shape: readonly number[]): void {
  if (array === undefined) return;
  const upper = name.toUpperCase();
  if (!(array instanceof DeviceArray)) {
    throw new ArgumentError(`conv2d: ${upper} is a device array, not ${String(array)}`);
  }
  array.check(`conv2d: ${upper}`);
  if (array.rank === 4 && array.shape.every((extent, i) => extent === shape[i])) return;
  throw new ShapeError(`conv2d: ${upper} must be ${shape.join(" x ")} like the result; it is ${array.label}`);
}
