/**
 * @file Looking into a kernel: print and assert. Full on the simulator, bounded elsewhere, absent unless asked for.
 */
import type { ElementType } from "../types/types.ts";
import { tracer } from "./trace.ts";
import { type Condition, conditionValue, use, type Value } from "./value.ts";

/** Prints text around values: print`lane ${lane} has ${x}`. */
export function print(
  texts: TemplateStringsArray,
  ...values: readonly (Value<ElementType> | Value<never> | { readonly ir: unknown })[]
): void {
  tracer().emit(
    "print",
    undefined,
    values.map((value) => use(value as Value<ElementType>)),
    { parts: [...texts] },
  );
}

/** Fails the launch where `condition` does not hold. */
export function assert(condition: Condition, message = "assertion failed"): void {
  tracer().emit("assert", undefined, [use(conditionValue(condition))], { message });
}
