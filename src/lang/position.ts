/**
 * @file Where in the author's source an operation was written.
 *
 * The position of an operation is the first stack frame outside this folder, so that a helper of the language (a block
 * reduction, say) is blamed on its caller. Capturing costs a few microseconds an operation; `TILEWRIGHT_POSITIONS=0|1`
 * switches it, and production builds (`NODE_ENV=production`) leave it off.
 */
import type { SourcePosition } from "../errors.ts";

const framesToSearch = 12;
const folder = folderOf(import.meta.url);

/** The folder of a module URL with a trailing slash, as it appears in stack frames (with or without `file://`). */
function folderOf(url: string): string {
  return url.replace(/^file:\/\//, "").replace(/[^/]*$/, "");
}

function environment(name: string): string | undefined {
  const host = globalThis as {
    readonly process?: { readonly env?: Readonly<Record<string, string | undefined>> };
  };
  return host.process?.env?.[name];
}

let enabled =
  environment("TILEWRIGHT_POSITIONS") !== undefined
    ? environment("TILEWRIGHT_POSITIONS") !== "0"
    : environment("NODE_ENV") !== "production";

/** Switches position capture for kernels traced from now on. */
export function setPositions(on: boolean): void {
  enabled = on;
}

/** A position that parses its stack when somebody asks. */
class CapturedPosition implements SourcePosition {
  #parsed: SourcePosition | undefined;
  constructor(private readonly holder: { readonly stack?: string }) {}

  get file(): string {
    return this.#position.file;
  }
  get line(): number {
    return this.#position.line;
  }
  get column(): number {
    return this.#position.column;
  }

  get #position(): SourcePosition {
    this.#parsed ??= parseStack(this.holder.stack ?? "");
    return this.#parsed;
  }

  toJSON(): SourcePosition {
    return { file: this.file, line: this.line, column: this.column };
  }
}

const framePattern = /(?:\(|at |@)((?:file:\/\/|[a-z]+:\/\/)?[^()\s]*?):(\d+):(\d+)\)?$/;

function parseStack(stack: string): SourcePosition {
  let first: SourcePosition | undefined;
  for (const text of stack.split("\n")) {
    const match = framePattern.exec(text.trim());
    if (match === null) continue;
    const file = match[1].replace(/^file:\/\//, "");
    const position = { file, line: Number(match[2]), column: Number(match[3]) };
    if (!file.startsWith(folder)) return position;
    // Tests of this folder live in it and are authors too.
    if (/\.(test|test-d)\.[cm]?[jt]s$/.test(file)) return position;
    first ??= position;
  }
  return first ?? { file: "(unknown)", line: 0, column: 0 };
}

/** The caller's position, or undefined when capture is off or this engine has no stack capture. */
export function capturePosition(): SourcePosition | undefined {
  if (!enabled || Error.captureStackTrace === undefined) return undefined;
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = framesToSearch;
  const holder: { stack?: string } = {};
  Error.captureStackTrace(holder, capturePosition);
  Error.stackTraceLimit = limit;
  return new CapturedPosition(holder);
}
