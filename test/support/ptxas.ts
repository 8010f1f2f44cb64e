/**
 * @file Assembles PTX with ptxas. What it said is kept by hash of text and assembler, because the same texts come back in
 * every run.
 */

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { requirement } from "./require.ts";

export interface Assembly {
  readonly succeeded: boolean;
  /** Everything the assembler printed, its info lines included. */
  readonly log: string;
  /** Registers per thread, and bytes spilled to local memory. */
  readonly registers: number;
  readonly spilledBytes: number;
  /** Codes of its warnings about wgmma and setmaxnreg: info lines named C75xx. */
  readonly warnings: readonly string[];
}

const cache = fileURLToPath(new URL("../../node_modules/.cache/tilewright-ptxas/", import.meta.url));

/** Assembles one module for `target` (its own `.target` if left out). Needs `requirement("ptxas").available`. */
export function assemble(text: string, target: string = /^\.target (\S+)/m.exec(text)![1]!): Assembly {
  const program = requirement("ptxas").location;
  const identity = `${program}:${statSync(program).mtimeMs}:${target}\n${text}`;
  const file = join(cache, createHash("sha256").update(identity).digest("hex"));
  return parse(kept(file) ?? run(program, text, target, file));
}

function kept(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

function run(program: string, text: string, target: string, file: string): string {
  const folder = mkdtempSync(join(tmpdir(), "ptxas-"));
  const source = join(folder, "kernel.ptx");
  writeFileSync(source, text);
  const { status, stdout, stderr } = spawnSync(
    program,
    [`-arch=${target}`, "-v", source, "-o", join(folder, "kernel.cubin")],
    {
      encoding: "utf8",
    },
  );
  const log = `${status}\n${`${stdout}${stderr}`.replaceAll(source, "kernel.ptx")}`;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.${process.pid}`, log);
  renameSync(`${file}.${process.pid}`, file);
  rmSync(folder, { recursive: true });
  return log;
}

function parse(log: string): Assembly {
  const spilled = [...log.matchAll(/(\d+) bytes spill/g)].reduce((sum, [, bytes]) => sum + Number(bytes), 0);
  return {
    succeeded: log.startsWith("0\n"),
    log: log.slice(log.indexOf("\n") + 1),
    registers: Number(/Used (\d+) registers/.exec(log)?.[1] ?? 0),
    spilledBytes: spilled,
    warnings: [...new Set([...log.matchAll(/C75\d\d/g)].map(([code]) => code))],
  };
}
