/** @file Results as JSON, one file for each suite and device, written after every item; and as a table. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Environment, slug } from "./environment.ts";
import type { Contender, WorkItem } from "./harness.ts";
import { limitOf } from "./limits.ts";
import type { Summary } from "./statistics.ts";

/** One contender's result. */
export interface ContenderResult {
  readonly role: Contender["role"];
  readonly note?: string | undefined;
  readonly seconds: Summary;
  /** The best peer's time over this one's: above 1 is faster. Absent for peers. */
  readonly ratio?: number | undefined;
}

/** One item's result, with all that it must be read with. */
export interface ItemResult extends Environment {
  readonly clock: "device" | "host";
  readonly operations?: number | undefined;
  readonly bytes?: number | undefined;
  /** Name and rate of the physical limit, and the seconds it allows. */
  readonly limit?: { readonly kind: string; readonly rate: number; readonly seconds: number } | undefined;
  readonly contenders?: Readonly<Record<string, ContenderResult>> | undefined;
  /** Instead of contenders: why there is no result. */
  readonly error?: string | undefined;
}

interface ResultFile {
  readonly suite: string;
  readonly device: string;
  readonly items: Record<string, ItemResult>;
}

/** Puts measurements together with what they are compared with. */
export function itemResult(
  item: WorkItem,
  contenders: readonly Contender[],
  summaries: readonly Summary[],
  environment: Environment,
): ItemResult {
  const peers = summaries.filter((_, i) => contenders[i]!.role === "peer");
  const bestPeer = peers.length === 0 ? undefined : Math.min(...peers.map((summary) => summary.median));
  const entries = contenders.map((contender, i): [string, ContenderResult] => {
    const seconds = summaries[i]!;
    const compared = contender.role === "ours" && bestPeer !== undefined;
    const ratio = compared ? bestPeer / seconds.median : undefined;
    return [contender.name, { role: contender.role, note: contender.note, seconds, ratio }];
  });
  const { operations, bytes } = item;
  return {
    ...environment,
    clock: item.clock ?? "device",
    operations,
    bytes,
    limit: limitResult(item, environment.device),
    contenders: Object.fromEntries(entries),
  };
}

function limitResult({ limit, operations, bytes }: WorkItem, device: string): ItemResult["limit"] {
  const amount = limit === "memory" ? bytes : operations;
  const rate = limit === undefined ? undefined : limitOf(device, limit);
  if (limit === undefined || amount === undefined || rate === undefined) return undefined;
  return { kind: limit, rate, seconds: amount / rate };
}

/** The file of one suite on one device. */
export class ResultStore {
  readonly path: string;
  readonly #content: ResultFile;

  /** Reads what is there. @throws SyntaxError for a file that is not JSON */
  constructor(directory: string, suite: string, device: string) {
    this.path = join(directory, `${suite}-${slug(device)}.json`);
    this.#content = existsSync(this.path)
      ? (JSON.parse(readFileSync(this.path, "utf8")) as ResultFile)
      : { suite, device, items: {} };
  }

  get(id: string): ItemResult | undefined {
    return this.#content.items[id];
  }

  /** Whether the item was measured with these very sources. */
  isFresh(id: string, commit: string | undefined): boolean {
    const known = this.get(id);
    return (
      known?.contenders !== undefined &&
      commit !== undefined &&
      !commit.endsWith("-dirty") &&
      known.commit === commit
    );
  }

  /** Keeps a result, on disk at once. */
  put(id: string, result: ItemResult): void {
    this.#content.items[id] = result;
    mkdirSync(dirname(this.path), { recursive: true });
    const beside = `${this.path}.${process.pid}.tmp`;
    writeFileSync(beside, `${JSON.stringify(this.#content, undefined, 2)}\n`);
    renameSync(beside, this.path);
  }
}

/** Lines for people: time, rate, ratio to the best peer, part of the physical limit. */
export function formatItem(id: string, result: ItemResult): string {
  if (result.contenders === undefined) return `${id}\n  failed: ${result.error ?? "without a reason"}`;
  const limit =
    result.limit === undefined ? "" : `   (limit: ${result.limit.kind}, ${formatTime(result.limit.seconds)})`;
  const rows = Object.entries(result.contenders).map(([name, { seconds, ratio, role }]) => [
    `  ${name}`,
    formatTime(seconds.median),
    `±${(100 * seconds.spread).toFixed(1)} %`,
    formatRate(result, seconds.median),
    ratio === undefined ? (role === "peer" ? "peer" : "") : `${ratio.toFixed(3)} of peer`,
    result.limit === undefined
      ? ""
      : `${((100 * result.limit.seconds) / seconds.median).toFixed(1)} % of limit`,
  ]);
  return [`${id}${limit}`, ...alignColumns(rows)].join("\n");
}

function alignColumns(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!)))
      .join("  ")
      .trimEnd(),
  );
}

/** `12.3 us`. */
export function formatTime(seconds: number): string {
  if (seconds >= 1) return `${seconds.toPrecision(4)} s`;
  if (seconds >= 1e-3) return `${(seconds * 1e3).toPrecision(4)} ms`;
  return seconds >= 1e-6 ? `${(seconds * 1e6).toPrecision(4)} us` : `${(seconds * 1e9).toPrecision(4)} ns`;
}

function formatRate({ operations, bytes, limit }: ItemResult, seconds: number): string {
  if (operations !== undefined && limit?.kind !== "memory")
    return `${(operations / seconds / 1e12).toPrecision(4)} T/s`;
  return bytes === undefined ? "" : `${(bytes / seconds / 1e9).toPrecision(4)} GB/s`;
}
