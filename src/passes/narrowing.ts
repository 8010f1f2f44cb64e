/**
 * @file 64-bit index arithmetic done in 32 bits where ranges prove that nothing is lost.
 *
 * Only what accesses use as an index is narrowed; values of the kernel keep their types. Every intermediate result must
 * fit i32 too, as it is computed there.
 */
import type { AnyOperation, Block, IrValue, KernelIr, Operand, Statement, ValueType } from "../ir/nodes.ts";
import type { OperationName } from "../ir/operations.ts";
import { innerBlocks } from "../ir/parameters.ts";
import type { TargetFacts } from "../target/facts.ts";
import { i32 } from "../types/types.ts";
import { accessSlots } from "./accesses.ts";
import { analyseRanges, contains, type Ranges, wholeRange } from "./ranges.ts";
import { constantOf, mapBlocks, operation, ValueSupply, withBody, withStatements } from "./rewrite.ts";

export function narrowIndices(kernel: KernelIr, facts: TargetFacts): KernelIr {
  const plan = new Plan(kernel, facts);
  return withBody(kernel, rewrite(kernel.body, plan), plan.valueCount);
}

function rewrite(block: Block, plan: Plan): Block {
  const statements: Statement[] = [];
  for (const statement of block.statements) {
    if (statement.kind !== "operation") {
      statements.push(mapBlocks(statement, (inner) => rewrite(inner, plan)));
      continue;
    }
    statements.push(plan.accesses.get(statement) ?? statement);
    const narrowed = statement.result && plan.additions.get(statement.result);
    if (narrowed !== undefined) statements.push(narrowed);
  }
  return withStatements(block, statements);
}

const narrowType: ValueType = { element: i32, lanes: 1 };

/** Same results in i32 as long as operands and result fit. */
const narrowable: ReadonlySet<OperationName> = new Set([
  "add",
  "sub",
  "mul",
  "fma",
  "min",
  "max",
  "div",
  "rem",
  "floorDiv",
  "floorMod",
]);

class Plan {
  readonly accesses = new Map<AnyOperation, AnyOperation>();
  readonly additions = new Map<IrValue, AnyOperation>();
  private readonly supply: ValueSupply;
  private readonly ranges: Ranges;
  private readonly definitions = new Map<IrValue, AnyOperation>();
  private readonly narrowed = new Map<IrValue, Operand | undefined>();

  constructor(kernel: KernelIr, facts: TargetFacts) {
    this.supply = new ValueSupply(kernel);
    this.ranges = analyseRanges(kernel, facts);
    this.block(kernel.body);
  }

  get valueCount(): number {
    return this.supply.count;
  }

  private block(block: Block): void {
    for (const statement of block.statements) {
      if (statement.kind === "operation") this.operation(statement);
      for (const inner of innerBlocks(statement)) this.block(inner);
    }
  }

  private operation(node: AnyOperation): void {
    if (node.result !== undefined) this.definitions.set(node.result, node);
    let current = node;
    for (const slot of accessSlots(node)) {
      const position = node.operands[slot.operand]!;
      const narrow = position.type.element.name === "index" ? this.narrow(position) : undefined;
      if (narrow !== undefined) current = slot.with(current, narrow, slot.offset);
    }
    if (current !== node) this.accesses.set(node, current);
  }

  /** The i32 operand of the same value, if there can be one. */
  private narrow(operand: Operand): Operand | undefined {
    if (!contains(wholeRange(narrowType)!, this.ranges(operand)!)) return undefined;
    if (operand.kind === "constant") return constantOf(narrowType, operand.value);
    if (this.narrowed.has(operand)) return this.narrowed.get(operand);
    const narrow = this.narrowValue(operand);
    this.narrowed.set(operand, narrow);
    return narrow;
  }

  private narrowValue(value: IrValue): Operand | undefined {
    const definition = this.definitions.get(value);
    if (definition === undefined) return undefined;
    if (definition.name === "convert") {
      const [source] = definition.operands;
      if (source!.type.element.name === "i32") return source;
      return source!.type.element.name === "u32"
        ? this.add(value, "convert", [source!], definition.site)
        : undefined;
    }
    if (!narrowable.has(definition.name)) return undefined;
    const operands: Operand[] = [];
    for (const operand of definition.operands) {
      const narrow = this.narrow(operand);
      if (narrow === undefined) return undefined;
      operands.push(narrow);
    }
    // fma has an intermediate product, which may wrap: the sum is right modulo 2^32, and it fits.
    return this.add(value, definition.name, operands, definition.site);
  }

  private add(after: IrValue, name: OperationName, operands: readonly Operand[], site: number): IrValue {
    const result = this.supply.value(narrowType);
    this.additions.set(after, operation(name, result, operands, {}, site));
    return result;
  }
}
