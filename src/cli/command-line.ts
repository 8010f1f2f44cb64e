/** @file The command line: its grammar, and what becomes of errors. */
import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { addContractCommand } from "./contract-command.ts";
import { addDemoCommand } from "./demo-command.ts";
import { addDevicesCommand } from "./devices-command.ts";
import { addEmitCommand } from "./emit-command.ts";
import { describeFailure, misused, onOneLine, statusOf } from "./failure.ts";
import { addGemmCommand } from "./gemm-command.ts";
import type { Terminal } from "./terminal.ts";
import { addTuneCommand } from "./tune-command.ts";

/**
 * Runs one command line.
 * @param args what follows the program's name
 * @returns the exit status: 0, 1 for work that failed, 2 for a command line that says nothing sensible, 130 after Ctrl-C
 */
export async function runCommandLine(args: readonly string[], terminal: Terminal): Promise<number> {
  const debug = args.includes("--debug");
  try {
    await createProgram(terminal).parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    // Help and the version end by way of an error too; what was misused has been said already.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : misused;
    terminal.error(describeFailure(error, debug));
    return statusOf(error);
  }
}

function createProgram(terminal: Terminal): Command {
  const program = new Command("tilewright")
    .description("GPU kernels from TypeScript alone.")
    .version(version(), "-V, --version")
    .option("--debug", "say everything that is known of an error")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.out(text),
      writeErr: (text) => terminal.error(text),
      outputError: (text, write) => write(`tilewright: ${onOneLine(text.replace(/^error: /, ""))}\n`),
    });
  addDemoCommand(program, terminal);
  addDevicesCommand(program, terminal);
  addGemmCommand(program, terminal);
  addContractCommand(program, terminal);
  addTuneCommand(program, terminal);
  addEmitCommand(program, terminal);
  for (const command of program.commands) {
    command.option("--debug", "say everything that is known of an error");
  }
  return program;
}

function version(): string {
  const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(manifest) as { readonly version: string }).version;
}
