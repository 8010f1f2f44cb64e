import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FileError } from "../errors.ts";
import { bf16, e4m3, e5m2, f16, f32, i16, u8 } from "../types/index.ts";
import { memorySource } from "./bytes.ts";
import { descrOf, elementFormat } from "./descr.ts";
import { describeNpy, formatHeader, parseHeader, stridesOf } from "./header.ts";

const seed = 20240615;

/** A version 1 file with this dictionary, as it stands, and so many bytes of data. */
function file(dictionary: string, dataBytes = 0, version = 1): Uint8Array {
  const text = new TextEncoder().encode(dictionary);
  const start = version === 1 ? 10 : 12;
  const bytes = new Uint8Array(start + text.length + dataBytes);
  bytes.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, version, 0]);
  const view = new DataView(bytes.buffer);
  if (version === 1) view.setUint16(8, text.length, true);
  else view.setUint32(8, text.length, true);
  bytes.set(text, start);
  return bytes;
}

const plain = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
const withDescr = (descr: string): string => `{'descr': ${descr}, 'fortran_order': False, 'shape': (1,), }`;
const withShape = (shape: string): string => `{'descr': '|u1', 'fortran_order': False, 'shape': ${shape}, }`;

describe("the dictionary", () => {
  test.each([
    [plain, [2, 3]],
    ['{"shape":(2,3),"fortran_order":False,"descr":"<f4"}', [2, 3]],
    ["  { 'shape' : ( 7 , ) , 'descr' : '<f4' , 'fortran_order' : False }   \n", [7]],
    ["{'descr': '<f4', 'fortran_order': False, 'shape': (), }", []],
    ["{'descr': '<f4', 'fortran_order': False, 'shape': (4L, 5L,)}", [4, 5]],
    ["{'descr': '<f4', 'fortran_order': False, 'shape': (0, 5)}", [0, 5]],
  ])("%s", (dictionary, shape) => {
    const header = parseHeader(file(dictionary));
    expect(header).toMatchObject({ descr: "<f4", fortranOrder: false, shape, version: 1 });
    expect(header.dataOffset).toBe(10 + dictionary.length);
  });

  test.each([
    ["", "expected {"],
    ["{}", "'descr' is missing"],
    ["{'descr': '<f4', 'shape': (1,)}", "'fortran_order' is missing"],
    ["{'descr': '<f4', 'fortran_order': True}", "'shape' is missing"],
    ["{'descr': '<f4', 'descr': '<f4'}", 'the key "descr" is foreign or given twice'],
    ["{'evil': 1}", 'the key "evil" is foreign or given twice'],
    [`${plain} import os`, "something follows"],
    [withDescr("__import__('os')"), "expected a quoted string"],
    [withDescr("'\\x3cf4'"), "escapes"],
    [withDescr("'<f4"), "expected }"],
    ["{'descr': '<f4", "does not end"],
    [withDescr("'<f4' '<f4'"), "expected }"],
    [withShape("(3)"), "one dimension is written (n,)"],
    [withShape("[3]"), "expected ("],
    [withShape("(-1,)"), "expected a size of 0 or more"],
    [withShape("(1.5,)"), "one dimension is written"],
    [withShape("(1, 2.5)"), "expected )"],
    [withShape("(1e9, 2)"), "one dimension is written"],
    [withShape("(,)"), "expected a size"],
    [withShape("(99999999999999999999,)"), "beyond any array"],
    [withShape(`(${"1, ".repeat(65)})`), "more than 64 dimensions"],
    ["{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", "expected True or False"],
    ["{'descr': '<f4' 'fortran_order': True, 'shape': (1,)}", "expected }"],
  ])("is refused: %s", (dictionary, problem) => {
    expect(() => parseHeader(file(dictionary), "a.npy")).toThrow(FileError);
    expect(() => parseHeader(file(dictionary), "a.npy")).toThrow(problem);
    expect(() => parseHeader(file(dictionary), "a.npy")).toThrow(/^a\.npy: .*numpy\.save/);
  });

  test("structured elements are refused by name", () => {
    expect(() => parseHeader(file(withDescr("[('a', '<f4')]")))).toThrow(/structured .*a\['field'\]/);
  });
});

describe("the preamble", () => {
  test("must be that of a known version", () => {
    expect(() => parseHeader(new TextEncoder().encode("PK\x03\x04 an archive"), "x.npz")).toThrow(
      /^x\.npz: not a \.npy/,
    );
    const newer = file(plain);
    newer[6] = 4;
    expect(() => parseHeader(newer)).toThrow(/format 4\.0 is not known/);
    expect(() => parseHeader(new Uint8Array(0))).toThrow(/not a \.npy file/);
  });

  test("may not claim more than a header can hold or the file has", async () => {
    const huge = file(plain, 0, 2);
    new DataView(huge.buffer).setUint32(8, 0xffffffff, true);
    expect(() => parseHeader(huge)).toThrow(/claims 4294967295 bytes, more than the 65535/);
    await expect(describeNpy(memorySource(huge))).rejects.toThrow(/claims 4294967295/);
    const long = file(plain);
    new DataView(long.buffer).setUint16(8, 5000, true);
    expect(() => parseHeader(long)).toThrow(/needs 5010 bytes, 69 are there/);
    await expect(describeNpy(memorySource(long))).rejects.toThrow(/needs 5010 bytes/);
    expect(() => parseHeader(file(plain, 0, 2).subarray(0, 11))).toThrow(/needs 12 bytes, 11 are there/);
  });

  test("version 3 is UTF-8", () => {
    expect(parseHeader(file(plain, 0, 3)).version).toBe(3);
    const broken = file(withDescr("'é'"), 0, 3);
    broken[broken.indexOf(0xc3)] = 0xff;
    expect(() => parseHeader(broken)).toThrow(/not valid UTF-8/);
  });
});

