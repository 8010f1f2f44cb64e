/** @file What the text of kernels looks like: immediates, shared addresses, predication, loops, roles, versions, errors. */
import { describe, expect, it } from "vitest";
import { assemble } from "../../../test/support/ptxas.ts";
import { requirement } from "../../../test/support/require.ts";
import { CompileError, UnsupportedError } from "../../errors.ts";
import { constant, KernelBuilder } from "../../ir/builder-for-tests.ts";
import { type KernelIr, type Operand, scalar } from "../../ir/nodes.ts";
import { type NvidiaTargetName, nvidiaTarget } from "../../target/nvidia.ts";
import { bf16, bool, f16, f32, f64, i32, index, tf32, u64 } from "../../types/types.ts";
import { generatePtx } from "./index.ts";

const available = requirement("ptxas").available;

function text(kernel: KernelIr, target: NvidiaTargetName = "sm_80"): string {
  const module = generatePtx(kernel, nvidiaTarget(target));
  if (available) expect(assemble(module.text).log).not.toMatch(/error|warning|C75/i);
  return module.text;
}

function count(source: string, pattern: RegExp): number {
  return [...source.matchAll(new RegExp(pattern, "g"))].length;
}

const zero = constant(i32, 0);

describe("addresses", () => {
  it("share a register among constant offsets of one global index", () => {
    const b = new KernelBuilder();
    const x = b.buffer("x", f32);
    const thread = b.builtin("threadIndexX");
    for (const offset of [0, 1, 7, -2]) b.store(x, thread, constant(f32, offset), offset);
    const source = text(b.build());
    expect(count(source, /mad\.wide\.s32/)).toBe(1);
    for (const bytes of ["]", "+4]", "+28]", "+-8]"]) expect(source).toContain(bytes);
  });

  it("of shared arrays with one element size share a register across arrays", () => {
    const b = new KernelBuilder();
    const [s, t] = [b.shared("s", f16, 64), b.shared("t", f16, 64)];
    const thread = b.builtin("threadIndexX");
    b.store(t, thread, b.load(s, thread, { offset: 3 }), 1);
    const source = text(b.build());
    expect(count(source, /shl\.b32/)).toBe(1);
    expect(source).toContain("+6]");
    expect(source).toContain("+130]");
  });

  it("with constant indices are immediates", () => {
    const b = new KernelBuilder();
    const s = b.shared("s", f32, 64);
    b.store(s, constant(i32, 3), b.load(s, constant(i32, 5), { offset: 1 }));
    const source = text(b.build());
    expect(source).toContain("ld.shared.b32 %r1, [$shared+24];");
    expect(source).toContain("st.shared.b32 [$shared+12], %r1;");
  });

  it("made inside a branch are not used after it", () => {
    const b = new KernelBuilder();
    const x = b.buffer("x", f32);
    const thread = b.builtin("threadIndexX");
    b.if(b.compare("less", thread, constant(i32, 3)), () => {
      for (let n = 0; n < 9; n++) b.store(x, thread, constant(f32, n), n);
    });
    b.store(x, thread, constant(f32, 0));
    expect(count(text(b.build()), /mad\.wide\.s32/)).toBe(2);
  });

  it("use 64-bit arithmetic for index", () => {
    const b = new KernelBuilder();
    const x = b.buffer("x", f64);
    b.store(x, b.convert(b.builtin("threadIndexX"), index), constant(f64, 1), 2);
    const source = text(b.build());
    expect(source).toMatch(/shl\.b64 %d\d+, %d\d+, 3;/);
    expect(source).toMatch(/st\.global\.b64 \[%d\d+\+16\]/);
  });
});

