import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { cruise, type ICruiseResult } from "dependency-cruiser";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
// @ts-expect-error: the configuration is plain JavaScript, for the command that reads it
import configuration from "../../.dependency-cruiser.mjs";

/** Files of a small imitation of the library, by path; each export is a constant so that any import resolves. */
type Tree = Readonly<Record<string, string>>;

const sound: Tree = {
  "package.json": JSON.stringify({
    name: "tilewright",
    type: "module",
    exports: { "./lang": { "tilewright-source": "./src/lang/index.ts" } },
    imports: { "#host": { node: "./src/runtime/host/node.ts", default: "./src/runtime/host/browser.ts" } },
  }),
  "tsconfig.json": JSON.stringify({
    compilerOptions: { module: "NodeNext", allowImportingTsExtensions: true },
  }),
  "src/errors.ts": "export const errors = 1;",
  "src/types/index.ts": 'export { errors } from "../errors.ts";',
  "src/target/index.ts": 'import "../types/index.ts"; export const target = 1;',
  "src/ir/index.ts": 'import "../target/index.ts"; export type Module = 1;',
  "src/passes/index.ts": 'import "../ir/index.ts"; export const passes = 1;',
  "src/codegen/ptx/index.ts": 'import "../../ir/index.ts"; export const ptx = 1;',
  "src/lang/index.ts": 'import "../ir/index.ts"; import "#host"; export const lang = 1;',
  "src/tile/index.ts": 'import "../lang/index.ts"; export const tile = 1;',
  "src/runtime/host/node.ts": 'import "node:fs"; export const host = 1;',
  "src/runtime/host/browser.ts": "export const host = 1;",
  "src/runtime/device.ts": 'import "../lang/index.ts"; export type Device = 1;',
  "src/runtime/compiled-kernel.ts":
    'import type { Device } from "./device.ts"; export type Compiled = Device;',
  "src/runtime/compile.ts":
    'import "../lang/index.ts"; import "../passes/index.ts"; import "../codegen/ptx/index.ts"; export const compile = 1;',
  "src/runtime/cuda/index.ts":
    'import "node:fs"; import "../compile.ts"; import "../device.ts"; export const cuda = 1;',
  "src/runtime/simulator/index.ts": 'import "../compile.ts"; export const simulator = 1;',
  "src/runtime/open.ts": 'import "./cuda/index.ts"; import "./simulator/index.ts"; export const open = 1;',
  "src/gemm/index.ts":
    'import "../tile/index.ts"; import type { Device } from "../runtime/device.ts"; export type D = Device;',
  "src/array-ops/index.ts": 'import "../lang/index.ts"; export const map = 1;',
  "src/tuning/index.ts": 'import "../target/index.ts"; export const tuning = 1;',
  "src/ir/builder-for-tests.ts": 'import "../lang/index.ts"; import "node:fs"; export const builder = 1;',
  "src/cli/main.ts": 'import "../runtime/open.ts"; import "node:fs"; export const main = 1;',
  "src/index.ts": 'export { open } from "./runtime/open.ts";',
  "examples/sum.ts": 'import "tilewright/lang"; export const sum = 1;',
};

