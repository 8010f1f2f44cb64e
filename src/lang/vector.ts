/**
 * @file `Vector`: 2 to 16 numbers of one type in at most 16 bytes, the unit of wide memory accesses and packed arithmetic.
 */
import type { SourcePosition } from "../errors.ts";
import type { Operand as IrOperand, IrValue, Lanes, ValueType } from "../ir/nodes.ts";
import type { Attributes, OperationName } from "../ir/operations.ts";
import { type ArithmeticType, type ElementType, isArithmetic } from "../types/types.ts";
import { capturePosition } from "./position.ts";
import { type Scope, traceError, tracer } from "./trace.ts";
import {
  type AnyValue,
  constantOperand,
  type NoPromise,
  type Operand,
  operandValue,
  use,
  Value,
} from "./value.ts";

/** Lanes of a vector. */
export type VectorLanes = Exclude<Lanes, 1>;

/** Several numbers of one type; operators work lane by lane. */
export class Vector<T extends ElementType, N extends VectorLanes = VectorLanes> {
  declare readonly then: NoPromise;
  declare readonly invariant: (type: T) => T;

  constructor(
    readonly type: T,
    readonly lanes: N,
    /** @internal */ readonly ir: IrOperand,
    /** @internal */ readonly scope: Scope | undefined,
    /** @internal */ readonly position: SourcePosition | undefined,
  ) {}

  /** One lane, by compile-time number. */
  at(lane: number): Value<T> {
    if (!Number.isInteger(lane) || lane < 0 || lane >= this.lanes) {
      throw tracer().error(`lane ${lane} of a vector of ${this.lanes}; lanes are 0 to ${this.lanes - 1}`);
    }
    const trace = tracer();
    const ir = trace.emit("extract", { element: this.type, lanes: 1 }, [use(this)], { lane });
    return new Value(this.type, ir as IrValue, trace.scope, trace.positions.at(-1));
  }
  /** All lanes as values, lane 0 first. */
  elements(): Value<T>[] {
    return Array.from({ length: this.lanes }, (_, lane) => this.at(lane));
  }
  /** Applies `body` to each lane. */
  map<U extends ElementType>(body: (value: Value<T>, lane: number) => Value<U>): Vector<U, N> {
    return vector(...this.elements().map(body)) as Vector<U, N>;
  }
  add(this: { readonly type: ArithmeticType }, other: Vector<T, N> | Operand<T>): Vector<T, N> {
    return elementwise("add", this as Vector<T, N>, [other]);
  }
  sub(this: { readonly type: ArithmeticType }, other: Vector<T, N> | Operand<T>): Vector<T, N> {
    return elementwise("sub", this as Vector<T, N>, [other]);
  }
  mul(this: { readonly type: ArithmeticType }, other: Vector<T, N> | Operand<T>): Vector<T, N> {
    return elementwise("mul", this as Vector<T, N>, [other]);
  }
  min(this: { readonly type: ArithmeticType }, other: Vector<T, N> | Operand<T>): Vector<T, N> {
    return elementwise("min", this as Vector<T, N>, [other]);
  }
  max(this: { readonly type: ArithmeticType }, other: Vector<T, N> | Operand<T>): Vector<T, N> {
    return elementwise("max", this as Vector<T, N>, [other]);
  }
  /** this · b + c, rounded once per lane. */
  fma(
    this: { readonly type: ArithmeticType },
    b: Vector<T, N> | Operand<T>,
    c: Vector<T, N> | Operand<T>,
  ): Vector<T, N> {
    return elementwise("fma", this as Vector<T, N>, [b, c]);
  }
  /** Converts each lane as `Value.to` does. The result must still fit 16 bytes. */
  to<U extends ElementType>(type: U): Vector<U, N> {
    if ((type as ElementType) === this.type) return this as unknown as Vector<U, N>;
    return vectorOperation("convert", type, this.lanes, [this], {});
  }
  /** The same bits as a vector (or, with 1 lane, a value) of another type. */
  bitcast<U extends ElementType>(type: U, lanes: 1): Value<U>;
  bitcast<U extends ElementType, M extends VectorLanes>(type: U, lanes: M): Vector<U, M>;
  bitcast<U extends ElementType>(type: U, lanes: Lanes): Value<U> | Vector<U> {
    if (type.bits * lanes !== this.type.bits * this.lanes) {
      throw tracer().error(
        `bitcast from ${this.lanes} x ${this.type.name} to ${lanes} x ${type.name}: widths must agree`,
      );
    }
    const trace = tracer();
    const ir = trace.emit("bitcast", { element: type, lanes }, [use(this)], {});
    return wrap({ element: type, lanes }, ir as IrValue) as unknown as Value<U> | Vector<U>;
  }
  /** @internal */
  [Symbol.toPrimitive](): never {
    throw traceError(
      undefined,
      "a kernel vector is known only on the device; JavaScript cannot compute with it",
      [capturePosition(), this.position],
    );
  }
}

