/** @file Work noted down once, to be enqueued again and again: how devices without graphs of their own capture. */
import { ArgumentError, DisposedError } from "../errors.ts";
import type { CapturedWork } from "./backend.ts";

/** What is said to work that a graph cannot hold. */
export function notCaptured(what: string): ArgumentError {
  return new ArgumentError(
    `${what} cannot be captured: a graph holds launches, copies and fills; do the rest before capture()`,
  );
}

/** What is said to a graph used after its end. */
export function graphDisposed(): DisposedError {
  return new DisposedError("this graph was disposed");
}

/** Notes work down while a graph is captured. */
export class Recorder {
  #noted: (() => void)[] | undefined;

  /** Whether work is noted down and not done. */
  get active(): boolean {
    return this.#noted !== undefined;
  }

  /** Whether `work` was noted down, and so is not to be done now. */
  takes(work: () => void): boolean {
    this.#noted?.push(work);
    return this.active;
  }

  /** @throws ArgumentError while work is noted down */
  refuse(what: string): void {
    if (this.active) throw notCaptured(what);
  }

  /** Runs `enqueue`, whose work is noted down. @throws whatever `enqueue` throws; then nothing is captured */
  record(enqueue: () => void): CapturedWork {
    this.refuse("capture()");
    const noted: (() => void)[] = [];
    this.#noted = noted;
    try {
      enqueue();
    } finally {
      this.#noted = undefined;
    }
    let disposed = false;
    return {
      launch: () => {
        if (disposed) throw graphDisposed();
        this.#again(noted);
      },
      dispose: () => {
        disposed = true;
      },
    };
  }

  #again(noted: readonly (() => void)[]): void {
    this.refuse("launching a graph");
    for (const work of noted) work();
  }
}
