import { describe, expect, it } from "vitest";
import { hashKernel } from "../ir/hash.ts";
import { simulatorFacts } from "../target/simulator.ts";
import { f16, f32, i32 } from "../types/types.ts";
import { printed, traced } from "./author-lines-for-tests.ts";
import { block } from "./block.ts";
import { subgroup } from "./collective.ts";
import { breakLoop, loop, when } from "./control.ts";
import { kernel } from "./kernel.ts";
import { select } from "./math.ts";
import { shared } from "./memory.ts";
import { inout, input } from "./parameters.ts";
import { thread } from "./thread.ts";
import { constant } from "./value.ts";
import { variable, variables } from "./variable.ts";
import { splat, unpack, vector } from "./vector.ts";

/** The body's steps, one a line, declarations apart. */
function steps(body: Parameters<typeof printed>[0]): string[] {
  const lines = printed(body).split("\n");
  const first =
    lines.findLastIndex((line) =>
      /^ {2}(block|subgroup|arena|parameter|shared|constant|variable) /.test(line),
    ) + 1;
  return lines.slice(first, -2).map((line) => line.slice(2));
}

describe("order", () => {
  it("every operator, load and variable read is a step where it was called", () => {
    expect(
      steps(({ x }) => {
        const sum = variable(f32, 0);
        const before = sum.value;
        const loaded = x.load(0);
        sum.value = loaded.add(1);
        x.store(0, before);
        x.store(1, sum.value);
        x.store(2, loaded);
      }),
    ).toEqual([
      "writeRegister 0:f32 (write v.0[0])",
      "%0 = readRegister f32 (read v.0[0])",
      "%1 = load f32 0:i32 {array x}",
      "%2 = add f32 %1, 1",
      "writeRegister %2 (write v.0[0])",
      "store 0:i32, %0 {array x}",
      "%3 = readRegister f32 (read v.0[0])",
      "store 1:i32, %3 {array x}",
      "store 2:i32, %1 {array x}",
    ]);
  });

  it("TypeScript's own control flow runs while tracing", () => {
    expect(
      steps(({ x }) => {
        const registers = variables(f32, 3, 0).map((_, i) => x.load(i));
        if (registers.length === 3) for (const [i, value] of registers.entries()) x.store(i, value);
        when(false, () => x.store(9, 1)).otherwise(() => x.store(8, 1));
        when(true, () => x.store(7, 1)).otherwise(() => x.store(6, 1));
      }).filter((step) => step.includes("store") || step.startsWith("if")),
    ).toEqual([
      "store 0:i32, %0 {array x}",
      "store 1:i32, %1 {array x}",
      "store 2:i32, %2 {array x}",
      "store 8:i32, 1:f32 {array x}",
      "store 7:i32, 1:f32 {array x}",
    ]);
  });

  it("when, otherwise, loop and break nest", () => {
    expect(
      steps(({ x, n }) => {
        loop({ from: thread.index, to: n.load(0), step: block.size }, (i) => {
          when(x.load(i).gt(0), () => x.store(i, 0)).otherwise(() => breakLoop());
        });
      }),
    ).toEqual([
      "%0 = builtin i32 {builtin threadIndexX}",
      "%1 = load i32 0 {array n}",
      "loop %2 i32 from %0 to %1 step 64:i32 {",
      "  %3 = load f32 %2 {array x}",
      "  %4 = greater bool %3, 0:f32",
      "  if %4 {",
      "    store %2, 0:f32 {array x}",
      "  } else {",
      "    break",
      "  }",
      "}",
    ]);
  });

  it("the steps of one condition stand before its branch", () => {
    expect(steps(({ x }) => void when(x.load(0).lt(x.load(1)), () => {})).slice(0, 3)).toEqual([
      "%0 = load f32 0:i32 {array x}",
      "%1 = load f32 1:i32 {array x}",
      "%2 = less bool %0, %1",
    ]);
  });
});