describe("arithmetic", () => {
  it("never leaves a float operation for the assembler to contract", () => {
    const b = new KernelBuilder();
    for (const type of [f16, bf16, f32, f64] as const) {
      const x = b.buffer(`x_${type.name}`, type);
      const v = b.load(x, b.builtin("threadIndexX"));
      b.store(x, zero, b.calculate("sub", b.calculate("add", b.calculate("mul", v, v), v), v));
    }
    expect(text(b.build())).not.toMatch(/\b(add|sub|mul|fma)\.(f16|bf16|f32|f64)/);
  });

  it("works on pairs of packed halves", () => {
    const b = new KernelBuilder();
    const x = b.buffer("x", f16);
    const v = b.load(x, b.builtin("threadIndexX"), { lanes: 8 });
    b.store(x, zero, b.calculate("fma", v, v, constant(f16, 0.5, 8)));
    const source = text(b.build());
    expect(count(source, /fma\.rn\.f16x2/)).toBe(4);
    expect(count(source, /0x38003800/)).toBe(1);
    expect(source).toContain("ld.global.v4.b32");
  });

  it("guards a division only where the divisor may be zero", () => {
    const b = new KernelBuilder();
    const x = b.buffer("x", i32);
    const v = b.load(x, b.builtin("threadIndexX"));
    b.store(x, zero, b.calculate("div", v, constant(i32, 7)));
    expect(text(b.build())).not.toContain("selp");
    b.store(x, zero, b.calculate("div", v, v));
    expect(text(b.build())).toContain("selp");
  });

  it("masks shift counts that are not constant", () => {
    const b = new KernelBuilder();
    const x = b.buffer("x", i32);
    const v = b.load(x, b.builtin("threadIndexX"));
    b.store(x, zero, b.calculate("shiftLeft", v, constant(i32, 33)));
    expect(text(b.build())).toMatch(/shl\.b32 %r\d+, %r\d+, 1;/);
    b.store(x, zero, b.calculate("shiftLeft", v, v));
    expect(text(b.build())).toMatch(/and\.b32 %r\d+, %r\d+, 31;/);
  });

  it("writes float constants by their bits", () => {
    const b = new KernelBuilder();
    const x = b.buffer("x", f32);
    b.store(x, zero, b.calculate("mul", b.load(x, zero), constant(f32, 0.1)));
    expect(text(b.build())).toContain("0f3DCCCCCD");
  });
});

describe("control flow", () => {
  it("predicates short branches and branches over long ones", () => {
    const b = new KernelBuilder();
    const x = b.buffer("x", f32);
    const thread = b.builtin("threadIndexX");
    const condition = b.compare("less", thread, constant(i32, 3));
    b.if(
      condition,
      () => b.store(x, thread, constant(f32, 1)),
      () => b.store(x, thread, constant(f32, 2)),
    );
    const short = text(b.build());
    expect(short).not.toContain("bra");
    expect(short).toMatch(/@%p1 st\.global/);
    expect(short).toMatch(/@!%p1 st\.global/);
    b.if(condition, () => {
      for (let n = 0; n < 7; n++) b.store(x, thread, constant(f32, n), n);
    });
    expect(text(b.build())).toContain("@!%p1 bra");
  });

  it("never predicates what converges", () => {
    const b = new KernelBuilder();
    b.if(b.compare("less", b.builtin("threadIndexX"), constant(i32, 32)), () =>
      b.effect("subgroupBarrier", [], {}),
    );
    const source = text(b.build());
    expect(source).not.toMatch(/@%p\d+ bar/);
    expect(source).toContain("bra");
  });

  it("rotates loops, without a guard where one turn is certain", () => {
    const b = new KernelBuilder();
    const n = b.scalarParameter("n", i32);
    const x = b.buffer("x", i32);
    b.loop(zero, constant(i32, 4), constant(i32, 1), (i) => b.store(x, i, i));
    expect(count(text(b.build()), /bra/)).toBe(1);
    b.loop(zero, b.parameter(n), constant(i32, 1), (i) => {
      b.if(b.compare("equal", i, constant(i32, 3)), () => b.jump("continue"));
      b.if(b.compare("equal", i, constant(i32, 5)), () => b.jump("break"));
      b.store(x, i, i);
    });
    const source = text(b.build());
    expect(source).toMatch(/@%p\d+ bra \$L\d+;\n\$L\d+:/);
    expect(count(source, /bra/)).toBe(5);
  });

  it("keeps the condition of a while in one place", () => {
    const b = new KernelBuilder();
    const x = b.buffer("x", i32);
    b.while(
      () => b.compare("less", b.load(x, zero, { cache: "volatile" }), constant(i32, 1)),
      () => {
        b.if(b.op("electOne", scalar(bool), [], {}), () => b.jump("exit"));
      },
    );
    const source = text(b.build());
    expect(count(source, /ld\.volatile\.global/)).toBe(1);
    expect(source).toMatch(/@%p\d+ ret;/);
  });

  it("puts a role's change of registers first in its branch", () => {
    const b = new KernelBuilder({ block: [384, 1, 1] });
    const x = b.buffer("x", i32);
    b.roles([
      {
        name: "producer",
        firstWarp: 0,
        warps: 4,
        registers: { count: 40, direction: "decrease" },
        body: () => b.store(x, zero, zero),
      },
      {
        name: "consumer",
        firstWarp: 4,
        warps: 8,
        registers: { count: 232, direction: "increase" },
        body: () => b.jump("exit"),
      },
    ]);
    const source = text(b.build(), "sm_90a");
    expect(source).toMatch(/\$L\d+:\n {2}setmaxnreg\.dec\.sync\.aligned\.u32 40;/);
    expect(source).toMatch(/\$L\d+:\n {2}setmaxnreg\.inc\.sync\.aligned\.u32 232;/);
  });
});

