/**
 * @file Algebra on one pure operation: constants evaluated, identities that hold exactly on every target applied.
 *
 * Floats keep what IEEE 754 makes exact: x·1, x/1, x-0, x+(-0). Never x+0 (it turns -0 into +0), never x·0 (NaN, -0),
 * never another order of additions. Integers wrap, so their sums and products may be reordered.
 */
import {
  type ElementValue,
  type EvaluableName,
  evaluateOperation,
  type HostValue,
  isEvaluable,
  isExact,
} from "../ir/evaluate.ts";
import type { AnyOperation, IrConstant, Operand, ValueType } from "../ir/nodes.ts";
import type { OperationName } from "../ir/operations.ts";
import { roundingTo } from "../types/convert.ts";
import { integerRange } from "../types/integer-range.ts";
import { type ElementType, isFloat, isInteger } from "../types/types.ts";
import { constantOf, sameOperand, sameType } from "./rewrite.ts";

/** The operation that made a value, where it is a pure one. */
export type Definitions = (operand: Operand) => AnyOperation | undefined;

/** What stands for an operation's result: an operand that exists already, or an operation (perhaps the same). */
export function simplify(operation: AnyOperation, definitions: Definitions): Operand | AnyOperation {
  let current = operation;
  // Each rule makes the operation smaller or moves a constant to the right; few follow one another.
  for (let turn = 0; turn < 8; turn++) {
    const next = simplifyOnce(current, definitions);
    if (next === undefined) return current;
    if (next.kind !== "operation") return next;
    current = next;
  }
  return current;
}

/** One rule applied; undefined if none applies. */
function simplifyOnce(operation: AnyOperation, definitions: Definitions): Operand | AnyOperation | undefined {
  if (!isEvaluable(operation.name) || operation.result === undefined) return undefined;
  const folded = evaluateConstants(operation);
  if (folded !== undefined) return folded;
  const swapped = constantsRight(operation);
  if (swapped !== undefined) return swapped;
  return rules[operation.name]?.(new Subject(operation, definitions));
}

// Constants -----------------------------------------------------------------------------------------------------------

/** A float constant rounded to its type; any other constant unchanged. */
export function heldConstant(constant: IrConstant): IrConstant {
  const { element } = constant.type;
  if (!isFloat(element)) return constant;
  const value = Number(constant.value);
  const rounded = roundingTo(element)(value);
  return Object.is(rounded, constant.value) ? constant : constantOf(constant.type, rounded);
}

function hostValue({ value, type }: IrConstant): HostValue {
  return type.lanes === 1 ? value : new Array<ElementValue>(type.lanes).fill(value);
}

/** A constant operand for a value whose lanes all agree; undefined if they do not. */
function constantFrom(value: HostValue, type: ValueType): IrConstant | undefined {
  if (typeof value !== "object") return constantOf(type, value);
  const [first] = value;
  return value.every((lane) => Object.is(lane, first)) ? constantOf(type, first!) : undefined;
}

function isConstant(operand: Operand): operand is IrConstant {
  return operand.kind === "constant";
}

function evaluateConstants(operation: AnyOperation): IrConstant | undefined {
  const { name, operands, result } = operation;
  if (!isExact(name) || operands.length === 0 || !operands.every(isConstant)) return undefined;
  const value = evaluate(name as EvaluableName, operands, result!.type, operation.attributes);
  const folded = constantFrom(value, result!.type);
  // JavaScript keeps no payload of a NaN, but a bit cast must.
  if (name === "bitcast" && Number.isNaN(folded?.value)) return undefined;
  return folded;
}

function evaluate(
  name: EvaluableName,
  operands: readonly IrConstant[],
  type: ValueType,
  attributes: object = {},
): HostValue {
  return evaluateOperation(
    name,
    operands.map(hostValue),
    operands.map((operand) => operand.type),
    type,
    attributes as never,
  );
}

/** Two constants of one type combined; undefined where the result is beyond what `index` counts exactly. */
function combine(name: "add" | "sub" | "mul", a: IrConstant, b: IrConstant): IrConstant | undefined {
  const combined = constantFrom(evaluate(name, [a, b], a.type), a.type);
  const exact = typeof combined?.value !== "number" || Number.isSafeInteger(combined.value);
  return exact ? combined : undefined;
}

