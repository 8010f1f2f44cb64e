/** @file What each pass does to small kernels, seen in the printed form. */
import { describe, expect, test } from "vitest";
import { constant, KernelBuilder } from "../ir/builder-for-tests.ts";
import type { KernelIr, Operand } from "../ir/nodes.ts";
import { print } from "../ir/printer.ts";
import { verify, verifyOptimised } from "../ir/verifier.ts";
import { nvidiaTarget } from "../target/nvidia.ts";
import { bool, type ElementType, f16, f32, i32, index, u32 } from "../types/types.ts";
import { optimise, type PassName, passes } from "./index.ts";

const facts = nvidiaTarget("sm_90a");
const c = (type: ElementType, value: number) => constant(type, value);

/** The body after passes, without the declarations above it. */
function bodyAfter(
  names: readonly PassName[],
  build: (b: KernelBuilder) => void,
  header: Partial<KernelIr> = {},
): string[] {
  const b = new KernelBuilder(header);
  build(b);
  const kernel = names.reduce((current, name) => passes[name](current, facts), b.build());
  verifyOptimised(kernel);
  const lines = print(kernel).split("\n").slice(1, -2);
  return lines
    .filter((line) => !/^ {2}(block|subgroup|arena|parameter|shared|variable|constant) .*/.test(line))
    .map((line) => line.slice(2));
}

/** The stored value after folding. */
function folded(type: ElementType, build: (b: KernelBuilder, x: Operand) => Operand): string {
  const lines = bodyAfter(["fold", "drop"], (b) => {
    const x = b.parameter(b.scalarParameter("x", type));
    b.write(b.variable("v", type), build(b, x));
    b.effect("print", [b.read(b.variables[0]!)], { parts: ["", ""] });
  });
  return lines.filter((line) => !line.startsWith("print") && !line.includes("readRegister")).join("; ");
}

describe("fold", () => {
  test("floats keep their zeros and NaNs", () => {
    expect(folded(f32, (b, x) => b.calculate("add", x, c(f32, 0)))).toContain("add f32 %0, 0");
    expect(folded(f32, (b, x) => b.calculate("add", x, c(f32, -0)))).toContain("writeRegister %0");
    expect(folded(f32, (b, x) => b.calculate("mul", x, c(f32, 0)))).toContain("mul f32 %0, 0");
    expect(folded(f32, (b, x) => b.calculate("mul", c(f32, 1), x))).toContain("writeRegister %0");
    expect(folded(f32, (b, x) => b.calculate("sub", x, x))).toContain("sub");
  });
  test("integers", () => {
    expect(folded(i32, (b, x) => b.calculate("sub", b.calculate("add", x, c(i32, 5)), c(i32, 7)))).toContain(
      "sub i32 %0, 2",
    );
    expect(folded(i32, (b, x) => b.calculate("mul", b.calculate("mul", x, c(i32, 5)), c(i32, 7)))).toContain(
      "mul i32 %0, 35",
    );
    expect(folded(i32, (b, x) => b.calculate("sub", x, x))).toContain("writeRegister 0:i32");
    expect(folded(u32, (b, x) => b.calculate("and", x, c(u32, 2 ** 32 - 1)))).toContain("writeRegister %0");
    expect(folded(i32, (b) => b.calculate("div", c(i32, -7), c(i32, 0)))).toContain("writeRegister -7:i32");
  });
  test("constants are rounded to their type, approximate functions stay", () => {
    expect(folded(f16, (b) => b.calculate("add", c(f16, 0.1), c(f16, 0)))).toContain("0.0999755859375:f16");
    expect(folded(f32, (b) => b.calculate("exp2", c(f32, 1)))).toContain("exp2 f32 1");
    expect(folded(f32, (b) => b.calculate("sqrt", c(f32, 4)))).toContain("writeRegister 2:f32");
  });
  test("a NaN's payload survives bit casts", () => {
    expect(
      folded(f32, (b) => b.op("bitcast", { element: f32, lanes: 1 }, [c(u32, 0x7fc00001)], {})),
    ).toContain("bitcast f32 2143289345:u32");
    expect(
      folded(u32, (b, x) =>
        b.op(
          "bitcast",
          { element: u32, lanes: 1 },
          [b.op("bitcast", { element: f32, lanes: 1 }, [x], {})],
          {},
        ),
      ),
    ).toContain("writeRegister %0");
  });
  test("negations", () => {
    expect(folded(bool, (b, x) => b.calculate("not", b.calculate("not", x)))).toContain("writeRegister %0");
    expect(
      folded(bool, (b) => b.calculate("not", b.compare("less", b.builtin("lane"), c(i32, 3)))),
    ).toContain("greaterEqual");
  });
  test("known branches and short loops", () => {
    const lines = bodyAfter(["fold"], (b) => {
      const x = b.buffer("x", f32);
      b.if(
        b.compare("less", c(i32, 1), c(i32, 2)),
        () => b.store(x, c(i32, 1), c(f32, 1)),
        () => b.store(x, c(i32, 2), c(f32, 2)),
      );
      b.loop(c(i32, 5), c(i32, 5), c(i32, 1), () => b.store(x, c(i32, 3), c(f32, 3)));
      b.loop(c(i32, 5), c(i32, 6), c(i32, 1), (i) => b.store(x, i, c(f32, 4)));
      b.loop(c(i32, 0), c(i32, 1), c(i32, 1), (i) =>
        b.if(b.compare("equal", b.builtin("lane"), i), () => b.jump("break")),
      );
    });
    expect(lines.slice(0, 2)).toEqual(["store 1:i32, 1:f32 {array x}", "store 5:i32, 4:f32 {array x}"]);
    expect(lines[2]).toMatch(/^loop/);
  });
});

