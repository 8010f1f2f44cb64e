/** @file Runs command lines in this process, and keeps what they print. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import { runCommandLine } from "../../src/cli/command-line.ts";

export interface Outcome {
  readonly status: number;
  readonly out: string;
  readonly error: string;
}

/** Runs `tilewright` with arguments. */
export async function tilewright(...args: readonly string[]): Promise<Outcome> {
  let [out, error] = ["", ""];
  const status = await runCommandLine(args, {
    out: (text) => {
      out += text;
    },
    error: (text) => {
      error += text;
    },
    watched: false,
  });
  return { status, out, error };
}

/** A fresh folder for each test of a file, removed after it. */
export function temporaryFolder(): { path(name?: string): string } {
  let folder = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "tilewright-cli-"));
  });
  afterEach(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  return { path: (name) => (name === undefined || name === "" ? folder : join(folder, name)) };
}