const commutative: ReadonlySet<OperationName> = new Set([
  "add",
  "mul",
  "mulHigh",
  "min",
  "max",
  "and",
  "or",
  "xor",
  "equal",
  "notEqual",
]);

/** Whether the first two operands may trade places. */
export function isCommutative(name: OperationName): boolean {
  return commutative.has(name) || name === "fma";
}

const mirrored: { readonly [Name in OperationName]?: OperationName } = {
  less: "greater",
  lessEqual: "greaterEqual",
  greater: "less",
  greaterEqual: "lessEqual",
};

function constantsRight(operation: AnyOperation): AnyOperation | undefined {
  const [a, b, ...others] = operation.operands;
  if (a?.kind !== "constant" || b === undefined || b.kind === "constant") return undefined;
  const name = isCommutative(operation.name) ? operation.name : mirrored[operation.name];
  if (name === undefined) return undefined;
  return { ...operation, name, operands: [b, a, ...others] } as AnyOperation;
}

// Identities ----------------------------------------------------------------------------------------------------------

/** An operation under examination. */
class Subject {
  readonly type: ElementType;

  constructor(
    readonly operation: AnyOperation,
    private readonly definitions: Definitions,
  ) {
    this.type = this.a.type.element;
  }

  get a(): Operand {
    return this.operation.operands[0]!;
  }
  get b(): Operand {
    return this.operation.operands[1]!;
  }
  get c(): Operand {
    return this.operation.operands[2]!;
  }
  get integer(): boolean {
    return isInteger(this.type);
  }
  get float(): boolean {
    return isFloat(this.type);
  }
  get resultType(): ValueType {
    return this.operation.result!.type;
  }
  /** Whether the first two operands are the same value. */
  get twins(): boolean {
    return sameOperand(this.a, this.b);
  }

  definition(operand: Operand): AnyOperation | undefined {
    return this.definitions(operand);
  }

  /** Another operation with the same result. */
  become(name: OperationName, operands: readonly Operand[], attributes: object = {}): AnyOperation {
    return { ...this.operation, name, operands, attributes } as AnyOperation;
  }

  constant(value: number | bigint | boolean): IrConstant {
    const { element } = this.resultType;
    const wide = element.name === "i64" || element.name === "u64";
    return constantOf(this.resultType, wide ? BigInt(value) : value);
  }
}

/** Whether an operand is this integer, or this float with this sign of zero. */
function is(operand: Operand, value: number): boolean {
  if (operand.kind !== "constant") return false;
  if (typeof operand.value === "bigint") return operand.value === BigInt(value);
  return Object.is(operand.value, value);
}

/** Whether an integer operand has all bits set. */
function isAllOnes(operand: Operand): boolean {
  if (operand.kind !== "constant") return false;
  const { element } = operand.type;
  if (element.class === "bool") return operand.value === true;
  if (element.class === "signed") return is(operand, -1);
  return BigInt(operand.value) === integerRange(element)?.greatest;
}

function isFalse(operand: Operand): boolean {
  return operand.kind === "constant" && operand.value === false;
}

function isTrue(operand: Operand): boolean {
  return operand.kind === "constant" && operand.value === true;
}

type Simplification = (subject: Subject) => Operand | AnyOperation | undefined;

/** x ± c written as base and constant, for integers. */
function sum(
  operation: AnyOperation | undefined,
): { base: Operand; constant: IrConstant; sign: 1 | -1 } | undefined {
  if (operation === undefined || (operation.name !== "add" && operation.name !== "sub")) return undefined;
  const [base, constant] = operation.operands;
  if (constant!.kind !== "constant" || base!.kind === "constant" || !isInteger(base!.type.element))
    return undefined;
  return { base: base!, constant, sign: operation.name === "add" ? 1 : -1 };
}

