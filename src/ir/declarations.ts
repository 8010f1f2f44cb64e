/**
 * @file What a kernel declares beside its body: parameters, shared arrays, constant tables.
 */
import type { ElementType, StorageType } from "../types/types.ts";

/** An array in global memory: pointer plus, where the body asks for them, sizes and strides (in elements). */
export interface BufferParameter {
  readonly kind: "buffer";
  readonly id: number;
  readonly name: string;
  readonly element: StorageType;
  /** Rank 1 is contiguous; higher ranks bring sizes and strides along. */
  readonly rank: number;
  readonly access: "read" | "write" | "readwrite";
}

/** A number passed by value. `index` parameters are 64-bit. */
export interface ScalarParameter {
  readonly kind: "scalar";
  readonly id: number;
  readonly name: string;
  readonly element: ElementType;
}

/** Bytes of the shared-memory swizzle pattern of a tensor map or matrix descriptor; 0 is none. */
export type SwizzleBytes = 0 | 32 | 64 | 128;

/** A tensor map (TMA descriptor) over an array given at launch. `box[0]` is the innermost extent, in elements. */
export interface TensorMapParameter {
  readonly kind: "tensorMap";
  readonly id: number;
  readonly name: string;
  readonly element: StorageType;
  readonly rank: number;
  /** Extents, innermost first; of a map of windows its channels and pixels. */
  readonly box: readonly number[];
  /** Over images of rank 4: loads walk from pixel to pixel of the places of a filter (the hardware's im2col mode). */
  readonly windows?: true;
  readonly swizzle: SwizzleBytes;
  /** f32 elements become tf32 numbers (roundToTF32Even of types/round.ts) on their way to shared memory. */
  readonly rounding?: "tf32";
}

export type Parameter = BufferParameter | ScalarParameter | TensorMapParameter;

/**
 * A typed view of the block's shared memory, at a fixed byte offset of one arena. Views may overlap (overlaid tiles,
 * reinterpretation). `purpose: "barrier"` marks mbarrier words (element u64).
 */
export interface SharedArray {
  readonly id: number;
  readonly name: string;
  readonly element: StorageType;
  readonly length: number;
  readonly byteOffset: number;
  readonly purpose: "data" | "barrier";
}

/** Read-only numbers compiled into the kernel. */
export interface ConstantTable {
  readonly id: number;
  readonly name: string;
  readonly element: StorageType;
  readonly values: readonly (number | bigint)[];
}

/** Where an access goes. */
export type ArrayReference =
  | { readonly kind: "buffer"; readonly parameter: BufferParameter }
  | { readonly kind: "shared"; readonly array: SharedArray }
  | { readonly kind: "constant"; readonly table: ConstantTable };
