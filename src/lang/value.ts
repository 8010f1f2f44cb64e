/**
 * @file `Value`: one number that only the device knows. Operators append a step to the kernel being traced.
 */
import type { SourcePosition } from "../errors.ts";
import type { IrConstant, Operand as IrOperand, Lanes, ValueType } from "../ir/nodes.ts";
import type { Attributes, OperationName } from "../ir/operations.ts";
import { fits } from "../types/convert.ts";
import {
  type ArithmeticType,
  type Bool,
  bool,
  type ElementType,
  type FloatType,
  type IntegerType,
  isArithmetic,
  isInteger,
  type StorageType,
} from "../types/types.ts";
import { capturePosition } from "./position.ts";
import { currentTracer, type Scope, traceError, tracer } from "./trace.ts";

/** What an operator takes besides a value: a number that the type can hold. */
export type Operand<T extends ElementType> = Value<T> | number | bigint;
/** A value whose element type TypeScript does not know: what components written for any type work with. */
// biome-ignore lint/suspicious/noExplicitAny: `Value` is invariant, so no single element type stands for all
export type AnyValue = Value<any>;
/** A condition. */
export type Condition = Value<Bool> | boolean;
/** Gate for operators: `this` must have a type that allows them. Structural, so that generic kernels check. */
interface Of<T extends ElementType> {
  readonly type: T;
}
type Integer = IntegerType;
type Logical = IntegerType | Bool;

const misuse =
  "a kernel value is known only on the device, and JavaScript cannot compute with it: use .add, .lt and the like for " +
  "operators, when() or select() for conditions, loop() for counted loops";

/**
 * Type of a `then` that looks like a promise's. TypeScript refuses conditions on promises, which are always true, and so
 * refuses conditions on kernel values.
 */
export type NoPromise = (fulfilled: (value: "a kernel value cannot be awaited") => unknown) => unknown;

/**
 * One number on the device, of element type `T`. Fixed from the moment it was made: later stores and assignments never
 * change it. Usable in the block where it was made and the blocks nested in it.
 */
export class Value<T extends ElementType> {
  /** Not there; its type makes `if (value)` and `value ? a : b` type errors, and what `await value` gives useless. */
  declare readonly then: NoPromise;
  /** Makes `Value` invariant in `T`. */
  declare readonly invariant: (type: T) => T;

  constructor(
    readonly type: T,
    /** @internal */ readonly ir: IrOperand,
    /** @internal */ readonly scope: Scope | undefined,
    /** @internal */ readonly position: SourcePosition | undefined,
  ) {}

  add(this: Of<ArithmeticType>, other: Operand<T>): Value<T> {
    return binary("add", this as Value<T>, other);
  }
  sub(this: Of<ArithmeticType>, other: Operand<T>): Value<T> {
    return binary("sub", this as Value<T>, other);
  }
  mul(this: Of<ArithmeticType>, other: Operand<T>): Value<T> {
    return binary("mul", this as Value<T>, other);
  }
  /** Floats: correctly rounded in f32 and f64. Integers: truncates; x/0 = x. */
  div(this: Of<ArithmeticType>, other: Operand<T>): Value<T> {
    return binary("div", this as Value<T>, other);
  }
  /** Remainder of {@link div}, with the dividend's sign; x%0 = 0. */
  rem(this: Of<Integer>, other: Operand<T>): Value<T> {
    return binary("rem", this as Value<T>, other);
  }
  /** Quotient rounded toward minus infinity; x/0 = x. */
  floorDiv(this: Of<Integer>, other: Operand<T>): Value<T> {
    return binary("floorDiv", this as Value<T>, other);
  }
  /** Remainder of {@link floorDiv}, with the divisor's sign; x mod 0 = 0. */
  floorMod(this: Of<Integer>, other: Operand<T>): Value<T> {
    return binary("floorMod", this as Value<T>, other);
  }
  /** Quotient rounded toward plus infinity, for operands that are not negative. */
  ceilDiv(this: Of<Integer>, other: Operand<T>): Value<T> {
    const self = this as Value<T>;
    const divisor = operandValue(other, self);
    const raised = binary("add", self, binary("sub", divisor, 1));
    return binary("floorDiv", raised, divisor);
  }
  neg(this: Of<ArithmeticType>): Value<T> {
    return unary("neg", this as Value<T>);
  }
  abs(this: Of<ArithmeticType>): Value<T> {
    return unary("abs", this as Value<T>);
  }
  /** The smaller; the number when one side is NaN. */
  min(this: Of<ArithmeticType>, other: Operand<T>): Value<T> {
    return binary("min", this as Value<T>, other);
  }
  /** The larger; the number when one side is NaN. */
  max(this: Of<ArithmeticType>, other: Operand<T>): Value<T> {
    return binary("max", this as Value<T>, other);
  }
  /** this · b + c, rounded once. */
  fma(this: Of<ArithmeticType>, b: Operand<T>, c: Operand<T>): Value<T> {
    const self = this as Value<T>;
    return operation("fma", self.type, [self, operandValue(b, self), operandValue(c, self)], {});
  }

