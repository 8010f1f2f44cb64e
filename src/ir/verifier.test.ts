/** @file Each message of the verifier, with its lines. */
import { describe, expect, test } from "vitest";
import { TraceError } from "../errors.ts";
import { bool, type ElementType, f16, f32, i32, index, u8, u32, u64 } from "../types/types.ts";
import { boolScalar, constant, floatScalar, intScalar, KernelBuilder } from "./builder-for-tests.ts";
import type { IrValue, KernelIr, Operand, RegisterVariable, SharedArray } from "./nodes.ts";
import { verify } from "./verifier.ts";

const zero = constant(i32, 0);
const c = (type: ElementType, value: number) => constant(type, value);

/** What `verify` says about a kernel; lines are where it points. */
function complaint(
  build: (b: KernelBuilder) => void,
  header: Partial<KernelIr> = {},
): { message: string; lines: number[] } {
  const b = new KernelBuilder(header);
  build(b);
  try {
    verify(b.build());
  } catch (error) {
    if (!(error instanceof TraceError)) throw error;
    const [message] = error.message.split("\n    at ");
    return { message: message!, lines: error.positions.map(({ line }) => line) };
  }
  throw new Error("the kernel was accepted");
}

function accepts(build: (b: KernelBuilder) => void, header: Partial<KernelIr> = {}): void {
  const b = new KernelBuilder(header);
  build(b);
  verify(b.build());
}

describe("scopes", () => {
  test("a value used outside its block names both lines", () => {
    const { message, lines } = complaint((b) => {
      const x = b.buffer("x", f32);
      let inner: Operand = zero;
      b.at(1).loop(zero, c(i32, 4), c(i32, 1), (i) => {
        inner = b.at(7).load(x, i);
      });
      b.at(9).store(x, zero, inner);
    });
    expect(message).toMatch(/used outside the block where it was made/);
    expect(lines).toEqual([9, 7]);
  });
  test("a value used before it is made", () => {
    const value: IrValue = { kind: "value", id: 0, type: intScalar };
    const kernel: KernelIr = {
      ...new KernelBuilder().build(),
      valueCount: 1,
      body: {
        statements: [
          {
            kind: "operation",
            name: "neg",
            result: { ...value, id: 1 },
            operands: [value],
            registers: [],
            attributes: {},
            site: 0,
          },
          {
            kind: "operation",
            name: "builtin",
            result: value,
            operands: [],
            registers: [],
            attributes: { builtin: "lane" },
            site: 0,
          },
        ],
      },
    };
    expect(() => verify({ ...kernel, valueCount: 2 })).toThrow(/outside the block/);
    expect(() => verify(kernel)).toThrow(/value 1 is not among/);
  });
  test("a value of another kernel", () => {
    const foreign = new KernelBuilder().builtin("lane");
    expect(complaint((b) => b.store(b.buffer("x", f32), foreign, c(f32, 0)))).toEqual({
      message: "kernel test: a value of another kernel is used here",
      lines: [1],
    });
  });
  test("a while's condition is seen by its test alone", () => {
    accepts((b) =>
      b.while(
        () => b.compare("less", b.builtin("lane"), c(i32, 4)),
        () => b.jump("break"),
      ),
    );
    const { lines } = complaint((b) => {
      const x = b.buffer("x", f32);
      let inner: Operand = zero;
      b.while(
        () => {
          inner = b.at(5).builtin("lane");
          return b.compare("less", inner, c(i32, 4));
        },
        () => b.at(6).store(x, inner, c(f32, 0)),
      );
    });
    expect(lines).toEqual([6, 5]);
  });
});

