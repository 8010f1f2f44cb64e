/**
 * @file What a loop computes anew in each turn although it does not change: `index` arithmetic, and loads from read-only
 * parameters, move before the loop. Nothing else does: registers are dear, and targets' compilers move the rest.
 *
 * A load moves only if the loop certainly runs and gets to it, and if nothing in the loop writes global memory or orders
 * accesses: the same memory may be another parameter's too.
 */
import type { AnyOperation, Block, IrValue, KernelIr, LoopNode, Statement, WhileNode } from "../ir/nodes.ts";
import { operations } from "../ir/operations.ts";
import { innerBlocks, visitStatements } from "../ir/parameters.ts";
import { turnsOf } from "./fold.ts";
import { isJump, mapBlocks, withBody, withStatements } from "./rewrite.ts";

export function hoistInvariants(kernel: KernelIr): KernelIr {
  return withBody(kernel, hoistIn(kernel.body));
}

/** The block with what its loops do not change moved before them, innermost loops first. */
function hoistIn(block: Block): Block {
  const statements: Statement[] = [];
  for (const statement of block.statements) {
    const current = mapBlocks(statement, hoistIn);
    if (current.kind === "loop" || current.kind === "while") statements.push(...hoistFrom(current));
    else statements.push(current);
  }
  return withStatements(block, statements);
}

/** What moves out of a loop, then the loop without it. */
function hoistFrom(loop: LoopNode | WhileNode): readonly Statement[] {
  const inside = new Set<IrValue>();
  if (loop.kind === "loop") inside.add(loop.counter);
  for (const block of innerBlocks(loop)) {
    visitStatements(block, (statement) => {
      if (statement.kind === "operation" && statement.result !== undefined) inside.add(statement.result);
      if (statement.kind === "loop") inside.add(statement.counter);
    });
  }
  const runs = loop.kind === "loop" && (turnsOf(loop) ?? 0) > 0;
  const hoisted: Statement[] = [];
  const kept: Statement[] = [];
  let mayMoveLoads = runs && isQuiet(loop.body);
  for (const statement of loop.body.statements) {
    if (isInvariant(statement, inside, mayMoveLoads)) {
      hoisted.push(statement);
      inside.delete(statement.result!);
    } else {
      kept.push(statement);
      mayMoveLoads &&= !mayJump(statement);
    }
  }
  return hoisted.length === 0 ? [loop] : [...hoisted, { ...loop, body: { statements: kept } }];
}

function isInvariant(
  statement: Statement,
  inside: ReadonlySet<IrValue>,
  mayMoveLoads: boolean,
): statement is AnyOperation {
  if (statement.kind !== "operation" || statement.result === undefined) return false;
  const arithmetic = operations[statement.name].pure && statement.result.type.element.name === "index";
  if (!arithmetic && !(mayMoveLoads && isReadOnlyLoad(statement))) return false;
  return statement.operands.every((operand) => operand.kind === "constant" || !inside.has(operand));
}

function isReadOnlyLoad(operation: AnyOperation): boolean {
  if (operation.name !== "load" || operation.attributes.cache === "volatile") return false;
  const { array } = operation.attributes;
  return array.kind === "buffer" && array.parameter.access === "read";
}

/** Whether nothing in the block writes global memory or orders accesses. */
function isQuiet(block: Block): boolean {
  let quiet = true;
  visitStatements(block, (statement) => {
    if (statement.kind !== "operation") return;
    const { orders, writes } = operations[statement.name];
    quiet &&= !orders && !writes.includes("array") && !writes.includes("global");
  });
  return quiet;
}

/** Whether control may leave the turn from within the statement. */
function mayJump(statement: Statement): boolean {
  return isJump(statement) || innerBlocks(statement).some((block) => block.statements.some(mayJump));
}
