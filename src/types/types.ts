/**
 * @file Element types: what one number in an array or a register is.
 *
 * A type is plain data with a literal `name`, so that `Value<F16>` and `Value<F32>` differ to the type checker. Storage
 * and arithmetic are separate questions: `e4m3`, `i8` and the like are *storage* types, loaded, stored, converted and fed
 * to matrix instructions; arithmetic happens in an {@link ArithmeticType}.
 */

/** What family a type belongs to; decides which operations exist. */
export type TypeClass = "float" | "signed" | "unsigned" | "bool" | "bits";

/** One element type. `bits` is the width in an array; `bool` has no array form (0 bits) and `index` none either. */
export interface Type<Name extends string, Class extends TypeClass> {
  readonly name: Name;
  readonly class: Class;
  /** Width of one element in memory, in bits; 0 for types that live in registers alone. */
  readonly bits: number;
  /** Significand bits including the hidden one (floats), or value bits excluding the sign (integers). */
  readonly precision: number;
}

export type F16 = Type<"f16", "float">;
export type BF16 = Type<"bf16", "float">;
export type F32 = Type<"f32", "float">;
export type F64 = Type<"f64", "float">;
/** FP8 with 4 exponent bits (OCP OFP8 E4M3: no infinity, one NaN, largest 448). */
export type E4M3 = Type<"e4m3", "float">;
/** FP8 with 5 exponent bits (OCP OFP8 E5M2: IEEE-like with infinity). */
export type E5M2 = Type<"e5m2", "float">;
/** Compute type of tensor cores over f32 storage: 10 explicit significand bits, low 13 bits of the f32 ignored. */
export type TF32 = Type<"tf32", "float">;
export type I8 = Type<"i8", "signed">;
export type I16 = Type<"i16", "signed">;
export type I32 = Type<"i32", "signed">;
export type I64 = Type<"i64", "signed">;
export type U8 = Type<"u8", "unsigned">;
export type U16 = Type<"u16", "unsigned">;
export type U32 = Type<"u32", "unsigned">;
export type U64 = Type<"u64", "unsigned">;
/** Global element positions: 64-bit signed in PTX, an exact double below 2^53 in the simulator, u32 in WGSL. */
export type Index = Type<"index", "signed">;
/** A truth value; registers only. */
export type Bool = Type<"bool", "bool">;
/** One bit, stored 32 to a u32 word, lowest bit first. */
export type B1 = Type<"b1", "bits">;

/** Every element type. */
export type ElementType =
  | F16
  | BF16
  | F32
  | F64
  | E4M3
  | E5M2
  | TF32
  | I8
  | I16
  | I32
  | I64
  | U8
  | U16
  | U32
  | U64
  | Index
  | Bool
  | B1;

export type TypeName = ElementType["name"];

/** Types that an array in memory can hold (b1 as packed words). */
export type StorageType = F16 | BF16 | F32 | F64 | E4M3 | E5M2 | I8 | I16 | I32 | I64 | U8 | U16 | U32 | U64;
/** Floating-point types with arithmetic. */
export type FloatType = F16 | BF16 | F32 | F64;
/** Integer types with arithmetic. */
export type IntegerType = I32 | I64 | U32 | U64 | Index;
/** Types with `add`, `mul` and the like. */
export type ArithmeticType = FloatType | IntegerType;

function type<Name extends string, Class extends TypeClass>(
  name: Name,
  cls: Class,
  bits: number,
  precision: number,
): Type<Name, Class> {
  return Object.freeze({ name, class: cls, bits, precision });
}

export const f16: F16 = type("f16", "float", 16, 11);
export const bf16: BF16 = type("bf16", "float", 16, 8);
export const f32: F32 = type("f32", "float", 32, 24);
export const f64: F64 = type("f64", "float", 64, 53);
export const e4m3: E4M3 = type("e4m3", "float", 8, 4);
export const e5m2: E5M2 = type("e5m2", "float", 8, 3);
export const tf32: TF32 = type("tf32", "float", 0, 11);
export const i8: I8 = type("i8", "signed", 8, 7);
export const i16: I16 = type("i16", "signed", 16, 15);
export const i32: I32 = type("i32", "signed", 32, 31);
export const i64: I64 = type("i64", "signed", 64, 63);
export const u8: U8 = type("u8", "unsigned", 8, 8);
export const u16: U16 = type("u16", "unsigned", 16, 16);
export const u32: U32 = type("u32", "unsigned", 32, 32);
export const u64: U64 = type("u64", "unsigned", 64, 64);
export const index: Index = type("index", "signed", 0, 53);
export const bool: Bool = type("bool", "bool", 0, 1);
export const b1: B1 = type("b1", "bits", 1, 1);

/** All types by name. */
export const types: { readonly [Name in TypeName]: Extract<ElementType, { name: Name }> } = Object.freeze({
  f16,
  bf16,
  f32,
  f64,
  e4m3,
  e5m2,
  tf32,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  index,
  bool,
  b1,
});

const arithmeticNames: ReadonlySet<TypeName> = new Set([
  "f16",
  "bf16",
  "f32",
  "f64",
  "i32",
  "i64",
  "u32",
  "u64",
  "index",
]);

/** Whether values of this type can be added and multiplied. */
export function isArithmetic(t: ElementType): t is ArithmeticType {
  return arithmeticNames.has(t.name);
}

/** Whether an array of this type can exist in memory. */
export function isStorage(t: ElementType): t is StorageType {
  return t.bits >= 8;
}

/** Whether the type is a float, storage-only ones included. */
export function isFloat(t: ElementType): boolean {
  return t.class === "float";
}

/** Whether the type is an integer (bool and b1 are not). */
export function isInteger(t: ElementType): boolean {
  return t.class === "signed" || t.class === "unsigned";
}

/** Bytes of one element in memory. @throws RangeError for types without a memory form. */
export function byteSize(t: ElementType): number {
  if (t.bits < 8) throw new RangeError(`${t.name} has no byte-addressed form in memory`);
  return t.bits / 8;
}