describe("the module", () => {
  it("states the lowest version that its instructions need", () => {
    const make = (body: (b: KernelBuilder) => void): KernelIr => {
      const b = new KernelBuilder();
      body(b);
      return b.build();
    };
    const empty = make(() => {});
    const tanh = make((b) =>
      b.store(b.buffer("x", f32), zero, b.op("tanh", scalar(f32), [constant(f32, 1)], {})),
    );
    expect(generatePtx(empty, nvidiaTarget("sm_75")).version).toBe("6.3");
    expect(generatePtx(tanh, nvidiaTarget("sm_75")).version).toBe("7.0");
    expect(generatePtx(empty, nvidiaTarget("sm_90a")).version).toBe("8.0");
  });

  it("holds no names but the kernel's, no positions, and is the same every time", () => {
    const make = (line: number): KernelIr => {
      const b = new KernelBuilder({ name: "smooth", blocksPerMultiprocessor: 2 });
      const x = b.at(line).buffer("secret_name", f32, "readwrite", 2);
      b.store(x, b.convert(b.size(x, 1), index), b.at(line).load(b.shared("private_name", f32, 8), zero));
      return b.build();
    };
    const source = text(make(1));
    expect(source).toBe(text(make(99)));
    expect(source).toContain(
      ".visible .entry smooth(\n  .param .u64 $a0,\n  .param .s32 $a1\n)\n.reqntid 32, 1, 1\n.minnctapersm 2",
    );
    expect(source).not.toMatch(/secret|private|kernel\.ts/);
  });

  it("declares clusters, tables and texts", () => {
    const b = new KernelBuilder({ cluster: [2, 1, 1] });
    const table = b.table("weights", f16, [1, 0.5]);
    b.effect("print", [b.load(table, b.builtin("clusterRank"))], { parts: ["w = ", ""] });
    const source = text(b.build(), "sm_90");
    expect(source).toContain(".explicitcluster\n.reqnctapercluster 2, 1, 1");
    expect(source).toContain(".const .align 16 .b16 $table0[2] = {0x3C00, 0x3800};");
    expect(source).toContain(
      `.global .align 1 .b8 $text0[10] = {${[...new TextEncoder().encode("w = %.9g\n"), 0].join(", ")}};`,
    );
  });
});

