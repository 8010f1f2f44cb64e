/**
 * @file `TILEWRIGHT_DUMP=folder`: keeps every compiled kernel's stations as files, for people to read.
 */
import { readEnvironment, writeTextFile } from "#host";

/** What is kept of one kernel. */
export interface DumpedKernel {
  readonly name: string;
  readonly target: string;
  readonly hash: string;
  readonly ir: () => string;
  readonly optimised: () => string;
  readonly text: string;
  /** Ending of the text's file. */
  readonly ending: string;
  /** What the driver's compiler said. */
  readonly log: string;
}

/**
 * Writes `name.target.hash.…` files into the folder that TILEWRIGHT_DUMP names, if it names one.
 * @throws FileError when they cannot be written
 */
export function dumpKernel(kernel: DumpedKernel): void {
  const folder = readEnvironment("TILEWRIGHT_DUMP");
  if (folder === undefined || folder === "") return;
  const stem = `${kernel.name}.${kernel.target}.${kernel.hash.slice(0, 12)}`;
  writeTextFile(folder, `${stem}.ir`, kernel.ir());
  writeTextFile(folder, `${stem}.optimised.ir`, kernel.optimised());
  writeTextFile(folder, `${stem}.${kernel.ending}`, kernel.text);
  if (kernel.log !== "") writeTextFile(folder, `${stem}.log`, kernel.log);
}
