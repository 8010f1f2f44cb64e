/**
 * @file Value ids made dense again, in order of definition, after passes have added and dropped values.
 */
import type { AnyOperation, Block, IrValue, KernelIr, Statement } from "../ir/nodes.ts";
import { mapBlocks, mapOperands, Replacements, withBody, withStatements } from "./rewrite.ts";

export function renumber(kernel: KernelIr): KernelIr {
  const renumberer = new Renumberer();
  const body = renumberer.block(kernel.body);
  return withBody(kernel, body, renumberer.count);
}

class Renumberer {
  private readonly replacements = new Replacements();
  count = 0;

  private readonly define = (value: IrValue): IrValue => {
    const id = this.count++;
    if (id === value.id) return value;
    const renumbered: IrValue = { ...value, id };
    this.replacements.set(value, renumbered);
    return renumbered;
  };

  readonly block = (block: Block): Block => {
    return withStatements(
      block,
      block.statements.map((statement) => this.statement(statement)),
    );
  };

  private statement(statement: Statement): Statement {
    const current = this.redefine(mapOperands(statement, this.replacements.get));
    return mapBlocks(current, this.block, this.replacements.get);
  }

  /** The statement with its own result or counter renumbered. */
  private redefine(statement: Statement): Statement {
    if (statement.kind === "operation" && statement.result !== undefined) {
      const result = this.define(statement.result);
      return result === statement.result ? statement : ({ ...statement, result } as AnyOperation);
    }
    if (statement.kind === "loop") {
      const counter = this.define(statement.counter);
      return counter === statement.counter ? statement : { ...statement, counter };
    }
    return statement;
  }
}
