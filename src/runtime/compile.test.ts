import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { CompileError, TraceError, UnsupportedError } from "../errors.ts";
import { block, f32, inout, kernel, thread, when } from "../lang/index.ts";
import { BoundedCache } from "./bounded-cache.ts";
import { createCompiler, emit } from "./compile.ts";
import { createDevice } from "./device.ts";
import { FakeBackend, fakeFacts } from "./fake-backend-for-tests.ts";

const doubling = kernel("doubling", {
  params: { x: inout(f32) },
  block: 64,
  body({ x }) {
    const at = block.id.x.mul(64).add(thread.index);
    when(at.lt(x.size()), () => x.store(at, x.load(at).mul(2)));
  },
});

describe("emit", () => {
  it("gives the stations of a kernel without a device", () => {
    const { ir, optimised, text } = emit(doubling, fakeFacts);
    expect([ir.name, optimised.name]).toEqual(["doubling", "doubling"]);
    expect(text).toContain("use strict");
    expect(emit(doubling, fakeFacts).text).toBe(text);
    expect(emit(doubling, fakeFacts, { checks: false }).text).not.toBe(text);
  });

  it("refuses targets that this version does not write for", () => {
    expect(() => emit(doubling, { ...fakeFacts, language: "wgsl" })).toThrow(UnsupportedError);
    expect(() => emit(doubling, { ...fakeFacts, language: "wgsl" })).toThrow(/kernel doubling/);
  });

  it("names the kernel in every error", () => {
    const large = kernel("large", { params: {}, block: 4096, body() {} });
    expect(() => emit(large, fakeFacts)).toThrow(/kernel large: a block of 4096 threads/);
    const idle = kernel("idle", { params: {}, block: 1, body: () => void thread.index.lt(1) });
    expect(() => emit(idle, fakeFacts)).toThrow(TraceError);
    expect(() => emit(idle, fakeFacts)).toThrow(/kernel idle/);
  });
});

describe("TILEWRIGHT_DUMP", () => {
  const folder = mkdtempSync(join(tmpdir(), "tilewright-dump-"));
  afterEach(() => {
    delete process.env.TILEWRIGHT_DUMP;
    rmSync(folder, { recursive: true, force: true });
  });

  it("keeps the representation, the text and the driver's log, of refused kernels too", async () => {
    process.env.TILEWRIGHT_DUMP = join(folder, "new");
    const backend = new FakeBackend();
    backend.refusal = new CompileError("refused", "line 7: what is this?");
    const device = createDevice(backend, createCompiler(backend));
    const names = (): readonly string[] => readdirSync(join(folder, "new")).sort();
    await expect(device.compile(doubling)).rejects.toThrow(CompileError);
    const [log] = names().filter((name) => name.endsWith(".log"));
    expect(readFileSync(join(folder, "new", log!), "utf8")).toBe("line 7: what is this?");
    const { text } = await device.compile(doubling);
    expect(names().map((name) => name.replace(/\.[0-9a-f]{12}\./, ".hash."))).toEqual([
      "doubling.simulator.hash.ir",
      "doubling.simulator.hash.js",
      "doubling.simulator.hash.log",
      "doubling.simulator.hash.optimised.ir",
    ]);
    const [script] = names().filter((name) => name.endsWith(".js"));
    expect(readFileSync(join(folder, "new", script!), "utf8")).toBe(text);
  });
});

describe("BoundedCache", () => {
  it("forgets what was not asked for the longest", () => {
    const cache = new BoundedCache<string, number>(2);
    cache.set("a", 1);
    cache.set("b", 2);
    expect(cache.get("a")).toBe(1);
    cache.set("c", 3);
    expect([cache.get("a"), cache.get("b"), cache.get("c"), cache.size]).toEqual([1, undefined, 3, 2]);
  });
});
