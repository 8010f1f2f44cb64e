/** @file The printed form and hashes of kernels. */
import { describe, expect, test } from "vitest";
import { bool, f16, f32, i32, u32, u64 } from "../types/types.ts";
import { constant, KernelBuilder } from "./builder-for-tests.ts";
import { hashKernel, hashText } from "./hash.ts";
import type { KernelIr } from "./nodes.ts";
import { print } from "./printer.ts";

function rowSum(change: (b: KernelBuilder) => void = () => {}): KernelIr {
  const b = new KernelBuilder({ name: "row_sum", block: [256, 1, 1] });
  const x = b.buffer("x", f32, "read", 2);
  const y = b.buffer("y", f32, "write");
  const tile = b.shared("tile", f32, 64);
  const sum = b.variable("sum", f32);
  const pair = b.variable("pair", f16, 4, 2);
  const thread = b.builtin("threadIndexX");
  b.write(sum, constant(f32, -0));
  b.loop(thread, b.size(x, 1), constant(i32, 256), (column) => {
    b.write(sum, b.calculate("add", b.read(sum), b.load(x, column, { offset: 4 })));
  });
  b.if(
    b.compare("equal", thread, constant(i32, 0)),
    () => b.store(y, thread, b.read(sum)),
    () => b.jump("exit"),
  );
  b.while(
    () => constant(bool, false),
    () => b.effect("blockBarrier", [], {}),
  );
  b.effect("loadMatrix", [thread], { array: tile, offset: 0, count: 4, transpose: true }, [
    { variable: pair, offset: 0, count: 4, access: "write" },
  ]);
  change(b);
  return b.build();
}

describe("print", () => {
  test("shows everything, readably", () => {
    expect(print(rowSum())).toBe(`kernel row_sum {
  block 256 1 1
  subgroup 32
  arena 256 bytes, aligned to 16
  parameter x: read f32, rank 2
  parameter y: write f32, rank 1
  shared tile.0: f32[64] at 0
  variable sum.0: f32
  variable pair.1: f16x2[4]
  %0 = builtin i32 {builtin threadIndexX}
  writeRegister -0:f32 (write sum.0[0])
  %1 = bufferSize i32 {dimension 1, parameter x}
  loop %2 i32 from %0 to %1 step 256:i32 {
    %3 = readRegister f32 (read sum.0[0])
    %4 = load f32 %2 {array x, offset 4}
    %5 = add f32 %3, %4
    writeRegister %5 (write sum.0[0])
  }
  %6 = equal bool %0, 0:i32
  if %6 {
    %7 = readRegister f32 (read sum.0[0])
    store %0, %7 {array y}
  } else {
    exit
  }
  while {
  } test false:bool {
    blockBarrier
  }
  loadMatrix %0 (write pair.1[0+4]) {array tile.0, count 4, transpose true}
}
`);
  });

  test("shows roles, tensor maps and nested attributes", () => {
    const b = new KernelBuilder({ block: [256, 1, 1], cluster: [2, 1, 1], blocksPerMultiprocessor: 2 });
    const map = b.tensorMap("map", f16, [64, 64], 128);
    const tile = b.shared("tile", f16, 4096);
    const full = b.shared("full", u64, 2, "barrier");
    const acc = b.variable("acc", f32, 32);
    const a = b.variable("a", u32, 4);
    const matrix = {
      array: tile,
      offset: 8,
      swizzle: 128,
      major: "k",
      leadingBytes: 16,
      strideBytes: 1024,
    } as const;
    b.roles([
      {
        name: "load",
        firstWarp: 0,
        warps: 4,
        registers: { count: 40, direction: "decrease" },
        body: () =>
          b.effect("tensorLoad", [constant(i32, 0), constant(i32, 1), constant(i32, 0), constant(i32, 0)], {
            map,
            target: tile,
            targetOffset: 0,
            barrier: full,
            barrierOffset: 0,
            multicast: false,
          }),
      },
      {
        name: "multiply",
        firstWarp: 4,
        warps: 4,
        body: () =>
          b.effect(
            "warpgroupMma",
            [constant(i32, 0), constant(bool, true)],
            {
              shape: { m: 64, n: 64, k: 16 },
              a: f16,
              b: f16,
              accumulator: f32,
              sharedA: undefined,
              sharedB: matrix,
              negateA: false,
              negateB: true,
            },
            [
              { variable: acc, offset: 0, count: 32, access: "readwrite" },
              { variable: a, offset: 0, count: 4, access: "read" },
            ],
          ),
      },
    ]);
    expect(print(b.build())).toContain(`  roles {
    role load warps 0+4 decrease registers to 40 {
      tensorLoad 0:i32, 1:i32, 0:i32, 0:i32 {barrier full.1, map map, target tile.0}
    }
    role multiply warps 4+4 {
      warpgroupMma 0:i32, true:bool (readwrite acc.0[0+32], read a.1[0+4]) {a f16, accumulator f32, b f16, negateB true, shape {k 16, m 64, n 64}, sharedB {array tile.0, leadingBytes 16, major k, offset 8, strideBytes 1024, swizzle 128}}
    }
  }`);
  });

  test("ignores value ids and positions", () => {
    const kernel = rowSum();
    expect(print({ ...kernel, valueCount: 1000, positions: [] })).toBe(print(kernel));
  });
});

describe("hash", () => {
  test("tells texts apart, padding and length included", () => {
    expect(hashText("")).toBe("00000000000000000000000000000000");
    expect(hashText("a")).not.toBe(hashText("a\0"));
    expect(hashText("abcdefgh")).not.toBe(hashText("abcdefghi"));
    expect(hashText("kernel")).toMatch(/^[0-9a-f]{32}$/);
    const many = new Set(Array.from({ length: 20_000 }, (_, n) => hashText(`kernel ${n}`)));
    expect(many.size).toBe(20_000);
  });

  test("every attribute and constant matters", () => {
    const base = hashKernel(rowSum());
    expect(hashKernel(rowSum())).toBe(base);
    const x = { offset: 1 };
    const variants = [
      rowSum((b) => b.effect("fence", [], { scope: "block" })),
      rowSum((b) => b.effect("fence", [], { scope: "device" })),
      rowSum((b) => b.effect("copyAsyncWait", [], { pending: 0 })),
      rowSum((b) => b.effect("copyAsyncWait", [], { pending: x.offset })),
      rowSum((b) => b.write(b.variables[0]!, constant(f32, 0))),
      rowSum((b) => b.write(b.variables[0]!, constant(f32, -0))),
      { ...rowSum(), block: [128, 1, 1] as const },
      { ...rowSum(), subgroupSize: 16 },
      { ...rowSum(), sharedAlignment: 1024 },
    ];
    expect(new Set([base, ...variants.map(hashKernel)]).size).toBe(variants.length + 1);
  });
});
