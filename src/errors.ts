/**
 * @file Errors. A message says what was asked, what is wrong and what would work; fields carry the same for programs.
 */

/** Stable identifiers of what went wrong. */
export type ErrorCode =
  | "shape"
  | "type"
  | "argument"
  | "unsupported"
  | "trace"
  | "compile"
  | "device"
  | "disposed"
  | "simulation"
  | "file"
  | "aborted";

/** A place in the author's source. */
export interface SourcePosition {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** `file:line:column`, or a hint how to get positions when there is none. */
export function formatPosition(position: SourcePosition | undefined): string {
  return position === undefined
    ? "(position unknown; set TILEWRIGHT_POSITIONS=1)"
    : `${position.file}:${position.line}:${position.column}`;
}

/** Base of every error that Tilewright throws on purpose. */
export class TilewrightError extends Error {
  override readonly name: string = "TilewrightError";
  constructor(
    readonly code: ErrorCode,
    message: string,
    options?: { readonly cause?: unknown },
  ) {
    super(message, options);
  }
}

/** Sizes, ranks or strides that do not fit together. */
export class ShapeError extends TilewrightError {
  override readonly name: string = "ShapeError";
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("shape", message, options);
  }
}

/** An element type that does not fit the operation, or two that do not fit each other. */
export class TypeMismatchError extends TilewrightError {
  override readonly name: string = "TypeMismatchError";
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("type", message, options);
  }
}

/** An argument outside what the function takes. */
export class ArgumentError extends TilewrightError {
  override readonly name: string = "ArgumentError";
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("argument", message, options);
  }
}

/** Something this target or this combination of components cannot do; the message says what would serve instead. */
export class UnsupportedError extends TilewrightError {
  override readonly name: string = "UnsupportedError";
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("unsupported", message, options);
  }
}

/** A kernel's TypeScript misused the kernel language. `positions` are the author's lines, most relevant first. */
export class TraceError extends TilewrightError {
  override readonly name: string = "TraceError";
  constructor(
    message: string,
    readonly positions: readonly SourcePosition[] = [],
    options?: { readonly cause?: unknown },
  ) {
    super("trace", message, options);
  }
}

/** A kernel was refused while compiling; `log` is what the driver's or browser's compiler said, if it got that far. */
export class CompileError extends TilewrightError {
  override readonly name: string = "CompileError";
  constructor(
    message: string,
    readonly log: string = "",
    readonly positions: readonly SourcePosition[] = [],
    options?: { readonly cause?: unknown },
  ) {
    super("compile", message, options);
  }
}

/** A device or its driver reported a fault. `status` is the driver's own name for it. */
export class DeviceError extends TilewrightError {
  override readonly name: string = "DeviceError";
  constructor(
    message: string,
    readonly status: string = "",
    options?: { readonly cause?: unknown },
  ) {
    super("device", message, options);
  }
}

/** Use of something already disposed. */
export class DisposedError extends TilewrightError {
  override readonly name: string = "DisposedError";
  constructor(message: string) {
    super("disposed", message);
  }
}

/** The simulator found a fault in a kernel: a race, an access out of bounds, a barrier not reached by all… */
export class SimulationError extends TilewrightError {
  override readonly name: string = "SimulationError";
  constructor(
    message: string,
    readonly fault: string,
    readonly details: {
      readonly kernel: string;
      readonly block: readonly [number, number, number];
      readonly threads: readonly number[];
      readonly positions: readonly (SourcePosition | undefined)[];
    },
  ) {
    super("simulation", message);
  }
}

/** A file that is truncated, foreign or cannot be read or written. */
export class FileError extends TilewrightError {
  override readonly name: string = "FileError";
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("file", message, options);
  }
}

/** Work stopped through an AbortSignal. */
export class AbortedError extends TilewrightError {
  override readonly name: string = "AbortedError";
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super("aborted", message, options);
  }
}
