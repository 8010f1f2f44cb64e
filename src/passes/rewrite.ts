/**
 * @file What every pass needs: blocks rewritten statement by statement, operands replaced, new values.
 *
 * Nodes are immutable. A rewritten statement is a new node; one that did not change stays the same object, so that a pass
 * that finds nothing to do returns the kernel it was given.
 */
import type {
  AnyOperation,
  Block,
  IrConstant,
  IrValue,
  KernelIr,
  Operand,
  Statement,
  ValueType,
} from "../ir/nodes.ts";
import type { Attributes, OperationName } from "../ir/operations.ts";

/** Hands out values with ids that the kernel has not used. */
export class ValueSupply {
  private next: number;

  constructor(kernel: KernelIr) {
    this.next = kernel.valueCount;
  }

  value(type: ValueType): IrValue {
    return { kind: "value", id: this.next++, type };
  }

  /** Number of value ids handed out, the kernel's own included. */
  get count(): number {
    return this.next;
  }
}

/** The kernel with another body and, where values were added, their number. */
export function withBody(kernel: KernelIr, body: Block, valueCount: number = kernel.valueCount): KernelIr {
  return body === kernel.body && valueCount === kernel.valueCount ? kernel : { ...kernel, body, valueCount };
}

/** An operation without registers. */
export function operation<Name extends OperationName>(
  name: Name,
  result: IrValue | undefined,
  operands: readonly Operand[],
  attributes: Attributes[Name],
  site: number,
): AnyOperation {
  // The union is discriminated by `name`; a generic constructor cannot tell TypeScript so.
  return {
    kind: "operation",
    name,
    result,
    operands,
    registers: [],
    attributes,
    site,
  } as unknown as AnyOperation;
}

export function constantOf(type: ValueType, value: number | bigint | boolean): IrConstant {
  return { kind: "constant", value, type };
}

/** The same operation on other operands; the same object if they are the same. */
export function withOperands(node: AnyOperation, operands: readonly Operand[]): AnyOperation {
  return sameItems(node.operands, operands) ? node : { ...node, operands };
}

function sameItems<T>(a: readonly T[], b: readonly T[]): boolean {
  return a.length === b.length && a.every((item, position) => item === b[position]);
}

/** The statement with the operands that it reads itself, not those of its blocks, replaced. */
export function mapOperands(statement: Statement, replace: (operand: Operand) => Operand): Statement {
  switch (statement.kind) {
    case "operation":
      return withOperands(statement, statement.operands.map(replace));
    case "if": {
      const condition = replace(statement.condition);
      return condition === statement.condition ? statement : { ...statement, condition };
    }
    case "loop": {
      const from = replace(statement.from);
      const to = replace(statement.to);
      const step = replace(statement.step);
      const same = from === statement.from && to === statement.to && step === statement.step;
      return same ? statement : { ...statement, from, to, step };
    }
    // A while reads `test` inside, after its condition block: see mapWhile.
    case "while":
    case "break":
    case "continue":
    case "exit":
    case "roles":
      return statement;
    default:
      return statement satisfies never;
  }
}

/**
 * The statement with its blocks rewritten, in program order. A while's test belongs to its condition block:
 * `replaceTest` is asked right after that block.
 */
export function mapBlocks(
  statement: Statement,
  rewrite: (block: Block) => Block,
  replaceTest: (operand: Operand) => Operand = (operand) => operand,
): Statement {
  switch (statement.kind) {
    case "if": {
      const then = rewrite(statement.then);
      const otherwise = rewrite(statement.otherwise);
      return then === statement.then && otherwise === statement.otherwise
        ? statement
        : { ...statement, then, otherwise };
    }
    case "loop": {
      const body = rewrite(statement.body);
      return body === statement.body ? statement : { ...statement, body };
    }
    case "while": {
      const condition = rewrite(statement.condition);
      const test = replaceTest(statement.test);
      const body = rewrite(statement.body);
      const same = condition === statement.condition && test === statement.test && body === statement.body;
      return same ? statement : { ...statement, condition, test, body };
    }
    case "roles": {
      const roles = statement.roles.map((role) => {
        const body = rewrite(role.body);
        return body === role.body ? role : { ...role, body };
      });
      return sameItems(statement.roles, roles) ? statement : { ...statement, roles };
    }
    default:
      return statement;
  }
}

/** The block with these statements; the same object if they are the same. */
export function withStatements(block: Block, statements: readonly Statement[]): Block {
  return sameItems(block.statements, statements) ? block : { statements };
}

/** Values that stand for others from now on. */
export class Replacements {
  private readonly by = new Map<IrValue, Operand>();

  /** `value` is `operand`, already replaced itself. */
  set(value: IrValue, operand: Operand): void {
    this.by.set(value, operand);
  }

  readonly get = (operand: Operand): Operand => {
    return operand.kind === "value" ? (this.by.get(operand) ?? operand) : operand;
  };
}

/** Calls `visit` for every operand that a statement reads itself, a while's test included. */
export function visitOperands(statement: Statement, visit: (operand: Operand) => void): void {
  switch (statement.kind) {
    case "operation":
      statement.operands.forEach(visit);
      return;
    case "if":
      visit(statement.condition);
      return;
    case "loop":
      visit(statement.from);
      visit(statement.to);
      visit(statement.step);
      return;
    case "while":
      visit(statement.test);
      return;
    default:
  }
}

/** Whether control never gets past the statement. */
export function isJump(statement: Statement): boolean {
  return statement.kind === "break" || statement.kind === "continue" || statement.kind === "exit";
}

/** Whether two constants are the same value of the same type; tells 0 from -0. */
export function sameConstant(a: IrConstant, b: IrConstant): boolean {
  return (
    a.type.element.name === b.type.element.name &&
    a.type.lanes === b.type.lanes &&
    Object.is(a.value, b.value)
  );
}

/** Whether two operands are certainly the same value. */
export function sameOperand(a: Operand, b: Operand): boolean {
  return a === b || (a.kind === "constant" && b.kind === "constant" && sameConstant(a, b));
}

export function sameType(a: ValueType, b: ValueType): boolean {
  return a.lanes === b.lanes && a.element.name === b.element.name;
}
