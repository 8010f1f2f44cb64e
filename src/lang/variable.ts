/**
 * @file Register variables: the mutable state of a lane. A variable carries values out of branches and loop bodies.
 */
import type { RegisterVariable } from "../ir/nodes.ts";
import type { ElementType } from "../types/types.ts";
import { tracer } from "./trace.ts";
import { type Operand, scalarType, typedOperand, use, Value } from "./value.ts";

/** One mutable register. Reading `value` is a step at that place: a later assignment does not change what was read. */
export class Variable<T extends ElementType> {
  constructor(
    readonly type: T,
    /** @internal */ readonly register: RegisterVariable,
    /** @internal */ readonly element: number,
  ) {}

  get value(): Value<T> {
    const trace = tracer();
    const ir = trace.emit("readRegister", scalarType(this.type), [], {}, [
      { variable: this.register, offset: this.element, count: 1, access: "read" },
    ]);
    return new Value(this.type, ir as never, trace.scope, trace.positions.at(-1));
  }
  set value(value: Operand<T> | boolean) {
    const operand = use(typedOperand(value, this.type));
    tracer().emit("writeRegister", undefined, [operand], {}, [
      { variable: this.register, offset: this.element, count: 1, access: "write" },
    ]);
  }
}

/** A variable whose element type TypeScript does not know. */
// biome-ignore lint/suspicious/noExplicitAny: `Variable` is invariant, so no single element type stands for all
export type AnyVariable = Variable<any>;

/** A register variable, assigned `initial`. */
export function variable<T extends ElementType>(type: T, initial: Operand<T> | boolean): Variable<T> {
  const register = tracer().declareVariable("v", type, 1, 1);
  const result = new Variable(type, register, 0);
  result.value = initial;
  return result;
}

/** `count` register variables as a TypeScript array (compile-time indices only), each assigned `initial`. */
export function variables<T extends ElementType>(
  type: T,
  count: number,
  initial: Operand<T> | boolean,
): Variable<T>[] {
  return Array.from({ length: count }, () => variable(type, initial));
}
