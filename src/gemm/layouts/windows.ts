/**
 * @file Windows: the matrix of a convolution, a row for each place of the filter and a column for each of its weights.
 *
 * Nothing is copied (implicit GEMM: Chetlur et al., "cuDNN: Efficient Primitives for Deep Learning", 2014): rows and columns
 * are folded modes whose strides overlap, and what lies in the padding does not count.
 */
import { byteSize, type I32, type Index, i32, index, type U32, u32, type Value } from "../../lang/index.ts";
import type { DeviceArray } from "../../runtime/array.ts";
import { divisionLength, quotientAndRest } from "../division.ts";
import type { ExtraArgument, ExtraValue } from "../extras.ts";
import { everyStep } from "../predicate.ts";
import type { MatrixSource } from "../source.ts";
import { directionExtras, directionOffset, extrasLength, type FoldedMode, runAlignment } from "./folded.ts";
import { denseLayout, factsOf, firstElement, interned, type Layout, layoutAt } from "./layout.ts";
import { masked } from "./masked.ts";

/** One number for each of the two dimensions of an image. */
export interface Pair {
  readonly height: number;
  readonly width: number;
}

/** Places of a filter on images. Strides in elements of the array. */
export interface Windows {
  /** Of places along the width, then along the height, then of images. */
  readonly places: readonly [FoldedMode, FoldedMode, FoldedMode];
  /** Of weights along the filter's width and height. */
  readonly filter: readonly [FoldedMode, FoldedMode];
  readonly channels: FoldedMode;
  /** Columns count through channels before they count through the filter. */
  readonly channelsFastest: boolean;
  /** Pixels of an image, between places, in front of the first pixel, and between weights. */
  readonly image: Pair;
  readonly stride: Pair;
  readonly padding: Pair;
  readonly dilation: Pair;
  /** From the array's first element to that under the first weight, which lies in front of it where there is padding. */
  readonly start: number;
}

const modes = 3;
const rowExtras = extrasLength(modes, false);

/** Where a pixel is along one dimension: place · stride + weight · dilation - padding; and how many there are. */
interface Line {
  readonly extent: Value<I32>;
  readonly stride: Value<I32>;
  readonly padding: Value<I32>;
  readonly dilation: Value<I32>;
}

function isInside({ extent, stride, padding, dilation }: Line, place: Value<U32>, weight: Value<U32>) {
  const at = place.to(i32).mul(stride).add(weight.to(i32).mul(dilation)).sub(padding);
  return at.ge(0).and(at.lt(extent));
}

/** The digits of a number: of the fastest mode, of the next, and what is left. */
function digits(number: Value<U32>, extras: readonly ExtraValue[], unit: boolean): readonly Value<U32>[] {
  const first = quotientAndRest(number, extras.slice(0, divisionLength));
  const at = divisionLength + (unit ? 0 : 1);
  const second = quotientAndRest(first.quotient, extras.slice(at, at + divisionLength));
  return [first.rest, second.rest, second.quotient];
}

/** `line`: so many neighbouring channels are one line of a map of windows; none are unless given. */
function windowsLayout(channelsFastest: boolean, unit: boolean, line: number | undefined): Layout {
  const order = channelsFastest ? "channels first" : "filter first";
  const lines = line === undefined ? "" : `, lines of ${line}`;
  return interned(`windows, ${order}${unit ? "" : ", no neighbours"}${lines}`, (name) => {
    const columnExtras = extrasLength(modes, unit);
    const split = (extras: readonly ExtraValue[]) => ({
      rows: extras.slice(0, rowExtras),
      columns: extras.slice(rowExtras, rowExtras + columnExtras),
      rest: extras.slice(rowExtras + columnExtras),
    });
    const inner = layoutAt(
      { ...denseLayout("row"), name, facts: { movement: "run", ...(unit ? {} : { widest: 1 }) } },
      ({ extras = [] }, tile) => {
        const { row, column } = firstElement(tile);
        const { rows, columns, rest } = split(extras);
        const down = directionOffset(row.to(u32), modes, false, rows);
        const across = directionOffset(column.to(u32), modes, unit, columns);
        return (rest[0] as Value<Index>).add(down).add(across);
      },
    );
    const counts: NonNullable<Layout["counts"]> = (row, column, extras) => {
      const { rows, columns, rest } = split(extras);
      const numbers = rest.slice(1) as readonly Value<I32>[];
      const line = (i: number): Line => {
        const [extent, stride, padding, dilation] = numbers.slice(4 * i, 4 * i + 4);
        return { extent, stride, padding, dilation };
      };
      const [x, y] = digits(row.to(u32), rows, false);
      const weights = digits(column.to(u32), columns, unit);
      const [across, down] = channelsFastest ? weights.slice(1) : weights;
      return isInside(line(0), y, down).and(isInside(line(1), x, across));
    };
    const window: NonNullable<Layout["window"]> = (row, column, extras) => {
      const { rows, columns, rest } = split(extras);
      const numbers = rest.slice(1) as readonly Value<I32>[];
      const [x, y, image] = digits(row.to(u32), rows, false).map((digit) => digit.to(i32));
      const [channel, across, down] = digits(column.to(u32), columns, unit).map((digit) => digit.to(i32));
      const place = (at: Value<I32>, [, stride, padding]: readonly Value<I32>[]): Value<I32> =>
        at.mul(stride).sub(padding);
      return {
        place: { channel, x: place(x, numbers.slice(4)), y: place(y, numbers), image },
        offset: { x: across.mul(numbers[7]), y: down.mul(numbers[3]) },
      };
    };
    const steps = { a: everyStep, b: everyStep };
    // A run along channels lies under one weight: all of it counts, or none.
    const plain = { ...masked(name, inner, { counts, wholly: channelsFastest, steps }), steps: undefined };
    if (line === undefined) return plain;
    return { ...plain, facts: { ...factsOf(plain), windowLine: line }, window };
  });
}