describe("requirements", () => {
  const refusals: readonly (readonly [string, NvidiaTargetName, RegExp, (b: KernelBuilder) => void])[] = [
    [
      "cp.async on sm_75",
      "sm_75",
      /copyAsyncCommit cannot run on sm_75: it needs sm_80.*registers instead kernel\.ts:7:1/,
      (b) => b.at(7).effect("copyAsyncCommit", [], {}),
    ],
    [
      "wgmma on sm_90",
      "sm_90",
      /warpgroupCommit cannot run on sm_90: wgmma needs sm_90a; mma\.sync serves/,
      (b) => b.effect("warpgroupCommit", [], {}),
    ],
    [
      "tf32 on sm_75",
      "sm_75",
      /convert cannot run on sm_75: tf32 needs sm_80/,
      (b) => b.convert(b.load(b.buffer("x", f32), zero), tf32),
    ],
    [
      "bf16 arithmetic on sm_75",
      "sm_75",
      /add cannot run on sm_75: bf16 has no arithmetic there; convert to f32/,
      (b) => {
        const v = b.load(b.buffer("x", bf16), zero);
        b.calculate("add", v, v);
      },
    ],
    [
      "an mma shape of later targets",
      "sm_75",
      /m16n8k16 of f16 × f16 \+ f32 is missing; with f16 there are m16n8k8/,
      (b) => b.effect("mma", [], { shape: { m: 16, n: 8, k: 16 }, a: f16, b: f16, accumulator: f32 }),
    ],
    [
      "float atomic maxima",
      "sm_90a",
      /atomic max on f32 is missing there; a compare-exchange loop/,
      (b) =>
        b.op("atomic", scalar(f32), [zero, constant(f32, 1)], {
          operation: "max",
          order: "relaxed",
          scope: "device",
          offset: 0,
          array: { kind: "buffer", parameter: b.buffer("x", f32) },
        }),
    ],
    [
      "double-precision exponentials",
      "sm_90a",
      /exp2 cannot run on sm_90a: it has no f64 form/,
      (b) => b.calculate("exp2", b.load(b.buffer("x", f64), zero)),
    ],
  ];

  it.each(refusals)("%s", (_, target, message, body) => {
    const b = new KernelBuilder();
    body(b);
    expect(() => generatePtx(b.build(), nvidiaTarget(target))).toThrow(message);
    expect(() => generatePtx(b.build(), nvidiaTarget(target))).toThrow(UnsupportedError);
  });

  it("of the launch", () => {
    const b = new KernelBuilder();
    const facts = nvidiaTarget("sm_80");
    expect(() => generatePtx(b.build({ block: [2048, 1, 1] }), facts)).toThrow(
      /2048 threads per block; sm_80 takes at most 1024/,
    );
    expect(() => generatePtx(b.build({ sharedBytes: 200_000 }), facts)).toThrow(
      /200000 bytes of shared memory; sm_80 has 166912/,
    );
    expect(() => generatePtx(b.build({ cluster: [2, 1, 1] }), facts)).toThrow(/takes none/);
  });

  it("of register changes", () => {
    const b = new KernelBuilder({ block: [128, 1, 1] });
    b.roles([
      {
        name: "half",
        firstWarp: 0,
        warps: 2,
        registers: { count: 40, direction: "decrease" },
        body: () => {},
      },
    ]);
    expect(() => generatePtx(b.build(), nvidiaTarget("sm_90a"))).toThrow(CompileError);
    expect(() => generatePtx(b.build(), nvidiaTarget("sm_90"))).toThrow(/sm_90a can/);
  });
});