describe("types", () => {
  const cases: readonly [string, (b: KernelBuilder) => void, RegExp][] = [
    [
      "mixed operands",
      (b) => b.op("add", floatScalar, [c(f32, 1), c(i32, 1)], {}),
      /operand 1 of add is i32, but the result is f32/,
    ],
    [
      "storage type",
      (b) => b.calculate("mul", constant(u8, 1), constant(u8, 2)),
      /mul is not defined for u8; convert to an arithmetic type first/,
    ],
    [
      "float remainder",
      (b) => b.calculate("rem", b.convert(zero, f32), c(f32, 1)),
      /rem is not defined for f32/,
    ],
    ["comparison", (b) => b.op("less", boolScalar, [c(f32, 1), c(i32, 1)], {}), /less compares f32 with i32/],
    [
      "comparison result",
      (b) => b.op("less", intScalar, [c(i32, 1), c(i32, 1)], {}),
      /gives bool; its result is declared i32/,
    ],
    ["select condition", (b) => b.select(zero, zero, zero), /operand 0 of select must be bool, not i32/],
    [
      "bit cast",
      (b) => b.op("bitcast", { element: f16, lanes: 1 }, [c(i32, 0)], {}),
      /bitcast needs equal widths; i32 and f16/,
    ],
    [
      "compose",
      (b) => b.op("compose", { element: f32, lanes: 4 }, [c(f32, 0)], {}),
      /compose takes 4 operands, not 1/,
    ],
    [
      "extract",
      (b) => b.op("extract", floatScalar, [constant(f32, 0, 2)], { lane: 2 }),
      /f32x2 has no lane 2/,
    ],
    ["if", (b) => b.if(zero, () => {}), /an if tests a i32/],
    ["loop", (b) => b.loop(zero, c(u32, 4), c(i32, 1), () => {}), /counts in i32 has a to of type u32/],
    [
      "loop type",
      (b) => b.loop(c(f32, 0), c(f32, 4), c(f32, 1), () => {}),
      /a loop counts in i32, u32 or index, not f32/,
    ],
    ["loop step", (b) => b.loop(zero, c(i32, 4), zero, () => {}), /step is positive, not 0/],
    [
      "load type",
      (b) =>
        b.op("load", intScalar, [zero], {
          array: { kind: "buffer", parameter: b.buffer("x", f32) },
          offset: 0,
          cache: "default",
        }),
      /x holds f32; load moves i32/,
    ],
    ["load width", (b) => b.load(b.buffer("x", f32), zero, { lanes: 8 }), /at most 16 bytes/],
    [
      "index type",
      (b) => b.load(b.buffer("x", f32), c(f32, 0)),
      /operand 0 of load must be i32 or u32 or index, not f32/,
    ],
    [
      "shuffle width",
      (b) => b.op("shuffle", intScalar, [zero, zero], { mode: "xor", width: 64 }),
      /up to the subgroup's 32 lanes, not 64/,
    ],
    ["print", (b) => b.effect("print", [zero], { parts: ["x"] }), /print has 1 texts around 1 operands/],
    ["variable type", (b) => b.write(b.variable("v", f32), zero), /variable v holds f32, not i32/],
    ["cluster", (b) => b.effect("clusterBarrier", [], { action: "arrive" }), /without clusters/],
  ];
  test.each(cases)("%s", (_name, build, message) => {
    const said = complaint(build);
    expect(said.message).toMatch(message);
    expect(said.lines.length).toBe(1);
  });
});

describe("constants", () => {
  test.each([
    [constant(i32, 2 ** 31), /i32 cannot hold the constant 2147483648/],
    [constant(u32, -1), /u32 cannot hold the constant -1/],
    [constant(i32, 0.5), /i32 cannot hold the constant 0.5/],
    [constant(f16, 1e6), /f16 cannot hold the constant 1000000/],
    [constant(u64, 1), /u64 cannot hold the constant 1 \(a number\)/],
    [constant(bool, 1), /bool cannot hold the constant 1 \(a number\)/],
    [constant(index, 2 ** 53), /index cannot hold/],
  ] as const)("%o", (operand, message) => {
    expect(complaint((b) => b.write(b.variable("v", operand.type.element), operand)).message).toMatch(
      message,
    );
  });
});