describe("element types", () => {
  test.each([
    ["<f2", f16, "little"],
    [">f4", f32, "big"],
    ["=f4", f32, "little"],
    ["f4", f32, "little"],
    ["|u1", u8, "little"],
    ["<u1", u8, "little"],
    [">i2", i16, "big"],
    ["bfloat16", bf16, "little"],
    ["float8_e4m3fn", e4m3, "little"],
    ["float8_e5m2", e5m2, "little"],
    ["<f1", e5m2, "little"],
  ] as const)("%s", (descr, type, byteOrder) => {
    expect(elementFormat(descr)).toEqual({ type, byteOrder });
  });

  test("truth values are read as u8, with a note", () => {
    expect(elementFormat("|b1")).toMatchObject({ type: u8, note: expect.stringContaining("truth values") });
  });

  test("opaque elements want their type stated, in the size that they have", () => {
    expect(elementFormat("<V2")).toMatchObject({ remedy: expect.stringContaining("opaqueAs: bf16") });
    expect(elementFormat("|V1")).toMatchObject({ remedy: expect.stringContaining("opaqueAs: e4m3 or e5m2") });
    expect(elementFormat("|V12")).toMatchObject({ remedy: expect.stringContaining("one by one") });
    expect(elementFormat("<V2", bf16)).toEqual({ type: bf16, byteOrder: "little" });
    expect(elementFormat("|V1", e5m2)).toEqual({ type: e5m2, byteOrder: "little" });
    expect(elementFormat("|V1", bf16)).toMatchObject({
      problem: expect.stringContaining("opaqueAs is bf16, with 2"),
    });
  });

  test.each([
    ["|O", "Python objects"],
    ["<U7", "text"],
    ["|S3", "byte strings"],
    ["<M8[ns]", "dates"],
    ["<m8[25s]", "time differences"],
    ["<c8", "complex numbers"],
    ["<f16", "floats of this size"],
    ["<f", "floats of this size"],
    ["|f4", "lacks a byte order"],
    ["float8_e4m3", "not known"],
    ["<q8", "not known"],
    ["", "not known"],
    ["<", "not known"],
    ["toString", "not known"],
    ["<f4,<f4", "not known"],
    ["x".repeat(1000), "not known"],
  ])("%s is refused, saying what would work", (descr, name) => {
    const refusal = elementFormat(descr, bf16);
    expect(refusal).toMatchObject({
      problem: expect.stringContaining(name),
      remedy: expect.stringMatching(/.{10}/),
    });
    expect(JSON.stringify(refusal).length).toBeLessThan(300);
  });

  test("are written as numpy and ml_dtypes write them", () => {
    expect(descrOf(f16, "little")).toBe("<f2");
    expect(descrOf(f32, "big")).toBe(">f4");
    expect(descrOf(u8, "big")).toBe("|u1");
    expect(descrOf(bf16, "little")).toBe("<V2");
    expect(descrOf(e4m3, "little")).toBe("|V1");
  });
});

describe("sizes are checked before anything is allocated", () => {
  test("the shape against the file", async () => {
    const description = await describeNpy(memorySource(file(plain, 24)));
    expect(description).toMatchObject({
      type: f32,
      shape: [2, 3],
      strides: [3, 1],
      elements: 6,
      order: "row-major",
    });
    await expect(describeNpy(memorySource(file(plain, 23), "b.npy"))).rejects.toThrow(
      "b.npy: the shape [2, 3] of f32 needs 24 bytes after the header, 23 are there",
    );
    expect((await describeNpy(memorySource(file(plain, 30)))).elements).toBe(6);
  });

  test("products that overflow", async () => {
    for (const shape of ["(4294967296, 4294967296)", "(9007199254740991,)", "(0, 9007199254740991, 4)"]) {
      await expect(describeNpy(memorySource(file(withShape(shape))))).rejects.toThrow(FileError);
    }
  });

  test("an empty array needs no bytes", async () => {
    expect((await describeNpy(memorySource(file(withShape("(0, 5)"))))).elements).toBe(0);
  });
});

test("strides follow the order", () => {
  expect(stridesOf([2, 3, 4], "row-major")).toEqual([12, 4, 1]);
  expect(stridesOf([2, 3, 4], "column-major")).toEqual([1, 2, 6]);
  expect(stridesOf([], "row-major")).toEqual([]);
});

test("a written header begins the data at a multiple of 64 and reads back", () => {
  const shapes = fc.array(fc.nat({ max: 2 ** 31 - 1 }), { maxLength: 64 });
  const property = fc.property(
    shapes,
    fc.constantFrom(1 as const, 2 as const, 3 as const),
    fc.boolean(),
    (shape, version, column) => {
      const order = column ? "column-major" : "row-major";
      const bytes = formatHeader({ type: f32, shape, order, byteOrder: "little", version });
      const header = parseHeader(bytes);
      expect(bytes.length % 64).toBe(0);
      expect(header).toEqual({
        version,
        descr: "<f4",
        fortranOrder: column,
        shape,
        dataOffset: bytes.length,
      });
    },
  );
  fc.assert(property, { seed, numRuns: 300 });
});