  and(this: Of<Logical>, other: Operand<T> | boolean): Value<T> {
    return binary("and", this as Value<T>, other as Operand<T>);
  }
  or(this: Of<Logical>, other: Operand<T> | boolean): Value<T> {
    return binary("or", this as Value<T>, other as Operand<T>);
  }
  xor(this: Of<Logical>, other: Operand<T> | boolean): Value<T> {
    return binary("xor", this as Value<T>, other as Operand<T>);
  }
  not(this: Of<Logical>): Value<T> {
    return unary("not", this as Value<T>);
  }
  /** Shift count modulo the width. */
  shiftLeft(this: Of<Integer>, count: Operand<T>): Value<T> {
    return binary("shiftLeft", this as Value<T>, count);
  }
  /** Arithmetic for signed types, logical for unsigned; shift count modulo the width. */
  shiftRight(this: Of<Integer>, count: Operand<T>): Value<T> {
    return binary("shiftRight", this as Value<T>, count);
  }

  eq(other: Operand<T>): Value<Bool> {
    return compare("equal", this, other);
  }
  ne(other: Operand<T>): Value<Bool> {
    return compare("notEqual", this, other);
  }
  lt(other: Operand<T>): Value<Bool> {
    return compare("less", this, other);
  }
  le(other: Operand<T>): Value<Bool> {
    return compare("lessEqual", this, other);
  }
  gt(other: Operand<T>): Value<Bool> {
    return compare("greater", this, other);
  }
  ge(other: Operand<T>): Value<Bool> {
    return compare("greaterEqual", this, other);
  }
  isNaN(this: Of<FloatType>): Value<Bool> {
    return operation("isNaN", bool, [this as Value<T>], {});
  }

  /** Converts: floats round to nearest even, float→integer truncates and saturates, integers wrap. */
  to<U extends ElementType>(type: U): Value<U> {
    if ((type as ElementType) === this.type) return this as unknown as Value<U>;
    return operation("convert", type, [this], {});
  }
  /** The same bits as another type of the same width. */
  bitcast<U extends StorageType>(type: U): Value<U> {
    if (type.bits !== this.type.bits) {
      throw tracer().error(
        `bitcast from ${this.type.name} (${this.type.bits} bits) to ${type.name} (${type.bits} bits): widths must agree`,
      );
    }
    return operation("bitcast", type, [this], {});
  }

  /** @internal JavaScript's own operators end here. */
  [Symbol.toPrimitive](): never {
    throw traceError(currentTracer()?.kernelName, misuse, [capturePosition(), this.position]);
  }
  /** @internal */
  toJSON(): never {
    throw traceError(currentTracer()?.kernelName, misuse, [capturePosition(), this.position]);
  }
}

// Awaiting a value asks for `then`; the declared member has no run-time form, so define one that explains.
Object.defineProperty(Value.prototype, "then", {
  configurable: true,
  get(this: Value<ElementType>): never {
    throw traceError(
      currentTracer()?.kernelName,
      "a kernel value cannot be awaited; read arrays with `await array.read()` on the host instead",
      [capturePosition(), this.position],
    );
  },
});

/** A constant of a type. @throws TraceError if the type cannot hold it. */
export function constant<T extends ElementType>(type: T, value: number | bigint | boolean): Value<T> {
  return new Value(type, constantOperand(type, 1, value), undefined, undefined);
}

/** @internal A constant operand, checked. */
export function constantOperand(
  type: ElementType,
  lanes: Lanes,
  value: number | bigint | boolean,
): IrConstant {
  if (!fits(value, type)) {
    throw traceError(currentTracer()?.kernelName, `${type.name} cannot hold ${String(value)}`, [
      capturePosition(),
    ]);
  }
  let held: number | bigint | boolean = value;
  if (type.name === "i64" || type.name === "u64") held = BigInt(value);
  else if (type.name !== "bool") held = Number(value);
  return { kind: "constant", value: held, type: { element: type, lanes } };
}

/** @internal The IR operand of a value, checked to be usable here. */
export function use(value: {
  readonly ir: IrOperand;
  readonly scope: Scope | undefined;
  readonly position: SourcePosition | undefined;
}): IrOperand {
  const { scope } = value;
  if (scope !== undefined && !scope.open) {
    const root = rootOf(scope);
    const message = root.open
      ? `a value made inside ${scope.what} is used outside it; carry it out in a variable()`
      : "a value is used outside the kernel it was traced in";
    throw traceError(currentTracer()?.kernelName, message, [capturePosition(), value.position]);
  }
  if (scope !== undefined && rootOf(scope) !== tracer().root) {
    throw traceError(tracer().kernelName, "a value of another kernel is used here", [
      capturePosition(),
      value.position,
    ]);
  }
  return value.ir;
}

function rootOf(scope: Scope): Scope {
  let root = scope;
  while (root.parent !== undefined) root = root.parent;
  return root;
}

