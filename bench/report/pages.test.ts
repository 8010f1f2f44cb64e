import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { filledPage, reportFiles, squarePlot } from "./pages.ts";
import type { Items } from "./table.ts";

const seconds = (median: number) => ({ median, low: median, high: median, spread: 0, samples: 1 });
const environment = {
  device: "a card",
  driver: "1",
  cuda: "1",
  node: "1",
  date: "",
  clock: "device",
} as const;
const items = {
  "f16 2 x 2 x 2 NN": {
    ...environment,
    operations: 16e12,
    limit: { kind: "f16", rate: 32e12, seconds: 0.5 },
    contenders: {
      ours: { role: "ours", note: "warpgroup, block 1 x 2", seconds: seconds(1), ratio: 0.8 },
      peer: { role: "peer", seconds: seconds(0.8) },
    },
  },
  "f64 2 x 2 x 2 NN": { ...environment, error: "out of memory" },
} as unknown as Items;

describe("a page", () => {
  it("gets the table of the items that match, and keeps the rest", () => {
    const page = "Before.\n<!-- results: gemm ^f16 -->\nold\n<!-- end -->\nAfter.\n";
    const filled = filledPage(page, new Map([["gemm", items]]));
    expect(filled).toContain("| f16 2 x 2 x 2 NN | warpgroup | 16.0 | 20.0 | 0.80 | 50 % |");
    expect(filled).not.toContain("old");
    expect(filled).toMatch(/^Before\.\n[\s\S]*After\.\n$/);
    expect(filledPage(filled, new Map([["gemm", items]]))).toBe(filled);
  });

  it("that asks for a suite without results is an error", () => {
    expect(() => filledPage("<!-- results: none . -->\n<!-- end -->", new Map())).toThrow("suite none");
  });
});

describe("a plot", () => {
  it("has a line for us and one for the peer", () => {
    const svg = squarePlot(items, "f16", "f16");
    expect(svg.match(/<polyline/g)).toHaveLength(2);
    expect(svg).toContain(">Tilewright<");
  });
});

describe("what is kept in docs/", () => {
  it.each([...reportFiles()])("%s is what `npm run report` makes of the results", (path, content) => {
    const file = fileURLToPath(new URL(`../../${path}`, import.meta.url));
    expect(existsSync(file) ? readFileSync(file, "utf8") : "").toBe(content);
  });
});
