import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ArgumentError, FileError, ShapeError, TypeMismatchError } from "../errors.ts";
import {
  bf16,
  byteSize,
  e5m2,
  f16,
  f32,
  i16,
  isStorage,
  rawArray,
  type StorageArray,
  type StorageType,
  types,
  u8,
} from "../types/index.ts";
import {
  type ByteSource,
  describeNpy,
  memorySink,
  memorySource,
  type NpyInput,
  type NpyWriteOptions,
  readNpy,
  readNpyChunks,
  writeNpy,
  writeNpyChunks,
} from "./index.ts";

const seed = 20240616;
const storageTypes: readonly StorageType[] = Object.values(types).filter(isStorage);

/** Bytes from text in Latin-1, one character a byte. */
const latin1 = (text: string): Uint8Array => Uint8Array.from(text, (character) => character.charCodeAt(0));

/** The bytes of a version 1 file whose header numpy pads to 128 bytes. */
const golden = (dictionary: string, data: string): Uint8Array =>
  latin1(`\x93NUMPY\x01\x00v\x00${dictionary.padEnd(117)}\n${data}`);

async function written(array: NpyInput, options?: NpyWriteOptions): Promise<Uint8Array> {
  const sink = memorySink();
  await writeNpy(sink, array, options);
  return sink.bytes();
}