/** (x ± c1) ± c2 as one sum; kept unsigned constants small. */
function reassociate(subject: Subject): AnyOperation | undefined {
  const outer = sum(subject.operation);
  if (outer === undefined) return undefined;
  const inner = sum(subject.definition(outer.base));
  if (inner === undefined) return undefined;
  if (outer.sign === inner.sign) {
    const constant = combine("add", inner.constant, outer.constant);
    return constant && subject.become(subject.operation.name, [inner.base, constant]);
  }
  const innerIsLarger = inner.constant.value >= outer.constant.value;
  const [larger, smaller] = innerIsLarger ? [inner, outer] : [outer, inner];
  const constant = combine("sub", larger.constant, smaller.constant);
  return constant && subject.become(larger.sign === 1 ? "add" : "sub", [inner.base, constant]);
}

const add: Simplification = (subject) => {
  const { a, b } = subject;
  if (subject.integer) return is(b, 0) ? a : reassociate(subject);
  return is(b, -0) ? a : undefined;
};

const sub: Simplification = (subject) => {
  const { a, b } = subject;
  if (is(b, 0)) return a;
  if (!subject.integer) return undefined;
  return subject.twins ? subject.constant(0) : reassociate(subject);
};

const mul: Simplification = (subject) => {
  const { a, b } = subject;
  if (is(b, 1)) return a;
  if (!subject.integer) return undefined;
  if (is(b, 0)) return b;
  const inner = subject.definition(a);
  if (b.kind !== "constant" || inner?.name !== "mul") return undefined;
  const [base, factor] = inner.operands;
  if (factor!.kind !== "constant") return undefined;
  const constant = combine("mul", factor, b);
  return constant && subject.become("mul", [base!, constant]);
};

const fma: Simplification = (subject) => {
  const { a, b, c } = subject;
  if (is(b, 1)) return subject.become("add", [a, c]);
  if (is(c, subject.float ? -0 : 0)) return subject.become("mul", [a, b]);
  if (!subject.integer) return undefined;
  if (is(b, 0)) return c;
  if (a.kind !== "constant" || b.kind !== "constant") return undefined;
  const product = combine("mul", a, b);
  return product && subject.become("add", [c, product]);
};

const div: Simplification = (subject) => {
  const { a, b } = subject;
  if (is(b, 1)) return a;
  return subject.integer && is(a, 0) ? a : undefined;
};

const rem: Simplification = (subject) => {
  const { a, b } = subject;
  const unit = is(b, 1) || (subject.type.class === "signed" && is(b, -1));
  return unit || is(a, 0) || subject.twins ? subject.constant(0) : undefined;
};

const and: Simplification = (subject) => {
  const { a, b } = subject;
  if (subject.twins || isAllOnes(b)) return a;
  return is(b, 0) || isFalse(b) ? b : undefined;
};

const or: Simplification = (subject) => {
  const { a, b } = subject;
  if (subject.twins || is(b, 0) || isFalse(b)) return a;
  return isAllOnes(b) ? b : undefined;
};

const xor: Simplification = (subject) => {
  const { a, b } = subject;
  if (is(b, 0) || isFalse(b)) return a;
  if (subject.twins) return subject.constant(subject.type.class === "bool" ? false : 0);
  return isTrue(b) ? subject.become("not", [a]) : undefined;
};

/** A shift count that is 0 modulo the width. */
const shift: Simplification = (subject) => {
  const { a, b } = subject;
  if (is(a, 0)) return a;
  if (b.kind !== "constant") return undefined;
  const width = subject.type.name === "index" ? 64 : subject.type.bits;
  return BigInt(b.value) % BigInt(width) === 0n ? a : undefined;
};

const idempotent: Simplification = (subject) => (subject.twins ? subject.a : undefined);

/** Undoes itself. */
const involution: Simplification = (subject) => {
  const inner = subject.definition(subject.a);
  return inner?.name === subject.operation.name ? inner.operands[0] : undefined;
};

const inverse: { readonly [Name in OperationName]?: OperationName } = {
  equal: "notEqual",
  notEqual: "equal",
  less: "greaterEqual",
  greaterEqual: "less",
  greater: "lessEqual",
  lessEqual: "greater",
};

const not: Simplification = (subject) => {
  const inner = subject.definition(subject.a);
  if (inner === undefined) return undefined;
  if (inner.name === "not") return inner.operands[0];
  const opposite = inverse[inner.name];
  if (opposite === undefined) return undefined;
  // A NaN makes both `less` and `greaterEqual` false; equality has a true opposite for floats too.
  const ordered = inner.name !== "equal" && inner.name !== "notEqual";
  if (ordered && !isInteger(inner.operands[0]!.type.element)) return undefined;
  return subject.become(opposite, inner.operands);
};

