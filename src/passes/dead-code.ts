/**
 * @file Dead code: what computes something that nothing uses, writes registers that nothing reads, or never runs.
 *
 * Stores, atomics, asynchronous work, barriers and diagnostics stay, and so do volatile loads. Shared arrays stay where
 * they are: other views may overlay them.
 */
import type { AnyOperation, Block, IrValue, KernelIr, RegisterVariable, Statement } from "../ir/nodes.ts";
import { type OperationName, operations } from "../ir/operations.ts";
import { visitStatements } from "../ir/parameters.ts";
import { isJump, mapBlocks, visitOperands, withBody, withStatements } from "./rewrite.ts";

export function dropDeadCode(kernel: KernelIr): KernelIr {
  const sweeper = new Sweeper(kernel);
  const swept = withBody(kernel, sweeper.block(kernel.body));
  // Control flow that is gone no longer uses its conditions and bounds.
  return sweeper.droppedControl ? dropDeadCode(swept) : swept;
}

/** Without effect although not pure: collectives, whose lanes need not meet if nobody wants the answer. */
const collectives: ReadonlySet<OperationName> = new Set([
  "shuffle",
  "vote",
  "ballot",
  "subgroupReduce",
  "electOne",
]);

function isDroppable(operation: AnyOperation): boolean {
  if (operation.result === undefined) return false;
  if (operations[operation.name].pure || operation.name === "readRegister") return true;
  return (
    collectives.has(operation.name) ||
    (operation.name === "load" && operation.attributes.cache !== "volatile")
  );
}

/** Counts uses, then takes away, one after another, what has none. */
class Sweeper {
  private readonly uses = new Map<IrValue, number>();
  private readonly makers = new Map<IrValue, AnyOperation>();
  private readonly reads = new Map<RegisterVariable, number>();
  private readonly writes = new Map<RegisterVariable, AnyOperation[]>();
  private readonly dead = new Set<Statement>();
  private readonly pending: AnyOperation[] = [];
  droppedControl = false;

  constructor(kernel: KernelIr) {
    visitStatements(kernel.body, (statement) => this.count(statement));
    for (const [value, maker] of this.makers) {
      if (!this.uses.has(value)) this.pending.push(maker);
    }
    for (const [variable, writers] of this.writes) {
      if (!this.reads.has(variable)) this.pending.push(...writers);
    }
    for (let next = this.pending.pop(); next !== undefined; next = this.pending.pop()) this.drop(next);
  }

  private count(statement: Statement): void {
    visitOperands(statement, (operand) => {
      if (operand.kind === "value") this.uses.set(operand, (this.uses.get(operand) ?? 0) + 1);
    });
    if (statement.kind !== "operation") return;
    if (isDroppable(statement)) this.makers.set(statement.result!, statement);
    for (const { variable, access } of statement.registers) {
      if (access !== "write") this.reads.set(variable, (this.reads.get(variable) ?? 0) + 1);
    }
    if (statement.name === "writeRegister") {
      const { variable } = statement.registers[0]!;
      const writers = this.writes.get(variable);
      if (writers === undefined) this.writes.set(variable, [statement]);
      else writers.push(statement);
    }
  }

  private drop(operation: AnyOperation): void {
    if (this.dead.has(operation)) return;
    this.dead.add(operation);
    for (const operand of operation.operands) {
      if (operand.kind === "value" && this.release(this.uses, operand)) {
        const maker = this.makers.get(operand);
        if (maker !== undefined) this.pending.push(maker);
      }
    }
    if (operation.name !== "readRegister") return;
    const { variable } = operation.registers[0]!;
    if (this.release(this.reads, variable)) this.pending.push(...(this.writes.get(variable) ?? []));
  }

  /** One use fewer; whether it was the last. */
  private release<Key>(counts: Map<Key, number>, key: Key): boolean {
    const left = counts.get(key)! - 1;
    counts.set(key, left);
    return left === 0;
  }

  readonly block = (block: Block): Block => {
    const kept: Statement[] = [];
    for (const statement of block.statements) {
      if (this.dead.has(statement)) continue;
      const current = mapBlocks(statement, this.block);
      if (isEmpty(current)) {
        this.droppedControl = true;
        continue;
      }
      kept.push(current);
      if (isJump(current)) {
        this.droppedControl ||= statement !== block.statements.at(-1);
        break;
      }
    }
    return withStatements(block, kept);
  };
}

/** Control flow around nothing. A `while` may be meant to wait, and stays. */
function isEmpty(statement: Statement): boolean {
  if (statement.kind === "if")
    return statement.then.statements.length + statement.otherwise.statements.length === 0;
  return statement.kind === "loop" && statement.body.statements.length === 0;
}
