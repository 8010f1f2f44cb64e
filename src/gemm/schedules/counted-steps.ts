/** @file The K steps that count for a kind: those that its layouts and its predicate all leave. */
import type { ExtrasOf, ExtraValue } from "../extras.ts";
import type { GemmKind } from "../kind.ts";
import { intersection, type StepSequence, sequenceOf } from "../predicate.ts";

type Steps = Pick<GemmKind, "a" | "b" | "predicate">;

function sequences({ a, b, predicate }: Steps, extras: ExtrasOf<ExtraValue>): readonly StepSequence[] {
  return [
    ...sequenceOf(a.layout.steps?.a, extras.a ?? []),
    ...sequenceOf(b.layout.steps?.b, extras.b ?? []),
    ...sequenceOf(predicate, extras.predicate ?? []),
  ];
}

/** Whether every step counts, whatever the tile. */
export function everyStepCounts(kind: Steps): boolean {
  return sequences(kind, {}).length === 0;
}

/** The steps that count, tile by tile. */
export function countedSteps(kind: Steps, extras: ExtrasOf<ExtraValue>): StepSequence {
  return intersection(sequences(kind, extras));
}
