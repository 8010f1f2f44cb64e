/**
 * @file Which types elements are computed in.
 */
import {
  type BF16,
  type Bool,
  type E4M3,
  type E5M2,
  type ElementType,
  type F16,
  type F32,
  f32,
  type I8,
  type I16,
  type I32,
  i32,
  isArithmetic,
  type StorageType,
  type U8,
  type U16,
  type U32,
  u8,
  u32,
} from "../types/types.ts";

/** Types that sums are kept in: floats of at most 16 bits in f32, integers of at most 16 bits in i32 or u32. */
export type Accumulated<T extends StorageType> = T extends F16 | BF16 | E4M3 | E5M2
  ? F32
  : T extends I8 | I16
    ? I32
    : T extends U8 | U16
      ? U32
      : T;

/** The type that sums of a type's elements are kept in. */
export function accumulatedType<T extends StorageType>(type: T): Accumulated<T> {
  const wide = type.bits >= 32 ? type : type.class === "float" ? f32 : type.class === "signed" ? i32 : u32;
  return wide as Accumulated<T>;
}

/** The type that a scalar of a storage type travels in to a kernel. */
export function scalarType(type: StorageType): StorageType {
  return isArithmetic(type) ? type : accumulatedType(type);
}

/** Types of arrays that hold a function's results: those of memory as they are, truth values as u8. */
export type Stored<R extends ElementType> = R extends StorageType ? R : R extends Bool ? U8 : never;

/** The type of an array that holds results of a type; undefined when memory has none. */
export function storedType(type: ElementType): StorageType | undefined {
  if (type.name === "bool") return u8;
  return type.bits >= 8 ? (type as StorageType) : undefined;
}
