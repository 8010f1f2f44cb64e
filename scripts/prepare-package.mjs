/**
 * Lays out the package as it is published, in a folder of its own (`.package/` unless another is named):
 *
 *   npm run build && node scripts/prepare-package.mjs [folder] && npm publish .package
 *
 * The repository's manifest sends `tilewright-source` to src/, for its own tests and examples; in a published manifest
 * that would be a second way in, to files that no build has checked. A copy is edited, never the manifest in place: a
 * step that fails between an edit and its undoing would leave the repository broken.
 */

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const target = resolve(process.argv[2] ?? join(root, ".package"));

/** The files that `files` in package.json selects, by npm's own rules. */
const listing = execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
  cwd: root,
  encoding: "utf8",
  maxBuffer: 1 << 26,
});

rmSync(target, { recursive: true, force: true });
for (const { path } of JSON.parse(listing)[0].files) {
  const copy = join(target, path);
  mkdirSync(dirname(copy), { recursive: true });
  cpSync(join(root, path), copy);
}

/** Removes the source condition wherever it stands. */
function withoutSource(value) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).filter(([key]) => key !== "tilewright-source");
  return Object.fromEntries(entries.map(([key, inner]) => [key, withoutSource(inner)]));
}

const {
  scripts: _scripts,
  devDependencies: _development,
  ...manifest
} = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const published = {
  ...manifest,
  exports: withoutSource(manifest.exports),
  imports: withoutSource(manifest.imports),
};
writeFileSync(join(target, "package.json"), `${JSON.stringify(published, null, 2)}\n`);
console.log(`The package lies in ${target}.`);