/** D = A·Bᵀ in tiles of 128x256x64 with four stages, one producer warp and two consumer warpgroups. */
function hopperProduct(): KernelIr {
  const stages = 4;
  const b = new KernelBuilder({ name: "product", block: [384, 1, 1] });
  const [mapA, mapB] = [b.tensorMap("a", f16, [64, 128], 128), b.tensorMap("b", f16, [64, 256], 128)];
  const [d, steps, width] = [
    b.buffer("d", f16),
    b.scalarParameter("steps", i32),
    b.scalarParameter("width", i32),
  ];
  const stage = (128 + 256) * 64;
  const tiles = b.shared("tiles", f16, stages * stage);
  const [full, empty] = [b.shared("full", u64, stages, "barrier"), b.shared("empty", u64, stages, "barrier")];
  const thread = b.builtin("threadIndexX");
  b.if(b.compare("equal", thread, zero), () => {
    for (let s = 0; s < stages; s++) {
      b.effect("barrierInit", [constant(i32, s)], { array: full, offset: 0, count: 1 });
      b.effect("barrierInit", [constant(i32, s)], { array: empty, offset: 0, count: 2 });
    }
    b.effect("barrierInitFence", [], {});
  });
  b.effect("blockBarrier", [], {});
  const [slot, phase] = [b.variable("slot", i32), b.variable("phase", i32)];
  const start = (parity: number): void => {
    b.write(slot, zero);
    b.write(phase, constant(i32, parity));
  };
  const advance = (): void => {
    b.write(slot, b.calculate("add", b.read(slot), constant(i32, 1)));
    b.if(b.compare("equal", b.read(slot), constant(i32, stages)), () => {
      b.write(slot, zero);
      b.write(phase, b.calculate("xor", b.read(phase), constant(i32, 1)));
    });
  };
  const [row, column] = [
    b.calculate("mul", b.builtin("blockIndexY"), constant(i32, 128)),
    b.calculate("mul", b.builtin("blockIndexX"), constant(i32, 256)),
  ];
  const kSteps = b.parameter(steps);
  const ld = b.parameter(width);
  const produce = (): void => {
    b.if(b.compare("notEqual", thread, zero), () => b.jump("exit"));
    start(1);
    b.loop(zero, kSteps, constant(i32, 1), (k) => {
      const now = b.read(slot);
      b.effect("barrierWait", [now, b.read(phase)], { array: empty, offset: 0 });
      b.effect("barrierArriveExpect", [now, constant(i32, stage * 2)], { array: full, offset: 0 });
      const [base, depth] = [
        b.calculate("mul", now, constant(i32, stage)),
        b.calculate("mul", k, constant(i32, 64)),
      ];
      const load = (map: typeof mapA, offset: number, at: Operand): void =>
        b.effect("tensorLoad", [base, now, depth, at], {
          map,
          target: tiles,
          targetOffset: offset,
          barrier: full,
          barrierOffset: 0,
          multicast: false,
        });
      load(mapA, 0, row);
      load(mapB, 128 * 64, column);
      advance();
    });
  };
  const consume = (): void => {
    const accumulator = b.variable("accumulator", f32, 128);
    const whole = { variable: accumulator, offset: 0, count: 128, access: "readwrite" } as const;
    const own = b.calculate("sub", b.calculate("shiftRight", thread, constant(i32, 7)), constant(i32, 1));
    start(0);
    b.loop(zero, kSteps, constant(i32, 1), (k) => {
      const now = b.read(slot);
      b.effect("barrierWait", [now, b.read(phase)], { array: full, offset: 0 });
      const base = b.calculate("mul", now, constant(i32, stage));
      const left = b.calculate("add", base, b.calculate("mul", own, constant(i32, 64 * 64)));
      b.effect("warpgroupFence", [], {});
      for (let inner = 0; inner < 4; inner++) {
        const matrix = {
          array: tiles,
          swizzle: 128,
          major: "k",
          leadingBytes: 16,
          strideBytes: 1024,
        } as const;
        const accumulate = inner > 0 ? constant(bool, true) : b.compare("greater", k, zero);
        b.effect(
          "warpgroupMma",
          [left, base, accumulate],
          {
            shape: { m: 64, n: 256, k: 16 },
            a: f16,
            b: f16,
            accumulator: f32,
            negateA: false,
            negateB: false,
            sharedA: { ...matrix, offset: inner * 16 },
            sharedB: { ...matrix, offset: 128 * 64 + inner * 16 },
          },
          [whole],
        );
      }
      b.effect("warpgroupCommit", [], {});
      b.effect("warpgroupWait", [], { pending: 1 });
      const leader = b.compare("equal", b.calculate("and", thread, constant(i32, 127)), zero);
      const release = b.op("and", scalar(bool), [leader, b.compare("greater", k, zero)], {});
      const before = b.calculate(
        "and",
        b.calculate("add", now, constant(i32, stages - 1)),
        constant(i32, stages - 1),
      );
      b.if(release, () => b.effect("barrierArrive", [before], { array: empty, offset: 0 }));
      advance();
    });
    b.effect("warpgroupWait", [], { pending: 0 });
    const lane = b.builtin("lane");
    const warpRow = b.calculate(
      "shiftRight",
      b.calculate("and", thread, constant(i32, 127)),
      constant(i32, 5),
    );
    const laneRow = b.calculate(
      "add",
      b.calculate("mul", warpRow, constant(i32, 16)),
      b.calculate("shiftRight", lane, constant(i32, 2)),
    );
    const top = b.calculate(
      "add",
      b.calculate("add", row, b.calculate("mul", own, constant(i32, 64))),
      laneRow,
    );
    const left = b.calculate(
      "add",
      column,
      b.calculate("mul", b.calculate("and", lane, constant(i32, 3)), constant(i32, 2)),
    );
    const at = b.calculate(
      "add",
      b.calculate("mul", b.convert(top, index), b.convert(ld, index)),
      b.convert(left, index),
    );
    const below = b.calculate("add", at, b.calculate("mul", b.convert(ld, index), constant(index, 8)));
    for (let i = 0; i < 128; i += 2) {
      const pair = b.op(
        "compose",
        { element: f32, lanes: 2 },
        [b.read(accumulator, i), b.read(accumulator, i + 1)],
        {},
      );
      b.store(d, i % 4 === 0 ? at : below, b.convert(pair, f16), 8 * Math.floor(i / 4));
    }
  };
  b.roles([
    {
      name: "producer",
      firstWarp: 0,
      warps: 4,
      registers: { count: 40, direction: "decrease" },
      body: produce,
    },
    {
      name: "consumer",
      firstWarp: 4,
      warps: 8,
      registers: { count: 232, direction: "increase" },
      body: consume,
    },
  ]);
  return b.build({ sharedAlignment: 1024 });
}

