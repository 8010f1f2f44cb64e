/** @file Errors that carry the author's lines, found by the sites of statements. */
import { CompileError, formatPosition, type SourcePosition, TraceError } from "../errors.ts";
import type { KernelIr } from "./nodes.ts";

interface Located {
  readonly text: string;
  readonly positions: readonly SourcePosition[];
}

function locate(kernel: KernelIr, message: string, sites: readonly (number | undefined)[]): Located {
  const positions = sites
    .map((site) => (site === undefined ? undefined : kernel.positions[site]))
    .filter((position): position is SourcePosition => position !== undefined);
  const where =
    positions.length === 0 ? formatPosition(undefined) : positions.map(formatPosition).join("\n    and ");
  return { text: `kernel ${kernel.name}: ${message}\n    at ${where}`, positions };
}

/** A TraceError whose text carries the lines of `sites`, most relevant first. */
export function traceErrorAt(
  kernel: KernelIr,
  message: string,
  ...sites: readonly (number | undefined)[]
): TraceError {
  const { text, positions } = locate(kernel, message, sites);
  return new TraceError(text, positions);
}

/** A CompileError whose text carries the lines of `sites`, most relevant first. */
export function compileErrorAt(
  kernel: KernelIr,
  message: string,
  ...sites: readonly (number | undefined)[]
): CompileError {
  const { text, positions } = locate(kernel, message, sites);
  return new CompileError(text, "", positions);
}
