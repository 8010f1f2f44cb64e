/** @file Tracing reads no source text: whatever rewrites an author's file leaves kernels and numbers as they were. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type BuildOptions, build, transform } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { evaluate, type Outcome } from "./subject.ts";

const subject = fileURLToPath(new URL("./subject.ts", import.meta.url));
const root = fileURLToPath(new URL("../../..", import.meta.url));
/** Inside the repository, so that what the bundles leave out is found. */
let folder = "";
let original: Outcome;

beforeAll(async () => {
  folder = mkdtempSync(join(root, "node_modules", ".tilewright-rewritten-"));
  original = await evaluate();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Bundles the subject with the whole library. */
async function bundled(name: string, options: BuildOptions): Promise<string> {
  const outfile = join(folder, `${name.replace(/\W+/g, "-")}.mjs`);
  await build({
    entryPoints: [subject],
    outfile,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20",
    conditions: ["tilewright-source"],
    external: ["koffi", "webgpu", "node:*"],
    logLevel: "silent",
    ...options,
  });
  return outfile;
}

/** The Istanbul way of coverage. */
const counting = `
  const __counters = (globalThis.__counters ??= {});
  const __count = (key) => { __counters[key] = (__counters[key] ?? 0) + 1; };
`;

/** Counts every arrow function's and method's calls, as coverage tools and debuggers rewrite them. */
async function instrumented(): Promise<string> {
  const file = await bundled("plain for counting", { minify: false, keepNames: false });
  let sites = 0;
  const text = readFileSync(file, "utf8").replace(/\) => \{\n/g, () => `) => {\n__count(${sites++});\n`);
  expect(sites).toBeGreaterThan(100);
  const outfile = join(folder, "instrumented.mjs");
  writeFileSync(outfile, counting + text);
  return outfile;
}

/** The subject alone minified twice over, the library as it is. */
async function again(): Promise<string> {
  const file = await bundled("once minified", { minify: true });
  const { code } = await transform(readFileSync(file, "utf8"), {
    minify: true,
    target: "es2022",
    format: "esm",
  });
  const outfile = join(folder, "twice-minified.mjs");
  writeFileSync(outfile, code);
  return outfile;
}

describe("the same texts and the same numbers", () => {
  const ways: readonly (readonly [string, () => Promise<string>])[] = [
    ["bundled", () => bundled("bundled", {})],
    ["bundled and minified", () => bundled("minified", { minify: true })],
    ["bundled, minified, with names kept", () => bundled("named", { minify: true, keepNames: true })],
    [
      "bundled for an old language",
      () => bundled("old", { target: "es2022", minifySyntax: true, keepNames: true }),
    ],
    ["minified twice", again],
    ["counting calls, as coverage does", instrumented],
  ];
  it.each(ways)("%s", async (_, make) => {
    const module = (await import(/* @vite-ignore */ pathToFileURL(await make()).href)) as {
      readonly evaluate: typeof evaluate;
    };
    const rewritten = await module.evaluate();
    for (const [name, text] of Object.entries(original.texts)) {
      expect(rewritten.texts[name] === text, `the text of ${name}`).toBe(true);
    }
    expect(rewritten.numbers).toEqual(original.numbers);
  });

  it("and texts without the author's names or places", () => {
    for (const text of Object.values(original.texts)) {
      expect(text).not.toMatch(/champion|tilted|weighted|subject\.ts/i);
    }
  });
});