describe("a Hopper product", () => {
  const module = generatePtx(hopperProduct(), nvidiaTarget("sm_90a"));

  it("touches no accumulator register between issue and wait", () => {
    const stage = module.text.slice(
      module.text.indexOf("wgmma.fence"),
      module.text.indexOf("wgmma.wait_group"),
    );
    const accumulator = /wgmma\.mma_async\S+ \{(%r\d+)/.exec(stage)![1]!;
    const others = stage.split("\n").filter((line) => !line.includes("wgmma.mma_async"));
    expect(others.join("\n")).not.toContain(`${accumulator},`);
    expect(count(stage, /wgmma\.mma_async/)).toBe(4);
  });

  it("computes descriptors as one addition each", () => {
    const stage = module.text.slice(
      module.text.indexOf("wgmma.fence"),
      module.text.indexOf("wgmma.wait_group"),
    );
    expect(count(stage, /shr\.u32/)).toBe(2);
    expect(count(stage, /mov\.b64/)).toBe(8);
  });

  it.skipIf(!available)("assembles without serialisation and spills, in 168 registers", () => {
    const assembly = assemble(module.text);
    expect(assembly.log).not.toMatch(/error|warning/i);
    expect(assembly.warnings).toEqual([]);
    expect(assembly.spilledBytes).toBe(0);
    expect(assembly.registers).toBe(168);
  });
});
