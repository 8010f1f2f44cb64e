/**
 * @file Builds kernels by hand, for the tests of everything that takes a {@link KernelIr}. No checks: tests need wrong
 * kernels too.
 */
import { bool, type ElementType, f32, i32, index, type StorageType } from "../types/types.ts";
import {
  type AnyOperation,
  type ArrayReference,
  type Block,
  type BufferParameter,
  type ConstantTable,
  type IrConstant,
  type IrValue,
  type KernelIr,
  type Lanes,
  type Operand,
  type Parameter,
  type RegisterRange,
  type RegisterVariable,
  type Role,
  type ScalarParameter,
  type SharedArray,
  type Statement,
  scalar,
  type TensorMapParameter,
  type ValueType,
} from "./nodes.ts";
import type { Attributes, BuiltinName, OperationName } from "./operations.ts";

/** What an array operation takes as its array. */
export type ArrayLike = BufferParameter | SharedArray | ConstantTable;

/** Names of operations whose operands and result share one type. */
type UniformName =
  | "add"
  | "sub"
  | "mul"
  | "mulHigh"
  | "div"
  | "rem"
  | "floorDiv"
  | "floorMod"
  | "neg"
  | "abs"
  | "min"
  | "max"
  | "fma"
  | "and"
  | "or"
  | "xor"
  | "not"
  | "shiftLeft"
  | "shiftRight"
  | "sqrt"
  | "floor"
  | "ceil"
  | "trunc"
  | "roundEven"
  | "reciprocal"
  | "exp2"
  | "log2"
  | "sin"
  | "cos"
  | "tanh"
  | "reciprocalSqrt"
  | "reverseBits";

type ComparisonName = "equal" | "notEqual" | "less" | "lessEqual" | "greater" | "greaterEqual";

function referenceTo(array: ArrayLike): ArrayReference {
  if ("kind" in array) return { kind: "buffer", parameter: array };
  if ("byteOffset" in array) return { kind: "shared", array };
  return { kind: "constant", table: array };
}

/** A scalar or splat constant. */
export function constant(
  element: ElementType,
  value: number | bigint | boolean,
  lanes: Lanes = 1,
): IrConstant {
  return { kind: "constant", value, type: { element, lanes } };
}

/** Appends statements to a kernel; statement n gets line n of "kernel.ts" unless {@link KernelBuilder.at} says else. */
export class KernelBuilder {
  readonly parameters: Parameter[] = [];
  readonly sharedArrays: SharedArray[] = [];
  readonly tables: ConstantTable[] = [];
  readonly variables: RegisterVariable[] = [];
  private readonly lines: number[] = [];
  private readonly body: Statement[] = [];
  private open: Statement[] = this.body;
  private valueCount = 0;
  private nextLine: number | undefined;
  private arenaBytes = 0;

  constructor(private readonly header: Partial<KernelIr> = {}) {}

  /** The line of the next statement alone. */
  at(line: number): this {
    this.nextLine = line;
    return this;
  }

  private site(): number {
    const site = this.lines.length;
    this.lines.push(this.nextLine ?? site + 1);
    this.nextLine = undefined;
    return site;
  }

  private value(type: ValueType): IrValue {
    return { kind: "value", id: this.valueCount++, type };
  }

  buffer(
    name: string,
    element: StorageType,
    access: BufferParameter["access"] = "readwrite",
    rank = 1,
  ): BufferParameter {
    const parameter: BufferParameter = {
      kind: "buffer",
      id: this.parameters.length,
      name,
      element,
      rank,
      access,
    };
    this.parameters.push(parameter);
    return parameter;
  }

  scalarParameter(name: string, element: ElementType): ScalarParameter {
    const parameter: ScalarParameter = { kind: "scalar", id: this.parameters.length, name, element };
    this.parameters.push(parameter);
    return parameter;
  }

  tensorMap(
    name: string,
    element: StorageType,
    box: readonly number[],
    swizzle: TensorMapParameter["swizzle"] = 0,
    windows = false,
  ): TensorMapParameter {
    const parameter: TensorMapParameter = {
      kind: "tensorMap",
      id: this.parameters.length,
      name,
      element,
      rank: windows ? 4 : box.length,
      box,
      swizzle,
      ...(windows && { windows }),
    };
    this.parameters.push(parameter);
    return parameter;
  }

  /** A shared array after those already there, 16-byte aligned. */
  shared(
    name: string,
    element: StorageType,
    length: number,
    purpose: SharedArray["purpose"] = "data",
  ): SharedArray {
    const byteOffset = Math.ceil(this.arenaBytes / 16) * 16;
    this.arenaBytes = byteOffset + (length * element.bits) / 8;
    const array: SharedArray = { id: this.sharedArrays.length, name, element, length, byteOffset, purpose };
    this.sharedArrays.push(array);
    return array;
  }

  table(name: string, element: StorageType, values: readonly (number | bigint)[]): ConstantTable {
    const table: ConstantTable = { id: this.tables.length, name, element, values };
    this.tables.push(table);
    return table;
  }

  variable(name: string, element: ElementType, count = 1, lanes: Lanes = 1): RegisterVariable {
    const variable: RegisterVariable = { id: this.variables.length, name, type: { element, lanes }, count };
    this.variables.push(variable);
    return variable;
  }

