/** @file What WGSL looks like: declarations that follow accesses, parts of words, arguments, extensions, refusals. */
import { describe, expect, it } from "vitest";
import { UnsupportedError } from "../../errors.ts";
import { constant, KernelBuilder } from "../../ir/builder-for-tests.ts";
import { type KernelIr, scalar } from "../../ir/nodes.ts";
import { type WebGpuFacts, webGpuFacts } from "../../target/webgpu.ts";
import { bf16, bool, f16, f32, f64, i32, u32 } from "../../types/types.ts";
import { generateWgsl, lowerForWgsl } from "./index.ts";

const limits = {
  maxComputeInvocationsPerWorkgroup: 256,
  maxComputeWorkgroupSizeX: 256,
  maxComputeWorkgroupStorageSize: 16384,
  maxComputeWorkgroupsPerDimension: 65535,
  maxStorageBuffersPerShaderStage: 8,
  maxStorageBufferBindingSize: 2 ** 27,
  maxBufferSize: 2 ** 28,
};

function facts(
  features: readonly string[] = [],
  info: { readonly vendor?: string; readonly subgroups?: readonly [number, number] } = {},
): WebGpuFacts {
  const [subgroupMinSize, subgroupMaxSize] = info.subgroups ?? [0, 0];
  return webGpuFacts({
    features: new Set(features),
    limits,
    info: { vendor: info.vendor ?? "nvidia", subgroupMinSize, subgroupMaxSize },
    languageFeatures: new Set(["subgroup_id", "packed_4x8_integer_dot_product"]),
  });
}

function text(kernel: KernelIr, target: WebGpuFacts = facts()): string {
  return generateWgsl(lowerForWgsl(kernel, target), target).text;
}

/** Loads of `loads` lanes from x and stores of `stores` lanes to y. */
function moving(element: typeof f32 | typeof f16 | typeof bf16, lanes: readonly (1 | 2 | 4 | 8)[]): KernelIr {
  const b = new KernelBuilder();
  const [x, y] = [b.buffer("x", element, "read"), b.buffer("y", element, "write")];
  for (const count of lanes) {
    const at = b.calculate("mul", b.builtin("threadIndexX"), constant(i32, count));
    b.store(y, at, b.load(x, at, { lanes: count }));
  }
  return b.build();
}

describe("arrays are declared as they are accessed", () => {
  it("as vectors where all accesses are", () => {
    const source = text(moving(f32, [4]));
    expect(source).toContain("var<storage, read> b0: array<vec4<f32>>;");
    expect(source).toContain("var<storage, read_write> b1: array<vec4<f32>>;");
  });

  it("with single stores as vectors only where those leave the other components alone", () => {
    expect(text(moving(f32, [4, 1]))).toContain("b1: array<vec4<f32>>;");
    const apple = text(moving(f32, [4, 1]), facts([], { vendor: "apple" }));
    expect(apple).toContain("b0: array<vec4<f32>>;");
    expect(apple).toContain("b1: array<f32>;");
  });

  it("as words for narrow types, atomic where parts of words are stored", () => {
    expect(text(moving(bf16, [8]))).toContain("b1: array<vec4<u32>>;");
    const parts = text(moving(bf16, [8, 1]));
    expect(parts).toContain("b0: array<vec4<u32>>;");
    expect(parts).toContain("b1: array<atomic<u32>>;");
    expect(parts).toContain("atomicXor(&b1[");
  });

  it("as f16 where single ones are stored and the target has the type", () => {
    const source = text(moving(f16, [8, 1]), facts(["shader-f16"]));
    expect(source).toMatch(/^enable f16;/);
    expect(source).toContain("b1: array<vec4<f16>>;");
    // What is only loaded comes in four words at a time, and single ones out of a word.
    expect(source).toContain("b0: array<vec4<u32>>;");
    expect(text(moving(f16, [4, 1]), facts(["shader-f16"]))).toContain("b0: array<vec4<f16>>;");
    expect(text(moving(f16, [8, 1]))).not.toContain("enable f16");
  });

  it("as one array of words where shared views overlap", () => {
    const b = new KernelBuilder();
    const [s, t] = [b.shared("s", f32, 64), b.shared("t", u32, 64)];
    const overlaid = { ...t, byteOffset: s.byteOffset };
    b.store(s, b.builtin("lane"), constant(f32, 1));
    b.store(overlaid, b.builtin("lane"), constant(u32, 1));
    const kernel = b.build();
    const source = text({ ...kernel, shared: [s, overlaid] });
    expect(source).toContain("var<workgroup> s0: array<u32, 64>;");
    expect(source).not.toContain("s1");
  });

  it("once for several arrays that share a buffer", () => {
    const { shader } = generateWgsl(moving(f32, [1]), facts());
    expect(shader.bindings.map(({ slots, writable }) => [slots, writable])).toEqual([
      [[0], false],
      [[1], true],
    ]);
    const merged = shader.merged([[0, 1]]);
    expect(merged.shader.bindings).toEqual([{ slots: [0, 1], writable: true, alignment: 4 }]);
    expect(merged.text).toContain("args.base1");
  });
});