describe("files as numpy.save writes them", () => {
  const scalar = golden("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "\x00\x00@@");
  const bigEndian = golden(
    "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }",
    "\x00\x00\x00\x03\x00\x01\x00\x04\x00\x02\x00\x05",
  );
  const empty = golden("{'descr': '|b1', 'fortran_order': False, 'shape': (0, 3), }", "");
  const brain = golden("{'descr': '<V2', 'fortran_order': False, 'shape': (2,), }", "\x80?\x80\xbf");
  const quarter = golden("{'descr': '<f1', 'fortran_order': False, 'shape': (2,), }", "<<");

  test("a single number", async () => {
    const array = await readNpy(memorySource(scalar));
    expect(array).toMatchObject({ type: f32, shape: [], strides: [], elements: 1, data: Float32Array.of(3) });
    expect("note" in array).toBe(false);
  });

  test("big-endian, column-major", async () => {
    const array = await readNpy(memorySource(bigEndian));
    expect(array).toMatchObject({ type: i16, shape: [2, 3], order: "column-major", strides: [1, 2] });
    expect(array.data).toEqual(Int16Array.of(0, 3, 1, 4, 2, 5));
  });

  test("no elements, truth values", async () => {
    const array = await readNpy(memorySource(empty));
    expect(array).toMatchObject({ type: u8, shape: [0, 3], data: new Uint8Array(0) });
    expect(array.note).toMatch(/truth values/);
  });

  test("bfloat16 and FP8 of ml_dtypes", async () => {
    await expect(readNpy(memorySource(brain, "w.npy"))).rejects.toThrow(/^w\.npy: .*opaqueAs: bf16/);
    expect((await readNpy(memorySource(brain), { opaqueAs: bf16 })).data).toEqual(
      Uint16Array.of(0x3f80, 0xbf80),
    );
    expect(await readNpy(memorySource(quarter))).toMatchObject({
      type: e5m2,
      data: Uint8Array.of(0x3c, 0x3c),
    });
  });

  test("are what is written, but for padding", async () => {
    const scalarWritten = await written({ type: f32, shape: [], data: Float32Array.of(3) });
    expect(String.fromCharCode(...scalarWritten)).toBe(
      `\x93NUMPY\x01\x00v\x00${"{'descr': '<f4', 'fortran_order': False, 'shape': (), }".padEnd(117)}\n\x00\x00@@`,
    );
    const data = Int16Array.of(0, 3, 1, 4, 2, 5);
    const columns = { type: i16, shape: [2, 3], order: "column-major", data } as const;
    expect(await written(columns, { byteOrder: "big" })).toEqual(bigEndian);
    expect(await written({ type: bf16, shape: [2], data: Uint16Array.of(0x3f80, 0xbf80) })).toEqual(brain);
  });
});

describe("what is written reads back", () => {
  const arrays = fc
    .record({
      type: fc.constantFrom(...storageTypes),
      shape: fc.array(fc.nat({ max: 4 }), { maxLength: 4 }),
      order: fc.constantFrom("row-major" as const, "column-major" as const),
      bytes: fc.uint8Array({ minLength: 2048, maxLength: 2048 }),
    })
    .map(({ type, shape, order, bytes }) => {
      const elements = shape.reduce((product, size) => product * size, 1);
      return { type, shape, order, data: rawArray(type, bytes.slice().buffer, 0, elements) };
    });
  const options = fc.record({
    version: fc.constantFrom(1 as const, 2 as const, 3 as const),
    byteOrder: fc.constantFrom("little" as const, "big" as const),
  });
  const bytesOf = (data: StorageArray): Uint8Array =>
    new Uint8Array(data.buffer, data.byteOffset, data.byteLength);

  test("every type, order, byte order and version", async () => {
    const property = fc.asyncProperty(arrays, options, async (array, option) => {
      const file = await written(array, option);
      const { type, shape, order, elements, version, data } = await readNpy(memorySource(file), {
        opaqueAs: array.type,
      });
      expect({ type, shape, order, elements, version }).toEqual({
        type: array.type,
        shape: array.shape,
        order: array.order,
        elements: array.data.length,
        version: option.version,
      });
      expect(bytesOf(data)).toEqual(bytesOf(array.data));
    });
    await fc.assert(property, { seed, numRuns: 500 });
  });

  test("in pieces, too", async () => {
    const property = fc.asyncProperty(
      arrays,
      options,
      fc.integer({ min: 8, max: 100 }),
      async (array, option, size) => {
        const whole = bytesOf(array.data);
        const pieces: StorageArray[] = [];
        for (let i = 0; i < array.data.length; i += 7) pieces.push(array.data.slice(i, i + 7));
        const sink = memorySink();
        await writeNpyChunks(sink, array, pieces, option);
        expect(sink.bytes()).toEqual(await written(array, option));
        const source = memorySource(sink.bytes());
        const description = await describeNpy(source, { opaqueAs: array.type });
        let position = 0;
        for await (const { start, data } of readNpyChunks(source, description, size)) {
          expect(start).toBe(position);
          expect(data.byteLength).toBeLessThanOrEqual(size);
          const offset = start * byteSize(array.type);
          expect(bytesOf(data)).toEqual(whole.subarray(offset, offset + data.byteLength));
          position += data.length;
        }
        expect(position).toBe(array.data.length);
      },
    );
    await fc.assert(property, { seed, numRuns: 200 });
  });
});

describe("misuse while writing", () => {
  const sink = memorySink();

  test("is refused before anything is written", async () => {
    const data = new Float32Array(5);
    await expect(writeNpy(sink, { type: f32, shape: [2, 3], data })).rejects.toThrow(ShapeError);
    await expect(writeNpy(sink, { type: f32, shape: [2, 3], data })).rejects.toThrow(
      /has 6 elements, the data 5/,
    );
    await expect(writeNpy(sink, { type: f32, shape: [-1], data })).rejects.toThrow(ArgumentError);
    await expect(writeNpy(sink, { type: f32, shape: [2.5], data })).rejects.toThrow(ArgumentError);
    const wrong = data as unknown as Uint16Array;
    await expect(writeNpy(sink, { type: f16, shape: [5], data: wrong })).rejects.toThrow(TypeMismatchError);
    expect(sink.bytes()).toHaveLength(0);
  });

  test("pieces must add up", async () => {
    const piece = new Float32Array(2);
    const shape = { type: f32, shape: [3] } as const;
    await expect(writeNpyChunks(memorySink(), shape, [piece])).rejects.toThrow(/hold only 2/);
    await expect(writeNpyChunks(memorySink(), shape, [piece, piece])).rejects.toThrow(/hold more/);
  });
});

test("a chunk holds at least one element", async () => {
  const source = memorySource(await written({ type: f32, shape: [1], data: Float32Array.of(1) }));
  const description = await describeNpy(source);
  await expect(readNpyChunks(source, description, 3).next()).rejects.toThrow(ArgumentError);
  await expect(readNpyChunks(source, description, NaN).next()).rejects.toThrow(ArgumentError);
});

test("a source that shrinks while it is read is an error", async () => {
  const bytes = await written({ type: f32, shape: [4], data: new Float32Array(4) });
  const shrinking: ByteSource = {
    ...memorySource(bytes.subarray(0, bytes.length - 1), "c.npy"),
    size: bytes.length,
  };
  await expect(readNpy(shrinking)).rejects.toThrow(/^c\.npy: asked for 16 bytes at 128, got 15/);
});

test("an array that no typed array holds is pointed to the pieces", async () => {
  const huge = 2 ** 46;
  const header = (await written({ type: u8, shape: [0], data: new Uint8Array(0) })).slice(0, 128);
  header.set(latin1(`{'descr': '|u1', 'fortran_order': False, 'shape': (${huge},), }`), 10);
  const source: ByteSource = { ...memorySource(header, "huge.npy"), size: 128 + huge };
  await expect(readNpy(source)).rejects.toThrow(/^huge\.npy: .*readNpyChunks/);
});

test("sizes and offsets beyond 4 GiB are exact", async () => {
  const elements = 5 * 2 ** 30 + 3;
  const header = (await written({ type: u8, shape: [0], data: new Uint8Array(0) })).slice(0, 128);
  header.set(latin1(`{'descr': '|u1', 'fortran_order': False, 'shape': (${elements},), }`), 10);
  const reads: [number, number][] = [];
  const source: ByteSource = {
    name: "virtual.npy",
    size: 128 + elements,
    read: (offset, length) => {
      reads.push([offset, length]);
      return Promise.resolve(
        offset < 128 ? header.subarray(offset, offset + length) : new Uint8Array(length),
      );
    },
  };
  const description = await describeNpy(source);
  expect(description.elements).toBe(elements);
  await expect(describeNpy({ ...source, size: 127 + elements })).rejects.toThrow(/needs 5368709123 bytes/);
  // The last elements alone, as if the rest had been read.
  const tail = { ...description, dataOffset: 128 + elements - 5, elements: 5 };
  const starts: number[] = [];
  for await (const { start } of readNpyChunks(source, tail, 2)) starts.push(start);
  expect(starts).toEqual([0, 2, 4]);
  expect(reads.at(-1)).toEqual([128 + elements - 1, 1]);
});

describe("foreign bytes", () => {
  /** A source that fails the test when more is asked for than is there. */
  function guarded(bytes: Uint8Array): ByteSource {
    const source = memorySource(bytes, "fuzz.npy");
    return {
      ...source,
      read: (offset, length) => {
        if (offset < 0 || length < 0 || offset + length > bytes.length)
          throw new Error("read beyond the file");
        return source.read(offset, length);
      },
    };
  }

  async function survives(bytes: Uint8Array): Promise<boolean> {
    try {
      const { data } = await readNpy(guarded(bytes), { opaqueAs: bf16 });
      return data.byteLength <= bytes.length;
    } catch (error) {
      if (error instanceof FileError && error.message.startsWith("fuzz.npy: "))
        return error.message.length < 1000;
      throw error;
    }
  }

  const honest = fc
    .record({
      type: fc.constantFrom(...storageTypes),
      shape: fc.array(fc.nat({ max: 3 }), { maxLength: 3 }),
      version: fc.constantFrom(1 as const, 2 as const, 3 as const),
    })
    .map(({ type, shape, version }) => {
      const elements = shape.reduce((product, size) => product * size, 1);
      return written({ type, shape, data: rawArray(type, elements) }, { version });
    });
  const mutations = fc.array(fc.tuple(fc.nat({ max: 90 }), fc.nat({ max: 255 })), { maxLength: 6 });

  test("with some bytes changed give an array or a FileError", async () => {
    const property = fc.asyncProperty(honest, mutations, async (file, changes) => {
      const bytes = await file;
      for (const [position, value] of changes) bytes[position] = value;
      return survives(bytes);
    });
    await fc.assert(property, { seed, numRuns: 3000 });
  });

  test("with characters of the dictionary changed give an array or a FileError", async () => {
    const character = fc.constantFrom(..."{}()[]'\",: 0123456789LTF<>|=fiubVOe\\\n");
    const edits = fc.array(
      fc.tuple(fc.integer({ min: 10, max: 80 }), character, fc.constantFrom("replace", "insert", "delete")),
      { minLength: 1, maxLength: 8 },
    );
    const property = fc.asyncProperty(honest, edits, async (file, changes) => {
      const bytes = [...(await file)];
      for (const [position, text, kind] of changes) {
        const inserted = kind === "delete" ? [] : [text.charCodeAt(0)];
        bytes.splice(position, kind === "insert" ? 0 : 1, ...inserted);
      }
      return survives(Uint8Array.from(bytes));
    });
    await fc.assert(property, { seed, numRuns: 3000 });
  });

  test("cut off at any place give a FileError or, in the padding of nothing, an array", async () => {
    const bytes = await written({ type: f32, shape: [2, 3], data: new Float32Array(6) });
    for (let length = 0; length < bytes.length; length++) {
      await expect(readNpy(guarded(bytes.subarray(0, length)))).rejects.toThrow(FileError);
    }
  });

  test("at random, with or without the magic, give a FileError", async () => {
    const start = latin1("\x93NUMPY\x01\x00");
    const property = fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), fc.boolean(), (bytes, magic) =>
      survives(magic ? Uint8Array.from([...start, ...bytes]) : bytes),
    );
    await fc.assert(property, { seed, numRuns: 2000 });
  });
});
