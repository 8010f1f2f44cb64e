/**
 * @file Interval analysis: the least and greatest number that each scalar integer value can have, at every place where
 * it is visible.
 *
 * Sound for wrapping arithmetic: where exact arithmetic could leave the type, the result may be anything. Two things
 * are taken for granted, as every target does: a loop's counter does not wrap (its last step stays within its type), and
 * a register variable is written before it is read.
 */
import type {
  AnyOperation,
  Block,
  IrValue,
  KernelIr,
  LoopNode,
  Operand,
  RegisterVariable,
  Statement,
  ValueType,
} from "../ir/nodes.ts";
import type { BuiltinName, OperationName } from "../ir/operations.ts";
import { innerBlocks } from "../ir/parameters.ts";
import type { TargetFacts } from "../target/facts.ts";
import { integerRange } from "../types/integer-range.ts";

/** Inclusive bounds. */
export interface Range {
  readonly low: number;
  readonly high: number;
}

/** The range of an operand; undefined for floats, truth values, vectors and 64-bit integers other than index. */
export type Ranges = (operand: Operand) => Range | undefined;

export function analyseRanges(kernel: KernelIr, facts: TargetFacts): Ranges {
  const first = new Analyser(kernel, facts, new Map());
  const written = first.writtenRanges();
  // What was found with nothing known of variables holds; it bounds them for a second, sharper look.
  const analyser = written.size === 0 ? first : new Analyser(kernel, facts, written);
  return analyser.rangeOf;
}

const ranged: ReadonlySet<string> = new Set(["i8", "u8", "i16", "u16", "i32", "u32", "index"]);

/** Everything a type holds. */
export function wholeRange({ element, lanes }: ValueType): Range | undefined {
  if (lanes !== 1 || !ranged.has(element.name)) return undefined;
  const { least, greatest } = integerRange(element)!;
  return { low: Number(least), high: Number(greatest) };
}

export function contains(outer: Range, inner: Range): boolean {
  return outer.low <= inner.low && inner.high <= outer.high;
}

/** The range moved by a constant. */
export function shiftRange(range: Range, by: number): Range {
  return { low: range.low + by, high: range.high + by };
}

function join(a: Range, b: Range): Range {
  return { low: Math.min(a.low, b.low), high: Math.max(a.high, b.high) };
}

/** The least range that holds a function's values, where that function is monotone in each argument. */
function corners(a: Range, b: Range, compute: (x: number, y: number) => number): Range {
  const values = [
    compute(a.low, b.low),
    compute(a.low, b.high),
    compute(a.high, b.low),
    compute(a.high, b.high),
  ];
  return { low: Math.min(...values), high: Math.max(...values) };
}

/** Exact range of a sum, difference, product…, or undefined where it says nothing. */
type Transfer = (a: Range, b: Range) => Range | undefined;

function isZeroFree(range: Range): boolean {
  return range.low > 0 || range.high < 0;
}

/** The least number of the form 2^n - 1 that is not below x. */
function allOnesAbove(x: number): number {
  let ones = 0;
  while (ones < x) ones = ones * 2 + 1;
  return ones;
}

/** A shift count known to be less than the width. */
function isPlainCount({ low, high }: Range): boolean {
  return low >= 0 && high < 32;
}

const nonNegative = (...ranges: readonly Range[]): boolean => ranges.every(({ low }) => low >= 0);

