import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Environment, slug } from "./environment.ts";
import type { Contender, WorkItem } from "./harness.ts";
import { formatItem, formatTime, itemResult, ResultStore } from "./results.ts";
import { parseShard, select } from "./suite.ts";

const environment: Environment = {
  device: "NVIDIA H200",
  driver: "580.159.04",
  cuda: "13.0",
  node: "v20.20.2",
  date: "2026-11-30T00:00:00.000Z",
  commit: "0123456789ab",
};

const seconds = (median: number) => ({ median, low: median, high: median, spread: 0.01, samples: 15 });
const contender = (name: string, role: Contender["role"]): Contender => ({
  name,
  role,
  enqueue: () => undefined,
});
const item: WorkItem = {
  id: "f16 4096",
  operations: 2 * 4096 ** 3,
  limit: "f16",
  prepare: () => Promise.reject(new Error("not here")),
};
const result = itemResult(
  item,
  [contender("tilewright", "ours"), contender("cuBLASLt", "peer"), contender("slow peer", "peer")],
  [seconds(200e-6), seconds(190e-6), seconds(1e-3)],
  environment,
);

describe("a result", () => {
  it("has the ratio to the best peer and the physical limit", () => {
    expect(result.contenders!.tilewright!.ratio).toBeCloseTo(0.95);
    expect(result.contenders!.cuBLASLt!.ratio).toBeUndefined();
    expect(result.limit!.seconds).toBeCloseTo((2 * 4096 ** 3) / 989.4e12);
    expect(result.commit).toBe("0123456789ab");
  });

  it("prints as a table", () => {
    expect(formatItem(item.id, result)).toBe(
      [
        "f16 4096   (limit: f16, 138.9 us)",
        "  tilewright  200.0 us  ±1.0 %  687.2 T/s  0.950 of peer  69.5 % of limit",
        "  cuBLASLt    190.0 us  ±1.0 %  723.4 T/s           peer  73.1 % of limit",
        "  slow peer   1.000 ms  ±1.0 %  137.4 T/s           peer  13.9 % of limit",
      ].join("\n"),
    );
    expect(formatTime(2.5e-9)).toBe("2.500 ns");
  });

  it("of a failure prints its reason", () => {
    expect(formatItem("x", { ...environment, clock: "device", error: "out of memory" })).toBe(
      "x\n  failed: out of memory",
    );
  });
});

describe("the store", () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "results-"));
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  it("keeps every item at once, and knows which are fresh", () => {
    const store = new ResultStore(directory, "gemm", "NVIDIA H200");
    store.put("a", result);
    store.put("b", { ...environment, clock: "device", error: "failed" });
    expect(readdirSync(directory)).toEqual(["gemm-nvidia-h200.json"]);
    const again = new ResultStore(directory, "gemm", "NVIDIA H200");
    expect(again.get("a")).toEqual(JSON.parse(JSON.stringify(result)));
    expect(again.isFresh("a", "0123456789ab")).toBe(true);
    expect(again.isFresh("a", "another")).toBe(false);
    expect(again.isFresh("a", undefined)).toBe(false);
    expect(again.isFresh("b", "0123456789ab")).toBe(false);
    expect(again.isFresh("c", "0123456789ab")).toBe(false);
  });
});

describe("a selection", () => {
  const items = ["a1", "a2", "b1", "a3", "a4"].map((id) => ({ id }));

  it("takes a part of what matches", () => {
    const only = /^a/;
    const parts = [1, 2].map((part) => select(items, { only, shard: { part, of: 2 } }).map(({ id }) => id));
    expect(parts).toEqual([
      ["a1", "a3"],
      ["a2", "a4"],
    ]);
  });

  it("reads shards", () => {
    expect(parseShard("3/8")).toEqual({ part: 3, of: 8 });
    for (const wrong of ["0/2", "3/2", "1", "1/0", "a/b"])
      expect(() => parseShard(wrong)).toThrow(RangeError);
  });

  it("names files after devices", () => {
    expect(slug("NVIDIA GeForce RTX 4090 (laptop)")).toBe("nvidia-geforce-rtx-4090-laptop");
  });
});
