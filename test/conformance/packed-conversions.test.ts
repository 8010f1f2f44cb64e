/** @file Conversions of packed small numbers in registers, over every value: fp8 vectors, and nibbles to 16-bit floats. */
import { bf16, e4m3, e5m2, f16, f32, type StorageType, u32 } from "tilewright";
import { block, input, kernel, output, thread, unpack4 } from "tilewright/lang";
import { describe, expect, it } from "vitest";
import { generatePtx } from "../../src/codegen/ptx/index.ts";
import { verify } from "../../src/ir/verifier.ts";
import { optimise } from "../../src/passes/index.ts";
import { nvidiaTarget } from "../../src/target/nvidia.ts";
import { convertValue } from "../../src/types/convert.ts";
import { decode } from "../../src/types/host.ts";
import { assemble } from "../support/ptxas.ts";
import { requirement } from "../support/require.ts";
import { onEveryDevice, poisoned } from "./table.ts";

const eights = [e4m3, e5m2] as const;
const wides = [f16, bf16, f32] as const;
const bytes = Uint8Array.from({ length: 256 }, (_, n) => n);

// Tables over types: what is right for each is checked while tracing.
// biome-ignore lint/suspicious/noExplicitAny: a kernel over all element types
const converts = (from: any, to: any, lanes: 2 | 4) =>
  kernel("converts", {
    params: { x: input(from), y: output(to) },
    block: 64,
    body({ x, y }) {
      const at = block.id.x.mul(64).add(thread.index).mul(lanes);
      // biome-ignore lint/suspicious/noExplicitAny: as above
      y.storeVectorAt(at, x.loadVectorAt(lanes, at).to(to) as any);
    },
  });

const unpacks = (type: typeof f16 | typeof bf16, encoding: "unsigned" | "signed" | "offset") =>
  kernel("unpacks", {
    params: { x: input(u32), y: output(type) },
    block: 32,
    body({ x, y }) {
      unpack4(x.load(thread.index), type as typeof f16, encoding).forEach((pair, n) => {
        y.storeVectorAt(thread.index.mul(8).add(2 * n), pair as never);
      });
    },
  });

const meanings = {
  unsigned: (nibble: number) => nibble,
  signed: (nibble: number) => (nibble ^ 8) - 8,
  offset: (nibble: number) => nibble - 8,
} as const;

onEveryDevice((device) => {
  const pairs = eights.flatMap((eight) => wides.map((wide) => [eight.name, wide.name, eight, wide] as const));
  it.for(pairs)("%s to %s and back", async ([, , eight, wide], { skip }) => {
    const { storage } = device().facts;
    skip(!storage.has(eight.name) || !storage.has(wide.name), "the target lacks the type");
    const exact = decode(eight, bytes) as Float32Array;
    for (const lanes of [2, 4] as const) {
      const x = device().arrayFromBits(eight, [256], bytes);
      const y = poisoned(device(), wide as StorageType, [256]);
      await device().run(converts(eight, wide, lanes), { blocks: 4 / lanes, args: { x, y } as never });
      expect([...((await y.read()) as Float32Array)]).toEqual([...exact]);
      for (const array of [x, y]) array.dispose();
    }
    // Halfway between neighbours, just beyond, out of range: rounded once, saturated.
    const values = [...exact].flatMap((value, n) => [value, (value + exact[(n + 1) % 256]!) / 2]);
    const given = values.map((value) => convertValue(value, f32, wide) as number);
    const x = device().array(wide as StorageType, [512], given);
    const y = poisoned(device(), eight, [512]);
    await device().run(converts(wide, eight, 4), { blocks: 2, args: { x, y } as never });
    expect([...((await y.read()) as Float32Array)]).toEqual(
      given.map((value) => convertValue(value, wide, eight)),
    );
    for (const array of [x, y]) array.dispose();
  });

  const kinds = [f16, bf16].flatMap((type) =>
    (["unsigned", "signed", "offset"] as const).map((encoding) => [type.name, encoding, type] as const),
  );
  it.for(kinds)("nibbles to %s, %s", async ([, encoding, type], { skip }) => {
    skip(!device().facts.arithmetic.has(type.name), "the target lacks the type");
    const words = Array.from(
      { length: 32 },
      (_, n) => (Math.imul(n + 1, 0x9e3779b1) ^ (n * 0x01234567)) >>> 0,
    );
    const x = device().array(u32, [32], words);
    const y = poisoned(device(), type as StorageType, [256]);
    await device().run(unpacks(type, encoding), { blocks: 1, args: { x, y } as never });
    const expected = words.flatMap((word) =>
      [0, 4, 1, 5, 2, 6, 3, 7].map((nibble) => meanings[encoding]((word >>> (4 * nibble)) & 15)),
    );
    expect([...((await y.read()) as Float32Array)]).toEqual(expected);
    for (const array of [x, y]) array.dispose();
  });
});

describe("as PTX for sm_90a", () => {
  const facts = nvidiaTarget("sm_90a");
  const textOf = (made: unknown): string => {
    const traced = (made as { trace(facts: object): never }).trace(facts);
    verify(traced);
    return generatePtx(optimise(traced, facts), facts).text;
  };
  const count = (text: string, what: RegExp): number => text.match(what)?.length ?? 0;
  const assembles = (text: string): void => {
    if (!requirement("ptxas").available) return;
    const assembly = assemble(text);
    expect(assembly.succeeded, assembly.log).toBe(true);
  };

  it("fp8 converts two at a time", () => {
    for (const eight of eights) {
      const narrow = textOf(converts(f16, eight, 4));
      const wide = textOf(converts(eight, f16, 4));
      expect(count(narrow, /cvt\.rn\.satfinite\.e.m.x2\.f16x2/g)).toBe(2);
      expect(count(wide, /cvt\.rn\.f16x2\./g)).toBe(2);
      expect(count(textOf(converts(bf16, eight, 4)), /cvt\.rn\.satfinite\.e.m.x2\.f32/g)).toBe(2);
      assembles(narrow);
      assembles(wide);
    }
  });

  it("nibbles take a shift, two bit operations that lop3 joins, and a subtraction a pair", () => {
    const text = textOf(unpacks(f16, "signed"));
    expect(count(text, /shr\.u32/g)).toBe(3);
    expect(count(text, /and\.b32/g)).toBe(4);
    expect(count(text, /xor\.b32/g)).toBe(4);
    expect(count(text, /(sub|add)\S*\.f16x2/g)).toBe(4);
    assembles(text);
  });
});
