/**
 * @file What a browser offers in place of node.ts: nothing that a bundler would have to polyfill.
 */
import { FileError } from "../../errors.ts";

/** The value of an environment variable: browsers have none. */
export function readEnvironment(_name: string): string | undefined {
  return undefined;
}

/** Browsers have no files. @throws FileError */
export function writeTextFile(_folder: string, name: string, _text: string): void {
  throw new FileError(`${name} cannot be written: this environment has no files`);
}