describe("share", () => {
  test("what dominates, also with operands swapped; nothing from a sibling branch", () => {
    const lines = bodyAfter(["share", "drop"], (b) => {
      const x = b.buffer("x", i32);
      const lane = b.builtin("lane");
      const n = b.size(x);
      b.store(x, c(i32, 0), b.calculate("add", lane, n));
      b.if(
        b.compare("less", lane, n),
        () => {
          b.store(x, c(i32, 1), b.calculate("add", n, lane));
          b.store(x, c(i32, 2), b.calculate("mul", n, lane));
        },
        () => b.store(x, c(i32, 3), b.calculate("mul", n, lane)),
      );
    });
    expect(lines.filter((line) => line.includes("add"))).toHaveLength(1);
    expect(lines.filter((line) => line.includes("mul"))).toHaveLength(2);
  });
  test("loads from arrays are never shared", () => {
    const lines = bodyAfter(["share"], (b) => {
      const x = b.buffer("x", f32, "read");
      b.store(b.buffer("y", f32), c(i32, 0), b.calculate("add", b.load(x, c(i32, 0)), b.load(x, c(i32, 0))));
    });
    expect(lines.filter((line) => line.includes("load"))).toHaveLength(2);
  });
});

describe("reduce-strength", () => {
  const reduced = (build: (b: KernelBuilder, lane: Operand, n: Operand) => Operand): string =>
    bodyAfter(["reduce-strength", "drop"], (b) => {
      const x = b.buffer("x", i32);
      b.store(x, c(i32, 0), build(b, b.builtin("lane"), b.parameter(b.scalarParameter("n", i32))));
    }).at(-2)!;

  test("shifts and masks where the sign is known", () => {
    expect(reduced((b, lane) => b.calculate("div", lane, c(i32, 8)))).toBe("%1 = shiftRight i32 %0, 3:u32");
    expect(reduced((b, lane) => b.calculate("rem", lane, c(i32, 8)))).toBe("%1 = and i32 %0, 7");
    expect(reduced((b, _lane, n) => b.calculate("div", n, c(i32, 8)))).toBe("%1 = div i32 %0, 8");
    expect(reduced((b, _lane, n) => b.calculate("floorDiv", n, c(i32, 8)))).toBe(
      "%1 = shiftRight i32 %0, 3:u32",
    );
    expect(reduced((b, _lane, n) => b.calculate("floorMod", n, c(i32, 8)))).toBe("%1 = and i32 %0, 7");
    expect(reduced((b, lane) => b.calculate("floorDiv", lane, c(i32, 6)))).toBe("%1 = div i32 %0, 6");
    expect(reduced((b, lane) => b.calculate("mul", lane, c(i32, 16)))).toBe("%1 = shiftLeft i32 %0, 4:u32");
  });
  test("what is decided by ranges", () => {
    const lines = bodyAfter(["reduce-strength", "fold", "drop"], (b) => {
      const x = b.buffer("x", i32);
      const lane = b.builtin("lane");
      b.if(b.compare("less", lane, c(i32, 32)), () =>
        b.store(x, b.calculate("rem", lane, c(i32, 32)), b.calculate("div", lane, c(i32, 32))),
      );
    });
    expect(lines).toEqual(["%0 = builtin i32 {builtin lane}", "store %0, 0:i32 {array x}"]);
  });
});

