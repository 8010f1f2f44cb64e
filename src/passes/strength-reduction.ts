/**
 * @file Cheaper operations where ranges prove them equal: shifts and masks for powers of two, truncating division for
 * flooring, comparisons and bounds that are already decided.
 *
 * Division by other constants is left to the targets' own compilers. `index` keeps its divisions: it has no bits in the
 * simulator.
 */
import type { AnyOperation, Block, IrConstant, KernelIr, Operand, Statement } from "../ir/nodes.ts";
import type { OperationName } from "../ir/operations.ts";
import type { TargetFacts } from "../target/facts.ts";
import { isInteger, u32 } from "../types/types.ts";
import { analyseRanges, contains, type Range, type Ranges } from "./ranges.ts";
import { constantOf, mapBlocks, mapOperands, Replacements, withBody, withStatements } from "./rewrite.ts";

export function reduceStrength(kernel: KernelIr, facts: TargetFacts): KernelIr {
  return withBody(kernel, new Reducer(analyseRanges(kernel, facts)).block(kernel.body));
}

class Reducer {
  private readonly replacements = new Replacements();

  constructor(private readonly ranges: Ranges) {}

  readonly block = (block: Block): Block => {
    const statements: Statement[] = [];
    for (const original of block.statements) {
      const statement = mapOperands(original, this.replacements.get);
      if (statement.kind !== "operation") {
        statements.push(mapBlocks(statement, this.block, this.replacements.get));
        continue;
      }
      const reduced = reduce(statement, this.ranges);
      if (reduced.kind === "operation") statements.push(reduced);
      else this.replacements.set(statement.result!, reduced);
    }
    return withStatements(block, statements);
  };
}

function reduce(operation: AnyOperation, ranges: Ranges): Operand | AnyOperation {
  const { result, operands } = operation;
  const reduction = reductions[operation.name];
  if (reduction === undefined || result === undefined || result.type.lanes !== 1) return operation;
  const [a, b] = operands.map(ranges);
  if (a === undefined || b === undefined) return operation;
  return reduction({ operation, a, b }) ?? operation;
}

/** An operation of two operands with their ranges. */
interface Subject {
  readonly operation: AnyOperation;
  readonly a: Range;
  readonly b: Range;
}

type Reduction = (subject: Subject) => Operand | AnyOperation | undefined;

/** The exponent of a constant power of two. */
function exponentOf({ low, high }: Range): number | undefined {
  const exponent = Math.log2(low);
  return low === high && Number.isInteger(exponent) ? exponent : undefined;
}

/** i32 and u32 have shifts and masks everywhere. */
function isWord(operation: AnyOperation): boolean {
  const { name } = operation.result!.type.element;
  return name === "i32" || name === "u32";
}

function become({ operation }: Subject, name: OperationName, second: Operand): AnyOperation {
  return { ...operation, name, operands: [operation.operands[0]!, second] } as AnyOperation;
}

function count(exponent: number): IrConstant {
  return constantOf({ element: u32, lanes: 1 }, exponent);
}

function number({ operation }: Subject, value: number): IrConstant {
  return constantOf(operation.result!.type, value + 0);
}

function shiftRight(subject: Subject): AnyOperation | undefined {
  const exponent = exponentOf(subject.b);
  return exponent !== undefined && isWord(subject.operation)
    ? become(subject, "shiftRight", count(exponent))
    : undefined;
}

function mask(subject: Subject): AnyOperation | undefined {
  const exponent = exponentOf(subject.b);
  return exponent !== undefined && isWord(subject.operation)
    ? become(subject, "and", number(subject, subject.b.low - 1))
    : undefined;
}

/** Whether the quotient is 0 and the remainder the dividend. */
function isBelowDivisor({ a, b }: Subject): boolean {
  return a.low >= 0 && b.low > a.high;
}

const div: Reduction = (subject) => {
  if (isBelowDivisor(subject)) return number(subject, 0);
  return subject.a.low >= 0 ? shiftRight(subject) : undefined;
};

const rem: Reduction = (subject) => {
  if (isBelowDivisor(subject)) return subject.operation.operands[0];
  return subject.a.low >= 0 ? mask(subject) : undefined;
};

/** An arithmetic shift floors, whatever the sign. */
const floorDiv: Reduction = (subject) => {
  if (isBelowDivisor(subject)) return number(subject, 0);
  const shifted = shiftRight(subject);
  if (shifted !== undefined) return shifted;
  return subject.a.low >= 0 && subject.b.low >= 0
    ? become(subject, "div", subject.operation.operands[1]!)
    : undefined;
};

const floorMod: Reduction = (subject) => {
  if (isBelowDivisor(subject)) return subject.operation.operands[0];
  const masked = mask(subject);
  if (masked !== undefined) return masked;
  return subject.a.low >= 0 && subject.b.low >= 0
    ? become(subject, "rem", subject.operation.operands[1]!)
    : undefined;
};

const mul: Reduction = (subject) => {
  const exponent = exponentOf(subject.b);
  return exponent !== undefined && isWord(subject.operation)
    ? become(subject, "shiftLeft", count(exponent))
    : undefined;
};

/** Whether every dividend passes the mask whole: the mask is all ones up to above it. */
const and: Reduction = ({ operation, a, b }) => {
  const isMask = b.low === b.high && b.low >= 0 && Number.isInteger(Math.log2(b.low + 1));
  return isMask && contains({ low: 0, high: b.low }, a) ? operation.operands[0] : undefined;
};

const min: Reduction = ({ operation, a, b }) =>
  a.high <= b.low ? operation.operands[0] : b.high <= a.low ? operation.operands[1] : undefined;

const max: Reduction = ({ operation, a, b }) =>
  a.low >= b.high ? operation.operands[0] : b.low >= a.high ? operation.operands[1] : undefined;

/** A comparison that holds for all values, or for none. */
function decided(always: (a: Range, b: Range) => boolean, never: (a: Range, b: Range) => boolean): Reduction {
  return ({ operation, a, b }) => {
    if (!isInteger(operation.operands[0]!.type.element)) return undefined;
    if (always(a, b)) return constantOf(operation.result!.type, true);
    return never(a, b) ? constantOf(operation.result!.type, false) : undefined;
  };
}

const below = (a: Range, b: Range): boolean => a.high < b.low;
const notAbove = (a: Range, b: Range): boolean => a.high <= b.low;
const above = (a: Range, b: Range): boolean => below(b, a);
const notBelow = (a: Range, b: Range): boolean => notAbove(b, a);
const apart = (a: Range, b: Range): boolean => below(a, b) || above(a, b);
const onePoint = (a: Range, b: Range): boolean => a.low === a.high && b.low === b.high && a.low === b.low;

const reductions: { readonly [Name in OperationName]?: Reduction } = {
  div,
  rem,
  floorDiv,
  floorMod,
  mul,
  and,
  min,
  max,
  less: decided(below, notBelow),
  lessEqual: decided(notAbove, above),
  greater: decided(above, notAbove),
  greaterEqual: decided(notBelow, below),
  equal: decided(onePoint, apart),
  notEqual: decided(apart, onePoint),
};
