/**
 * @file Kernel parameters. A descriptor carries two types: what the body sees and what the host passes.
 */
import { TraceError } from "../errors.ts";
import type {
  BufferParameter,
  Parameter,
  ScalarParameter,
  SwizzleBytes,
  TensorMapParameter,
} from "../ir/nodes.ts";
import type { ElementType, Index, StorageType } from "../types/types.ts";
import { TensorMap, WindowMap } from "./asynchronous.ts";
import { GlobalArray } from "./memory.ts";
import { operation, type Value } from "./value.ts";

/** What the host passes for an array: a device array (or view) of this element type. */
export interface ArrayArgument<T extends StorageType> {
  readonly type: T;
  readonly shape: readonly number[];
}

/** What the host passes for a number. */
export type ScalarArgument<T extends ElementType> = T["name"] extends "i64" | "u64" | "index"
  ? number | bigint
  : T["name"] extends "bool"
    ? boolean
    : number;

/** An array parameter. */
export interface BufferDescriptor<T extends StorageType> {
  readonly kind: "buffer";
  readonly type: T;
  readonly rank: number;
  readonly access: BufferParameter["access"];
}

/** A tensor map (TMA) over an array of rank 1 to 5. */
export interface TensorMapDescriptor<T extends StorageType> {
  readonly kind: "tensorMap";
  readonly type: T;
  /** Innermost extent first. */
  readonly box: readonly number[];
  readonly swizzle: SwizzleBytes;
  readonly rounding?: "tf32";
}

/** A tensor map over images, whose loads bring windows: see {@link windowMap}. */
export interface WindowMapDescriptor<T extends StorageType> {
  readonly kind: "windowMap";
  readonly type: T;
  readonly channels: number;
  readonly pixels: number;
  readonly swizzle: SwizzleBytes;
  readonly rounding?: "tf32";
}

/** What the host passes for a map of windows. */
export interface WindowedImages<T extends StorageType> {
  /** [images, height, width, channels] with dense channels. */
  readonly images: ArrayArgument<T>;
  /** Where the first place is, seen from an image's first pixel (minus the padding): -128 to 127 along x and y. */
  readonly lower: readonly [x: number, y: number];
  /** Where places end, seen from an image's last pixel: padding minus what the filter extends beyond its first weight. */
  readonly upper: readonly [x: number, y: number];
  /** Pixels between places: 1 to 8. */
  readonly strides: readonly [x: number, y: number];
}

/** Options of {@link tensorMap}. */
export interface TensorMapOptions {
  /**
   * "tf32": f32 elements are rounded to tf32 (nearest, ties to even) on their way to shared memory, as matrix
   * instructions of that type want them; the instructions by themselves cut the low 13 bits off. Such a map only loads.
   */
  readonly rounding?: "tf32";
}

/** Number types that can be parameters. */
export type ScalarType =
  | Exclude<StorageType, { readonly name: "e4m3" | "e5m2" | "i8" | "u8" | "i16" | "u16" }>
  | Index;

/** Anything that `params` can hold; a bare element type is a number passed by value. */
export type ParameterDescriptor =
  | BufferDescriptor<StorageType>
  | TensorMapDescriptor<StorageType>
  | WindowMapDescriptor<StorageType>
  | ScalarType;

export type ParameterDescriptors = Readonly<Record<string, ParameterDescriptor>>;

/** What a kernel's body receives for its descriptors. */
export type KernelArguments<P extends ParameterDescriptors> = {
  readonly [K in keyof P]: P[K] extends BufferDescriptor<infer T>
    ? GlobalArray<T>
    : P[K] extends TensorMapDescriptor<infer T>
      ? TensorMap<T>
      : P[K] extends WindowMapDescriptor<infer T>
        ? WindowMap<T>
        : P[K] extends ElementType
          ? Value<P[K]>
          : never;
};

/** What the host passes for a kernel's descriptors. */
export type HostArguments<P extends ParameterDescriptors> = {
  readonly [K in keyof P]: P[K] extends BufferDescriptor<infer T>
    ? ArrayArgument<T>
    : P[K] extends TensorMapDescriptor<infer T>
      ? ArrayArgument<T>
      : P[K] extends WindowMapDescriptor<infer T>
        ? WindowedImages<T>
        : P[K] extends ElementType
          ? ScalarArgument<P[K]>
          : never;
};

function buffer<T extends StorageType>(
  type: T,
  rank: number,
  access: BufferParameter["access"],
): BufferDescriptor<T> {
  if (!Number.isInteger(rank) || rank < 0 || rank > 6)
    throw new TraceError(`a parameter's rank is 0 to 6, not ${rank}`);
  return Object.freeze({ kind: "buffer", type, rank, access });
}

