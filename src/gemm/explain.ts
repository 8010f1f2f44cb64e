/**
 * @file What a plan does, in words.
 */
import { byteSize } from "../lang/index.ts";
import type { CompiledKernel } from "../runtime/device.ts";
import type { OperandKind } from "./kind.ts";
import type { OperatorTypes } from "./operators/operator.ts";
import type { Resolved } from "./resolve.ts";
import type { PlanStage, PlanSurroundings } from "./stages.ts";
import { isTuned } from "./tuned-params.ts";

/** Several lines: the route, tile sizes, each operand's access, resources, and what ruled out a faster way. */
export function explainPlan(
  resolved: Resolved,
  compiled: CompiledKernel | undefined,
  fresh: boolean,
  around: PlanSurroundings,
): string {
  const { problem, kind, schedule, refused } = resolved;
  const { m, n, k, device } = problem;
  const { types } = kind;
  const { facts } = device;
  const addend = resolved.c === undefined ? "" : ` + ${factorOf(resolved, "beta")} · C`;
  const lines = [
    `${batchOf(resolved)}${m} x ${n} x ${k}: D = ${factorOf(resolved, "alpha")} · A · B${addend} on ${device.name}`,
    `types      ${kind.a.type.name} · ${kind.b.type.name} → ${kind.d.type.name}, multiplied as ${types.a.name} · ${types.b.name}, ${summed(types)}`,
    `operator   ${schedule.operatorName(kind, facts)}`,
    ...schedule.describe(kind, facts),
    ...(kind.params.splitK === undefined
      ? []
      : [`split      K in ${kind.params.splitK} parts, added in order`]),
    `order      groups of ${kind.params.groupRows} tile rows, ${schedule.blocks(kind, resolved, facts)} blocks`,
    ...(kind.gate === undefined
      ? []
      : [`gate       columns of B in pairs of groups, ${resolved.columns} columns of D`]),
    ...matrixLines(resolved),
    ...(isTuned(kind.params) ? ["params     the fastest that tuneGemm found on this device"] : []),
  ];
  if (compiled?.registersPerThread !== undefined) {
    const spills =
      compiled.spilledBytes === 0 ? "no spills" : `${String(compiled.spilledBytes)} bytes spilled`;
    lines.push(`registers  ${compiled.registersPerThread} a thread, ${spills}`);
  }
  if (compiled?.blocksPerMultiprocessor !== undefined) {
    lines.push(`occupancy  ${compiled.blocksPerMultiprocessor} blocks a multiprocessor`);
  }
  lines.push(...stageLines("before", around.before), ...stageLines("after", around.after));
  for (const { schedule: name, reason } of refused) lines.push(`not taken  ${name}: ${reason}`);
  if (fresh) {
    lines.push(
      "traced     a new kernel: no earlier plan had these very components (an inline function is a new one each time)",
    );
  }
  return lines.join("\n");
}

/** alpha or beta: a number, or the components of an element. */
function factorOf({ extras, ...numbers }: Resolved, name: "alpha" | "beta"): string {
  const element = (extras[name] ?? []).map((extra) => ("value" in extra ? String(extra.value) : ""));
  return element.length === 0 ? String(numbers[name]) : `[${element.join(", ")}]`;
}

function summed({ accumulator, promotionInterval }: OperatorTypes): string {
  if (promotionInterval === undefined) return `summed in ${accumulator.name}`;
  return `summed in ${accumulator.name} after every ${promotionInterval} elements of K`;
}

function batchOf({ batch, problem }: Resolved): string {
  return batch.scheme === "single" ? "" : `${batch.count} products [${problem.outer.join(", ")}] of `;
}

function stageLines(when: "before" | "after", stages: readonly PlanStage[]): readonly string[] {
  return stages.map(({ purpose, kernel }) => `${when.padEnd(11)}${purpose} (kernel ${kernel.name})`);
}

function matrixLines({ kind }: Resolved): readonly string[] {
  const operands: readonly [string, OperandKind | undefined][] = [
    ["A", kind.a],
    ["B", kind.b],
    ["C", kind.c],
    ["D", kind.d],
  ];
  return operands.map(
    ([name, operand]) => `${name}          ${operand === undefined ? "not read" : describe(operand)}`,
  );
}

function describe({ layout, type, alignment }: OperandKind): string {
  const wide = 16 / byteSize(type);
  const hint =
    alignment < 16
      ? `; a leading dimension and start that are multiples of ${wide} elements would allow wider accesses`
      : "";
  return `${layout.name} ${type.name}, lines aligned to ${alignment} bytes${hint}`;
}
