import { ArgumentError, f16, f32, ShapeError } from "tilewright";
import { bias, contract, gemm, planContraction, planGemm, relu } from "tilewright/gemm";
import { describe, expect, it } from "vitest";
import { checkContraction, randomContraction, smallOptions } from "./contraction-cases.ts";
import { onEveryDevice } from "./table.ts";

const cases = process.env.TILEWRIGHT_SOAK === "1" ? 1000 : 16;

onEveryDevice((device) => {
  describe("a contraction", () => {
    it(`is right for ${cases} random specifications`, async () => {
      for (let seed = 1; seed <= cases; seed++)
        await checkContraction(device(), randomContraction(seed), seed);
    });

    it.for([
      "bda,dc->abc", // A's neighbours are along the slower mode of its rows
      "bad,dc->abc", // along K
      "adb,dc->abc", // along the faster mode of its rows
      "dbe,edc->bc", // K is of two modes in either
      "abd,cde->abce", // B's columns are of two
    ])("%s with its modes copied to lines first", async (specification, { skip }) => {
      skip(device().facts.warpgroupMma.length === 0, "the target has no warpgroup products");
      const extents = { a: 5, b: 12, c: 24, d: 72, e: 8 };
      const options = { pack: true } as const;
      const test = { specification, extents, type: f16, alpha: 2, beta: 1, views: false, options };
      await checkContraction(device(), test, 3);
      const dimensions = (indices: string): number[] =>
        [...indices].map((name) => extents[name as keyof typeof extents]);
      const [a, b] = specification
        .split("->")[0]!
        .split(",")
        .map((one) => device().array(f16, dimensions(one)));
      using plan = await planContraction(specification, a!, b!, options);
      expect(plan.explain()).toMatch(/schedule +warpgroup/);
      expect(plan.explain()).toMatch(/modes copied to lines of whole 16 bytes/);
      for (const array of [a!, b!, plan.d]) array.dispose();
    });

    it("without elements, without terms, of numbers", async () => {
      for (const extents of [
        { a: 0, b: 3, c: 2 },
        { a: 3, b: 0, c: 2 },
        { a: 3, b: 2, c: 0 },
      ]) {
        const test = { specification: "ab,bc->ca", extents, type: f32, alpha: 1, beta: 0, views: false };
        await checkContraction(device(), test, 1);
      }
      const test = { specification: ",->", extents: {}, type: f32, alpha: 1, beta: 0, views: false };
      await checkContraction(device(), test, 1);
    });

    it("that fuses to two dimensions is the plain product", async () => {
      const a = device().array(f16, [4, 8, 16]);
      const b = device().array(f16, [16, 24]);
      using folded = await planContraction("abk,kc->abc", a, b);
      using plain = await planGemm(a.reshape([32, 16]), b);
      const lines = (text: string): readonly string[] =>
        text.split("\n").filter((line) => !line.startsWith("traced"));
      expect(lines(folded.explain()).slice(1)).toEqual(lines(plain.explain()));
      expect(folded.products[0]!.compiled?.executable).toBe(plain.compiled?.executable);
    });

    it("loads one module for many sizes", async () => {
      const modules = new Set<unknown>();
      for (let i = 0; i < 20; i++) {
        const [p, q, r, s] = [2 + (i % 5), 2 + (i % 7), 3 + (i % 4), 2 + (i % 3)].map((x) => 2 * x + 1);
        const a = device().array(f32, [q!, s!, p!]);
        const b = device().array(f32, [s!, r!]);
        using plan = await planContraction("bda,dc->abc", a, b, smallOptions(device()));
        modules.add(plan.products[0]!.compiled?.executable);
        for (const array of [a, b, plan.d]) array.dispose();
      }
      expect(modules.size).toBe(1);
    });

    it("has epilogues that see D as a matrix in its own order", async () => {
      const [p, q, r, s] = [3, 2, 4, 5];
      const a = device().array(
        f32,
        [q, s, p],
        Array.from({ length: q * s * p }, (_, i) => (i % 7) - 3),
      );
      const b = device().array(
        f32,
        [s, r],
        Array.from({ length: s * r }, (_, i) => (i % 5) - 2),
      );
      const plain = await (await contract("bda,dc->abc", a, b)).read();
      const perRow = device().array(
        f32,
        [p * q],
        Array.from({ length: p * q }, (_, i) => 100 * i),
      );
      const biased = await contract("bda,dc->abc", a, b, { epilogue: [relu, bias(perRow, { per: "row" })] });
      const expected = Array.from(plain as Float32Array, (x, i) => Math.max(x, 0) + 100 * Math.floor(i / r));
      expect([...(await biased.read())]).toEqual([...expected]);
    });

    it("may write D over C, and over neither A nor B", async () => {
      const x = device().array(
        f32,
        [3, 2, 2],
        Array.from({ length: 12 }, (_, i) => i),
      );
      const y = device().array(f32, [2, 2], [1, 0, 0, 1]);
      const d = device().array(f32, [2, 3, 2], new Array(12).fill(1)).permute([1, 0, 2]);
      await contract("abk,kc->abc", x, y, { c: d, d });
      expect([...(await d.read())]).toEqual(Array.from({ length: 12 }, (_, i) => i + 1));
      await expect(contract("abk,kc->bac", x, y, { d: x.permute([1, 0, 2]) })).rejects.toThrow(
        "D overlaps A",
      );
    });

    it("is refused with the reason", async () => {
      const x = device().array(f32, [2, 3]);
      const y = device().array(f32, [3, 4]);
      await expect(contract("ab,cd->acd", x, y)).rejects.toThrow(/position 1: index b is in A alone/);
      await expect(contract("abc,cd->abd", x, y)).rejects.toThrow(
        /gives A 3 indices \(abc\); f32\[2, 3\] has rank 2/,
      );
      await expect(contract("ba,bc->ac", x, y)).rejects.toThrow(/index b is 2 in A .* and 3 in B/);
      await expect(contract("ab,bc->ac", x, y, { d: x })).rejects.toThrow(/has 3 where index c is 4/);
      await expect(contract("ab,bc->ac", x, {} as never)).rejects.toThrow(ArgumentError);
      const repeated = device().array(f32, [1, 4]).broadcast([2, 4]);
      await expect(contract("ab,bc->ac", x, y, { d: repeated })).rejects.toThrow(ShapeError);
      await expect(gemm(x, y, { d: { ...({} as object) } as never })).rejects.toThrow();
    });
  });
});
