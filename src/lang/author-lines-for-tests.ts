/** @file Traces small kernels and looks at the lines that errors name, for the tests of this folder. */
import { readFileSync } from "node:fs";
import { expect } from "vitest";
import { type SourcePosition, TraceError } from "../errors.ts";
import type { KernelIr } from "../ir/nodes.ts";
import { print } from "../ir/printer.ts";
import { verify } from "../ir/verifier.ts";
import type { TargetFacts } from "../target/facts.ts";
import { simulatorFacts } from "../target/simulator.ts";
import { type F32, f32, type I32, i32 } from "../types/types.ts";
import { type KernelDefinition, kernel } from "./kernel.ts";
import type { GlobalArray } from "./memory.ts";
import { inout } from "./parameters.ts";

/** What bodies of tests work on. */
export interface Bench {
  readonly x: GlobalArray<F32>;
  readonly n: GlobalArray<I32>;
}

/** Traces and verifies a body of one block of 64 threads. */
export function traced(
  body: (bench: Bench) => void,
  facts: TargetFacts = simulatorFacts(),
  more: Partial<KernelDefinition<never>> = {},
): KernelIr {
  const ir = kernel("test", { params: { x: inout(f32), n: inout(i32) }, block: 64, ...more, body }).trace(
    facts,
  );
  verify(ir);
  return ir;
}

/** The traced body as text. */
export function printed(body: (bench: Bench) => void, facts?: TargetFacts): string {
  return print(traced(body, facts));
}

/** Text of the author's line. */
export function lineAt({ file, line }: SourcePosition): string {
  return readFileSync(file, "utf8").split("\n")[line - 1]!;
}

/** Runs what must throw a TraceError with `message`, whose lines contain the `marks`, in this order. */
export function expectTraceError(
  run: () => unknown,
  message: string | RegExp,
  ...marks: readonly string[]
): void {
  let thrown: unknown;
  try {
    run();
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(TraceError);
  const { positions, message: said } = thrown as TraceError;
  expect(said).toMatch(message);
  const lines = positions.map(lineAt);
  expect(lines).toHaveLength(marks.length);
  lines.forEach((line, i) => {
    expect(line).toContain(marks[i]);
  });
  for (const { file, line } of positions) expect(said).toContain(`${file}:${line}:`);
}
