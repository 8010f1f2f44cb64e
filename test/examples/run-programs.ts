/**
 * @file Runs the programs that are its arguments one after the other in one process, which loads the library once, and prints
 * as JSON what each of them printed, or the error that ended it.
 */
import { pathToFileURL } from "node:url";

/** What became of a program. */
export interface ProgramOutcome {
  readonly printed: string;
  readonly error?: string;
}

const write = process.stdout.write;
const outcomes: Record<string, ProgramOutcome> = {};
for (const path of process.argv.slice(2)) {
  let printed = "";
  process.stdout.write = ((text: string | Uint8Array) => {
    printed += typeof text === "string" ? text : Buffer.from(text).toString();
    return true;
  }) as typeof write;
  try {
    await import(pathToFileURL(path).href);
    outcomes[path] = { printed };
  } catch (error) {
    outcomes[path] = {
      printed,
      error: error instanceof Error ? (error.stack ?? error.message) : String(error),
    };
  }
}
process.stdout.write = write;
console.log(JSON.stringify(outcomes));
