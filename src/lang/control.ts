/**
 * @file Control flow on values that only the device knows. TypeScript's own `if` and `for` run while tracing: they
 * choose and unroll code.
 */
import type { Statement } from "../ir/nodes.ts";
import { type I32, type Index, i32, type U32 } from "../types/types.ts";
import { tracer } from "./trace.ts";
import { type Condition, conditionValue, type Operand, typedOperand, use, Value } from "./value.ts";

/** What `when` returns: a place to say what happens otherwise. */
export interface Otherwise {
  otherwise(body: () => void): void;
}

/** Runs `body` in the lanes where `condition` holds. A TypeScript boolean decides while tracing. */
export function when(condition: Condition, body: () => void): Otherwise {
  const trace = tracer();
  if (typeof condition === "boolean") {
    if (condition) body();
    return { otherwise: (other) => (condition ? undefined : other()) };
  }
  const test = use(conditionValue(condition));
  const site = trace.site();
  if (test.kind === "value") trace.idleComparisons.delete(test.id);
  const then = trace.nested("a when() body", false, body);
  const otherwise: Statement[] = [];
  trace.append({ kind: "if", condition: test, then, otherwise: { statements: otherwise }, site });
  const statements = trace.scope.statements;
  const after = statements.length;
  let said = false;
  return {
    otherwise(other) {
      if (said) throw trace.error("otherwise() was already given for this when()");
      if (trace.scope.statements !== statements || statements.length !== after) {
        throw trace.error("otherwise() must follow its when() directly, before any other step");
      }
      said = true;
      otherwise.push(...trace.nested("an otherwise() body", false, other).statements);
    },
  };
}

/** Types that can count. */
export type CounterType = I32 | U32 | Index;

/** Bounds of a counted loop: from (0 unless given) up to, not including, `to`, by `step` (1 unless given, positive). */
export interface LoopRange<T extends CounterType> {
  readonly from?: Operand<T>;
  readonly to: Operand<T>;
  readonly step?: Operand<T>;
}

/**
 * A counted loop that stays a loop on the device. Bounds are evaluated once, before it. The counter has the type of the
 * bounds that are values, i32 if all are numbers.
 */
export function loop<T extends CounterType = I32>(
  range: LoopRange<T> | Operand<T>,
  body: (counter: Value<T>) => void,
): void {
  const trace = tracer();
  const bounds: LoopRange<T> = range instanceof Value || typeof range !== "object" ? { to: range } : range;
  const { from = 0, to, step = 1 } = bounds;
  const typed = [to, from, step].find((bound) => bound instanceof Value) as Value<T> | undefined;
  const type = typed?.type ?? (i32 as unknown as T);
  if (type.name !== "i32" && type.name !== "u32" && type.name !== "index") {
    throw trace.error(`a loop counts in i32, u32 or index, not ${(type as { readonly name: string }).name}`);
  }
  if (typeof step === "number" && step < 1) {
    throw trace.error(
      `a loop's step must be at least 1, not ${step}; to count down, subtract the counter from the last position`,
    );
  }
  const operands = [from, to, step].map((bound) => use(typedOperand(bound, type)));
  const site = trace.site();
  const counter = trace.value({ element: type, lanes: 1 });
  const block = trace.nested("a loop() body", true, () =>
    body(new Value(type, counter, trace.scope, trace.positions[site])),
  );
  trace.append({
    kind: "loop",
    counter,
    from: operands[0],
    to: operands[1],
    step: operands[2],
    body: block,
    site,
  });
}

/** Repeats `body` while `condition`, evaluated anew before each turn, holds. */
export function loopWhile(condition: () => Condition, body: () => void): void {
  const trace = tracer();
  const site = trace.site();
  let test: ReturnType<typeof use> | undefined;
  const block = trace.nested("a loopWhile() condition", true, () => {
    test = use(conditionValue(condition()));
    if (test.kind === "value") trace.idleComparisons.delete(test.id);
  });
  const inner = trace.nested("a loopWhile() body", true, body);
  trace.append({ kind: "while", condition: block, test: test as ReturnType<typeof use>, body: inner, site });
}

function jump(kind: "break" | "continue", name: string): void {
  const trace = tracer();
  const site = trace.site();
  if (!trace.insideLoop) throw trace.error(`${name}() outside a loop`);
  trace.append({ kind, site });
}

/** Leaves the innermost loop, in the lanes that get here. */
export function breakLoop(): void {
  jump("break", "breakLoop");
}

/** Goes to the next turn of the innermost loop, in the lanes that get here. */
export function continueLoop(): void {
  jump("continue", "continueLoop");
}

/** Ends the thread. */
export function exit(): void {
  const trace = tracer();
  const site = trace.site();
  trace.append({ kind: "exit", site });
}