const transfers: { readonly [Name in OperationName]?: Transfer } = {
  add: (a, b) => ({ low: a.low + b.low, high: a.high + b.high }),
  sub: (a, b) => ({ low: a.low - b.high, high: a.high - b.low }),
  mul: (a, b) => corners(a, b, (x, y) => x * y),
  div: (a, b) => (isZeroFree(b) ? corners(a, b, (x, y) => Math.trunc(x / y)) : undefined),
  floorDiv: (a, b) => (isZeroFree(b) ? corners(a, b, (x, y) => Math.floor(x / y)) : undefined),
  // The sign is the dividend's, the magnitude less than the divisor's; x%0 is 0.
  rem: (a, b) => {
    const most = Math.max(0, Math.max(Math.abs(b.low), Math.abs(b.high)) - 1);
    return { low: a.low < 0 ? Math.max(a.low, -most) : 0, high: a.high > 0 ? Math.min(a.high, most) : 0 };
  },
  floorMod: (a, b) => ({
    low: b.low < 0 ? b.low + 1 : 0,
    high: b.high > 0 ? (nonNegative(a, b) ? Math.min(a.high, b.high - 1) : b.high - 1) : 0,
  }),
  min: (a, b) => ({ low: Math.min(a.low, b.low), high: Math.min(a.high, b.high) }),
  max: (a, b) => ({ low: Math.max(a.low, b.low), high: Math.max(a.high, b.high) }),
  and: (a, b) => {
    if (nonNegative(a, b)) return { low: 0, high: Math.min(a.high, b.high) };
    if (nonNegative(a)) return { low: 0, high: a.high };
    return nonNegative(b) ? { low: 0, high: b.high } : undefined;
  },
  or: (a, b) => {
    return nonNegative(a, b)
      ? { low: Math.max(a.low, b.low), high: allOnesAbove(Math.max(a.high, b.high)) }
      : undefined;
  },
  xor: (a, b) => (nonNegative(a, b) ? { low: 0, high: allOnesAbove(Math.max(a.high, b.high)) } : undefined),
  shiftLeft: (a, b) => (isPlainCount(b) ? corners(a, b, (x, count) => x * 2 ** count) : undefined),
  shiftRight: (a, b) =>
    isPlainCount(b) ? corners(a, b, (x, count) => Math.floor(x / 2 ** count)) : undefined,
};

class Analyser {
  private readonly ranges = new Map<IrValue, Range>();
  private readonly written = new Map<RegisterVariable, Range | undefined>();

  constructor(
    private readonly kernel: KernelIr,
    private readonly facts: TargetFacts,
    private readonly variables: ReadonlyMap<RegisterVariable, Range>,
  ) {
    this.block(kernel.body);
  }

  readonly rangeOf = (operand: Operand): Range | undefined => {
    const whole = wholeRange(operand.type);
    if (operand.kind === "value") return this.ranges.get(operand) ?? whole;
    return whole && { low: Number(operand.value), high: Number(operand.value) };
  };

  /** Ranges of all that is written to variables, where they say something. */
  writtenRanges(): Map<RegisterVariable, Range> {
    const known = new Map<RegisterVariable, Range>();
    for (const [variable, range] of this.written) {
      const whole = wholeRange(variable.type);
      if (range !== undefined && whole !== undefined && !contains(range, whole)) known.set(variable, range);
    }
    return known;
  }

  private block(block: Block): void {
    for (const statement of block.statements) this.statement(statement);
  }

  private statement(statement: Statement): void {
    if (statement.kind === "operation") {
      this.registers(statement);
      if (statement.result !== undefined) this.define(statement.result, this.result(statement));
      return;
    }
    if (statement.kind === "loop") this.define(statement.counter, this.counter(statement));
    for (const inner of innerBlocks(statement)) this.block(inner);
  }

  /** Keeps a range that tells more than the type does; a range that leaves the type means that values may wrap. */
  private define(value: IrValue, range: Range | undefined): void {
    const whole = wholeRange(value.type);
    if (range !== undefined && whole !== undefined && contains(whole, range)) this.ranges.set(value, range);
  }

  private counter({ from, to }: LoopNode): Range | undefined {
    const start = this.rangeOf(from);
    const end = this.rangeOf(to);
    if (start === undefined || end === undefined) return undefined;
    return { low: start.low, high: Math.max(start.low, end.high - 1) };
  }

