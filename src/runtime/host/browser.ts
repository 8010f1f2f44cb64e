/**
 * @file What a browser offers in place of node.ts: nothing that a bundler would have to polyfill.
 */
import { FileError } from "../../errors.ts";

/** The value of an environment variable: browsers have none. */
export function readEnvironment(_name: string): string | undefined {
  return undefined;
}

interface PageStorage {
  getItem(key: string): string | null;
  setItem(key: string, text: string): void;
}

/** Workers and sandboxed pages have none, or refuse it when it is touched. */
function pageStorage(): PageStorage | undefined {
  try {
    return (globalThis as { readonly localStorage?: PageStorage }).localStorage;
  } catch {
    return undefined;
  }
}

/** Text kept for the user under a name: in the page's `localStorage`. */
export function readStored(name: string): string | undefined {
  return pageStorage()?.getItem(`tilewright/${name}`) ?? undefined;
}

/** Keeps text for the user under a name, where the page may. @throws whatever the page's storage throws when it is full */
export function writeStored(name: string, text: string): void {
  pageStorage()?.setItem(`tilewright/${name}`, text);
}

/** Browsers have no files. @throws FileError */
export function writeTextFile(_folder: string, name: string, _text: string): void {
  throw new FileError(`${name} cannot be written: this environment has no files`);
}
