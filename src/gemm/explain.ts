/**
 * @file What a plan does, in words.
 */
import { byteSize } from "../lang/index.ts";
import type { CompiledKernel } from "../runtime/device.ts";
import { accessWidth, type OperandKind } from "./kind.ts";
import type { Resolved } from "./resolve.ts";
import { sharedBytesOf } from "./schedules/shared-plan.ts";

/** Several lines: the route, tile sizes, each operand's access, resources, and what ruled out a faster way. */
export function explainPlan(
  resolved: Resolved,
  compiled: CompiledKernel | undefined,
  fresh: boolean,
): string {
  const { problem, kind, alpha, beta } = resolved;
  const { m, n, k, device, types } = problem;
  const { block, warps, groupRows } = kind.params;
  const operator = kind.operator.create(kind.types, device.facts);
  const lines = [
    `${m} x ${n} x ${k}: D = ${String(alpha)} · A · B${resolved.c === undefined ? "" : ` + ${String(beta)} · C`} on ${device.name}`,
    `types      ${kind.a.type.name} · ${kind.b.type.name} → ${kind.d.type.name}, multiplied as ${types.a.name} · ${types.b.name}, summed in ${types.accumulator.name}`,
    `operator   ${operator.name}`,
    "schedule   register-staged, 2 stages in shared memory",
    `tiles      block ${block.m} x ${block.n} x ${block.k}, ${warps.m} x ${warps.n} warps, operator ${operator.shape.m} x ${operator.shape.n} x ${operator.shape.k}`,
    `order      groups of ${groupRows} tile rows, ${Math.ceil(m / block.m) * Math.ceil(n / block.n)} blocks`,
    operandLine("A", kind.a, kind.a.layout.major === "row" ? block.k : block.m),
    operandLine("B", kind.b, kind.b.layout.major === "row" ? block.n : block.k),
    ...(kind.c === undefined ? ["C          not read"] : [operandLine("C", kind.c, operator.shape.n)]),
    operandLine("D", kind.d, operator.shape.n),
    `shared     ${sharedBytesOf(kind, device.facts)} bytes a block`,
  ];
  if (compiled?.registersPerThread !== undefined) {
    const spills =
      compiled.spilledBytes === 0 ? "no spills" : `${String(compiled.spilledBytes)} bytes spilled`;
    lines.push(`registers  ${compiled.registersPerThread} a thread, ${spills}`);
  }
  if (compiled?.blocksPerMultiprocessor !== undefined) {
    lines.push(`occupancy  ${compiled.blocksPerMultiprocessor} blocks a multiprocessor`);
  }
  lines.push(...slower(resolved).map((reason) => `slower     ${reason}`));
  if (fresh)
    lines.push(
      "traced     a new kernel: no earlier plan had these very components (an inline function is a new one each time)",
    );
  return lines.join("\n");
}

function operandLine(name: string, operand: OperandKind, extent: number): string {
  const width = accessWidth(operand, extent, undefined);
  return `${name}          ${operand.layout.name} ${operand.type.name}, ${width * byteSize(operand.type)}-byte accesses (lines aligned to ${operand.alignment} bytes)`;
}

function slower({ problem, kind }: Resolved): string[] {
  const reasons: string[] = [];
  const { facts } = problem.device;
  const operator = kind.operator.create(kind.types, facts);
  if (operator.shape.k === 1 && facts.mma.length > 0) {
    reasons.push(
      `the plain operator was taken: no tensor-core instruction multiplies ${kind.types.a.name}·${kind.types.b.name} into ${kind.types.accumulator.name} here, or fma was asked for`,
    );
  }
  for (const name of ["a", "b", "c", "d"] as const) {
    const operand = kind[name];
    if (operand !== undefined && operand.alignment < 16) {
      reasons.push(
        `${name.toUpperCase()}'s lines are aligned to ${operand.alignment} bytes: accesses are narrower than 16 bytes; a leading dimension that is a multiple of ${16 / byteSize(operand.type)} elements widens them`,
      );
    }
  }
  return reasons;
}
