/**
 * @file Tensor maps: what the bulk copy engine needs to know about an array, encoded by the driver
 * (cuTensorMapEncodeTiled) into 128 opaque bytes. The driver answers any mistake with "invalid value", so the rules of
 * its manual are checked here first.
 */
import { ArgumentError, UnsupportedError } from "../../errors.ts";
import type { SwizzleBytes, TensorMapParameter } from "../../ir/nodes.ts";
import { byteSize, type StorageType } from "../../types/types.ts";
import type { TensorView } from "../backend.ts";
import type { DriverContext } from "./context.ts";
import type { Address } from "./driver-library.ts";

/** Bytes of a CUtensorMap and what its address must be a multiple of. */
export const tensorMapBytes = 128;
export const tensorMapAlignment = 64;

/** CUtensorMapDataType. fp8 travels as bytes: a copy does not look at values. */
const dataTypes: { readonly [Name in StorageType["name"]]: number } = {
  u8: 0,
  i8: 0,
  e4m3: 0,
  e5m2: 0,
  u16: 1,
  i16: 1,
  u32: 2,
  i32: 3,
  u64: 4,
  i64: 5,
  f16: 6,
  f32: 7,
  f64: 8,
  bf16: 9,
};

/** CU_TENSOR_MAP_DATA_TYPE_TFLOAT32: f32 in memory, rounded while it is copied. */
const tfloat32 = 11;

/** CUtensorMapDataType of a map. */
export function tensorMapDataType({ element, rounding }: TensorMapShape): number {
  return rounding === "tf32" ? tfloat32 : dataTypes[element.name];
}

/** CUtensorMapSwizzle. */
const swizzles: { readonly [Bytes in SwizzleBytes]: number } = { 0: 0, 32: 1, 64: 2, 128: 3 };

const interleaveNone = 0;
const promotion128 = 2;
const outOfBoundsZero = 0;

const largestBox = 256;
const mostPixels = 1024;
const largestExtent = 2 ** 32;
const strideLimit = 2 ** 40;
const copyUnit = 16;

/** What of a {@link TensorMapParameter} decides the encoding. */
export type TensorMapShape = Pick<
  TensorMapParameter,
  "name" | "element" | "rank" | "box" | "swizzle" | "rounding" | "windows"
>;

/** Extents and strides as the driver takes them. */
export interface TensorMapExtents {
  /** Elements, innermost first. */
  readonly sizes: BigUint64Array;
  /** Bytes, from the second dimension on. */
  readonly byteStrides: BigUint64Array;
}

/**
 * Checks a view at device address `base` against the rules and converts it. `bytes` is the size of the allocation.
 * @throws ArgumentError
 */
export function tensorMapExtents(
  map: TensorMapShape,
  view: TensorView,
  base: Address,
  bytes: number,
): TensorMapExtents {
  checkBox(map);
  const refuse = refusal(map);
  const elementBytes = byteSize(map.element);
  const { sizes, strides } = view;
  if (sizes.length !== map.rank || strides.length !== map.rank) {
    refuse(`it has rank ${map.rank}, the array has ${sizes.length} sizes and ${strides.length} strides`);
  }
  if (base % copyUnit !== 0) {
    refuse(
      `the array must begin at a multiple of ${copyUnit} bytes; its address is ${base % copyUnit} past one`,
    );
  }
  if (strides[0] !== 1) {
    refuse(`the innermost dimension must be contiguous; its stride is ${strides[0]} elements`);
  }
  const outer: bigint[] = [];
  let last = view.byteOffset + elementBytes;
  for (const [dimension, size] of sizes.entries()) {
    if (!Number.isInteger(size) || size < 1 || size > largestExtent) {
      refuse(`the extent of dimension ${dimension} is ${size}; 1 to 2^32 can be addressed`);
    }
    const stride = strides[dimension]! * elementBytes;
    last += (size - 1) * stride;
    if (dimension > 0) outer.push(BigInt(outerStride(refuse, dimension, size, stride)));
  }
  if (last > bytes) {
    refuse(`the array reaches to byte ${last} of an allocation of ${bytes} bytes`);
  }
  return { sizes: BigUint64Array.from(sizes, BigInt), byteStrides: BigUint64Array.from(outer) };
}