describe("convert-ifs", () => {
  test("small assignments become selections", () => {
    const lines = bodyAfter(["convert-ifs"], (b) => {
      const v = b.variable("v", f32);
      b.write(v, c(f32, 0));
      const lane = b.builtin("lane");
      b.if(b.compare("less", lane, c(i32, 3)), () => b.write(v, b.convert(lane, f32)));
    });
    expect(lines).toEqual([
      "writeRegister 0:f32 (write v.0[0])",
      "%0 = builtin i32 {builtin lane}",
      "%1 = less bool %0, 3:i32",
      "%2 = convert f32 %0",
      "%3 = readRegister f32 (read v.0[0])",
      "%4 = select f32 %1, %2, %3",
      "writeRegister %4 (write v.0[0])",
    ]);
  });
  test("memory, fragments, unassigned variables and long sides stay", () => {
    const kept = (
      body: (b: KernelBuilder, v: ReturnType<KernelBuilder["variable"]>) => void,
      assigned = true,
    ): boolean =>
      bodyAfter(["convert-ifs"], (b) => {
        const v = b.variable("v", u32);
        if (assigned) b.write(v, c(u32, 0));
        b.if(b.compare("less", b.builtin("lane"), c(i32, 3)), () => body(b, v));
      }).some((line) => line.startsWith("if"));
    expect(kept((b, v) => b.write(v, c(u32, 1)))).toBe(false);
    expect(kept((b, v) => b.write(v, c(u32, 1)), false)).toBe(true);
    expect(kept((b, v) => b.write(v, b.load(b.buffer("x", u32), c(i32, 0))))).toBe(true);
    expect(kept((b, v) => b.write(v, b.calculate("div", b.read(v), c(u32, 3))))).toBe(true);
    expect(
      kept((b, v) => {
        b.write(v, c(u32, 1));
        b.effect(
          "loadMatrix",
          [c(i32, 0)],
          { array: b.shared("t", f16, 64), offset: 0, count: 1, transpose: false },
          [{ variable: v, offset: 0, count: 1, access: "write" }],
        );
      }),
    ).toBe(true);
  });
});

describe("hoist", () => {
  const loadIn = (
    turns: Operand | undefined,
    more: (b: KernelBuilder) => void = () => {},
    before: (b: KernelBuilder) => void = () => {},
  ) =>
    bodyAfter(["hoist"], (b) => {
      const x = b.buffer("x", f32, "read");
      const sum = b.variable("sum", f32);
      b.write(sum, c(f32, 0));
      b.loop(c(i32, 0), turns ?? b.size(x), c(i32, 1), () => {
        before(b);
        b.write(sum, b.calculate("add", b.read(sum), b.load(x, c(i32, 7))));
        more(b);
      });
    });
  const hoistsLoad = (lines: string[]): boolean =>
    lines.findIndex((line) => line.includes("load")) < lines.findIndex((line) => line.startsWith("loop"));

  test("index arithmetic, innermost loops first", () => {
    const lines = bodyAfter(["hoist"], (b) => {
      const x = b.buffer("x", f32, "readwrite", 2);
      const n = b.size(x);
      b.loop(c(i32, 0), n, c(i32, 1), (i) => {
        const row = b.convert(i, index);
        b.loop(c(i32, 0), n, c(i32, 1), (k) => {
          const base = b.calculate("mul", row, b.stride(x));
          b.store(x, b.calculate("add", base, b.convert(k, index)), c(f32, 0));
        });
      });
    });
    expect(lines).toEqual([
      "%0 = bufferSize i32 {dimension 0, parameter x}",
      "%1 = bufferStride index {dimension 0, parameter x}",
      "loop %2 i32 from 0:i32 to %0 step 1:i32 {",
      "  %3 = convert index %2",
      "  %4 = mul index %3, %1",
      "  loop %5 i32 from 0:i32 to %0 step 1:i32 {",
      "    %6 = convert index %5",
      "    %7 = add index %4, %6",
      "    store %7, 0:f32 {array x}",
      "  }",
      "}",
    ]);
  });
  test("a load from a read-only parameter, if the loop certainly runs and nothing may change it", () => {
    expect(hoistsLoad(loadIn(c(i32, 8)))).toBe(true);
    expect(hoistsLoad(loadIn(undefined))).toBe(false);
    const leave = (b: KernelBuilder): void =>
      b.if(b.compare("less", b.builtin("lane"), c(i32, 3)), () => b.jump("break"));
    expect(hoistsLoad(loadIn(c(i32, 8), leave))).toBe(true);
    expect(hoistsLoad(loadIn(c(i32, 8), undefined, leave))).toBe(false);
    expect(hoistsLoad(loadIn(c(i32, 8), (b) => b.effect("blockBarrier", [], {})))).toBe(false);
    expect(hoistsLoad(loadIn(c(i32, 8), (b) => b.store(b.buffer("y", f32), c(i32, 0), c(f32, 0))))).toBe(
      false,
    );
    expect(hoistsLoad(loadIn(c(i32, 8), (b) => b.store(b.shared("t", f32, 8), c(i32, 0), c(f32, 0))))).toBe(
      false,
    );
  });
});