describe("registers, arrays and parameters", () => {
  test("a range outside its variable", () => {
    expect(complaint((b) => b.read(b.variable("v", f32, 4), 4)).message).toMatch(
      /touches elements 4 to 4 of variable v, which has 4/,
    );
  });
  test("fragments must be of the instruction's size", () => {
    const product = (count: number) => (b: KernelBuilder) => {
      const acc = b.variable("acc", f32, 4);
      const a = b.variable("a", u32, count);
      const bb = b.variable("b", u32, 2);
      b.effect("mma", [], { shape: { m: 16, n: 8, k: 16 }, a: f16, b: f16, accumulator: f32 }, [
        { variable: acc, offset: 0, count: 4, access: "readwrite" },
        { variable: a, offset: 0, count, access: "read" },
        { variable: bb, offset: 0, count: 2, access: "read" },
      ]);
    };
    accepts(product(4));
    expect(complaint(product(2)).message).toMatch(
      /\(a\) holds 64 bits in each lane; 256 elements of f16 need 128/,
    );
  });
  test("writing what is read-only, reading what is write-only", () => {
    expect(complaint((b) => b.store(b.buffer("x", f32, "read"), zero, c(f32, 0))).message).toMatch(
      /parameter x is read-only and cannot be written/,
    );
    expect(complaint((b) => b.load(b.buffer("y", f32, "write"), zero)).message).toMatch(
      /parameter y is write-only and cannot be read/,
    );
    expect(complaint((b) => b.store(b.table("t", f32, [1]), zero, c(f32, 0))).message).toMatch(
      /constant table t cannot be written/,
    );
  });
  test("shared arrays lie in the arena, aligned", () => {
    const array = { id: 0, name: "tile", element: f32, length: 64, byteOffset: 0, purpose: "data" } as const;
    expect(complaint(() => {}, { shared: [array], sharedBytes: 128 }).message).toMatch(
      /takes bytes 0 to 256 of an arena of 128/,
    );
    expect(complaint(() => {}, { shared: [{ ...array, byteOffset: 2 }], sharedBytes: 512 }).message).toMatch(
      /starts at byte 2/,
    );
    expect(
      complaint(() => {}, { shared: [{ ...array, purpose: "barrier" }], sharedBytes: 512 }).message,
    ).toMatch(/barriers, which are u64/);
  });
  test("constant positions are inside and aligned", () => {
    expect(complaint((b) => b.load(b.shared("tile", f32, 8), c(i32, 8))).message).toMatch(
      /load of element 8 of tile, which has 8/,
    );
    expect(complaint((b) => b.load(b.buffer("x", f32), c(i32, -1))).message).toMatch(
      /load of element -1 of x, which starts at 0/,
    );
    expect(complaint((b) => b.load(b.shared("tile", f32, 8), c(i32, 2), { lanes: 4 })).message).toMatch(
      /is not aligned to its 16 bytes/,
    );
    accepts((b) => b.load(b.shared("tile", f32, 8), c(i32, 4), { lanes: 4 }));
  });
  test("copies", () => {
    const copy = (bytes: number) => (b: KernelBuilder) =>
      b.effect("copyAsync", [zero, zero], {
        target: b.shared("tile", f32, 8),
        targetOffset: 0,
        source: { kind: "buffer", parameter: b.buffer("x", f32) },
        sourceOffset: 0,
        bytes: bytes as 4,
      });
    accepts(copy(16));
    expect(complaint(copy(12)).message).toMatch(/copyAsync moves 4, 8 or 16 bytes, not 12/);
  });
  test("barriers", () => {
    expect(
      complaint((b) => b.effect("namedBarrier", [c(i32, 16)], { action: "sync", threads: 32 })).message,
    ).toMatch(/named barriers are 1 to 15 .* not 16/);
    expect(
      complaint((b) => b.effect("namedBarrier", [c(i32, 1)], { action: "sync", threads: 33 })).message,
    ).toMatch(/multiple of 32 threads/);
    expect(
      complaint((b) => b.effect("barrierWait", [zero, zero], { array: b.shared("t", f32, 1), offset: 0 }))
        .message,
    ).toMatch(/t does not hold barriers/);
  });
});

describe("names", () => {
  test("are checked", () => {
    expect(complaint(() => {}, { name: "1st" }).message).toMatch(/kernel name "1st": names are letters/);
    expect(complaint((b) => b.buffer("a-b", f32)).message).toMatch(/parameter name "a-b"/);
    expect(complaint((b) => [b.buffer("x", f32), b.buffer("x", f32)]).message).toMatch(
      /two parameters are named x/,
    );
  });
});

describe("control flow", () => {
  test("jumps outside loops", () => {
    expect(complaint((b) => b.jump("break"))).toEqual({
      message: "kernel test: break outside a loop",
      lines: [1],
    });
    accepts((b) => b.loop(zero, c(i32, 4), c(i32, 1), () => b.jump("continue")));
    accepts((b) => b.jump("exit"));
  });
  test("an unused comparison is an error at its line", () => {
    const said = complaint((b) => b.at(12).compare("less", b.builtin("lane"), c(i32, 4)));
    expect(said.message).toMatch(
      /nothing consumes this comparison; a JS `if` cannot test it, write `when` or `select`/,
    );
    const combined = complaint((b) => {
      const low = b.compare("less", b.builtin("lane"), c(i32, 4));
      b.at(20).calculate("and", low, constant(bool, true));
    });
    expect(combined.lines).toEqual([20]);
  });
});