/** A comparison of something with itself, unless it may be NaN. */
function reflexive(outcome: boolean): Simplification {
  return (subject) => {
    if (subject.twins && !subject.float) return subject.constant(outcome);
    if (subject.type.class !== "bool" || subject.b.kind !== "constant") return undefined;
    return subject.b.value === outcome ? subject.a : subject.become("not", [subject.a]);
  };
}

const select: Simplification = (subject) => {
  const { a: condition, b, c } = subject;
  if (condition.kind === "constant") return condition.value === true ? b : c;
  if (sameOperand(b, c)) return b;
  if (isTrue(b) && isFalse(c)) return condition;
  if (isFalse(b) && isTrue(c)) return subject.become("not", [condition]);
  const test = subject.definition(condition);
  return test?.name === "not" ? subject.become("select", [test.operands[0]!, c, b]) : undefined;
};

/** Whether every value of one type is a value of the other. */
function holds(wide: ElementType, narrow: ElementType): boolean {
  if (narrow.class === "bool") return wide.class !== "bool" && wide.class !== "bits";
  if (isInteger(narrow) && isInteger(wide)) {
    const inner = integerRange(narrow)!;
    const outer = integerRange(wide)!;
    return inner.least >= outer.least && inner.greatest <= outer.greatest;
  }
  return floatWithin[narrow.name]?.includes(wide.name) ?? false;
}

const floatWithin: { readonly [name: string]: readonly string[] } = {
  f16: ["f32", "f64"],
  bf16: ["f32", "f64"],
  f32: ["f64"],
  e4m3: ["f16", "bf16", "f32", "f64"],
  e5m2: ["f16", "bf16", "f32", "f64"],
};

const convert: Simplification = (subject) => {
  const { a, type } = subject;
  const to = subject.resultType.element;
  if (type.name === to.name) return a;
  const inner = subject.definition(a);
  if (inner?.name !== "convert") return undefined;
  const source = inner.operands[0]!;
  const from = source.type.element;
  if (holds(type, from)) return subject.become("convert", [source]);
  // i32 → u32 → i32 and the like: wrapping there and back.
  const word = (name: string): boolean => name === "i32" || name === "u32";
  return word(from.name) && word(type.name) && from.name === to.name ? source : undefined;
};

const bitcast: Simplification = (subject) => {
  if (sameType(subject.a.type, subject.resultType)) return subject.a;
  const inner = subject.definition(subject.a);
  return inner?.name === "bitcast" ? subject.become("bitcast", inner.operands) : undefined;
};

const compose: Simplification = (subject) => {
  const { operands } = subject.operation;
  const lanes = operands.map((operand) => subject.definition(operand));
  const whole = lanes[0]?.operands[0];
  if (whole === undefined || !sameType(whole.type, subject.resultType)) return undefined;
  const inOrder = lanes.every(
    (lane, position) =>
      lane?.name === "extract" && lane.attributes.lane === position && lane.operands[0] === whole,
  );
  return inOrder ? whole : undefined;
};

const extract: Simplification = (subject) => {
  const inner = subject.definition(subject.a);
  if (inner?.name !== "compose" || subject.operation.name !== "extract") return undefined;
  return inner.operands[subject.operation.attributes.lane];
};

const rules: { readonly [Name in OperationName]?: Simplification } = {
  add,
  sub,
  mul,
  fma,
  div,
  rem,
  floorDiv: div,
  floorMod: rem,
  neg: involution,
  abs: (subject) => {
    const inner = subject.definition(subject.a);
    if (inner?.name === "abs") return subject.a;
    return inner?.name === "neg" ? subject.become("abs", inner.operands) : undefined;
  },
  min: idempotent,
  max: idempotent,
  and,
  or,
  xor,
  not,
  shiftLeft: shift,
  shiftRight: shift,
  equal: reflexive(true),
  lessEqual: reflexive(true),
  greaterEqual: reflexive(true),
  notEqual: reflexive(false),
  less: reflexive(false),
  greater: reflexive(false),
  select,
  convert,
  bitcast,
  compose,
  extract,
  reverseBits: involution,
};