describe("drop", () => {
  test("what nothing uses; volatile loads, atomics and barriers stay", () => {
    const lines = bodyAfter(["drop"], (b) => {
      const x = b.buffer("x", i32);
      const v = b.variable("v", i32);
      b.write(v, b.load(x, c(i32, 0)));
      b.load(x, c(i32, 1), { cache: "volatile" });
      b.op("atomic", { element: i32, lanes: 1 }, [c(i32, 0), c(i32, 1)], {
        array: { kind: "buffer", parameter: x },
        offset: 0,
        operation: "add",
        order: "relaxed",
        scope: "device",
      });
      b.effect("blockBarrier", [], {});
      b.if(b.compare("less", b.builtin("lane"), c(i32, 3)), () => b.calculate("add", b.read(v), c(i32, 1)));
    });
    expect(lines.map((line) => line.replace(/%\d+ = /, "").split(" ")[0])).toEqual([
      "load",
      "atomic",
      "blockBarrier",
    ]);
  });
});

describe("narrow", () => {
  test("64-bit positions that fit 32 bits", () => {
    const lines = bodyAfter(["narrow", "drop"], (b) => {
      const tile = b.shared("tile", f32, 4096);
      const wide = b.calculate("mul", b.convert(b.builtin("lane"), index), c(index, 64));
      b.store(tile, b.calculate("add", wide, b.convert(b.builtin("subgroupIndex"), index)), c(f32, 0));
    });
    expect(lines.join("\n")).not.toMatch(/index %/);
  });
  test("not those that may not", () => {
    const lines = bodyAfter(["narrow", "drop"], (b) => {
      const wide = b.calculate("mul", b.convert(b.builtin("blockIndexX"), index), c(index, 4096));
      b.store(b.buffer("x", f32), wide, c(f32, 0));
    });
    expect(lines.join("\n")).toMatch(/mul index/);
  });
});

test("optimise can stop, and shows its steps", () => {
  const b = new KernelBuilder();
  b.store(b.buffer("x", f32), b.calculate("add", b.builtin("lane"), c(i32, 3)), c(f32, 0));
  const kernel = b.build();
  verify(kernel);
  const seen: PassName[] = [];
  optimise(kernel, facts, { stopAfter: "share", inspect: (pass) => seen.push(pass) });
  expect(seen).toEqual(["fold", "share"]);
});

test("passes take time in proportion to the kernel", () => {
  const grow = (count: number): KernelIr => {
    const b = new KernelBuilder();
    const tile = b.shared("tile", f32, 65536);
    const acc = b.variable("acc", f32, 64);
    for (let n = 0; n < 64; n++) b.write(acc, c(f32, 0), n);
    const lane = b.builtin("lane");
    b.loop(c(i32, 0), b.size(b.buffer("x", f32)), c(i32, 1), (k) => {
      for (let n = 0; n < count / 8; n++) {
        const position = b.calculate(
          "add",
          b.calculate("mul", b.calculate("add", lane, c(i32, n % 97)), c(i32, 64)),
          k,
        );
        b.write(acc, b.calculate("fma", b.load(tile, position), c(f32, 2), b.read(acc, n % 64)), n % 64);
      }
    });
    return b.build();
  };
  const seconds = (kernel: KernelIr): number => {
    const start = performance.now();
    verify(kernel);
    optimise(kernel, facts);
    return (performance.now() - start) / 1000;
  };
  seconds(grow(2000));
  expect(seconds(grow(20_000))).toBeLessThan(15);
}, 60_000);