describe("roles", () => {
  const four = { block: [256, 1, 1] as const };
  const role = (name: string, firstWarp: number, warps: number, body = (): void => {}) => ({
    name,
    firstWarp,
    warps,
    body,
  });

  test("a split at the end of the kernel", () => {
    accepts((b) => b.roles([role("load", 0, 4), role("multiply", 4, 4)]), four);
  });
  test("block barriers inside are refused with both lines", () => {
    const { message, lines } = complaint((b) => {
      b.at(3).roles([role("load", 0, 4, () => b.at(5).effect("blockBarrier", [], {}))]);
    }, four);
    expect(message).toMatch(/named barriers and mbarriers serve/);
    expect(lines).toEqual([5, 3]);
  });
  test("once, at top level, last, with distinct warps", () => {
    expect(
      complaint((b) => {
        b.roles([role("load", 0, 4)]);
        b.builtin("lane");
      }, four).message,
    ).toMatch(/something follows the split/);
    expect(
      complaint((b) => b.if(constant(bool, true), () => b.roles([role("load", 0, 4)])), four).message,
    ).toMatch(/top level/);
    expect(
      complaint((b) => b.at(1).roles([role("load", 0, 4, () => b.at(2).roles([role("inner", 0, 1)]))]), four),
    ).toEqual({
      message: "kernel test: roles inside a role; split the block once",
      lines: [2, 1],
    });
    expect(complaint((b) => b.roles([role("load", 0, 5), role("multiply", 4, 4)]), four).message).toMatch(
      /roles load and multiply both take warp 4/,
    );
    expect(complaint((b) => b.roles([role("load", 0, 9)]), four).message).toMatch(
      /takes warps 0 to 8; the block has 8/,
    );
    expect(
      complaint(
        (b) => b.roles([{ ...role("load", 0, 4), registers: { count: 41, direction: "increase" } }]),
        four,
      ).message,
    ).toMatch(/multiple of 8/);
  });
});