  private registers(operation: AnyOperation): void {
    for (const { variable, access } of operation.registers) {
      if (access === "read") continue;
      const range = operation.name === "writeRegister" ? this.rangeOf(operation.operands[0]!) : undefined;
      const before = this.written.has(variable) ? this.written.get(variable) : range;
      this.written.set(variable, range && before && join(before, range));
    }
  }

  private result(operation: AnyOperation): Range | undefined {
    const { operands } = operation;
    switch (operation.name) {
      case "builtin":
        return builtinRange(operation.attributes.builtin, this.kernel, this.facts);
      case "bufferSize":
        return { low: 0, high: 2 ** 31 - 1 };
      case "readRegister":
        return this.variables.get(operation.registers[0]!.variable);
      // Some lane's operand, or a reduction that picks one.
      case "shuffle":
        return this.rangeOf(operands[0]!);
      case "subgroupReduce": {
        const picks = operation.attributes.operation === "min" || operation.attributes.operation === "max";
        return picks ? this.rangeOf(operands[0]!) : undefined;
      }
      case "convert":
        return this.converted(operands[0]!);
      case "popcount":
      case "leadingZeros":
        return { low: 0, high: operands[0]!.type.element.bits };
      case "select": {
        const [a, b] = [this.rangeOf(operands[1]!), this.rangeOf(operands[2]!)];
        return a && b && join(a, b);
      }
      case "neg": {
        const range = this.rangeOf(operands[0]!);
        return range && { low: -range.high, high: -range.low };
      }
      case "abs": {
        const range = this.rangeOf(operands[0]!);
        if (range === undefined) return undefined;
        const least =
          range.low <= 0 && range.high >= 0 ? 0 : Math.min(Math.abs(range.low), Math.abs(range.high));
        return { low: least, high: Math.max(-range.low, range.high) };
      }
      case "fma":
        return this.fused(operands);
      default:
        return this.binary(operation);
    }
  }

  private binary({ name, operands, result }: AnyOperation): Range | undefined {
    const transfer = transfers[name];
    if (transfer === undefined || result === undefined) return undefined;
    const [a, b] = operands.map(this.rangeOf);
    return a && b && transfer(a, b);
  }

  private fused(operands: readonly Operand[]): Range | undefined {
    const [a, b, c] = operands.map(this.rangeOf);
    if (a === undefined || b === undefined || c === undefined) return undefined;
    const product = corners(a, b, (x, y) => x * y);
    return { low: product.low + c.low, high: product.high + c.high };
  }

  /** An integer keeps its value where the result's type holds it. */
  private converted(operand: Operand): Range | undefined {
    return operand.type.element.class === "bool" ? { low: 0, high: 1 } : this.rangeOf(operand);
  }
}

function builtinRange(name: BuiltinName, kernel: KernelIr, facts: TargetFacts): Range {
  const upTo = (count: number): Range => ({ low: 0, high: Math.max(0, count - 1) });
  const [x, y, z] = kernel.block;
  const { gridX, gridY, gridZ } = facts.limits;
  switch (name) {
    case "threadIndexX":
      return upTo(x);
    case "threadIndexY":
      return upTo(y);
    case "threadIndexZ":
      return upTo(z);
    case "blockIndexX":
    case "clusterIndexX":
      return upTo(gridX);
    case "blockIndexY":
    case "clusterIndexY":
      return upTo(gridY);
    case "blockIndexZ":
    case "clusterIndexZ":
      return upTo(gridZ);
    case "gridSizeX":
      return { low: 1, high: gridX };
    case "gridSizeY":
      return { low: 1, high: gridY };
    case "gridSizeZ":
      return { low: 1, high: gridZ };
    case "lane":
      return upTo(kernel.subgroupSize);
    case "subgroupIndex":
      return upTo(Math.ceil((x * y * z) / kernel.subgroupSize));
    case "clusterRank":
      return upTo((kernel.cluster ?? [1, 1, 1]).reduce((product, size) => product * size, 1));
    default:
      return name satisfies never;
  }
}
