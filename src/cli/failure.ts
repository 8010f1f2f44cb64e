/** @file What a failed command says: one line, unless more is asked for. */
import { AbortedError, TilewrightError } from "../errors.ts";

/** Exit status of a command that failed. */
export const failed = 1;
/** Exit status of a command line that says nothing sensible. */
export const misused = 2;
/** Exit status after Ctrl-C, as shells have it: 128 and SIGINT's number. */
export const interrupted = 130;

/** What is wrong with the command line beyond what its grammar says: options that do not go together. */
export class UsageError extends Error {
  override readonly name: string = "UsageError";
}

/** The exit status that an error asks for. */
export function statusOf(error: unknown): number {
  if (error instanceof UsageError) return misused;
  return error instanceof AbortedError ? interrupted : failed;
}

/** An error for people: its message on one line, or everything that is known of it. */
export function describeFailure(error: unknown, debug: boolean): string {
  if (debug) return `tilewright: ${inDepth(error)}\n`;
  const message = error instanceof Error ? error.message : String(error);
  const expected = error instanceof TilewrightError || error instanceof UsageError;
  const hint = expected ? "" : " (unexpected; --debug shows where)";
  return `tilewright: ${onOneLine(message)}${hint}\n`;
}

/** Text without line breaks. */
export function onOneLine(text: string): string {
  return text.trim().replace(/\s*\n\s*/g, "; ");
}

/** Stack, causes and the log of a driver's compiler. */
function inDepth(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { log } = error as { readonly log?: unknown };
  const parts = [error.stack ?? error.message];
  if (typeof log === "string" && log !== "") parts.push(`The compiler's log:\n${log}`);
  if (error.cause !== undefined) parts.push(`Caused by: ${inDepth(error.cause)}`);
  return parts.join("\n");
}
