import { describe, expect, it } from "vitest";
import { ArgumentError } from "../../errors.ts";
import { types } from "../../types/types.ts";
import { layOut, nativeParameter, viewOf, writeAddresses, writeNumber, writeWord } from "./arguments.ts";
import { FakeDriver } from "./fake-driver-for-tests.ts";

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

function written(element: keyof typeof types, value: number | bigint): string {
  const bytes = new Uint8Array(8);
  writeNumber(new DataView(bytes.buffer), 0, types[element], value, "Argument 0");
  return hex(bytes);
}

describe("the layout of a launch's arguments", () => {
  it("puts tensor maps first, then addresses, then a word for each other argument", () => {
    const layout = layOut([
      { kind: "pointer" },
      { kind: "tensorMap" },
      { kind: "number", element: types.f16 },
      { kind: "tensorMap" },
    ]);
    expect(layout.addressesOffset).toBe(256);
    expect(layout.offsets).toEqual([288, 0, 296, 128]);
    expect(layout.bytes).toBe(304);
  });

  it("has something to point at even without arguments", () => {
    expect(layOut([])).toMatchObject({ addressesOffset: 0, bytes: 8 });
  });

  it("fills in where each argument is", () => {
    const layout = layOut([{ kind: "pointer" }, { kind: "number", element: types.i32 }]);
    const block = new FakeDriver().hostBlock(layout.bytes, 64);
    writeAddresses(layout, block);
    const view = viewOf(block);
    expect(Number(view.getBigUint64(0, true))).toBe(block.address + 16);
    expect(Number(view.getBigUint64(8, true))).toBe(block.address + 24);
  });

  it("gives sizes 32 bits and strides 64, as the emitter declares them", () => {
    expect(nativeParameter({ kind: "size", parameter: 0, dimension: 0 })).toEqual({
      kind: "number",
      element: types.i32,
    });
    expect(nativeParameter({ kind: "stride", parameter: 0, dimension: 0 })).toEqual({
      kind: "number",
      element: types.i64,
    });
  });
});

describe("numbers", () => {
  it("are little-endian, rounded to their type, integers sign-extended", () => {
    expect(written("f16", 1.5)).toBe("003e000000000000");
    expect(written("bf16", -1)).toBe("80bf000000000000");
    expect(written("f32", 0.1)).toBe("cdcccc3d00000000");
    expect(written("tf32", 0.1)).toBe("cdcccc3d00000000");
    expect(written("f64", 0.1)).toBe("9a9999999999b93f");
    expect(written("e4m3", 448)).toBe("7e00000000000000");
    expect(written("i8", -2)).toBe("feffffffffffffff");
    expect(written("i32", -2)).toBe("feffffffffffffff");
    expect(written("u32", 0xfffffffe)).toBe("feffffff00000000");
    expect(written("i64", -2)).toBe("feffffffffffffff");
    expect(written("i64", -(2n ** 63n))).toBe("0000000000000080");
    expect(written("u64", 2n ** 64n - 1n)).toBe("ffffffffffffffff");
    expect(written("index", 2 ** 40 + 3)).toBe("0300000000010000");
    expect(written("bool", 1)).toBe("0100000000000000");
  });

  it("outside their type are refused", () => {
    for (const [element, value] of [
      ["i32", 2 ** 31],
      ["i32", 0.5],
      ["u32", -1],
      ["i8", 128],
      ["u8", 256],
      ["bool", 2],
      ["i64", 2 ** 53],
      ["u64", -1n],
      ["index", 0.5],
      ["i32", Number.NaN],
    ] as const) {
      expect(() => written(element, value), `${element} ${value}`).toThrow(ArgumentError);
    }
    expect(() => written("i32", 2 ** 31)).toThrow("Argument 0 is 2147483648, which i32 cannot hold.");
  });

  it("as words are exact up to 2^53", () => {
    for (const value of [0, 1, 2 ** 32 - 1, 2 ** 32, 2 ** 47 + 12345, -1, -(2 ** 40)]) {
      const view = new DataView(new ArrayBuffer(8));
      writeWord(view, 0, value);
      expect(Number(view.getBigInt64(0, true))).toBe(value);
    }
  });
});