/** An array that the kernel reads. Rank 1 (the default) takes contiguous arrays; rank 0 is bare storage addressed linearly. */
export function input<T extends StorageType>(type: T, rank = 1): BufferDescriptor<T> {
  return buffer(type, rank, "read");
}
/** An array that the kernel writes. */
export function output<T extends StorageType>(type: T, rank = 1): BufferDescriptor<T> {
  return buffer(type, rank, "write");
}
/** An array that the kernel reads and writes. */
export function inout<T extends StorageType>(type: T, rank = 1): BufferDescriptor<T> {
  return buffer(type, rank, "readwrite");
}
/**
 * A tensor map whose boxes have the given extents (innermost first); `swizzle` is the span in bytes over which 16-byte
 * units are exchanged in shared memory. @throws TraceError for boxes that the hardware cannot copy
 */
export function tensorMap<T extends StorageType>(
  type: T,
  box: readonly number[],
  swizzle: SwizzleBytes = 0,
  { rounding }: TensorMapOptions = {},
): TensorMapDescriptor<T> {
  if (box.length < 1 || box.length > 5)
    throw new TraceError(`a tensor map's box has 1 to 5 extents, not ${box.length}`);
  if (!box.every((extent) => Number.isInteger(extent) && extent >= 1 && extent <= 256)) {
    throw new TraceError(`a tensor map's box extents are 1 to 256, not [${box.join(", ")}]`);
  }
  const innerBytes = (box[0] * type.bits) / 8;
  if (innerBytes % 16 !== 0)
    throw new TraceError(`a tensor map's innermost extent spans a multiple of 16 bytes, not ${innerBytes}`);
  if (swizzle !== 0 && innerBytes > swizzle) {
    throw new TraceError(
      `with ${swizzle}-byte swizzle the innermost extent spans at most ${swizzle} bytes, not ${innerBytes}`,
    );
  }
  if (rounding !== undefined && type.name !== "f32")
    throw new TraceError(`a tensor map rounds f32 to ${rounding}; ${type.name} is copied as it is`);
  return Object.freeze({ kind: "tensorMap", type, box, swizzle, ...(rounding && { rounding }) });
}

/**
 * A tensor map over images [images, height, width, channels] whose loads bring the operand of a convolution: `channels` of
 * as many `pixels` as follow each other among the places of a filter, row after row and image after image, all seen
 * through one weight of it (the hardware's im2col mode). Lines of shared memory are pixels.
 * @throws TraceError for boxes that the hardware cannot copy
 */
export function windowMap<T extends StorageType>(
  type: T,
  { channels, pixels }: { readonly channels: number; readonly pixels: number },
  swizzle: SwizzleBytes = 0,
  { rounding }: TensorMapOptions = {},
): WindowMapDescriptor<T> {
  // What tiles' boxes may be, windows' may, too.
  tensorMap(type, [channels, 1], swizzle, rounding === undefined ? {} : { rounding });
  if (!(Number.isInteger(pixels) && pixels >= 1 && pixels <= 1024))
    throw new TraceError(`a map of windows brings 1 to 1024 pixels at once, not ${pixels}`);
  return Object.freeze({ kind: "windowMap", type, channels, pixels, swizzle, ...(rounding && { rounding }) });
}

/** @internal IR parameters and body-side objects of descriptors. */
export function declareParameters(descriptors: ParameterDescriptors): {
  readonly parameters: readonly Parameter[];
  readonly bind: () => Readonly<Record<string, unknown>>;
} {
  const parameters = Object.entries(descriptors).map(([name, descriptor], id) =>
    parameterOf(descriptor, name, id),
  );
  return {
    parameters,
    bind: () => Object.fromEntries(parameters.map((parameter) => [parameter.name, bodySide(parameter)])),
  };
}

function parameterOf(descriptor: ParameterDescriptor, name: string, id: number): Parameter {
  if (!("kind" in descriptor))
    return { kind: "scalar", id, name, element: descriptor } satisfies ScalarParameter;
  if (descriptor.kind === "buffer") {
    const { type: element, rank, access } = descriptor;
    return { kind: "buffer", id, name, element, rank, access };
  }
  const { type: element, swizzle, rounding } = descriptor;
  const shape =
    descriptor.kind === "tensorMap"
      ? { rank: descriptor.box.length, box: descriptor.box }
      : { rank: 4, box: [descriptor.channels, descriptor.pixels], windows: true as const };
  return {
    kind: "tensorMap",
    id,
    name,
    element,
    ...shape,
    swizzle,
    ...(rounding && { rounding }),
  } satisfies TensorMapParameter;
}

function bodySide(parameter: Parameter): unknown {
  switch (parameter.kind) {
    case "buffer":
      return new GlobalArray(parameter.element, parameter);
    case "scalar":
      return operation("parameter", parameter.element, [], { parameter: parameter.id });
    case "tensorMap":
      return parameter.windows
        ? new WindowMap(parameter.element, parameter)
        : new TensorMap(parameter.element, parameter);
  }
}
