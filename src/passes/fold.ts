/**
 * @file Folding: operations simplified, control flow on known conditions resolved.
 */
import type {
  AnyOperation,
  Block,
  IfNode,
  IrValue,
  KernelIr,
  LoopNode,
  Operand,
  Statement,
  WhileNode,
} from "../ir/nodes.ts";
import { operations } from "../ir/operations.ts";
import { innerBlocks } from "../ir/parameters.ts";
import { isJump, mapBlocks, mapOperands, Replacements, withBody, withStatements } from "./rewrite.ts";
import { heldConstant, simplify } from "./simplify.ts";

/** Evaluates constants, applies exact identities, takes known branches and unrolls loops of no or one turn. */
export function fold(kernel: KernelIr): KernelIr {
  return withBody(kernel, new Folder().block(kernel.body));
}

class Folder {
  private readonly replacements = new Replacements();
  private readonly definitions = new Map<IrValue, AnyOperation>();
  private readonly definitionOf = (operand: Operand): AnyOperation | undefined => {
    return operand.kind === "value" ? this.definitions.get(operand) : undefined;
  };
  private readonly held = (operand: Operand): Operand => {
    return operand.kind === "constant" ? heldConstant(operand) : this.replacements.get(operand);
  };

  block(block: Block): Block {
    return withStatements(block, this.statements(block));
  }

  private statements(block: Block): readonly Statement[] {
    const folded: Statement[] = [];
    for (const statement of block.statements) {
      for (const result of this.statement(mapOperands(statement, this.held))) folded.push(result);
      const last = folded.at(-1);
      if (last !== undefined && isJump(last)) break;
    }
    return folded;
  }

  /** What stands for a statement. */
  private statement(statement: Statement): readonly Statement[] {
    switch (statement.kind) {
      case "operation":
        return this.operation(statement);
      case "if":
        return this.if(statement);
      case "loop":
        return this.loop(statement);
      case "while":
        return this.while(statement);
      case "roles":
        return [mapBlocks(statement, (block) => this.block(block))];
      case "break":
      case "continue":
      case "exit":
        return [statement];
      default:
        return statement satisfies never;
    }
  }

  private operation(operation: AnyOperation): readonly Statement[] {
    if (!operations[operation.name].pure) return [operation];
    const simplified = simplify(operation, this.definitionOf);
    if (simplified.kind !== "operation") {
      this.replacements.set(operation.result!, simplified);
      return [];
    }
    this.definitions.set(operation.result!, simplified);
    return [simplified];
  }

  private if(node: IfNode): readonly Statement[] {
    if (node.condition.kind === "constant") {
      return this.statements(node.condition.value === true ? node.then : node.otherwise);
    }
    return [mapBlocks(node, (block) => this.block(block))];
  }

  private loop(node: LoopNode): readonly Statement[] {
    const turns = turnsOf(node);
    if (turns === 0) return [];
    if (turns === 1 && !jumpsWithin(node.body)) {
      this.replacements.set(node.counter, node.from);
      return this.statements(node.body);
    }
    return [mapBlocks(node, (block) => this.block(block))];
  }

  private while(node: WhileNode): readonly Statement[] {
    const folded = mapBlocks(node, (block) => this.block(block), this.held) as WhileNode;
    const never = folded.test.kind === "constant" && folded.test.value === false;
    return never ? folded.condition.statements : [folded];
  }
}

/** Turns of a loop as far as 2, where the bounds are known; undefined otherwise. */
export function turnsOf(loop: LoopNode): 0 | 1 | 2 | undefined {
  const { from, to, step } = loop;
  if (from === to) return 0;
  if (from.kind !== "constant" || to.kind !== "constant") return undefined;
  if (Number(from.value) >= Number(to.value)) return 0;
  if (step.kind !== "constant") return undefined;
  return Number(from.value) + Number(step.value) >= Number(to.value) ? 1 : 2;
}

/** Whether a loop's body has a break or continue of that loop, rather than of one inside it. */
export function jumpsWithin(body: Block): boolean {
  return body.statements.some((statement) => {
    if (statement.kind === "break" || statement.kind === "continue") return true;
    if (statement.kind === "loop" || statement.kind === "while") return false;
    return innerBlocks(statement).some(jumpsWithin);
  });
}
