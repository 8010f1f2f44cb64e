/** @file Runs programs as a user does: in a process of their own, from the sources. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** What a program prints to the standard output. Fails, with what it said, when the program does. */
export async function runProgram(path: string, ...parameters: readonly string[]): Promise<string> {
  const args = ["--conditions=tilewright-source", "--import", "tsx", path, ...parameters];
  const env = { ...process.env, TILEWRIGHT_QUIET: "1", NO_COLOR: "1" };
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, env });
  return stdout;
}
