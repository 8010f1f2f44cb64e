/** @file New values, variables and statements for the rewritings that WGSL needs before anything else. */
import type {
  AnyOperation,
  Block,
  IrConstant,
  IrValue,
  KernelIr,
  Operand,
  RegisterVariable,
  Statement,
  ValueType,
} from "../../ir/nodes.ts";
import { type Attributes, type OperationName, operations } from "../../ir/operations.ts";
import { innerBlocks } from "../../ir/parameters.ts";

/** Hands out values and variables that the kernel has not. */
export class Supply {
  readonly variables: RegisterVariable[] = [];
  #values: number;
  #variableIds: number;

  constructor(kernel: KernelIr) {
    this.#values = kernel.valueCount;
    this.#variableIds = 1 + Math.max(-1, ...kernel.variables.map(({ id }) => id));
  }

  value(type: ValueType): IrValue {
    return { kind: "value", id: this.#values++, type };
  }

  variable(name: string, type: ValueType): RegisterVariable {
    const variable = { id: this.#variableIds++, name, type, count: 1 };
    this.variables.push(variable);
    return variable;
  }

  get valueCount(): number {
    return this.#values;
  }
}

/** A list of statements under construction, all of one site. */
export class Sequence {
  readonly statements: Statement[] = [];

  constructor(
    readonly supply: Supply,
    readonly site: number,
  ) {}

  effect<Name extends OperationName>(
    name: Name,
    operands: readonly Operand[],
    attributes: Attributes[Name],
    result?: IrValue,
  ): void {
    const { site } = this;
    // The union is discriminated by `name`; a generic constructor cannot tell TypeScript so.
    this.statements.push({
      kind: "operation",
      name,
      result,
      operands,
      registers: [],
      attributes,
      site,
    } as unknown as AnyOperation);
  }

  value<Name extends OperationName>(
    name: Name,
    type: ValueType,
    operands: readonly Operand[],
    attributes: Attributes[Name],
  ): IrValue {
    const result = this.supply.value(type);
    this.effect(name, operands, attributes, result);
    return result;
  }

  read(variable: RegisterVariable, result: IrValue = this.supply.value(variable.type)): IrValue {
    this.#register("readRegister", variable, "read", [], result);
    return result;
  }

  write(variable: RegisterVariable, value: Operand): void {
    this.#register("writeRegister", variable, "write", [value], undefined);
  }

  #register(
    name: "readRegister" | "writeRegister",
    variable: RegisterVariable,
    access: "read" | "write",
    operands: readonly Operand[],
    result: IrValue | undefined,
  ): void {
    const { site } = this;
    const registers = [{ variable, offset: 0, count: 1, access }];
    this.statements.push({
      kind: "operation",
      name,
      result,
      operands,
      registers,
      attributes: {},
      site,
    } as unknown as AnyOperation);
  }
}

export function constantOf(type: ValueType, value: number | boolean): IrConstant {
  return { kind: "constant", value, type };
}

/** The statement with each of its blocks replaced. */
export function mapInnerBlocks(statement: Statement, map: (block: Block) => Block): Statement {
  switch (statement.kind) {
    case "if":
      return { ...statement, then: map(statement.then), otherwise: map(statement.otherwise) };
    case "loop":
      return { ...statement, body: map(statement.body) };
    case "while":
      return { ...statement, condition: map(statement.condition), body: map(statement.body) };
    case "roles":
      return { ...statement, roles: statement.roles.map((role) => ({ ...role, body: map(role.body) })) };
    default:
      return statement;
  }
}

/** Whether a statement satisfies a test, or one inside it does. */
export function contains(statement: Statement, test: (statement: Statement) => boolean): boolean {
  if (test(statement)) return true;
  return innerBlocks(statement).some((block) => block.statements.some((inner) => contains(inner, test)));
}

export function isConvergent(statement: Statement): boolean {
  return statement.kind === "operation" && operations[statement.name].convergence !== "none";
}