/** @internal Appends an operation with a scalar result. */
export function operation<Name extends OperationName, R extends ElementType>(
  name: Name,
  result: R,
  operands:
    | readonly Value<ElementType>[]
    | readonly Value<never>[]
    | readonly {
        readonly ir: IrOperand;
        readonly scope: Scope | undefined;
        readonly position: SourcePosition | undefined;
      }[],
  attributes: Attributes[Name],
): Value<R> {
  const trace = tracer();
  const ir = trace.emit(name, { element: result, lanes: 1 }, operands.map(use), attributes);
  return new Value(result, ir as IrOperand, trace.scope, trace.positions.at(-1));
}

/** @internal `other` as a value of the same type as `self`. */
export function operandValue<T extends ElementType>(other: Operand<T> | boolean, self: Value<T>): Value<T> {
  if (typeof other === "number" || typeof other === "bigint" || typeof other === "boolean") {
    return constant(self.type, other);
  }
  if (!(other instanceof Value)) {
    throw tracer().error(`expected a value of type ${self.type.name} or a number, got ${describe(other)}`);
  }
  if (other.type !== self.type) {
    throw traceError(
      tracer().kernelName,
      `${self.type.name} is wanted here and ${other.type.name} is given; convert with .to(${self.type.name})`,
      [capturePosition(), other.position],
    );
  }
  return other;
}

/** @internal A typed operand: a value of exactly `type`, or a number it can hold. */
export function typedOperand<T extends ElementType>(other: Operand<T> | boolean, type: T): Value<T> {
  if (other instanceof Value && other.type === type) return other;
  return operandValue(other, new Value(type, constantZero(type), undefined, undefined));
}

function constantZero(type: ElementType): IrConstant {
  const value = type.name === "bool" ? false : type.name === "i64" || type.name === "u64" ? 0n : 0;
  return { kind: "constant", value, type: { element: type, lanes: 1 } };
}

function describe(thing: unknown): string {
  return thing === null
    ? "null"
    : typeof thing === "object"
      ? (thing.constructor?.name ?? "an object")
      : typeof thing;
}

/** Names of the two-operand operators. */
export type BinaryName =
  | "add"
  | "sub"
  | "mul"
  | "div"
  | "rem"
  | "floorDiv"
  | "floorMod"
  | "min"
  | "max"
  | "and"
  | "or"
  | "xor"
  | "shiftLeft"
  | "shiftRight";
type UnaryName = "neg" | "abs" | "not";
type CompareName = "equal" | "notEqual" | "less" | "lessEqual" | "greater" | "greaterEqual";

const logicalNames: ReadonlySet<string> = new Set(["and", "or", "xor", "not"]);
const integerNames: ReadonlySet<string> = new Set(["rem", "floorDiv", "floorMod", "shiftLeft", "shiftRight"]);

function checkOperator(name: string, type: ElementType): void {
  const allowed = logicalNames.has(name)
    ? type === bool || (isArithmetic(type) && isInteger(type))
    : isArithmetic(type) && (!integerNames.has(name) || isInteger(type));
  if (allowed) return;
  const remedy =
    type === bool
      ? "select() turns a condition into a number"
      : "convert first, for example with .to(f32) or .to(i32)";
  throw tracer().error(`${type.name} has no ${name}; ${remedy}`);
}

/** A two-operand operator by name, checked: for components whose types are not known to TypeScript. */
export function binary<T extends ElementType>(
  name: BinaryName,
  self: Value<T>,
  other: Operand<T> | boolean,
): Value<T> {
  checkOperator(name, self.type);
  return operation(name, self.type, [self, operandValue(other, self)], {});
}

/** a · b + c of one type, rounded once: `Value.fma` where the type is not known to TypeScript. */
export function fusedMultiplyAdd<T extends ElementType>(a: Value<T>, b: Value<T>, c: Value<T>): Value<T> {
  checkOperator("fma", a.type);
  return operation("fma", a.type, [a, operandValue(b, a), operandValue(c, a)], {});
}

function unary<T extends ElementType>(name: UnaryName, self: Value<T>): Value<T> {
  checkOperator(name, self.type);
  return operation(name, self.type, [self], {});
}

function compare<T extends ElementType>(name: CompareName, self: Value<T>, other: Operand<T>): Value<Bool> {
  if (self.type === (bool as ElementType) && name !== "equal" && name !== "notEqual") {
    throw tracer().error("conditions have no order; combine them with .and, .or, .xor");
  }
  const result = operation(name, bool, [self, operandValue(other, self)], {});
  const trace = tracer();
  if (result.ir.kind === "value") trace.idleComparisons.set(result.ir.id, trace.positions.length - 1);
  return result;
}

/** @internal A condition as a value. */
export function conditionValue(condition: Condition): Value<Bool> {
  if (typeof condition === "boolean") return constant(bool, condition);
  if (!(condition instanceof Value) || condition.type !== bool) {
    const got =
      condition instanceof Value ? (condition as Value<ElementType>).type.name : describe(condition);
    throw tracer().error(`a condition (bool) is wanted here and ${got} is given; compare with .ne(0)`);
  }
  return condition;
}

/** @internal Scalar value type. */
export function scalarType(type: ElementType): ValueType {
  return { element: type, lanes: 1 };
}
