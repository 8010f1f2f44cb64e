/**
 * @file Looking into a kernel: print and assert. Full on the simulator, bounded elsewhere, absent unless asked for.
 */
import { tracer } from "./trace.ts";
import { type AnyValue, type Condition, conditionValue, use } from "./value.ts";

/** Prints text around values: print`lane ${lane} has ${x}`. */
export function print(texts: TemplateStringsArray, ...values: readonly AnyValue[]): void {
  tracer().emit("print", undefined, values.map(use), { parts: [...texts] });
}

/** Fails the launch where `condition` does not hold. */
export function assert(condition: Condition, message = "assertion failed"): void {
  tracer().emit("assert", undefined, [use(conditionValue(condition))], { message });
}