/** Bytes of a line of a map of windows. */
const lineBytes = 128;
/** Bytes that tensor maps want of addresses and strides. */
const mapAlignment = 16;

/**
 * The images as a map of windows takes them; undefined where it cannot: channels are not whole lines, strides not whole
 * units, or places beyond what the map can say.
 */
function windowedImages(array: DeviceArray, given: Windows): MatrixSource["images"] {
  const { places, channels, filter, image, stride, padding, dilation } = given;
  const size = byteSize(array.type);
  const along = (which: keyof Pair): number => (which === "width" ? 0 : 1);
  const upper = (which: keyof Pair): number => {
    // The last place begins so far from the image's end.
    const last = (places[along(which)]!.extent - 1) * stride[which] - padding[which];
    return last + 1 - image[which];
  };
  const reach = (which: keyof Pair): number => (filter[along(which)]!.extent - 1) * dilation[which];
  const both = (of: (which: keyof Pair) => number): readonly [number, number] => [of("width"), of("height")];
  const corners = [...both((which) => -padding[which]), ...both(upper)];
  const [x, y, images] = [
    places[0].stride / stride.width,
    places[1].stride / stride.height,
    places[2].stride,
  ] as const;
  const fits =
    (channels.extent * size) % lineBytes === 0 &&
    [array.offset, x, y, images].every((step) => step >= 0 && (step * size) % mapAlignment === 0) &&
    corners.every((corner) => corner >= -128 && corner <= 127) &&
    both((which) => stride[which]).every((step) => step <= 8) &&
    both(reach).every((pixels) => pixels < 256);
  if (!fits) return undefined;
  return {
    images: array.strided(
      [places[2].extent, image.height, image.width, channels.extent],
      [images, y, x, 1],
      array.offset,
    ),
    lower: both((which) => -padding[which]),
    upper: both(upper),
    strides: both((which) => stride[which]),
  };
}

/** The matrix of all windows of `array`: places x weights. */
export function windows(array: DeviceArray, given: Windows): MatrixSource {
  const { places, filter, channels, channelsFastest, start } = given;
  const columns = channelsFastest ? [channels, ...filter] : [...filter, channels];
  const unit = columns[0].stride === 1;
  const extent = (list: readonly FoldedMode[]): number => list.reduce((n, mode) => n * mode.extent, 1);
  const numbers = (["height", "width"] as const).flatMap((which): readonly ExtraArgument[] =>
    [given.image, given.stride, given.padding, given.dilation].map((pair) => ({
      type: i32,
      value: pair[which],
    })),
  );
  const { type, label, device } = array;
  const images = channelsFastest && unit ? windowedImages(array, given) : undefined;
  const line = images === undefined ? undefined : lineBytes / byteSize(type);
  return {
    label: `windows of ${label}`,
    ...(images === undefined ? {} : { images }),
    device,
    type,
    shape: [extent(places), extent(columns)],
    layout: windowsLayout(channelsFastest, unit, line),
    array,
    leading: 0,
    alignment: unit ? runAlignment(array, columns[0], [...columns.slice(1), ...places]) : byteSize(type),
    extras: [
      ...directionExtras(places, false),
      ...directionExtras(columns, unit),
      { type: index, value: start },
      ...numbers,
    ],
    get transposed(): MatrixSource {
      throw new TypeError("the windows of a convolution are not transposed");
    },
  };
}
