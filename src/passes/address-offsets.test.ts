/** @file Tiling costs nothing: instruction counts after splitting addresses. */
import { describe, expect, test } from "vitest";
import { constant, KernelBuilder } from "../ir/builder-for-tests.ts";
import type { AnyOperation, KernelIr, Operand } from "../ir/nodes.ts";
import { operations } from "../ir/operations.ts";
import { visitStatements } from "../ir/parameters.ts";
import { nvidiaTarget } from "../target/nvidia.ts";
import { type ElementType, f16, f32, i32, index, u32, u64 } from "../types/types.ts";
import { accessSlots } from "./accesses.ts";
import { optimise } from "./index.ts";

const facts = nvidiaTarget("sm_90a");

function all(kernel: KernelIr): AnyOperation[] {
  const found: AnyOperation[] = [];
  visitStatements(kernel.body, (statement) => {
    if (statement.kind === "operation") found.push(statement);
  });
  return found;
}

/** Pure operations left: what addresses cost. */
function arithmetic(kernel: KernelIr): string[] {
  return all(kernel)
    .filter(({ name }) => operations[name].pure && name !== "builtin" && name !== "parameter")
    .map(({ name }) => name);
}

function slots(kernel: KernelIr): { index: Operand; offset: number }[] {
  return all(kernel).flatMap((operation) =>
    accessSlots(operation).map(({ operand, offset }) => ({ index: operation.operands[operand]!, offset })),
  );
}

const c = (type: ElementType, value: number) => constant(type, value);

describe("constants of positions become offsets", () => {
  test("an unrolled shared tile is one base and immediates", () => {
    const b = new KernelBuilder();
    const tile = b.shared("tile", f32, 64 * 64);
    const lane = b.builtin("lane");
    for (let row = 0; row < 4; row++) {
      for (let column = 0; column < 4; column++) {
        // (lane / 8 + row) * 64 + (lane % 8 + column)
        const r = b.calculate("add", b.calculate("floorDiv", lane, c(i32, 8)), c(i32, row));
        const k = b.calculate("add", b.calculate("floorMod", lane, c(i32, 8)), c(i32, column));
        b.store(tile, b.calculate("add", b.calculate("mul", r, c(i32, 64)), k), c(f32, 1));
      }
    }
    const kernel = optimise(b.build(), facts);
    expect(arithmetic(kernel)).toEqual(["shiftRight", "and", "shiftLeft", "add"]);
    const positions = slots(kernel);
    expect(new Set(positions.map((slot) => slot.index)).size).toBe(1);
    expect(positions.map(({ offset }) => offset)).toEqual(
      [0, 1, 2, 3].flatMap((row) => [0, 1, 2, 3].map((column) => row * 64 + column)),
    );
  });

  test("along the unit stride of a global array too; another row costs one addition", () => {
    const b = new KernelBuilder();
    const x = b.buffer("x", f32, "readwrite", 2);
    const row = b.convert(b.builtin("blockIndexX"), index);
    const column = b.convert(b.builtin("threadIndexX"), index);
    const stride = b.stride(x);
    for (let r = 0; r < 3; r++) {
      for (let k = 0; k < 4; k++) {
        const base = b.calculate("mul", b.calculate("add", row, c(index, r)), stride);
        b.store(x, b.calculate("add", base, b.calculate("add", column, c(index, k))), c(f32, 0));
      }
    }
    const kernel = optimise(b.build(), facts);
    expect(new Set(slots(kernel).map((slot) => slot.index)).size).toBe(3);
    // Two conversions, the stride; a product and a sum for each row, and two rows further down.
    expect(arithmetic(kernel).filter((name) => name === "add").length).toBe(3 + 2);
    expect(arithmetic(kernel).filter((name) => name === "mul").length).toBe(3);
  });

  test("bases of other blocks are not computed again in a loop", () => {
    const b = new KernelBuilder();
    const tile = b.shared("tile", f32, 4096);
    const lane = b.builtin("lane");
    const warp = b.builtin("subgroupIndex");
    const outer = b.calculate("add", b.calculate("add", lane, c(i32, 3)), warp);
    b.loop(c(i32, 0), b.size(b.buffer("x", f32)), c(i32, 8), (k) => {
      b.store(
        tile,
        b.calculate("add", b.calculate("mul", b.calculate("add", outer, c(i32, 1)), c(i32, 8)), k),
        c(f32, 0),
      );
    });
    const kernel = optimise(b.build(), facts);
    const loop = kernel.body.statements.find((statement) => statement.kind === "loop")!;
    const inside = loop.kind === "loop" ? loop.body.statements : [];
    expect(inside.map((statement) => statement.kind === "operation" && statement.name)).toEqual([
      "shiftLeft",
      "add",
      "store",
    ]);
    expect(slots(kernel)[0]!.offset).toBe(32);
  });

  test("every kind of access", () => {
    const b = new KernelBuilder({ cluster: undefined });
    const tile = b.shared("tile", f16, 4096);
    const barrier = b.shared("barrier", u64, 8, "barrier");
    const x = b.buffer("x", f16);
    const map = b.tensorMap("map", f16, [64, 64], 128);
    const a = b.variable("a", u32, 4);
    const acc = b.variable("acc", f32, 32);
    const at = (offset: number, type: ElementType = i32) => {
      const lane = b.builtin("lane");
      return b.calculate("add", type === i32 ? lane : b.convert(lane, type), c(type, offset));
    };
    b.effect("barrierInit", [at(1)], { array: barrier, offset: 0, count: 1 });
    b.effect("barrierWait", [at(2), c(i32, 0)], { array: barrier, offset: 1 });
    b.effect("copyAsync", [at(8), at(16, index)], {
      target: tile,
      targetOffset: 0,
      source: { kind: "buffer", parameter: x },
      sourceOffset: 0,
      bytes: 16,
    });
    b.effect("tensorLoad", [at(64), at(3), c(i32, 0), c(i32, 0)], {
      map,
      target: tile,
      targetOffset: 0,
      barrier,
      barrierOffset: 0,
      multicast: false,
    });
    b.effect("tensorStore", [at(128), c(i32, 0), c(i32, 0)], { map, source: tile, sourceOffset: 0 });
    b.effect("loadMatrix", [at(32)], { array: tile, offset: 8, count: 4, transpose: false }, [
      { variable: a, offset: 0, count: 4, access: "write" },
    ]);
    const matrix = {
      array: tile,
      offset: 0,
      swizzle: 128,
      major: "k",
      leadingBytes: 16,
      strideBytes: 1024,
    } as const;
    b.effect(
      "warpgroupMma",
      [at(256), at(512), constant({ name: "bool", class: "bool", bits: 0, precision: 1 }, true)],
      {
        shape: { m: 64, n: 64, k: 16 },
        a: f16,
        b: f16,
        accumulator: f32,
        sharedA: matrix,
        sharedB: matrix,
        negateA: false,
        negateB: false,
      },
      [{ variable: acc, offset: 0, count: 32, access: "readwrite" }],
    );
    const kernel = optimise(b.build(), facts);
    expect(slots(kernel).map(({ offset }) => offset)).toEqual([1, 3, 8, 16, 64, 3, 128, 40, 256, 512]);
    expect(arithmetic(kernel)).toEqual([]);
  });
});