/** A vector whose element type TypeScript does not know. */
// biome-ignore lint/suspicious/noExplicitAny: `Vector` is invariant, so no single element type stands for all
export type AnyVector = Vector<any>;

/** A vector of the given values, lane 0 first; all of one type, 2, 4, 8 or 16 of them in at most 16 bytes. */
export function vector<T extends ElementType>(...values: readonly Value<T>[]): Vector<T> {
  const [first] = values;
  const lanes = values.length;
  if (lanes !== 2 && lanes !== 4 && lanes !== 8 && lanes !== 16) {
    throw tracer().error(`a vector has 2, 4, 8 or 16 lanes, not ${lanes}`);
  }
  return vectorOperation(
    "compose",
    first.type,
    lanes,
    values.map((value) => operandValue(value, first)),
    {},
  );
}

/** A vector with the same number in every lane. */
export function splat<T extends ElementType, N extends VectorLanes>(
  type: T,
  lanes: N,
  value: Operand<T>,
): Vector<T, N> {
  if (typeof value === "number" || typeof value === "bigint") {
    return new Vector(type, lanes, constantOperand(type, lanes, value), undefined, undefined);
  }
  return vectorOperation(
    "compose",
    type,
    lanes,
    Array.from({ length: lanes }, () => value),
    {},
  );
}

/** The bits of a scalar seen as a vector: a u32 as two f16, say. */
export function unpack<T extends ElementType, N extends VectorLanes>(
  word: AnyValue,
  type: T,
  lanes: N,
): Vector<T, N> {
  if (type.bits * lanes !== word.type.bits) {
    throw tracer().error(
      `${word.type.name} has ${word.type.bits} bits and ${lanes} x ${type.name} has ${type.bits * lanes}`,
    );
  }
  return vectorOperation("bitcast", type, lanes, [word], {});
}

/** @internal A value or vector object for an IR result. */
export function wrap(type: ValueType, ir: IrOperand): Value<ElementType> | Vector<ElementType> {
  const trace = tracer();
  return type.lanes === 1
    ? new Value(type.element, ir, trace.scope, trace.positions.at(-1))
    : new Vector(type.element, type.lanes, ir, trace.scope, trace.positions.at(-1));
}

/** @internal */
export function vectorOperation<Name extends OperationName, T extends ElementType, N extends VectorLanes>(
  name: Name,
  type: T,
  lanes: N,
  operands: readonly {
    readonly ir: IrOperand;
    readonly scope: Scope | undefined;
    readonly position: SourcePosition | undefined;
  }[],
  attributes: Attributes[Name],
): Vector<T, N> {
  const trace = tracer();
  if (type.bits * lanes > 128) throw trace.error(`${lanes} x ${type.name} is wider than 16 bytes`);
  const ir = trace.emit(name, { element: type, lanes }, operands.map(use), attributes);
  return new Vector(type, lanes, ir as IrValue, trace.scope, trace.positions.at(-1));
}

function elementwise<T extends ElementType, N extends VectorLanes>(
  name: "add" | "sub" | "mul" | "min" | "max" | "fma",
  self: Vector<T, N>,
  others: readonly (Vector<T, N> | Operand<T>)[],
): Vector<T, N> {
  const type: ElementType = self.type;
  if (!isArithmetic(type)) throw tracer().error(`${self.type.name} has no ${name}; convert first`);
  const operands = others.map((other) => {
    if (!(other instanceof Vector)) return splat(self.type, self.lanes, other);
    if (other.type !== self.type || other.lanes !== self.lanes) {
      throw traceError(
        tracer().kernelName,
        `${self.lanes} x ${self.type.name} and ${other.lanes} x ${other.type.name} do not go together`,
        [capturePosition(), other.position],
      );
    }
    return other;
  });
  return vectorOperation(name, self.type, self.lanes, [self, ...operands], {});
}
