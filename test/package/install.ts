/**
 * @file Set-up of the `package` project: builds, packs and installs the library once, the way a user gets it, into a
 * temporary folder outside the repository.
 */

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  export interface ProvidedContext {
    /** The folder of a project that has the packed library in its node_modules. */
    readonly consumer: string;
    /** The archive as it would be published. */
    readonly archive: string;
    /** The entries that exist, as a user writes them: `tilewright`, `tilewright/lang`, … */
    readonly entries: readonly string[];
  }
}

type Exports = Readonly<Record<string, string | Readonly<Record<string, string>>>>;

export default function setup(project: TestProject): () => void {
  const root = project.vitest.config.root;
  const folder = mkdtempSync(join(tmpdir(), "tilewright-package-"));
  const run = (command: string, ...parameters: string[]): string =>
    execFileSync(command, parameters, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });

  if (!process.env.TILEWRIGHT_BUILT) run("npm", "run", "--silent", "build");
  const staged = join(folder, "staged");
  run(process.execPath, "scripts/prepare-package.mjs", staged);
  const [{ filename }] = JSON.parse(run("npm", "pack", staged, "--json", "--pack-destination", folder));
  const archive = join(folder, filename);

  const consumer = join(folder, "consumer");
  mkdirSync(consumer);
  writeFileSync(
    join(consumer, "package.json"),
    JSON.stringify({
      name: "consumer",
      private: true,
      type: "module",
      dependencies: { tilewright: `file:${archive}` },
      // The copies that this repository has, so that the test needs no network.
      overrides: Object.fromEntries(
        ["commander", "koffi"].map((name) => [name, `file:${join(root, "node_modules", name)}`]),
      ),
    }),
  );
  execFileSync(
    "npm",
    ["install", "--offline", "--ignore-scripts", "--omit=optional", "--omit=peer", "--no-audit"],
    {
      cwd: consumer,
      stdio: ["ignore", "ignore", "inherit"],
    },
  );

  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { exports: Exports };
  const entries = Object.entries(exports).flatMap(([subpath, target]) =>
    typeof target === "object" && existsSync(join(root, target["tilewright-source"]!))
      ? [subpath.replace(/^\./, "tilewright")]
      : [],
  );

  project.provide("consumer", consumer);
  project.provide("archive", archive);
  project.provide("entries", entries);
  return () => rmSync(folder, { recursive: true, force: true });
}
