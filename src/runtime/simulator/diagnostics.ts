/** @file What kernels say of themselves: print, assert, and faults of single lanes that generated text finds. */
import { faultError, laneFault } from "./faults.ts";
import type { Warp } from "./state.ts";

export function print(warp: Warp, lane: number, site: number, values: readonly unknown[]): void {
  const operation = warp.launch.program.operationAt(site);
  if (operation?.name !== "print") return;
  const { parts } = operation.attributes;
  const text = parts
    .map((part, position) => (position < values.length ? part + shown(values[position]) : part))
    .join("");
  warp.launch.options.print(text);
  void lane;
}

function shown(value: unknown): string {
  return Array.isArray(value)
    ? `(${value.map(shown).join(", ")})`
    : Object.is(value, -0)
      ? "-0"
      : String(value);
}

export function assertion(warp: Warp, lane: number, site: number): void {
  const operation = warp.launch.program.operationAt(site);
  const message = operation?.name === "assert" ? operation.attributes.message : "";
  laneFault(warp, lane, site, "assert", `assertion failed: ${message}`);
}

/** A zero divisor, or MIN / -1: defined, and reported. `bits` is the width of a signed type. */
export function checkQuotient(
  warp: Warp,
  lane: number,
  site: number,
  a: number | bigint,
  b: number | bigint,
  bits: number,
): void {
  // biome-ignore lint/suspicious/noDoubleEquals: numbers and bigints alike
  const zero = b == 0;
  if (!zero && (bits === 0 || BigInt(a) !== -(1n << BigInt(bits - 1)))) return;
  const { options } = warp.launch;
  const message = zero ? `integer division of ${a} by zero` : `integer division of ${a} by -1 overflows`;
  if (options.strictIntegers) laneFault(warp, lane, site, "integerDivision", message);
  const { message: text } = faultError(
    warp.block,
    "integerDivision",
    `thread ${warp.first + lane}: ${message} at {0}`,
    [warp.first + lane],
    [site],
  );
  options.report({ kind: "integerDivision", message: text });
}

export function unassigned(warp: Warp, lane: number, site: number, variable: number, element: number): void {
  const { name, count } = warp.launch.program.kernel.variables.find(({ id }) => id === variable)!;
  const what = count === 1 ? `variable ${name}` : `element ${element} of variable ${name}`;
  laneFault(warp, lane, site, "uninitialisedRegister", `${what} is read before anything was assigned to it`);
}

/** A loop that looks at nothing others change, and does not end. */
export function endless(warp: Warp, lane: number, site: number): never {
  laneFault(warp, lane, site, "deadlock", "a loop made 100,000,000 turns without an end");
}
