/**
 * @file Common subexpressions: a pure operation that an earlier one, in this block or one around it, has computed
 * already is replaced by that one's result. Loads from constant tables count as pure; no other memory is touched.
 */
import type { AnyOperation, Block, IrValue, KernelIr, Operand, Statement } from "../ir/nodes.ts";
import { operations } from "../ir/operations.ts";
import { printType } from "../ir/printer.ts";
import { mapBlocks, mapOperands, Replacements, withBody, withStatements } from "./rewrite.ts";
import { isCommutative } from "./simplify.ts";

export function shareCommonSubexpressions(kernel: KernelIr): KernelIr {
  return withBody(kernel, new Sharer().block(kernel.body));
}

class Sharer {
  private readonly replacements = new Replacements();
  /** Results by what computes them, of the blocks around the current place. */
  private readonly known = new Map<string, IrValue>();

  /** What a block computed is forgotten at its end: it does not dominate what follows. */
  readonly block = (block: Block): Block => {
    const added: string[] = [];
    const statements: Statement[] = [];
    for (const statement of block.statements) {
      const current = mapOperands(statement, this.replacements.get);
      if (current.kind !== "operation") {
        statements.push(mapBlocks(current, this.block, this.replacements.get));
      } else if (!this.shared(current, added)) {
        statements.push(current);
      }
    }
    for (const key of added) this.known.delete(key);
    return withStatements(block, statements);
  };

  /** Whether an earlier operation serves for this one. */
  private shared(operation: AnyOperation, added: string[]): boolean {
    if (operation.result === undefined || !isShareable(operation)) return false;
    const key = keyOf(operation);
    const earlier = this.known.get(key);
    if (earlier !== undefined) {
      this.replacements.set(operation.result, earlier);
      return true;
    }
    this.known.set(key, operation.result);
    added.push(key);
    return false;
  }
}

function isShareable(operation: AnyOperation): boolean {
  if (operations[operation.name].pure) return true;
  return operation.name === "load" && operation.attributes.array.kind === "constant";
}

/** The same text for operations that compute the same. */
function keyOf(operation: AnyOperation): string {
  const operands = operation.operands.map(operandKey);
  if (isCommutative(operation.name) && operands[0]! > operands[1]!)
    operands.splice(0, 2, operands[1]!, operands[0]!);
  return `${operation.name} ${printType(operation.result!.type)} ${operands.join(" ")} ${attributesKey(operation)}`;
}

function operandKey(operand: Operand): string {
  if (operand.kind === "value") return `%${operand.id}`;
  const value = Object.is(operand.value, -0) ? "-0" : String(operand.value);
  return `${value}:${printType(operand.type)}`;
}

function attributesKey(operation: AnyOperation): string {
  if (operation.name === "load") {
    const { array, offset } = operation.attributes;
    return array.kind === "constant" ? `${array.table.id}+${offset}` : "";
  }
  const entries = Object.entries(operation.attributes);
  return entries.length === 0 ? "" : JSON.stringify(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}
