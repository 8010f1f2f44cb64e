/**
 * @file Small branches become selections: an `if` whose sides only compute a few cheap values and assign scalar
 * variables is replaced by both sides' computations and one `select` for each variable.
 */
import type {
  AnyOperation,
  Block,
  IfNode,
  KernelIr,
  Operand,
  RegisterRange,
  RegisterVariable,
  Statement,
} from "../ir/nodes.ts";
import { type OperationName, operations } from "../ir/operations.ts";
import { visitStatements } from "../ir/parameters.ts";
import { mapBlocks, operation, sameOperand, ValueSupply, withBody, withStatements } from "./rewrite.ts";

/** More than this on a side costs more than a branch that most lanes skip. */
const mostOperations = 4;

const cheap: ReadonlySet<OperationName> = new Set([
  "add",
  "sub",
  "mul",
  "neg",
  "abs",
  "min",
  "max",
  "fma",
  "and",
  "or",
  "xor",
  "not",
  "shiftLeft",
  "shiftRight",
  "equal",
  "notEqual",
  "less",
  "lessEqual",
  "greater",
  "greaterEqual",
  "isNaN",
  "select",
  "convert",
  "bitcast",
  "compose",
  "extract",
  "builtin",
  "parameter",
  "bufferSize",
  "bufferStride",
]);

export function convertIfs(kernel: KernelIr): KernelIr {
  const converter = new Converter(kernel);
  const body = converter.block(kernel.body);
  return withBody(kernel, body, converter.valueCount);
}

/** What one side of an `if` does. */
interface Side {
  /** Without the assignments. */
  readonly computations: readonly AnyOperation[];
  readonly assigned: ReadonlyMap<RegisterVariable, Operand>;
}

class Converter {
  private readonly supply: ValueSupply;
  /** Variables that only single reads and writes touch: never a fragment, never held by asynchronous work. */
  private readonly plain: ReadonlySet<RegisterVariable>;
  /** Variables certainly assigned at the current place; reading another one would read garbage. */
  private readonly assigned = new Set<RegisterVariable>();

  constructor(kernel: KernelIr) {
    this.supply = new ValueSupply(kernel);
    const plain = new Set(kernel.variables.filter(({ count }) => count === 1));
    visitStatements(kernel.body, (statement) => {
      if (
        statement.kind !== "operation" ||
        statement.name === "readRegister" ||
        statement.name === "writeRegister"
      )
        return;
      for (const { variable } of statement.registers) plain.delete(variable);
    });
    this.plain = plain;
  }

  get valueCount(): number {
    return this.supply.count;
  }

  readonly block = (block: Block): Block => {
    const statements: Statement[] = [];
    const newly: RegisterVariable[] = [];
    for (const statement of block.statements) {
      const current = mapBlocks(statement, this.block);
      const selected = current.kind === "if" ? this.select(current) : undefined;
      for (const result of selected ?? [current]) {
        statements.push(result);
        if (result.kind === "operation" && result.name === "writeRegister") this.assign(result, newly);
      }
    }
    for (const variable of newly) this.assigned.delete(variable);
    return withStatements(block, statements);
  };

  private assign(write: AnyOperation, newly: RegisterVariable[]): void {
    const { variable } = write.registers[0]!;
    if (!this.plain.has(variable) || this.assigned.has(variable)) return;
    this.assigned.add(variable);
    newly.push(variable);
  }

  /** The selections that stand for an `if`; undefined if it must stay. */
  private select(node: IfNode): readonly Statement[] | undefined {
    const then = this.side(node.then);
    const otherwise = this.side(node.otherwise);
    if (then === undefined || otherwise === undefined) return undefined;
    const variables = [...new Set([...then.assigned.keys(), ...otherwise.assigned.keys()])];
    const needsOld = (variable: RegisterVariable): boolean =>
      !(then.assigned.has(variable) && otherwise.assigned.has(variable));
    if (variables.some((variable) => needsOld(variable) && !this.assigned.has(variable))) return undefined;
    // All selections first: both sides read variables as they were before the `if`.
    const selections: Statement[] = [];
    const writes: Statement[] = [];
    for (const variable of variables) {
      const old = needsOld(variable) ? this.read(variable, node.site, selections) : undefined;
      const a = then.assigned.get(variable) ?? old!;
      const b = otherwise.assigned.get(variable) ?? old!;
      const chosen = this.choose(node, a, b, selections);
      writes.push(registerOperation("writeRegister", undefined, [chosen], variable, "write", node.site));
    }
    return [...then.computations, ...otherwise.computations, ...selections, ...writes];
  }

  private read(variable: RegisterVariable, site: number, into: Statement[]): Operand {
    const result = this.supply.value(variable.type);
    into.push(registerOperation("readRegister", result, [], variable, "read", site));
    return result;
  }

  private choose(node: IfNode, a: Operand, b: Operand, into: Statement[]): Operand {
    if (sameOperand(a, b)) return a;
    const result = this.supply.value(a.type);
    into.push(operation("select", result, [node.condition, a, b], {}, node.site));
    return result;
  }

  private side(block: Block): Side | undefined {
    const computations: AnyOperation[] = [];
    const assigned = new Map<RegisterVariable, Operand>();
    for (const statement of block.statements) {
      if (statement.kind !== "operation") return undefined;
      const variable = statement.registers[0]?.variable;
      if (variable !== undefined && !this.plain.has(variable)) return undefined;
      if (statement.name === "writeRegister") {
        assigned.set(variable!, statement.operands[0]!);
      } else if (statement.name === "readRegister") {
        if (assigned.has(variable!) || !this.assigned.has(variable!)) return undefined;
        computations.push(statement);
      } else if (operations[statement.name].pure && cheap.has(statement.name)) {
        computations.push(statement);
      } else {
        return undefined;
      }
      if (computations.length > mostOperations) return undefined;
    }
    return { computations, assigned };
  }
}

function registerOperation(
  name: "readRegister" | "writeRegister",
  result: AnyOperation["result"],
  operands: readonly Operand[],
  variable: RegisterVariable,
  access: RegisterRange["access"],
  site: number,
): AnyOperation {
  const registers: readonly RegisterRange[] = [{ variable, offset: 0, count: 1, access }];
  return { ...operation(name, result, operands, {}, site), registers } as AnyOperation;
}
