/**
 * @file The tracing context: the one ambient thing of the library. While a kernel body runs, {@link tracer} is the
 * kernel under construction, and every language function appends to its innermost open block.
 */
import { formatPosition, type SourcePosition, TraceError } from "../errors.ts";
import type {
  AnyOperation,
  Block,
  ConstantTable,
  IrValue,
  Lanes,
  Operand,
  Parameter,
  RegisterRange,
  RegisterVariable,
  Role,
  SharedArray,
  Statement,
  ValueType,
} from "../ir/nodes.ts";
import type { Attributes, OperationName } from "../ir/operations.ts";
import type { TargetFacts } from "../target/facts.ts";
import type { ElementType, StorageType } from "../types/types.ts";
import { capturePosition } from "./position.ts";

/** A block being written. Values remember theirs; once closed, they can no longer be used. */
export interface Scope {
  open: boolean;
  readonly statements: Statement[];
  readonly parent: Scope | undefined;
  readonly what: string;
  readonly position: SourcePosition | undefined;
  readonly loop: boolean;
}

/** A kernel under construction. */
export class Tracer {
  readonly parameters: Parameter[] = [];
  readonly shared: SharedArray[] = [];
  readonly constants: ConstantTable[] = [];
  readonly variables: RegisterVariable[] = [];
  readonly positions: (SourcePosition | undefined)[] = [];
  readonly root: Scope;
  scope: Scope;
  sharedBytes = 0;
  sharedAlignment = 16;
  valueCount = 0;
  roles = false;
  /** Comparisons made and not used yet, by value id; what is left at the end is an error. */
  readonly idleComparisons: Map<number, number> = new Map();

  constructor(
    readonly kernelName: string,
    readonly facts: TargetFacts,
    readonly block: readonly [number, number, number],
  ) {
    this.root = {
      open: true,
      statements: [],
      parent: undefined,
      what: "the kernel",
      position: undefined,
      loop: false,
    };
    this.scope = this.root;
  }

  /** A new site: a place in the author's source. */
  site(): number {
    return this.positions.push(capturePosition()) - 1;
  }

  value(type: ValueType): IrValue {
    return { kind: "value", id: this.valueCount++, type };
  }

  /** Appends an operation; returns its result, if it has one. */
  emit<Name extends OperationName>(
    name: Name,
    result: ValueType | undefined,
    operands: readonly Operand[],
    attributes: Attributes[Name],
    registers: readonly RegisterRange[] = [],
    site: number = this.site(),
  ): IrValue | undefined {
    for (const operand of operands) if (operand.kind === "value") this.idleComparisons.delete(operand.id);
    const value = result === undefined ? undefined : this.value(result);
    // The union is discriminated by `name`; a generic constructor cannot tell TypeScript so.
    this.append({
      kind: "operation",
      name,
      result: value,
      operands,
      registers,
      attributes,
      site,
    } as unknown as AnyOperation);
    return value;
  }

  append(statement: Statement): void {
    this.scope.statements.push(statement);
  }

  /** Runs `body` with a new innermost block and returns that block. */
  nested(what: string, loop: boolean, body: () => unknown): Block {
    const outer = this.scope;
    const scope: Scope = {
      open: true,
      statements: [],
      parent: outer,
      what,
      position: this.positions.at(-1),
      loop,
    };
    this.scope = scope;
    try {
      const returned = body();
      if (returned instanceof Promise) {
        silence(returned);
        throw this.error(`the body of ${what} is asynchronous; kernel code is traced and cannot await`);
      }
    } finally {
      scope.open = false;
      this.scope = outer;
    }
    return { statements: scope.statements };
  }

  /** Whether the current block lies in a loop. */
  get insideLoop(): boolean {
    for (let scope: Scope | undefined = this.scope; scope !== undefined; scope = scope.parent) {
      if (scope.loop) return true;
    }
    return false;
  }

  declareVariable(name: string, element: ElementType, lanes: Lanes, count: number): RegisterVariable {
    const variable: RegisterVariable = { id: this.variables.length, name, type: { element, lanes }, count };
    this.variables.push(variable);
    return variable;
  }

  /** Reserves shared memory and returns its byte offset. */
  reserveShared(bytes: number, alignment: number): number {
    const offset = Math.ceil(this.sharedBytes / alignment) * alignment;
    this.sharedBytes = offset + bytes;
    this.sharedAlignment = Math.max(this.sharedAlignment, alignment);
    return offset;
  }

  declareShared(
    element: StorageType,
    length: number,
    byteOffset: number,
    purpose: SharedArray["purpose"],
  ): SharedArray {
    const id = this.shared.length;
    const array: SharedArray = { id, name: `shared${id}`, element, length, byteOffset, purpose };
    this.shared.push(array);
    return array;
  }

  rolesNode(roles: readonly Role[], site: number): void {
    this.roles = true;
    this.append({ kind: "roles", roles, site });
  }

  /** An error at the author's current line. */
  error(message: string, ...others: readonly (SourcePosition | undefined)[]): TraceError {
    return traceError(this.kernelName, message, [capturePosition(), ...others]);
  }
}

/** A TraceError whose text carries its lines. */
export function traceError(
  kernelName: string | undefined,
  message: string,
  positions: readonly (SourcePosition | undefined)[],
): TraceError {
  const known = positions.filter((position) => position !== undefined);
  const where = known.length === 0 ? formatPosition(undefined) : known.map(formatPosition).join("\n    and ");
  const prefix = kernelName === undefined ? "" : `kernel ${kernelName}: `;
  return new TraceError(`${prefix}${message}\n    at ${where}`, known);
}

let current: Tracer | undefined;

/** The kernel being traced. @throws TraceError outside a kernel body. */
export function tracer(): Tracer {
  if (current === undefined) {
    throw traceError(
      undefined,
      "this belongs inside a kernel's body, which is traced when the kernel is compiled",
      [capturePosition()],
    );
  }
  return current;
}

/** The kernel being traced, if any. */
export function currentTracer(): Tracer | undefined {
  return current;
}

/** Runs `body` as the body of `target`, which was defined at `definition`. */
export function withTracer(
  target: Tracer,
  definition: SourcePosition | undefined,
  body: () => unknown,
): void {
  const outer = current;
  current = target;
  try {
    const returned: unknown = body();
    if (returned instanceof Promise) {
      silence(returned);
      const message = "the kernel body is asynchronous; kernel code is traced and cannot await";
      throw traceError(target.kernelName, message, [definition]);
    }
  } finally {
    target.root.open = false;
    current = outer;
  }
}

/** The refusal is what counts; what an asynchronous body goes on to do would end the process as an unhandled rejection. */
function silence(body: Promise<unknown>): void {
  body.catch(() => undefined);
}
