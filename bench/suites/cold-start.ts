/**
 * @file What the first product of a fresh process costs, from the start of Node.js to the result: with nothing in the
 * driver's cache of compiled code, and with the code there. The package is the one in dist/.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Prepared, WorkItem } from "../harness.ts";
import type { Suite } from "../suite.ts";

const program = fileURLToPath(new URL("./cold-start-process.mjs", import.meta.url));
const built = fileURLToPath(new URL("../../dist/gemm/index.mjs", import.meta.url));

/** Processes whose phases go into the notes, as medians. */
const observed = 5;

interface Product {
  readonly type: "f16" | "f32";
  readonly size: number;
}

const products: readonly Product[] = [
  { type: "f16", size: 8192 },
  { type: "f32", size: 256 },
];

/** What one process says of itself; phases in milliseconds. */
interface Report {
  readonly route: string;
  readonly phases: Readonly<Record<string, number>>;
}

/** Runs one process with the driver's cache in a folder. */
function start({ type, size }: Product, cache: string): Report {
  const env = { ...process.env, CUDA_CACHE_PATH: cache, CUDA_CACHE_DISABLE: "0", TILEWRIGHT_CACHE: "off" };
  const text = execFileSync(process.execPath, [program, type, String(size)], { env, encoding: "utf8" });
  return JSON.parse(text) as Report;
}

function noteOf(reports: readonly Report[]): string {
  const { route, phases } = reports[0]!;
  const medians = Object.keys(phases).map((name) => {
    const sorted = reports.map((report) => report.phases[name]!).sort((x, y) => x - y);
    return [name, sorted[sorted.length >> 1]!] as const;
  });
  const beyond = medians
    .filter(([name]) => !["process", "context"].includes(name))
    .reduce((sum, [, milliseconds]) => sum + milliseconds, 0);
  const listed = medians.map(([name, milliseconds]) => `${name} ${milliseconds.toFixed(1)}`).join(", ");
  return `${route}; ms: ${listed}; beyond the start of Node.js and of the context ${beyond.toFixed(1)}`;
}

/** A folder of its own for each cold process; one that is filled for all warm ones. */
function coldStart(product: Product): WorkItem {
  return {
    id: `first product of a process, ${product.type} ${product.size} x ${product.size} x ${product.size}`,
    clock: "host",
    prepare: async (): Promise<Prepared> => {
      if (!existsSync(built)) throw new Error("dist/ is missing: npm run build makes it");
      const folder = mkdtempSync(join(tmpdir(), "tilewright-cold-start-"));
      const cold = (): Report => start(product, mkdtempSync(join(folder, "cold-")));
      const warm = (): Report => start(product, join(folder, "warm"));
      warm();
      const times = (run: () => Report): readonly Report[] => Array.from({ length: observed }, run);
      return {
        contenders: [
          { name: "empty driver cache", role: "ours", note: noteOf(times(cold)), enqueue: cold },
          { name: "cached code", role: "ours", note: noteOf(times(warm)), enqueue: warm },
        ],
        dispose: () => rmSync(folder, { recursive: true, force: true }),
      };
    },
  };
}

export const coldStartSuite: Suite = {
  name: "cold-start",
  items: () => products.map(coldStart),
};