/** Rule → one file that breaks it. */
const violations: readonly (readonly [rule: string, path: string, text: string])[] = [
  ["arrows-errors-ts", "src/errors.ts", 'import "./types/index.ts";'],
  ["arrows-types", "src/types/wide.ts", 'import "../target/index.ts";'],
  ["arrows-target", "src/target/wide.ts", 'import "../ir/index.ts";'],
  [
    "arrows-ir",
    "src/ir/wide.ts",
    'import type { Device } from "../runtime/device.ts"; export type D = Device;',
  ],
  ["arrows-passes", "src/passes/wide.ts", 'import "../lang/index.ts";'],
  ["arrows-codegen", "src/codegen/ptx/wide.ts", 'import "../../passes/index.ts";'],
  ["arrows-lang", "src/lang/wide.ts", 'import "../tile/index.ts";'],
  ["arrows-tile", "src/tile/wide.ts", 'import "../gemm/index.ts";'],
  ["arrows-gemm", "src/gemm/wide.ts", 'import "../runtime/cuda/index.ts";'],
  ["arrows-gemm", "src/gemm/wide.ts", 'import "../codegen/ptx/index.ts";'],
  ["arrows-gemm", "src/gemm/wide.ts", 'import "../ir/index.ts";'],
  ["arrows-array-ops", "src/array-ops/wide.ts", 'export const late = () => import("../runtime/open.ts");'],
  ["arrows-stencil", "src/stencil/index.ts", 'import "../gemm/index.ts";'],
  ["arrows-tuning", "src/tuning/wide.ts", 'import "../gemm/index.ts";'],
  ["arrows-runtime-cuda", "src/runtime/cuda/wide.ts", 'import "../simulator/index.ts";'],
  ["arrows-runtime-simulator", "src/runtime/simulator/wide.ts", 'import "../../codegen/ptx/index.ts";'],
  ["arrows-runtime-interfaces", "src/runtime/array.ts", 'import "./cuda/index.ts";'],
  ["arrows-runtime-interfaces", "src/runtime/compiled-kernel.ts", 'import "./compile.ts";'],
  ["arrows-runtime-interfaces", "src/runtime/cache.ts", 'import "../passes/index.ts";'],
  ["arrows-unknown-folder", "src/utils/index.ts", 'import "../lang/index.ts";'],
  ["only-compile-joins", "src/cli/emit.ts", 'import "../codegen/ptx/index.ts";'],
  ["entries-are-for-users", "src/runtime/cuda/wide.ts", 'import "../../index.ts";'],
  ["host-by-its-name", "src/runtime/cuda/wide.ts", 'import "../host/node.ts";'],
  ["test-support-is-for-tests", "src/ir/wide.ts", 'import "./builder-for-tests.ts";'],
  ["no-cycles", "src/types/index.ts", 'import type { T } from "./t.ts"; export type U = T;'],
  ["node-in-its-corner", "src/lang/wide.ts", 'import "node:crypto";'],
  ["node-in-its-corner", "src/gemm/wide.ts", 'export const late = () => import("fs");'],
  ["koffi-in-its-corner", "src/runtime/simulator/wide.ts", 'import "koffi";'],
  ["webgpu-in-its-corner", "src/lang/wide.ts", 'import "webgpu";'],
  ["commander-in-its-corner", "src/npy/index.ts", 'import "commander";'],
  ["no-other-packages", "src/lang/wide.ts", 'import "typescript";'],
  ["resolvable", "src/lang/wide.ts", 'import "./nowhere.ts";'],
  ["examples-are-users", "examples/wide.ts", 'import "../src/lang/index.ts";'],
];

const partner = 'import type { U } from "./index.ts"; export type T = U;';

let folder: string;
let outside: string;

beforeEach(() => {
  outside = process.cwd();
  folder = mkdtempSync(join(tmpdir(), "tilewright-arrows-"));
});

afterEach(() => {
  process.chdir(outside);
  rmSync(folder, { recursive: true });
});

function plant(tree: Tree): void {
  for (const [path, text] of Object.entries(tree)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  // A name in node_modules is all that the rules look at.
  for (const name of ["koffi", "webgpu", "commander", "typescript"]) {
    mkdirSync(join(folder, "node_modules", name), { recursive: true });
    writeFileSync(join(folder, "node_modules", name, "index.js"), "");
  }
}

async function brokenRules(): Promise<readonly string[]> {
  process.chdir(folder);
  const { enhancedResolveOptions, ...options } = configuration.options;
  const { output } = await cruise(
    ["src", "examples"],
    { ...options, ruleSet: configuration, validate: true, enhancedResolveOptions },
    enhancedResolveOptions,
  );
  return (output as ICruiseResult).summary.violations.map((violation) => violation.rule.name);
}

describe("the import arrows", () => {
  it("let a sound tree pass", async () => {
    plant(sound);
    expect(await brokenRules()).toEqual([]);
  });

  it.each(violations)("%s catches %s: %s", async (rule, path, text) => {
    plant({ ...sound, "src/types/t.ts": path === "src/types/index.ts" ? partner : "", [path]: text });
    expect(await brokenRules()).toContain(rule);
  });
});
