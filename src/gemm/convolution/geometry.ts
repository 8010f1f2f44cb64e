/**
 * @file The geometry of convolutions: where a filter stands on an image, from what the caller says.
 */
import { ArgumentError, ShapeError } from "../../errors.ts";
import type { Pair } from "../layouts/windows.ts";

/** A number for both dimensions of an image, or [along the height, along the width]. */
export type PerDimension = number | readonly [height: number, width: number];

/**
 * Pixels of zeros around an image: for all sides, for each dimension, or for each side; "valid" is none, and with "same"
 * there are ceil(extent / stride) places along each dimension, the odd pixel at the end (as TensorFlow pads).
 */
export type Padding =
  | PerDimension
  | { readonly top: number; readonly bottom: number; readonly left: number; readonly right: number }
  | "same"
  | "valid";

/** What a convolution is told of its geometry. */
export interface GeometryOptions {
  /** Pixels between places of the filter. 1 unless given. */
  readonly stride?: PerDimension;
  /** "valid" unless given. */
  readonly padding?: Padding;
  /** Pixels between weights of the filter. 1 unless given. */
  readonly dilation?: PerDimension;
}

/** Where the filter stands. */
export interface Geometry {
  readonly stride: Pair;
  readonly dilation: Pair;
  /** In front of the first row and column. */
  readonly padding: Pair;
  /** Places of the filter: extents of the result. */
  readonly places: Pair;
  /** Whether each window lies within the image. */
  readonly within: boolean;
}

const dimensions = ["height", "width"] as const;

function checked(value: unknown, what: string, least: number): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= least && value < 2 ** 31) return value;
  throw new ArgumentError(`conv2d: ${what} is a whole number from ${least}, not ${String(value)}`);
}

function pairOf(value: PerDimension, what: string, least: number): Pair {
  const [height, width] = typeof value === "number" ? [value, value] : value;
  return { height: checked(height, what, least), width: checked(width, what, least) };
}

/** Pixels before and after an image along one dimension. */
type Sides = readonly [before: number, after: number];

function sidesOf(
  padding: Padding,
  extent: Pair,
  span: Pair,
  stride: Pair,
): Readonly<Record<"height" | "width", Sides>> {
  const what = "padding";
  if (padding === "valid") return { height: [0, 0], width: [0, 0] };
  if (padding === "same") {
    const same = (which: "height" | "width"): Sides => {
      const places = Math.ceil(extent[which] / stride[which]);
      const missing = Math.max(0, (places - 1) * stride[which] + span[which] - extent[which]);
      return [Math.floor(missing / 2), Math.ceil(missing / 2)];
    };
    return { height: same("height"), width: same("width") };
  }
  if (typeof padding === "string" || padding === null)
    throw new ArgumentError(`conv2d: padding is pixels, "same" or "valid", not ${JSON.stringify(padding)}`);
  if (typeof padding === "object" && "top" in padding) {
    const { top, bottom, left, right } = padding;
    const [above, below, before, after] = [top, bottom, left, right].map((side) => checked(side, what, 0));
    return { height: [above, below], width: [before, after] };
  }
  const { height, width } = pairOf(padding, what, 0);
  return { height: [height, height], width: [width, width] };
}

/**
 * The geometry of a filter on images.
 * @throws ArgumentError for numbers that are none, ShapeError for a filter that does not fit the padded image
 */
export function geometryOf(image: Pair, filter: Pair, options: GeometryOptions): Geometry {
  const stride = pairOf(options.stride ?? 1, "stride", 1);
  const dilation = pairOf(options.dilation ?? 1, "dilation", 1);
  const spanOf = (which: "height" | "width"): number => (filter[which] - 1) * dilation[which] + 1;
  const span: Pair = { height: spanOf("height"), width: spanOf("width") };
  const sides = sidesOf(options.padding ?? "valid", image, span, stride);
  const placesOf = (which: "height" | "width"): number => {
    const padded = image[which] + sides[which][0] + sides[which][1];
    if (span[which] > padded) {
      throw new ShapeError(
        `conv2d: the filter spans ${span[which]} pixels along the ${which}, and the padded image has ${padded}`,
      );
    }
    return Math.floor((padded - span[which]) / stride[which]) + 1;
  };
  return {
    stride,
    dilation,
    padding: { height: sides.height[0], width: sides.width[0] },
    places: { height: placesOf("height"), width: placesOf("width") },
    within: dimensions.every((which) => sides[which][0] === 0 && sides[which][1] === 0),
  };
}
