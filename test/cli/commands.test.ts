import { describe, expect, it } from "vitest";
import { tilewright } from "./run.ts";

describe("tilewright demo", () => {
  it("multiplies the shipped matrices, checks the result and says what is missing", async () => {
    const { status, out, error } = await tilewright("demo");
    expect({ status, error }).toEqual({ status: 0, error: "" });
    expect(out).toMatch(/^D = A · B {3}f16 129 × 200 · f16 200 × 97 → f16 129 × 97\n/);
    for (const row of ["device", "route", "time", "error"])
      expect(out).toMatch(new RegExp(`^${row} {2,}\\S`, "m"));
    // Each kind of device that is not here comes with a remedy on a line of its own.
    const missing = out.match(/^missing {5}\w+: .+\n {12}\S/gm) ?? [];
    expect(missing.length).toBe((out.match(/^missing/gm) ?? []).length);
  });

  it("is right under the simulator's checks", async () => {
    const { status, out } = await tilewright("demo", "--device", "simulator");
    expect(status).toBe(0);
    const share = Number(/, (\S+) of what rounding allows/.exec(out)?.[1]);
    expect(share).toBeGreaterThan(0);
    expect(share).toBeLessThanOrEqual(1);
    expect(out).not.toContain("missing");
  });
});

describe("tilewright devices", () => {
  it("lists the simulator on every machine", async () => {
    const { status, out, error } = await tilewright("devices");
    expect({ status, error }).toEqual({ status: 0, error: "" });
    expect(out).toMatch(/^simulator {2,}simulator$/m);
    expect(out).toMatch(/^ {2}arrays of {2,}f16 bf16 f32 f64 /m);
  });

  it("gives facts as JSON", async () => {
    const { out } = await tilewright("devices", "--json");
    const { devices, missing } = JSON.parse(out);
    for (const device of devices) {
      expect(device).toEqual({
        kind: expect.stringMatching(/^(cuda|webgpu|simulator)$/),
        selector: expect.any(String),
        name: expect.any(String),
        target: expect.any(String),
        memoryBytes: expect.any(Number),
        freeBytes: expect.any(Number),
        multiprocessors: expect.any(Number),
        subgroupWidth: expect.any(Number),
        threadsPerBlock: expect.any(Number),
        sharedBytesPerBlock: expect.any(Number),
        l2Bytes: expect.any(Number),
        arithmetic: expect.arrayContaining(["f32", "i32"]),
        storage: expect.arrayContaining(["f32", "i32"]),
        matrixInstructions: expect.any(Array),
      });
    }
    expect(devices.at(-1).kind).toBe("simulator");
    for (const entry of missing) {
      expect(entry).toEqual({
        kind: expect.any(String),
        reason: expect.any(String),
        remedy: expect.any(String),
      });
    }
  });
});

describe("tilewright emit gemm", () => {
  it.each(["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"])("writes PTX for %s", async (target) => {
    const { status, out, error } = await tilewright("emit", "gemm", "--target", target);
    expect({ status, error }).toEqual({ status: 0, error: "" });
    expect(out).toMatch(new RegExp(`^\\.target ${target}$`, "m"));
    expect(out).toMatch(/^\.visible \.entry gemm\w*\($/m);
    expect(out).toMatch(target === "sm_90a" ? /wgmma\.mma_async/ : /mma\.sync\./);
  });

  it("writes the intermediate representation and the simulator's JavaScript", async () => {
    const ir = await tilewright("emit", "gemm", "--target", "ir");
    expect({ status: ir.status, error: ir.error }).toEqual({ status: 0, error: "" });
    expect(ir.out).toMatch(/^kernel gemm/);
    const javascript = await tilewright("emit", "gemm", "--target", "javascript");
    expect({ status: javascript.status, error: javascript.error }).toEqual({ status: 0, error: "" });
    expect(javascript.out).toContain("function");
  });

  it("writes WGSL for an adapter with common limits", async () => {
    const { status, out, error } = await tilewright("emit", "gemm", "--target", "wgsl");
    expect({ status, error }).toEqual({ status: 0, error: "" });
    expect(out).toMatch(/@compute @workgroup_size\(\d+/);
    expect(out).toContain("enable f16;");
  });

  it("takes types, operator and layout", async () => {
    const { out } = await tilewright(
      "emit",
      "gemm",
      "--target",
      "sm_80",
      "--type",
      "f32",
      "--operator",
      "fma",
      "--layout",
      "tn",
      "--output-type",
      "f64",
    );
    expect(out).toContain("fma.rn.f32");
    expect(out).toContain("cvt.f64.f32");
    expect(out).not.toContain("mma.sync");
    const texts = await Promise.all(
      ["nn", "nt", "tn", "tt"].map((layout) =>
        tilewright("emit", "gemm", "--target", "sm_80", "--layout", layout),
      ),
    );
    expect(new Set(texts.map(({ out: text }) => text)).size).toBe(4);
  });

  it("takes the schedule that is asked for", async () => {
    const staged = ["emit", "gemm", "--target", "sm_90a", "--schedule", "register-staged"];
    const { status, out } = await tilewright(...staged);
    expect(status).toBe(0);
    expect(out).not.toContain("wgmma");
    const refused = await tilewright("emit", "gemm", "--target", "sm_80", "--schedule", "warpgroup");
    expect(refused).toMatchObject({ status: 1, out: "" });
    expect(refused.error).toMatch(/^tilewright: gemm: the warpgroup schedule cannot serve: .*\n$/);
  });

  it("gives the same text each time", async () => {
    const [first, second] = [
      await tilewright("emit", "gemm", "--target", "sm_80"),
      await tilewright("emit", "gemm", "--target", "sm_80"),
    ];
    expect(second.out).toBe(first.out);
  });

  it.each([
    ["emit gemm", 2, /required option '--target <target>'/],
    ["emit gemm --target sm_70", 2, /'sm_70' is invalid\. Known are sm_75, /],
    ["emit stencil --target sm_80", 2, /The kernel is gemm\./],
    ["emit gemm --target sm_80 --layout nx", 2, /Known are nn, nt, tn, tt\./],
    ["emit gemm --target sm_80 --m 0", 2, /whole number from 1/],
    [
      "emit gemm --target sm_75 --type bf16 --operator mma",
      1,
      /^tilewright: sm_75 has no mma instruction for bf16/,
    ],
    ["emit gemm --target sm_80 --type f16 --accumulate i32", 1, /sums in f16 or f32, not in i32/],
  ])("refuses %s with one line", async (line, status, message) => {
    const outcome = await tilewright(...line.split(" "));
    expect(outcome.out).toBe("");
    expect(outcome.error).toMatch(message);
    expect(outcome.error.trimEnd()).not.toContain("\n");
    expect(outcome.status).toBe(status);
  });
});

describe("tilewright", () => {
  it("says its version and how it is used", async () => {
    expect(await tilewright("--version")).toMatchObject({
      status: 0,
      out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
      error: "",
    });
    const help = await tilewright("--help");
    expect(help).toMatchObject({ status: 0, error: "" });
    for (const command of ["demo", "devices", "gemm", "emit"])
      expect(help.out).toMatch(new RegExp(`^  ${command} `, "m"));
    expect(await tilewright("gemm", "--help")).toMatchObject({ status: 0, error: "" });
  });

  it("suggests a command for one that it does not know", async () => {
    const { status, error } = await tilewright("gem");
    expect(status).toBe(2);
    expect(error).toBe("tilewright: unknown command 'gem'; (Did you mean gemm?)\n");
  });
});
