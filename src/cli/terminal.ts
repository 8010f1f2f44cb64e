/** @file Where a command writes, so that tests can stand in for a terminal. */

/** The two streams of a command. */
export interface Terminal {
  /** Writes to the standard output. */
  out(text: string): void;
  /** Writes to the standard error. */
  error(text: string): void;
  /** Whether a person watches the standard error: progress is shown then. */
  readonly watched: boolean;
}

/** The terminal of this process. */
export const processTerminal: Terminal = {
  out: (text) => process.stdout.write(text),
  error: (text) => process.stderr.write(text),
  watched: process.stderr.isTTY === true,
};