  /** Any operation with a result. */
  op<Name extends OperationName>(
    name: Name,
    type: ValueType,
    operands: readonly Operand[],
    attributes: Attributes[Name],
    registers: readonly RegisterRange[] = [],
  ): IrValue {
    const result = this.value(type);
    this.append(name, result, operands, attributes, registers);
    return result;
  }

  /** Any operation without a result. */
  effect<Name extends OperationName>(
    name: Name,
    operands: readonly Operand[],
    attributes: Attributes[Name],
    registers: readonly RegisterRange[] = [],
  ): void {
    this.append(name, undefined, operands, attributes, registers);
  }

  private append(
    name: OperationName,
    result: IrValue | undefined,
    operands: readonly Operand[],
    attributes: object,
    registers: readonly RegisterRange[],
  ): void {
    const operation = { kind: "operation", name, result, operands, registers, attributes, site: this.site() };
    this.open.push(operation as AnyOperation);
  }

  /** An operation whose result has the type of its first operand that is a value. */
  calculate(name: UniformName, ...operands: readonly Operand[]): IrValue {
    const typed = operands.find((operand) => operand.kind === "value") ?? operands[0]!;
    return this.op(name, typed.type, operands, {});
  }

  compare(name: ComparisonName, a: Operand, b: Operand): IrValue {
    return this.op(name, { element: bool, lanes: a.type.lanes }, [a, b], {});
  }

  select(condition: Operand, a: Operand, b: Operand): IrValue {
    return this.op("select", a.type, [condition, a, b], {});
  }

  convert(value: Operand, element: ElementType): IrValue {
    return this.op("convert", { element, lanes: value.type.lanes }, [value], {});
  }

  builtin(builtin: BuiltinName): IrValue {
    return this.op("builtin", scalar(i32), [], { builtin });
  }

  parameter(parameter: ScalarParameter): IrValue {
    return this.op("parameter", scalar(parameter.element), [], { parameter: parameter.id });
  }

  size(parameter: BufferParameter, dimension = 0): IrValue {
    return this.op("bufferSize", scalar(i32), [], { parameter: parameter.id, dimension });
  }

  stride(parameter: BufferParameter, dimension = 0): IrValue {
    return this.op("bufferStride", scalar(index), [], { parameter: parameter.id, dimension });
  }

  read(variable: RegisterVariable, element = 0): IrValue {
    return this.op("readRegister", variable.type, [], {}, [
      { variable, offset: element, count: 1, access: "read" },
    ]);
  }

  write(variable: RegisterVariable, value: Operand, element = 0): void {
    this.effect("writeRegister", [value], {}, [{ variable, offset: element, count: 1, access: "write" }]);
  }

  load(
    array: ArrayLike,
    position: Operand,
    options: { readonly lanes?: Lanes; readonly offset?: number; readonly cache?: "volatile" } = {},
  ): IrValue {
    const { lanes = 1, offset = 0, cache = "default" } = options;
    return this.op("load", { element: array.element, lanes }, [position], {
      array: referenceTo(array),
      offset,
      cache,
    });
  }

  store(array: ArrayLike, position: Operand, value: Operand, offset = 0): void {
    this.effect("store", [position, value], { array: referenceTo(array), offset, cache: "default" });
  }

  /** Runs `body` with a new innermost block. */
  block(body: () => void): Block {
    const outer = this.open;
    const statements: Statement[] = [];
    this.open = statements;
    body();
    this.open = outer;
    return { statements };
  }

  if(condition: Operand, then: () => void, otherwise: () => void = () => {}): void {
    const site = this.site();
    this.open.push({ kind: "if", condition, then: this.block(then), otherwise: this.block(otherwise), site });
  }

  loop(from: Operand, to: Operand, step: Operand, body: (counter: IrValue) => void): void {
    const site = this.site();
    const counter = this.value(from.type);
    this.open.push({ kind: "loop", counter, from, to, step, body: this.block(() => body(counter)), site });
  }

  while(condition: () => Operand, body: () => void): void {
    const site = this.site();
    let test: Operand = constant(bool, false);
    const before = this.block(() => {
      test = condition();
    });
    this.open.push({ kind: "while", condition: before, test, body: this.block(body), site });
  }

  jump(kind: "break" | "continue" | "exit"): void {
    this.open.push({ kind, site: this.site() });
  }

  roles(
    roles: readonly (Omit<Role, "body" | "registers"> & {
      readonly body: () => void;
      readonly registers?: Role["registers"];
    })[],
  ): void {
    const site = this.site();
    this.open.push({
      kind: "roles",
      roles: roles.map(({ body, registers, ...role }) => ({ ...role, registers, body: this.block(body) })),
      site,
    });
  }

  build(overrides: Partial<KernelIr> = {}): KernelIr {
    return {
      name: "test",
      parameters: this.parameters,
      shared: this.sharedArrays,
      sharedBytes: this.arenaBytes,
      sharedAlignment: 16,
      constants: this.tables,
      variables: this.variables,
      block: [32, 1, 1],
      cluster: undefined,
      subgroupSize: 32,
      blocksPerMultiprocessor: undefined,
      body: { statements: this.body },
      valueCount: this.valueCount,
      positions: this.lines.map((line) => ({ file: "kernel.ts", line, column: 1 })),
      ...this.header,
      ...overrides,
    };
  }
}

/** Types that tests write most. */
export const floatScalar: ValueType = scalar(f32);
export const intScalar: ValueType = scalar(i32);
export const boolScalar: ValueType = scalar(bool);