describe("asynchronous products", () => {
  const header = { block: [128, 1, 1] as const };

  /** Products on one accumulator with the usual steps around them. */
  class Pipeline {
    readonly acc;
    private readonly tile;
    private readonly out;
    constructor(readonly b: KernelBuilder) {
      this.acc = b.variable("acc", f32, 32);
      this.tile = b.shared("tile", f16, 8192);
      this.out = b.buffer("out", f32);
    }
    multiply(): void {
      const matrix = {
        array: this.tile,
        offset: 0,
        swizzle: 128,
        major: "k",
        leadingBytes: 16,
        strideBytes: 1024,
      } as const;
      this.b.effect(
        "warpgroupMma",
        [zero, zero, constant(bool, true)],
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
        [{ variable: this.acc, offset: 0, count: 32, access: "readwrite" }],
      );
    }
    commit(): void {
      this.b.effect("warpgroupCommit", [], {});
    }
    wait(pending: number): void {
      this.b.effect("warpgroupWait", [], { pending });
    }
    read(): void {
      this.b.store(this.out, zero, this.b.read(this.acc, 5));
    }
  }
  const pipeline =
    (build: (p: Pipeline, b: KernelBuilder) => void) =>
    (b: KernelBuilder): void =>
      build(new Pipeline(b), b);
  /** sum += left · B, all of f16, A in registers: accumulator and A fragment are eight elements a lane, both. */
  const fromRegisters = (
    b: KernelBuilder,
    sum: RegisterVariable,
    left: RegisterVariable,
    tile: SharedArray,
  ) =>
    b.effect(
      "warpgroupMma",
      [zero, constant(bool, true)],
      {
        shape: { m: 64, n: 16, k: 16 },
        a: f16,
        b: f16,
        accumulator: f16,
        sharedA: undefined,
        sharedB: {
          array: tile,
          offset: 0,
          swizzle: 128,
          major: "k",
          leadingBytes: 16,
          strideBytes: 1024,
        },
        negateA: false,
        negateB: false,
      },
      [
        { variable: sum, offset: 0, count: 8, access: "readwrite" },
        { variable: left, offset: 0, count: 8, access: "read" },
      ],
    );
  test.each([
    [
      "share an A fragment",
      [
        [0, 2],
        [1, 2],
      ],
      undefined,
    ],
    [
      "follow each other on one accumulator",
      [
        [0, 2],
        [0, 3],
      ],
      undefined,
    ],
    [
      "do not write another's A fragment",
      [
        [0, 2],
        [2, 3],
      ],
      /warpgroupMma touches variable v2/,
    ],
    [
      "do not read another's accumulator as A",
      [
        [0, 2],
        [3, 0],
      ],
      /warpgroupMma touches variable v0/,
    ],
  ] as const)("in flight together %s", (_, products, refusal) => {
    const build =
      (wait: boolean) =>
      (b: KernelBuilder): void => {
        const tile = b.shared("tile", f16, 4096);
        const variables = Array.from({ length: 4 }, (_, n) => b.variable(`v${n}`, f16, 8));
        for (const [sum, left] of products) {
          fromRegisters(b, variables[sum]!, variables[left]!, tile);
          b.effect("warpgroupCommit", [], {});
          if (wait) b.effect("warpgroupWait", [], { pending: 0 });
        }
        b.effect("warpgroupWait", [], { pending: 0 });
      };
    accepts(build(true), header);
    if (refusal === undefined) accepts(build(false), header);
    else expect(() => accepts(build(false), header)).toThrow(refusal);
  });
  test("hold their A fragments", () => {
    const build =
      (pending: number) =>
      (b: KernelBuilder): void => {
        const tile = b.shared("tile", f16, 4096);
        const [sum, left] = [b.variable("sum", f16, 8), b.variable("left", f16, 8)];
        fromRegisters(b, sum, left, tile);
        b.effect("warpgroupCommit", [], {});
        b.effect("warpgroupWait", [], { pending });
        b.write(left, constant(f16, 1), 3);
        b.effect("warpgroupWait", [], { pending: 0 });
      };
    accepts(build(0), header);
    expect(() => accepts(build(1), header)).toThrow(
      /writeRegister touches variable left while an asynchronous/,
    );
  });
  const forever = (b: KernelBuilder, body: () => void): void =>
    b.loop(zero, b.builtin("gridSizeX"), c(i32, 1), body);

  test("reading too early names both lines", () => {
    const { message, lines } = complaint(
      pipeline((p, b) => {
        b.at(4);
        p.multiply();
        p.commit();
        b.at(6);
        p.read();
      }),
      header,
    );
    expect(message).toMatch(/readRegister touches variable acc while an asynchronous product holds it/);
    expect(lines).toEqual([6, 4]);
  });
  test("writing too early, and reading while one group may be pending", () => {
    expect(
      complaint(
        pipeline((p, b) => {
          p.multiply();
          b.write(p.acc, c(f32, 0), 3);
        }),
        header,
      ).message,
    ).toMatch(/writeRegister touches/);
    expect(
      complaint(
        pipeline((p) => {
          p.multiply();
          p.commit();
          p.wait(1);
          p.read();
        }),
        header,
      ).message,
    ).toMatch(/readRegister touches/);
  });
  test("a wait frees what it covers", () => {
    accepts(
      pipeline((p) => {
        p.multiply();
        p.commit();
        p.wait(0);
        p.read();
      }),
      header,
    );
  });
  test("the loop that keeps one group in flight is accepted", () => {
    accepts(
      pipeline((p, b) => {
        b.write(p.acc, c(f32, 0));
        forever(b, () => {
          p.multiply();
          p.commit();
          p.wait(1);
        });
        p.wait(0);
        p.read();
      }),
      header,
    );
  });
  test("what the previous turn left in flight is seen", () => {
    const { lines } = complaint(
      pipeline((p, b) => {
        forever(b, () => {
          b.at(30);
          p.read();
          b.at(40);
          p.multiply();
          p.commit();
          p.wait(1);
        });
        p.wait(0);
      }),
      header,
    );
    expect(lines).toEqual([30, 40]);
  });
  test("after a loop that breaks before waiting", () => {
    expect(
      complaint(
        pipeline((p, b) => {
          forever(b, () => {
            p.multiply();
            p.commit();
            b.jump("break");
          });
          p.read();
        }),
        header,
      ).message,
    ).toMatch(/readRegister touches/);
  });
  test("on either way of a branch", () => {
    expect(
      complaint(
        pipeline((p, b) => {
          b.if(b.compare("less", b.builtin("gridSizeX"), c(i32, 2)), () => {
            p.multiply();
            p.commit();
          });
          p.read();
        }),
        header,
      ).message,
    ).toMatch(/readRegister touches/);
  });
});
