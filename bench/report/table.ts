/** @file Results as Markdown tables. */
import type { ItemResult } from "../results.ts";

/** Items by name, as a result file has them. */
export type Items = Readonly<Record<string, ItemResult>>;

/** One line for each of our contenders: rate, the best peer's rate, ratio, part of the physical limit. */
export function markdownTable(items: Items): string {
  const lines = Object.entries(items).flatMap(([id, item]) => rows(id, item));
  if (lines.length === 0) return "Nothing was measured yet.";
  const unit = Object.values(items).some(({ operations }) => operations !== undefined) ? "TFLOP/s" : "time";
  return [
    `| work | way | ${unit} | peer | ratio | of the limit |`,
    "|---|---|---:|---:|---:|---:|",
    ...lines,
  ].join("\n");
}

function rows(id: string, item: ItemResult): readonly string[] {
  const contenders = Object.entries(item.contenders ?? {});
  const peers = contenders.filter(([, { role }]) => role === "peer");
  const best = Math.min(...peers.map(([, { seconds }]) => seconds.median));
  return contenders
    .filter(([, { role }]) => role === "ours")
    .map(([name, { note, seconds, ratio }]) => {
      const way = name === "ours" ? (note?.split(",")[0] ?? name) : name;
      const limit = item.limit === undefined ? "" : percent(item.limit.seconds / seconds.median);
      const cells = [id, way, amount(item, seconds.median), peers.length === 0 ? "" : amount(item, best)];
      return `| ${[...cells, ratio?.toFixed(2) ?? "", limit].join(" | ")} |`;
    });
}

/** A rate where operations were counted, else a time. */
function amount({ operations }: ItemResult, seconds: number): string {
  if (operations !== undefined)
    return (operations / seconds / 1e12).toFixed(operations / seconds < 1e14 ? 1 : 0);
  return seconds < 1e-3 ? `${(seconds * 1e6).toFixed(2)} µs` : `${(seconds * 1e3).toFixed(2)} ms`;
}

function percent(part: number): string {
  return `${(100 * part).toFixed(0)} %`;
}
