/**
 * @file numpy's `descr` strings (`"<f4"`, `"|u1"`…) and the storage types that they stand for.
 *
 * numpy has no bfloat16 or FP8 of its own. The ml_dtypes package adds them; `numpy.save` then writes `"<V2"` for
 * bfloat16 and `"<V1"` for float8_e4m3fn, opaque bytes of that size, and `"<f1"` for float8_e5m2, which `numpy.load`
 * itself refuses.
 */

import { bf16, byteSize, e4m3, e5m2, type StorageType, type TypeName, types } from "../types/index.ts";

/** Order of the bytes of one element. */
export type ByteOrder = "little" | "big";

/** How elements lie in the file and what they are. */
export interface ElementFormat {
  readonly type: StorageType;
  readonly byteOrder: ByteOrder;
  /** What the reader should know about the reading chosen. */
  readonly note?: string;
}

/** Why a descr cannot be read, and what would work. */
export interface Refusal {
  readonly problem: string;
  readonly remedy: string;
}

const numbers: { readonly [kindAndSize: string]: StorageType } = {
  f1: types.e5m2,
  f2: types.f16,
  f4: types.f32,
  f8: types.f64,
  i1: types.i8,
  i2: types.i16,
  i4: types.i32,
  i8: types.i64,
  u1: types.u8,
  u2: types.u16,
  u4: types.u32,
  u8: types.u64,
};

const named: { readonly [name: string]: StorageType } = {
  bfloat16: bf16,
  float8_e4m3fn: e4m3,
  float8_e5m2: e5m2,
};

/** What a type kind that is not read is called, and what to do about it in Python. */
const foreignKinds: { readonly [kind: string]: readonly [name: string, remedy: string] } = {
  O: [
    "Python objects, which are pickled code",
    "save a numeric array: numpy.save(path, a.astype('float32'))",
  ],
  U: ["text", "save numbers: encode the text before, for example as indices into a vocabulary"],
  S: ["byte strings", "save their bytes as numbers: a.view('uint8')"],
  a: ["byte strings", "save their bytes as numbers: a.view('uint8')"],
  M: ["dates", "save them as integers: a.view('int64')"],
  m: ["time differences", "save them as integers: a.view('int64')"],
  c: [
    "complex numbers",
    "save real and imaginary parts side by side: a.view('float32') for complex64, 'float64' for complex128",
  ],
  f: ["floats of this size", "save as one of 'float16', 'float32', 'float64': a.astype('float64')"],
  i: ["integers of this size", "save as one of 'int8' to 'int64'"],
  u: ["integers of this size", "save as one of 'uint8' to 'uint64'"],
  b: ["truth values of this size", "save as 'bool' or 'uint8'"],
};

/** The parts of `"<f4"`; undefined when the text is not of this form. */
function split(descr: string): { order: string; kind: string; size: number } | undefined {
  const order = "<>|=".includes(descr[0] ?? " ") ? descr[0]! : "";
  const kind = descr[order.length] ?? "";
  const digits = descr.slice(order.length + 1);
  if (!/^[A-Za-z]$/.test(kind) || !/^[0-9]{0,6}$/.test(digits)) return undefined;
  return { order, kind, size: digits === "" ? 0 : Number(digits) };
}

/**
 * What a descr stands for. `opaqueAs` states the type of opaque elements (`"<V2"`, `"|V1"`), whose size it must have.
 * A missing byte order, or `"="`, is taken as little-endian.
 */
export function elementFormat(descr: string, opaqueAs?: StorageType): ElementFormat | Refusal {
  if (Object.hasOwn(named, descr)) return { type: named[descr]!, byteOrder: "little" };
  // Dates carry their unit, "<M8[ns]"; it does not matter for the refusal.
  const parts = split(/^[<>|=]?[Mm]8\[/.test(descr) ? descr.slice(0, descr.indexOf("[")) : descr);
  if (parts === undefined) return unknown(descr);
  const { order, kind, size } = parts;
  const byteOrder = order === ">" ? "big" : "little";
  if (kind === "V") return opaqueFormat(descr, size, byteOrder, opaqueAs);
  if (kind === "b" && size === 1) {
    return { type: types.u8, byteOrder, note: "truth values, read as u8: 0 is false, 1 is true" };
  }
  const type = Object.hasOwn(numbers, kind + size) ? numbers[kind + size]! : undefined;
  if (type === undefined) return foreign(descr, kind);
  if (order === "|" && size > 1) {
    return {
      problem: `the dtype '${descr}' lacks a byte order`,
      remedy: `'<${kind}${size}' or '>${kind}${size}' would have one`,
    };
  }
  return { type, byteOrder };
}

function opaqueFormat(
  descr: string,
  size: number,
  byteOrder: ByteOrder,
  opaqueAs: StorageType | undefined,
): ElementFormat | Refusal {
  const problem = `the dtype '${descr}' says only that elements have ${size} byte${size === 1 ? "" : "s"}`;
  if (opaqueAs === undefined) {
    const candidates: { readonly [size: number]: string } = { 1: "e4m3 or e5m2", 2: "bf16" };
    const option = candidates[size];
    if (option === undefined) return { problem, remedy: "save the fields of a structured array one by one" };
    return {
      problem,
      remedy: `pass the option opaqueAs: ${option} when you know that this is what it holds`,
    };
  }
  if (byteSize(opaqueAs) === size) return { type: opaqueAs, byteOrder };
  return {
    problem: `${problem}, but opaqueAs is ${opaqueAs.name}, with ${byteSize(opaqueAs)}`,
    remedy: "leave the option away or give a type of this size",
  };
}

function foreign(descr: string, kind: string): Refusal {
  if (!Object.hasOwn(foreignKinds, kind)) return unknown(descr);
  const [name, remedy] = foreignKinds[kind]!;
  return { problem: `the dtype '${descr}' means ${name}, which cannot be read`, remedy };
}

function unknown(descr: string): Refusal {
  const shown = descr.length > 40 ? `${descr.slice(0, 40)}…` : descr;
  return {
    problem: `the dtype ${JSON.stringify(shown)} is not known`,
    remedy: "known are f2 f4 f8, i1 to i8, u1 to u8, b1, bfloat16, float8_e4m3fn and float8_e5m2",
  };
}

const written: { readonly [Name in StorageType["name"]]: string } = {
  f16: "f2",
  bf16: "V2",
  f32: "f4",
  f64: "f8",
  e4m3: "V1",
  e5m2: "V1",
  i8: "i1",
  i16: "i2",
  i32: "i4",
  i64: "i8",
  u8: "u1",
  u16: "u2",
  u32: "u4",
  u64: "u8",
} satisfies { readonly [Name in TypeName]?: string };

/**
 * The descr to write for a type. bf16 and fp8 become opaque bytes, which `numpy.load` reads and
 * `.view(ml_dtypes.bfloat16)` makes numbers of.
 */
export function descrOf(type: StorageType, byteOrder: ByteOrder): string {
  const order = byteSize(type) === 1 ? "|" : byteOrder === "little" ? "<" : ">";
  return order + written[type.name];
}
