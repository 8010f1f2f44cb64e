/**
 * @file What pages show of the results. A page has lines `<!-- results: SUITE REGEXP -->` and `<!-- end -->`; between them
 * stands the table of the items whose names match.
 */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { ItemResult } from "../results.ts";
import { type Series, svgPlot } from "./plot.ts";
import { type Items, markdownTable } from "./table.ts";

const root = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** Items of every result file on a device, by suite. */
export function readResults(device: string): ReadonlyMap<string, Items> {
  const suites = new Map<string, Items>();
  for (const name of readdirSync(root("bench/results"))) {
    const {
      suite,
      device: measured,
      items,
    } = JSON.parse(readFileSync(root(`bench/results/${name}`), "utf8"));
    if (measured === device) suites.set(suite, items);
  }
  return suites;
}

const section = /^(<!-- results: (\S+) (.*) -->\n)[\s\S]*?^(<!-- end -->)$/gm;

/** A page with its tables made anew. @throws Error for a suite without results */
export function filledPage(text: string, results: ReadonlyMap<string, Items>): string {
  return text.replace(section, (_, begin: string, suite: string, pattern: string, end: string) => {
    const items = results.get(suite);
    if (items === undefined) throw new Error(`no results of the suite ${suite}`);
    const matches = new RegExp(pattern);
    const chosen = Object.entries(items).filter(([id]) => matches.test(id));
    return `${begin}\n${markdownTable(Object.fromEntries(chosen))}\n\n${end}`;
  });
}

const cube = /^(\S+) (\d+) x \2 x \2 (NN|NT|TN|TT)$/;

/** Rates of square products of one type over sizes, ours and the peer's: means over the layouts. */
export function squarePlot(items: Items, type: string, title: string): string {
  const rates: Record<"ours" | "peer", Map<number, number[]>> = { ours: new Map(), peer: new Map() };
  let limit = 0;
  for (const [id, item] of Object.entries(items)) {
    const [, name, size] = cube.exec(id) ?? [];
    if (name !== type) continue;
    limit = item.limit?.rate ?? limit;
    for (const [role, list] of Object.entries(rates)) {
      const seconds = fastest(item, role);
      if (seconds === undefined || item.operations === undefined) continue;
      list.set(Number(size), [...(list.get(Number(size)) ?? []), item.operations / seconds / 1e12]);
    }
  }
  const series = (name: string, role: "ours" | "peer"): Series => ({
    name,
    colour: role === "ours" ? 0 : 1,
    dashed: role === "peer",
    points: [...rates[role]]
      .map(([x, values]) => [x, geometricMean(values)] as const)
      .sort(([a], [b]) => a - b),
  });
  return svgPlot({
    title,
    xLabel: "M = N = K",
    yLabel: "TFLOP/s",
    series: [series("Tilewright", "ours"), series("cuBLASLt", "peer")],
    limit: { name: "limit", y: limit / 1e12 },
  });
}

function fastest({ contenders }: ItemResult, role: string): number | undefined {
  const times = Object.values(contenders ?? {})
    .filter((one) => one.role === role)
    .map(({ seconds }) => seconds.median);
  return times.length === 0 ? undefined : Math.min(...times);
}

function geometricMean(values: readonly number[]): number {
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
}

/** Every file that the results fill, with its content. */
export function reportFiles(): ReadonlyMap<string, string> {
  const results = readResults("NVIDIA H200");
  const pages = ["docs/performance.md", "docs/evaluation.md"];
  return new Map([
    ...pages.map((page) => [page, filledPage(readFileSync(root(page), "utf8"), results)] as const),
    [
      "docs/figures/gemm-f16.svg",
      squarePlot(results.get("gemm") ?? {}, "f16", "f16 products on an H200, sums in f32, D in f16"),
    ],
  ]);
}