describe("only where the position stays the same", () => {
  function offsetOf(type: ElementType, build: (b: KernelBuilder, x: Operand) => Operand): number {
    const b = new KernelBuilder();
    const array = b.buffer("x", f32);
    const parameter = b.parameter(b.scalarParameter("n", type));
    b.store(array, build(b, parameter), c(f32, 0));
    return slots(optimise(b.build(), facts))[0]!.offset;
  }

  test("an i32 that may wrap keeps a constant below 0", () => {
    expect(offsetOf(i32, (b, x) => b.calculate("add", x, c(i32, 5)))).toBe(5);
    expect(offsetOf(i32, (b, x) => b.calculate("sub", x, c(i32, 5)))).toBe(0);
  });
  test("a u32 that may wrap keeps its constant", () => {
    expect(offsetOf(u32, (b, x) => b.calculate("add", x, c(u32, 5)))).toBe(0);
    expect(offsetOf(u32, (b, x) => b.calculate("add", b.calculate("and", x, c(u32, 255)), c(u32, 5)))).toBe(
      5,
    );
  });
  test("under a widening the narrow sum must not wrap", () => {
    expect(offsetOf(i32, (b, x) => b.convert(b.calculate("add", x, c(i32, 5)), index))).toBe(0);
    expect(
      offsetOf(i32, (b, x) =>
        b.convert(b.calculate("add", b.calculate("and", x, c(i32, 255)), c(i32, 5)), index),
      ),
    ).toBe(5);
  });
  test("index never wraps", () => {
    expect(offsetOf(index, (b, x) => b.calculate("sub", x, c(index, 5)))).toBe(-5);
  });
});
