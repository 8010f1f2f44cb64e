/**
 * @file What Node.js (and its likes) offers beyond the language. Imported as `#host`; the browser's twin is browser.ts
 * and both export the same names and types.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { FileError } from "../../errors.ts";

/** The value of an environment variable, or undefined where there is none. */
export function readEnvironment(name: string): string | undefined {
  return process.env[name];
}

/** The user's cache folder by the system's custom, or the one that TILEWRIGHT_CACHE names; none where that is "off". */
function cacheFolder(): string | undefined {
  const { TILEWRIGHT_CACHE: named, XDG_CACHE_HOME, LOCALAPPDATA } = process.env;
  if (named === "off") return undefined;
  if (named !== undefined && named !== "") return named;
  if (process.platform === "win32" && LOCALAPPDATA) return join(LOCALAPPDATA, "tilewright");
  const home = homedir();
  if (process.platform === "darwin") return join(home, "Library", "Caches", "tilewright");
  return join(XDG_CACHE_HOME || join(home, ".cache"), "tilewright");
}

/** Text kept for the user under a name: a file in the cache folder. */
export function readStored(name: string): string | undefined {
  const folder = cacheFolder();
  if (folder === undefined) return undefined;
  try {
    return readFileSync(join(folder, name), "utf8");
  } catch {
    return undefined;
  }
}

/** Keeps text for the user under a name. @throws FileError */
export function writeStored(name: string, text: string): void {
  const folder = cacheFolder();
  if (folder !== undefined) writeTextFile(folder, name, text);
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
    try {
      rmSync(beside, { force: true });
    } catch {
      // What could not be made need not be removed.
    }
    throw new FileError(
      `${path} cannot be written: ${cause instanceof Error ? cause.message : String(cause)}`,
      { cause },
    );
  }
}
