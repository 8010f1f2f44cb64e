#!/usr/bin/env node
/** @file The `tilewright` command. */
import { runCommandLine } from "./command-line.ts";
import { processTerminal } from "./terminal.ts";

// A reader that has seen enough, such as `head`, closes the pipe: no fault of anybody's.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit();
});

process.exitCode = await runCommandLine(process.argv.slice(2), processTerminal);