/** Encodes a tensor map at host address `target`. @throws ArgumentError, UnsupportedError */
export function encodeTensorMap(
  context: DriverContext,
  map: TensorMapShape,
  view: TensorView,
  base: Address,
  bytes: number,
  target: Address,
): void {
  const { library } = context;
  const encoder = view.windows === undefined ? "cuTensorMapEncodeTiled" : "cuTensorMapEncodeIm2col";
  if (library[encoder] === undefined) {
    throw new UnsupportedError(
      `Tensor map ${map.name} needs an NVIDIA driver for CUDA 12.0 or newer; ${library.file} has no ${encoder}.`,
    );
  }
  const { sizes, byteStrides } = tensorMapExtents(map, view, base, bytes);
  const tensor = [
    target,
    tensorMapDataType(map),
    map.rank,
    base,
    sizes,
    // The driver wants an array even where it reads nothing from it.
    byteStrides.length === 0 ? new BigUint64Array(1) : byteStrides,
  ] as const;
  const way = [interleaveNone, swizzles[map.swizzle], promotion128, outOfBoundsZero] as const;
  const code =
    view.windows === undefined
      ? library.cuTensorMapEncodeTiled!(
          ...tensor,
          Uint32Array.from(map.box),
          new Uint32Array(map.rank).fill(1),
          ...way,
        )
      : library.cuTensorMapEncodeIm2col!(
          ...tensor,
          Int32Array.from(view.windows.lower),
          Int32Array.from(view.windows.upper),
          map.box[0]!,
          map.box[1]!,
          Uint32Array.of(1, ...view.windows.strides, 1),
          ...way,
        );
  const places =
    view.windows === undefined
      ? ""
      : `, places from ${view.windows.lower.join(", ")} to ${view.windows.upper.join(", ")} every ${view.windows.strides.join(", ")}`;
  context.check(
    code,
    `Encoding tensor map ${map.name} (${map.element.name}, sizes ${view.sizes.join(" x ")}, strides ${view.strides.join(", ")}, box ${map.box.join(" x ")}${places}, swizzle ${map.swizzle})`,
  );
}

/** The rules that depend on the kernel alone. */
function checkBox(map: TensorMapShape): void {
  const refuse = refusal(map);
  const elementBytes = byteSize(map.element);
  if (map.rank < 1 || map.rank > 5) refuse(`it has rank ${map.rank}; 1 to 5 exist`);
  const extents = map.windows ? 2 : map.rank;
  if (map.box.length !== extents) refuse(`its box has ${map.box.length} extents for rank ${map.rank}`);
  for (const [dimension, extent] of map.box.entries()) {
    const largest = map.windows && dimension === 1 ? mostPixels : largestBox;
    if (!Number.isInteger(extent) || extent < 1 || extent > largest) {
      refuse(`its box has extent ${extent} in dimension ${dimension}; 1 to ${largest} can be copied at once`);
    }
  }
  const row = map.box[0]! * elementBytes;
  if (row % copyUnit !== 0) {
    refuse(`its box has rows of ${row} bytes; they must be a multiple of ${copyUnit}`);
  }
  if (map.swizzle !== 0 && row > map.swizzle) {
    refuse(`its box has rows of ${row} bytes, more than the ${map.swizzle} of its swizzle; split the box`);
  }
}

function outerStride(
  refuse: (why: string) => never,
  dimension: number,
  size: number,
  stride: number,
): number {
  // Along an extent of 1 no stride is ever followed, but the driver checks it.
  if (size === 1) return copyUnit;
  if (!(stride >= 0 && stride < strideLimit)) {
    refuse(`the stride of dimension ${dimension} is ${stride} bytes; 0 up to 2^40 can be addressed`);
  }
  if (stride % copyUnit !== 0) {
    refuse(
      `the stride of dimension ${dimension} is ${stride} bytes; it must be a multiple of ${copyUnit} (pad the rows, or use a kernel without bulk copies)`,
    );
  }
  return stride;
}

function refusal(map: TensorMapShape): (why: string) => never {
  return (why) => {
    throw new ArgumentError(`Tensor map ${map.name} of ${map.element.name} cannot be made: ${why}.`);
  };
}