describe("numbers", () => {
  it("that are not finite come out of the uniform block", () => {
    const b = new KernelBuilder();
    const y = b.buffer("y", f32, "write");
    b.store(y, constant(i32, 0), constant(f32, Number.POSITIVE_INFINITY));
    b.store(y, constant(i32, 1), constant(f32, -0));
    const source = text(b.build());
    expect(source).toContain("bitcast<f32>(0x7f800000u | args.zero)");
    expect(source).toContain("bitcast<f32>(0x80000000u)");
  });

  it("of constants alone are computed at run time", () => {
    const b = new KernelBuilder();
    const y = b.buffer("y", i32, "write");
    b.store(y, constant(i32, 0), b.calculate("add", constant(i32, 2 ** 31 - 1), constant(i32, 1)));
    b.store(y, constant(i32, 1), b.calculate("div", b.builtin("lane"), constant(i32, 0)));
    const source = text(b.build());
    expect(source).toMatch(/var (v\d+) = 2147483647i;\n {2}let v\d+ = \1 \+ 1i;/);
    expect(source).not.toContain("/ 0i");
  });

  it("of f16 are divided as f32, which leaves no divisor out", () => {
    const b = new KernelBuilder();
    const [x, y] = [b.buffer("x", f16, "read"), b.buffer("y", f16, "write")];
    const value = b.load(x, constant(i32, 0));
    b.store(y, constant(i32, 0), b.calculate("div", value, value));
    expect(text(b.build(), facts(["shader-f16"]))).toMatch(/f16\(f32\((v\d+)\) \/ f32\(\1\)\)/);
  });
});

describe("subgroups", () => {
  const reducing = (): KernelIr => {
    const b = new KernelBuilder({ block: [64, 1, 1], subgroupSize: 32 });
    const y = b.buffer("y", f32, "write");
    const sum = b.op("subgroupReduce", scalar(f32), [b.convert(b.builtin("lane"), f32)], {
      operation: "add",
    });
    b.store(y, constant(i32, 0), sum);
    return b.build();
  };

  it("have the one width there is", () => {
    const source = text(reducing(), facts(["subgroups"], { subgroups: [32, 32] }));
    expect(source).toContain("subgroupAdd(");
    expect(source).not.toContain("@subgroup_size");
  });

  it("have their width asked for where there are several", () => {
    const source = text(reducing(), facts(["subgroups", "subgroup-size-control"], { subgroups: [8, 64] }));
    expect(source).toContain("@workgroup_size(64) @subgroup_size(32)");
  });

  it("go through workgroup memory where the width is uncertain, or there are none", () => {
    for (const target of [facts(["subgroups"], { subgroups: [8, 64] }), facts()]) {
      const source = text(reducing(), target);
      expect(source).not.toContain("enable subgroups");
      expect(source).toContain("workgroupBarrier();");
    }
  });
});

describe("threads that end", () => {
  const ending = (meets: boolean): KernelIr => {
    const b = new KernelBuilder({ block: [64, 1, 1] });
    const y = b.buffer("y", i32, "write");
    const lane = b.builtin("threadIndexX");
    b.if(b.compare("less", lane, constant(i32, 3)), () => b.jump("exit"));
    if (meets) b.effect("blockBarrier", [], {});
    b.store(y, lane, lane);
    return b.build();
  };

  it("return where no barrier follows", () => {
    expect(text(ending(false))).toMatch(/if \(v\d+\) \{\n {4}return;/);
  });

  it("walk on without effect where one does", () => {
    const source = text(ending(true));
    expect(source).not.toMatch(/\n {4}return;/);
    expect(source).toMatch(/workgroupBarrier\(\);\n {2}let (v\d+) = r\d+_0;\n {2}if \(\1\) \{\n {4}b0\[/);
  });
});

describe("what WGSL has not", () => {
  it.each([
    ["f64", f64, /WGSL has no f64: f32 serves/],
    ["bool arithmetic", bool, /bool has no arithmetic/],
  ] as const)("%s is refused", (_name, element, message) => {
    const b = new KernelBuilder();
    const one = constant(element, element === bool ? true : 1);
    b.calculate("add", one, one);
    expect(() => text(b.build())).toThrow(UnsupportedError);
    expect(() => text(b.build())).toThrow(message);
  });
});