describe("numbers", () => {
  it("take the type of the value they meet", () => {
    expect(
      steps(({ x, n }) => {
        x.store(0, x.load(0).mul(2).fma(3, 4));
        n.store(0, n.load(0).shiftLeft(3).and(7));
        x.store(1, select(n.load(1).eq(0), 1, x.load(1)));
      }),
    ).toEqual([
      "%0 = load f32 0:i32 {array x}",
      "%1 = mul f32 %0, 2",
      "%2 = fma f32 %1, 3, 4",
      "store 0:i32, %2 {array x}",
      "%3 = load i32 0 {array n}",
      "%4 = shiftLeft i32 %3, 3",
      "%5 = and i32 %4, 7",
      "store 0:i32, %5 {array n}",
      "%6 = load i32 1 {array n}",
      "%7 = equal bool %6, 0:i32",
      "%8 = load f32 1:i32 {array x}",
      "%9 = select f32 %7, 1, %8",
      "store 1:i32, %9 {array x}",
    ]);
  });

  it("keep the sign of zero and the infinities", () => {
    const text = steps(({ x }) => {
      x.store(0, -0);
      x.store(1, Number.POSITIVE_INFINITY);
      x.store(2, Number.NaN);
    });
    expect(text).toEqual([
      "store 0:i32, -0:f32 {array x}",
      "store 1:i32, Infinity:f32 {array x}",
      "store 2:i32, NaN:f32 {array x}",
    ]);
  });

  it("that are positions split into what tracing knows and what it does not", () => {
    expect(
      steps(() => {
        const tile = shared(f32, [4, 8]);
        tile.store(2, 3, 1);
        tile.store(thread.x, 3, tile.load(1, thread.x));
      }),
    ).toEqual([
      "store 19:i32, 1:f32 {array shared0.0}",
      "%0 = builtin i32 {builtin threadIndexX}",
      "%1 = builtin i32 {builtin threadIndexX}",
      "%2 = add i32 %1, 8",
      "%3 = load f32 %2 {array shared0.0}",
      "%4 = mul i32 %0, 8",
      "%5 = add i32 %4, 3",
      "store %5, %3 {array shared0.0}",
    ]);
  });
});

describe("vectors", () => {
  it("are made, taken apart and seen as other types", () => {
    expect(
      steps(({ x, n }) => {
        const four = x.loadVectorAt(4, 0);
        x.storeVectorAt(4, four.fma(2, splat(f32, 4, 1)));
        x.store(0, vector(x.load(1), x.load(2)).at(1));
        n.storeVectorAt(0, four.bitcast(i32, 4));
        x.store(0, unpack(n.load(0), f16, 2).at(1).to(f32));
      }),
    ).toEqual([
      "%0 = load f32x4 0:i32 {array x}",
      "%1 = fma f32x4 %0, 2, 1",
      "store 4:i32, %1 {array x}",
      "%2 = load f32 1:i32 {array x}",
      "%3 = load f32 2:i32 {array x}",
      "%4 = compose f32x2 %2, %3",
      "%5 = extract f32 %4 {lane 1}",
      "store 0:i32, %5 {array x}",
      "%6 = bitcast i32x4 %0",
      "store 0:i32, %6 {array n}",
      "%7 = load i32 0 {array n}",
      "%8 = bitcast f16x2 %7",
      "%9 = extract f16 %8 {lane 1}",
      "%10 = convert f32 %9",
      "store 0:i32, %10 {array x}",
    ]);
  });
});

describe("identity", () => {
  const facts = simulatorFacts();
  const build = (offset: number) => traced(({ x }) => x.store(offset, x.load(0).add(1)));

  it("the hash of a kernel ignores positions and nothing else", () => {
    const here = build(0);
    const there = traced(({ x }) => x.store(0, x.load(0).add(1)));
    expect(here.positions[0]?.line).not.toBe(there.positions[0]?.line);
    expect(hashKernel(here)).toBe(hashKernel(there));
    expect(hashKernel(build(1))).not.toBe(hashKernel(here));
  });

  it("a kernel is traced anew for each target", () => {
    const adaptive = kernel("adaptive", {
      params: { x: inout(f32) },
      block: ({ subgroup: { width } }) => 2 * width,
      body: ({ x }) => x.storeAt(subgroup.size, constant(f32, block.size)),
    });
    expect(adaptive.trace(facts).block).toEqual([64, 1, 1]);
    expect(adaptive.trace(simulatorFacts({ subgroupWidth: 8 })).block).toEqual([16, 1, 1]);
  });

  it("a body that throws leaves nothing behind", () => {
    const failing = kernel("failing", {
      params: { x: input(f32) },
      block: 32,
      body() {
        throw new Error("mine");
      },
    });
    expect(() => failing.trace(facts)).toThrow("mine");
    expect(() => thread.index).toThrow("belongs inside a kernel's body");
    build(0);
  });
});
