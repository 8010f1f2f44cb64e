/** @file Progress on the standard error: for people who watch, and only about work that takes longer than a second. */
import type { Terminal } from "./terminal.ts";

/** Milliseconds before anything is shown, and between two changes of it. */
const patience = 1000;
const refresh = 100;

const barCells = 20;

const eraseLine = "\r\u001b[2K";

/** One line that is rewritten while work goes on. */
export class Progress {
  readonly #terminal: Terminal;
  readonly #start: number = performance.now();
  #shownAt = Number.NEGATIVE_INFINITY;
  #visible = false;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  /** Says what goes on and how far it is, from 0 to 1. */
  report(what: string, fraction: number): void {
    const now = performance.now();
    if (!this.#terminal.watched || now - this.#start < patience || now - this.#shownAt < refresh) return;
    this.#shownAt = now;
    this.#visible = true;
    const done = Math.floor(barCells * fraction);
    const bar = `${"█".repeat(done)}${"░".repeat(barCells - done)}`;
    this.#terminal.error(`${eraseLine}${bar} ${what} ${Math.floor(100 * fraction)} %`);
  }

  /** Removes the line. */
  end(): void {
    if (this.#visible) this.#terminal.error(eraseLine);
    this.#visible = false;
  }
}
