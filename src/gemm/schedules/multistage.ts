/**
 * @file The multistage schedule: a ring of several stages that asynchronous copies (cp.async) fill past the registers,
 * swizzled shared lines, slices of K loaded into registers while others are multiplied, one barrier a K step. An operand
 * whose elements must pass through registers (a transform, another type in shared memory) comes that way into the same ring.
 */
import type { TargetFacts } from "../../target/facts.ts";
import { multistage } from "./assembly.ts";
import { asyncRefusal } from "./async-copy.ts";
import { stagedSchedule } from "./register-staged.ts";
import { componentsRefusal, type GemmLaunch, type Schedule, type UnscheduledKind } from "./schedule.ts";

function refusal(kind: UnscheduledKind, _: GemmLaunch, facts: TargetFacts): string | undefined {
  const elements = componentsRefusal(kind);
  if (elements !== undefined) return elements;
  const operator = kind.operator.create(kind.types, facts);
  const reasons = (["a", "b"] as const).map((operand) => asyncRefusal(kind, operand, operator, facts));
  // With one operand past the registers there is something to gain.
  if (reasons.includes(undefined)) return undefined;
  return [...new Set(reasons)].join(", and ");
}

/**
 * Products of single elements are bound by the multipliers, which copies past the registers do not relieve: f32 at 4096 and
 * 8192 ran at 43 TFLOP/s here and at 45.5 staged through registers (H200).
 */
function yields(kind: UnscheduledKind, facts: TargetFacts): string | undefined {
  const { shape, name } = kind.operator.create(kind.types, facts);
  return shape.k === 1 ? `the ${name} operator is faster staged through registers` : undefined;
}

/** Several stages, filled past the registers. */
export const multistageSchedule: Schedule = { ...stagedSchedule(multistage, refusal), yields };
