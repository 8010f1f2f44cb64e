/**
 * @file What Node.js (and its likes) offers beyond the language. Imported as `#host`; the browser's twin is browser.ts
 * and both export the same names and types.
 */
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FileError } from "../../errors.ts";

/** The value of an environment variable, or undefined where there is none. */
export function readEnvironment(name: string): string | undefined {
  return process.env[name];
}

let written = 0;

/**
 * Writes a text file, making its folder; other processes see the old file or the whole new one.
 * @throws FileError
 */
export function writeTextFile(folder: string, name: string, text: string): void {
  const path = join(folder, name);
  const beside = `${path}.${process.pid}.${written++}.part`;
  try {
    mkdirSync(folder, { recursive: true });
    writeFileSync(beside, text);
    renameSync(beside, path);
  } catch (cause) {
    rmSync(beside, { force: true });
    throw new FileError(
      `${path} cannot be written: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  }
}
