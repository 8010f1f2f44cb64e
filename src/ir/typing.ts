/**
 * @file The typing rule of every operation: how many operands of which types, what result, which registers, and what
 * its attributes may say. One table, complete by type.
 */
import {
  bool,
  type ElementType,
  i32,
  index,
  isArithmetic,
  isFloat,
  isInteger,
  type TypeName,
  u32,
} from "../types/types.ts";
import type {
  AnyOperation,
  ArrayReference,
  KernelIr,
  Operand,
  OperationNode,
  Parameter,
  RegisterRange,
  SharedArray,
  ValueType,
} from "./nodes.ts";
import type { MatrixShape, OperationName, SharedMatrix } from "./operations.ts";
import { printType } from "./printer.ts";

/** What rules ask about the kernel. */
export interface TypingContext {
  readonly kernel: KernelIr;
  readonly parameters: ReadonlyMap<number, Parameter>;
}

/** Says what is wrong, or nothing. */
type Rule<Name extends OperationName> = (
  operation: OperationNode<Name>,
  context: TypingContext,
) => string | undefined;

/** What is wrong with an operation's types, registers or attributes; undefined when nothing is. */
export function typingError(operation: AnyOperation, context: TypingContext): string | undefined {
  // The table is indexed by the name that the operation has, which TypeScript cannot follow through a union.
  const rule = rules[operation.name] as Rule<OperationName> | undefined;
  if (rule === undefined) return `there is no operation ${String(operation.name)}`;
  return rule(operation as OperationNode<OperationName>, context);
}

/** The first complaint, if any. */
function first(...complaints: readonly (string | undefined)[]): string | undefined {
  return complaints.find((complaint) => complaint !== undefined);
}

function need(condition: boolean, complaint: () => string): string | undefined {
  return condition ? undefined : complaint();
}

function sameType(a: ValueType, b: ValueType): boolean {
  return a.element.name === b.element.name && a.lanes === b.lanes;
}

function isScalar(type: ValueType, ...names: readonly TypeName[]): boolean {
  return type.lanes === 1 && names.includes(type.element.name);
}

// Shapes of operations ------------------------------------------------------------------------------------------------

function operandCount(
  operation: AnyOperation | OperationNode,
  least: number,
  most: number = least,
): string | undefined {
  const count = operation.operands.length;
  const takes = least === most ? `${least}` : `${least} to ${most}`;
  return need(
    count >= least && count <= most,
    () => `${operation.name} takes ${takes} operands, not ${count}`,
  );
}

function registerCount(operation: OperationNode, count: number): string | undefined {
  return need(
    operation.registers.length === count,
    () => `${operation.name} takes ${count} register ranges, not ${operation.registers.length}`,
  );
}

function hasResult(operation: OperationNode): string | undefined {
  return need(operation.result !== undefined, () => `${operation.name} must have a result`);
}

function noResult(operation: OperationNode): string | undefined {
  return need(operation.result === undefined, () => `${operation.name} has no result`);
}

function resultIs(operation: OperationNode, type: ValueType): string | undefined {
  return (
    hasResult(operation) ??
    need(sameType(operation.result!.type, type), () => {
      return `${operation.name} gives ${printType(type)}; its result is declared ${printType(operation.result!.type)}`;
    })
  );
}

function operandIs(
  operation: OperationNode,
  position: number,
  ...names: readonly TypeName[]
): string | undefined {
  const type = operation.operands[position]!.type;
  return need(
    isScalar(type, ...names),
    () => `operand ${position} of ${operation.name} must be ${names.join(" or ")}, not ${printType(type)}`,
  );
}

function scalarOf(element: ElementType): ValueType {
  return { element, lanes: 1 };
}

function effectRule<Name extends OperationName>(
  operands: readonly (readonly TypeName[])[],
  more?: Rule<Name>,
): Rule<Name> {
  return (operation, context) =>
    first(noResult(operation), registerCount(operation, 0), operandCount(operation, operands.length)) ??
    first(...operands.map((names, position) => operandIs(operation, position, ...names))) ??
    more?.(operation, context);
}

// Arithmetic ----------------------------------------------------------------------------------------------------------

type Family = (type: ElementType) => boolean;

const arithmetic: Family = isArithmetic;
const floats: Family = (type) => isArithmetic(type) && isFloat(type);
const integers: Family = (type) => isArithmetic(type) && isInteger(type);
const logical: Family = (type) => integers(type) || type.name === "bool";
const words: Family = (type) => type.name === "i32" || type.name === "u32";
const words64: Family = (type) => integers(type) && type.name !== "index";
const comparable: Family = (type) => isArithmetic(type) || type.name === "bool";

function elementIn(operation: OperationNode, type: ElementType, family: Family): string | undefined {
  const advice = isArithmetic(type) ? "" : "; convert to an arithmetic type first";
  return need(family(type), () => `${operation.name} is not defined for ${type.name}${advice}`);
}

/** All operands have the result's type, whose element is of a family. */
function uniform<Name extends OperationName>(family: Family, operands: number): Rule<Name> {
  return (operation) =>
    first(hasResult(operation), operandCount(operation, operands), registerCount(operation, 0)) ??
    first(
      elementIn(operation, operation.result!.type.element, family),
      ...operation.operands.map((operand, position) => likeResult(operation, operand, position)),
    );
}

function likeResult(operation: OperationNode, operand: Operand, position: number): string | undefined {
  const { type } = operation.result!;
  return need(
    sameType(operand.type, type),
    () =>
      `operand ${position} of ${operation.name} is ${printType(operand.type)}, but the result is ${printType(type)}`,
  );
}

function compare<Name extends OperationName>(family: Family): Rule<Name> {
  return (operation) => {
    const [a, b] = operation.operands;
    return (
      first(hasResult(operation), operandCount(operation, 2), registerCount(operation, 0)) ??
      first(
        need(
          sameType(a!.type, b!.type),
          () => `${operation.name} compares ${printType(a!.type)} with ${printType(b!.type)}; convert one`,
        ),
        elementIn(operation, a!.type.element, family),
        resultIs(operation, { element: bool, lanes: a!.type.lanes }),
      )
    );
  };
}

function shift<Name extends OperationName>(): Rule<Name> {
  return (operation) => {
    const [value, count] = operation.operands;
    return (
      first(hasResult(operation), operandCount(operation, 2), registerCount(operation, 0)) ??
      first(
        elementIn(operation, value!.type.element, integers),
        likeResult(operation, value!, 0),
        need(integers(count!.type.element) && count!.type.lanes === value!.type.lanes, () => {
          return `a shift count is an integer for each lane, not ${printType(count!.type)}`;
        }),
      )
    );
  };
}

/** From one type to another, lane by lane. */
function mapping<Name extends OperationName>(
  from: Family,
  to: (source: ElementType, result: ElementType) => boolean,
): Rule<Name> {
  return (operation) => {
    const [source] = operation.operands;
    return (
      first(hasResult(operation), operandCount(operation, 1), registerCount(operation, 0)) ??
      first(
        elementIn(operation, source!.type.element, from),
        need(
          source!.type.lanes === operation.result!.type.lanes,
          () => `${operation.name} keeps the number of lanes`,
        ),
        need(to(source!.type.element, operation.result!.type.element), () => {
          return `${operation.name} takes ${printType(source!.type)} and cannot give ${printType(operation.result!.type)}`;
        }),
      )
    );
  };
}

/** Bits of a type in a register; undefined where that is nobody's business. */
function registerBits(type: ElementType): number | undefined {
  return type.name === "tf32" ? 32 : type.bits === 0 ? undefined : type.bits;
}

const convertible: Family = (type) => type.name !== "b1";

// Arrays --------------------------------------------------------------------------------------------------------------

const indexNames = ["i32", "u32", "index"] as const;
const integerNames = ["i32", "u32"] as const;

function arrayElement(array: ArrayReference): ElementType {
  return array.kind === "buffer"
    ? array.parameter.element
    : array.kind === "shared"
      ? array.array.element
      : array.table.element;
}

function arrayName(array: ArrayReference): string {
  return array.kind === "buffer"
    ? array.parameter.name
    : array.kind === "shared"
      ? array.array.name
      : array.table.name;
}

/** The array belongs to this kernel and may be accessed so. */
function arrayAccess(
  array: ArrayReference,
  access: "read" | "write" | "readwrite",
  { kernel }: TypingContext,
): string | undefined {
  switch (array.kind) {
    case "buffer": {
      const { parameter } = array;
      const allowed = parameter.access === "readwrite" || parameter.access === access;
      return first(
        need(
          kernel.parameters.includes(parameter),
          () => `buffer ${parameter.name} is not a parameter of this kernel`,
        ),
        need(allowed, () => {
          const asked = access === "read" ? "read" : access === "write" ? "written" : "read and written";
          return `parameter ${parameter.name} is ${parameter.access}-only and cannot be ${asked}`;
        }),
      );
    }
    case "shared":
      return sharedAccess(array.array, "data", kernel);
    case "constant":
      return first(
        need(
          kernel.constants.includes(array.table),
          () => `constant table ${array.table.name} is not part of this kernel`,
        ),
        need(access === "read", () => `constant table ${array.table.name} cannot be written`),
      );
    default:
      return array satisfies never;
  }
}

function sharedAccess(
  array: SharedArray,
  purpose: SharedArray["purpose"],
  kernel: KernelIr,
): string | undefined {
  return first(
    need(kernel.shared.includes(array), () => `shared array ${array.name} is not part of this kernel`),
    need(
      purpose === "data" || array.purpose === purpose,
      () => `shared array ${array.name} does not hold barriers`,
    ),
  );
}

function integerOffset(offset: number): string | undefined {
  return need(Number.isSafeInteger(offset), () => `offset ${offset} is not an integer`);
}

function moved(operation: OperationNode, array: ArrayReference, type: ValueType): string | undefined {
  const element = arrayElement(array);
  return first(
    need(
      type.element.name === element.name,
      () => `${arrayName(array)} holds ${element.name}; ${operation.name} moves ${printType(type)}`,
    ),
    need(
      type.lanes * element.bits <= 128,
      () => `${operation.name} moves ${type.lanes} x ${element.name}; at most 16 bytes go at once`,
    ),
  );
}

function barrierRule<
  Name extends "barrierInit" | "barrierArrive" | "barrierArriveExpect" | "barrierWait" | "copyAsyncArrive",
>(least: number, most: number = least): Rule<Name> {
  return (operation, { kernel }) =>
    first(noResult(operation), registerCount(operation, 0), operandCount(operation, least, most)) ??
    first(
      sharedAccess(operation.attributes.array, "barrier", kernel),
      integerOffset(operation.attributes.offset),
      ...operation.operands.map((_, position) =>
        position === 0
          ? operandIs(operation, position, ...indexNames)
          : operandIs(operation, position, ...integerNames),
      ),
    );
}

// Registers -----------------------------------------------------------------------------------------------------------

function rangeAccess(
  operation: OperationNode,
  position: number,
  access: RegisterRange["access"],
): string | undefined {
  const range = operation.registers[position]!;
  return need(
    range.access === access,
    () => `register range ${position} of ${operation.name} is ${access}, not ${range.access}`,
  );
}

function singleRegister(
  operation: OperationNode,
  access: RegisterRange["access"],
  type: ValueType,
): string | undefined {
  const range = operation.registers[0]!;
  return first(
    rangeAccess(operation, 0, access),
    need(range.count === 1, () => `${operation.name} touches one element of a variable, not ${range.count}`),
    need(sameType(type, range.variable.type), () => {
      return `variable ${range.variable.name} holds ${printType(range.variable.type)}, not ${printType(type)}`;
    }),
  );
}

/** Bits that one lane holds in a register range. */
function rangeBits(range: RegisterRange): number | undefined {
  const bits = registerBits(range.variable.type.element);
  return bits === undefined ? undefined : bits * range.variable.type.lanes * range.count;
}

/** Each of `lanes` threads holds its share of rows x columns elements. */
function fragment(
  operation: OperationNode,
  position: number,
  elements: number,
  element: ElementType,
  lanes: number,
): string | undefined {
  const range = operation.registers[position]!;
  const bits = registerBits(element);
  const held = rangeBits(range);
  const needed = bits === undefined ? undefined : (elements * bits) / lanes;
  return need(held === needed, () => {
    return `register range ${position} of ${operation.name} (${range.variable.name}) holds ${held} bits in each lane; ${elements} elements of ${element.name} need ${needed}`;
  });
}

function matrixRegisters(
  operation: OperationNode,
  {
    shape,
    a,
    b,
    accumulator,
  }: { shape: MatrixShape; a: ElementType; b: ElementType; accumulator: ElementType },
): string | undefined {
  const { m, n, k } = shape;
  // Volta's f16 m8n8k4 computes four products at once, one for each quad pair.
  const copies = m === 8 && n === 8 && k === 4 && a.name === "f16" ? 4 : 1;
  return first(
    fragment(operation, 0, m * n * copies, accumulator, 32),
    fragment(operation, 1, m * k * copies, a, 32),
    fragment(operation, 2, k * n * copies, b, 32),
  );
}

function threeFragments(operation: OperationNode): string | undefined {
  return (
    first(noResult(operation), operandCount(operation, 0), registerCount(operation, 3)) ??
    first(
      rangeAccess(operation, 0, "readwrite"),
      rangeAccess(operation, 1, "read"),
      rangeAccess(operation, 2, "read"),
    )
  );
}

function eightByEight<Name extends "loadMatrix" | "storeMatrix">(access: "read" | "write"): Rule<Name> {
  return (operation, { kernel }) => {
    const { array, count, offset } = operation.attributes;
    return (
      first(noResult(operation), operandCount(operation, 1), registerCount(operation, 1)) ??
      first(
        sharedAccess(array, "data", kernel),
        integerOffset(offset),
        operandIs(operation, 0, ...indexNames),
        rangeAccess(operation, 0, access),
        need(rangeBits(operation.registers[0]!) === 32 * count, () => {
          return `${operation.name} of ${count} matrices needs ${count} registers of 32 bits, not ${rangeBits(operation.registers[0]!)} bits`;
        }),
      )
    );
  };
}

function wmmaMemory<Name extends "wmmaLoad" | "wmmaStore">(
  access: "read" | "write",
  registers: "read" | "write",
): Rule<Name> {
  return (operation, context) => {
    const { array, offset } = operation.attributes;
    return (
      first(noResult(operation), operandCount(operation, 2), registerCount(operation, 1)) ??
      first(
        arrayAccess(array, access, context),
        integerOffset(offset),
        operandIs(operation, 0, ...indexNames),
        operandIs(operation, 1, ...integerNames),
        rangeAccess(operation, 0, registers),
      )
    );
  };
}

function sharedMatrix(matrix: SharedMatrix, kernel: KernelIr): string | undefined {
  return first(sharedAccess(matrix.array, "data", kernel), integerOffset(matrix.offset));
}

function warpgroupMma(
  operation: OperationNode<"warpgroupMma">,
  { kernel }: TypingContext,
): string | undefined {
  const { shape, a, accumulator, sharedA, sharedB } = operation.attributes;
  const indices = sharedA === undefined ? 1 : 2;
  const lanes = 128;
  return (
    first(
      noResult(operation),
      operandCount(operation, indices + 1),
      registerCount(operation, sharedA === undefined ? 2 : 1),
    ) ??
    first(
      ...Array.from({ length: indices }, (_, position) => operandIs(operation, position, ...indexNames)),
      operandIs(operation, indices, "bool"),
      rangeAccess(operation, 0, "readwrite"),
      fragment(operation, 0, shape.m * shape.n, accumulator, lanes),
      sharedA === undefined
        ? (rangeAccess(operation, 1, "read") ?? fragment(operation, 1, shape.m * shape.k, a, lanes))
        : sharedMatrix(sharedA, kernel),
      sharedMatrix(sharedB, kernel),
    )
  );
}

// Asynchronous copies -------------------------------------------------------------------------------------------------

function copyAsync(operation: OperationNode<"copyAsync">, context: TypingContext): string | undefined {
  const { target, targetOffset, source, sourceOffset, bytes } = operation.attributes;
  return (
    first(noResult(operation), registerCount(operation, 0), operandCount(operation, 2, 3)) ??
    first(
      need(
        bytes === 4 || bytes === 8 || bytes === 16,
        () => `copyAsync moves 4, 8 or 16 bytes, not ${String(bytes)}`,
      ),
      need(
        operation.attributes.cache !== "second" || bytes === 16,
        () => `copyAsync of ${bytes} bytes goes through the first-level cache; 16 bytes can pass it by`,
      ),
      sharedAccess(target, "data", context.kernel),
      arrayAccess(source, "read", context),
      need(source.kind === "buffer", () => "copyAsync copies from global memory"),
      need((bytes * 8) % arrayElement(source).bits === 0 && (bytes * 8) % target.element.bits === 0, () => {
        return `copyAsync of ${bytes} bytes does not move whole elements of ${arrayElement(source).name}`;
      }),
      integerOffset(targetOffset),
      integerOffset(sourceOffset),
      operandIs(operation, 0, ...indexNames),
      operandIs(operation, 1, ...indexNames),
      operation.operands.length === 3 ? operandIs(operation, 2, "i32") : undefined,
    )
  );
}

function tensorLoad(operation: OperationNode<"tensorLoad">, { kernel }: TypingContext): string | undefined {
  const { map, target, targetOffset, barrier, barrierOffset, multicast } = operation.attributes;
  const numbers = map.rank + (map.windows ? map.rank - 2 : 0);
  return (
    first(
      noResult(operation),
      registerCount(operation, 0),
      operandCount(operation, 2 + numbers + (multicast ? 1 : 0)),
    ) ??
    first(
      need(kernel.parameters.includes(map), () => `tensor map ${map.name} is not a parameter of this kernel`),
      sharedAccess(target, "data", kernel),
      sharedAccess(barrier, "barrier", kernel),
      integerOffset(targetOffset),
      integerOffset(barrierOffset),
      need(
        map.element.name === target.element.name,
        () => `tensor map ${map.name} holds ${map.element.name}; ${target.name} holds ${target.element.name}`,
      ),
      operandIs(operation, 0, ...indexNames),
      operandIs(operation, 1, ...indexNames),
      ...Array.from({ length: numbers }, (_, number) => operandIs(operation, 2 + number, "i32")),
      multicast ? operandIs(operation, 2 + numbers, "u32") : undefined,
    )
  );
}

function tensorStore(operation: OperationNode<"tensorStore">, { kernel }: TypingContext): string | undefined {
  const { map, source, sourceOffset } = operation.attributes;
  return (
    first(noResult(operation), registerCount(operation, 0), operandCount(operation, 1 + map.rank)) ??
    first(
      need(kernel.parameters.includes(map), () => `tensor map ${map.name} is not a parameter of this kernel`),
      need(
        map.rounding === undefined,
        () =>
          `tensor map ${map.name} rounds to ${map.rounding} on the way in; store through a map that does not round`,
      ),
      need(map.windows === undefined, () => `tensor map ${map.name} is of windows, which are only loaded`),
      sharedAccess(source, "data", kernel),
      integerOffset(sourceOffset),
      need(
        map.element.name === source.element.name,
        () => `tensor map ${map.name} holds ${map.element.name}; ${source.name} holds ${source.element.name}`,
      ),
      operandIs(operation, 0, ...indexNames),
      ...map.box.map((_, dimension) => operandIs(operation, 1 + dimension, "i32")),
    )
  );
}

function pending<Name extends "copyAsyncWait" | "tensorStoreWait" | "warpgroupWait">(
  most: number,
): Rule<Name> {
  return effectRule([], ({ name, attributes }) =>
    need(
      Number.isInteger(attributes.pending) && attributes.pending >= 0 && attributes.pending <= most,
      () => `${name} leaves 0 to ${most} groups pending, not ${attributes.pending}`,
    ),
  );
}

// Others --------------------------------------------------------------------------------------------------------------

function atomic(operation: OperationNode<"atomic">, context: TypingContext): string | undefined {
  const { array, offset } = operation.attributes;
  const kind = operation.attributes.operation;
  return (
    first(registerCount(operation, 0), operandCount(operation, kind === "compareExchange" ? 3 : 2)) ??
    first(
      arrayAccess(array, "readwrite", context),
      integerOffset(offset),
      operandIs(operation, 0, ...indexNames),
      ...operation.operands.slice(1).map((operand) => moved(operation, array, operand.type)),
      operation.result === undefined ? undefined : moved(operation, array, operation.result.type),
    )
  );
}

function shuffle(operation: OperationNode<"shuffle">, { kernel }: TypingContext): string | undefined {
  const { width } = operation.attributes;
  return (
    first(hasResult(operation), registerCount(operation, 0), operandCount(operation, 2)) ??
    first(
      likeResult(operation, operation.operands[0]!, 0),
      operandIs(operation, 1, ...integerNames),
      need(width >= 1 && width <= kernel.subgroupSize && Number.isInteger(Math.log2(width)), () => {
        return `a shuffle's width is a power of two up to the subgroup's ${kernel.subgroupSize} lanes, not ${width}`;
      }),
    )
  );
}

function subgroupReduce(operation: OperationNode<"subgroupReduce">): string | undefined {
  const kind = operation.attributes.operation;
  const bitwise = kind === "and" || kind === "or" || kind === "xor";
  return uniform<"subgroupReduce">(bitwise ? integers : arithmetic, 1)(operation, undefined as never);
}

function namedBarrier(
  operation: OperationNode<"namedBarrier">,
  { kernel }: TypingContext,
): string | undefined {
  const { threads } = operation.attributes;
  const [id] = operation.operands;
  const total = kernel.block[0] * kernel.block[1] * kernel.block[2];
  return first(
    need(
      threads >= 1 &&
        threads % kernel.subgroupSize === 0 &&
        threads <= Math.ceil(total / kernel.subgroupSize) * kernel.subgroupSize,
      () => {
        return `a named barrier counts a multiple of ${kernel.subgroupSize} threads up to the block's ${total}, not ${threads}`;
      },
    ),
    need(id!.kind === "value" || (Number(id!.value) >= 1 && Number(id!.value) <= 15), () => {
      return `named barriers are 1 to 15 (0 is the block barrier), not ${id!.kind === "constant" ? String(id!.value) : ""}`;
    }),
  );
}

function bufferFact(
  operation: OperationNode<"bufferSize" | "bufferStride">,
  { parameters }: TypingContext,
): string | undefined {
  const { parameter: id, dimension } = operation.attributes;
  const parameter = parameters.get(id);
  return (
    first(operandCount(operation, 0), registerCount(operation, 0)) ??
    first(
      need(
        parameter?.kind === "buffer",
        () => `${operation.name} asks about parameter ${id}, which is no buffer`,
      ),
      need(parameter?.kind !== "buffer" || (dimension >= 0 && dimension < parameter.rank), () => {
        return `${operation.name} asks for dimension ${dimension} of ${parameter?.name}`;
      }),
      resultIs(operation, scalarOf(operation.name === "bufferSize" ? i32 : index)),
    )
  );
}

function compose(operation: OperationNode<"compose">): string | undefined {
  const { result, operands } = operation;
  return (
    first(hasResult(operation), registerCount(operation, 0)) ??
    first(
      operandCount(operation, result!.type.lanes),
      ...operands.map((operand, position) =>
        need(sameType(operand.type, scalarOf(result!.type.element)), () => {
          return `operand ${position} of compose is ${printType(operand.type)}, but the vector is ${printType(result!.type)}`;
        }),
      ),
    )
  );
}

function extract(operation: OperationNode<"extract">): string | undefined {
  const { lane } = operation.attributes;
  const [source] = operation.operands;
  return (
    first(operandCount(operation, 1), registerCount(operation, 0)) ??
    first(
      need(
        Number.isInteger(lane) && lane >= 0 && lane < source!.type.lanes,
        () => `${printType(source!.type)} has no lane ${lane}`,
      ),
      resultIs(operation, scalarOf(source!.type.element)),
    )
  );
}

function bitcast(operation: OperationNode<"bitcast">): string | undefined {
  const [source] = operation.operands;
  return (
    first(hasResult(operation), operandCount(operation, 1), registerCount(operation, 0)) ??
    need(
      bitsOf(source!.type) !== undefined && bitsOf(source!.type) === bitsOf(operation.result!.type),
      () => {
        return `bitcast needs equal widths; ${printType(source!.type)} and ${printType(operation.result!.type)} do not agree`;
      },
    )
  );
}

/** Bits of a whole value, for types that have a memory form. */
function bitsOf(type: ValueType): number | undefined {
  return type.element.bits >= 8 ? type.element.bits * type.lanes : undefined;
}

function select(operation: OperationNode<"select">): string | undefined {
  return (
    first(hasResult(operation), operandCount(operation, 3), registerCount(operation, 0)) ??
    first(
      operandIs(operation, 0, "bool"),
      likeResult(operation, operation.operands[1]!, 1),
      likeResult(operation, operation.operands[2]!, 2),
    )
  );
}

function dot4(operation: OperationNode<"dot4">): string | undefined {
  return (
    first(operandCount(operation, 3), registerCount(operation, 0)) ??
    first(
      operandIs(operation, 0, "u32"),
      operandIs(operation, 1, "u32"),
      operandIs(operation, 2, "i32"),
      resultIs(operation, scalarOf(i32)),
    )
  );
}

function parameterRead(
  operation: OperationNode<"parameter">,
  { parameters }: TypingContext,
): string | undefined {
  const { parameter: id } = operation.attributes;
  const parameter = parameters.get(id);
  if (parameter?.kind !== "scalar") return `parameter ${id} is no scalar of this kernel`;
  return first(
    operandCount(operation, 0),
    registerCount(operation, 0),
    resultIs(operation, scalarOf(parameter.element)),
  );
}

function vote<Name extends OperationName>(result: ElementType): Rule<Name> {
  return (operation) =>
    first(operandCount(operation, 1), registerCount(operation, 0)) ??
    first(operandIs(operation, 0, "bool"), resultIs(operation, scalarOf(result)));
}

/** The table. */
const rules: { readonly [Name in OperationName]: Rule<Name> } = {
  add: uniform(arithmetic, 2),
  sub: uniform(arithmetic, 2),
  mul: uniform(arithmetic, 2),
  mulHigh: uniform(words64, 2),
  div: uniform(arithmetic, 2),
  rem: uniform(integers, 2),
  floorDiv: uniform(integers, 2),
  floorMod: uniform(integers, 2),
  neg: uniform(arithmetic, 1),
  abs: uniform(arithmetic, 1),
  min: uniform(arithmetic, 2),
  max: uniform(arithmetic, 2),
  fma: uniform(arithmetic, 3),
  and: uniform(logical, 2),
  or: uniform(logical, 2),
  xor: uniform(logical, 2),
  not: uniform(logical, 1),
  shiftLeft: shift(),
  shiftRight: shift(),
  equal: compare(comparable),
  notEqual: compare(comparable),
  less: compare(arithmetic),
  lessEqual: compare(arithmetic),
  greater: compare(arithmetic),
  greaterEqual: compare(arithmetic),
  isNaN: mapping(floats, (_source, result) => result.name === "bool"),
  select,
  sqrt: uniform(floats, 1),
  reciprocalSqrt: uniform(floats, 1),
  reciprocal: uniform(floats, 1),
  exp2: uniform(floats, 1),
  log2: uniform(floats, 1),
  sin: uniform(floats, 1),
  cos: uniform(floats, 1),
  tanh: uniform(floats, 1),
  floor: uniform(floats, 1),
  ceil: uniform(floats, 1),
  trunc: uniform(floats, 1),
  roundEven: uniform(floats, 1),
  convert: mapping(convertible, (_source, result) => convertible(result)),
  bitcast,
  popcount: mapping(words64, (source, result) => words(result) || result.name === source.name),
  leadingZeros: mapping(words64, (source, result) => words(result) || result.name === source.name),
  reverseBits: uniform(words64, 1),
  dot4,
  permuteBytes: (operation, context) =>
    uniform<"permuteBytes">((type) => type.name === "u32", 3)(operation, context) ??
    resultIs(operation, scalarOf(u32)),
  compose,
  extract,
  builtin: (operation) =>
    first(operandCount(operation, 0), registerCount(operation, 0), resultIs(operation, scalarOf(i32))),
  parameter: parameterRead,
  bufferSize: bufferFact,
  bufferStride: bufferFact,

  readRegister: (operation) =>
    first(hasResult(operation), operandCount(operation, 0), registerCount(operation, 1)) ??
    singleRegister(operation, "read", operation.result!.type),
  writeRegister: (operation) =>
    first(noResult(operation), operandCount(operation, 1), registerCount(operation, 1)) ??
    singleRegister(operation, "write", operation.operands[0]!.type),

  load: (operation, context) =>
    first(hasResult(operation), operandCount(operation, 1), registerCount(operation, 0)) ??
    first(
      arrayAccess(operation.attributes.array, "read", context),
      integerOffset(operation.attributes.offset),
      operandIs(operation, 0, ...indexNames),
      moved(operation, operation.attributes.array, operation.result!.type),
    ),
  store: (operation, context) =>
    first(noResult(operation), operandCount(operation, 2), registerCount(operation, 0)) ??
    first(
      arrayAccess(operation.attributes.array, "write", context),
      integerOffset(operation.attributes.offset),
      operandIs(operation, 0, ...indexNames),
      moved(operation, operation.attributes.array, operation.operands[1]!.type),
    ),
  atomic,

  shuffle,
  vote: vote(bool),
  ballot: (operation, context) =>
    vote<"ballot">(u32)(operation, context) ??
    need(context.kernel.subgroupSize <= 32, () => "ballot holds 32 lanes; these subgroups are wider"),
  subgroupReduce,
  electOne: (operation) =>
    first(operandCount(operation, 0), registerCount(operation, 0), resultIs(operation, scalarOf(bool))),

  blockBarrier: effectRule([]),
  namedBarrier: effectRule([["i32"]], namedBarrier),
  subgroupBarrier: effectRule([]),
  fence: effectRule([]),
  proxyFence: effectRule([]),
  barrierInitFence: effectRule([]),
  clusterBarrier: effectRule([], (_operation, { kernel }) =>
    need(
      kernel.cluster !== undefined,
      () => "clusterBarrier in a kernel without clusters; say how many blocks a cluster has",
    ),
  ),
  barrierInit: (operation, context) =>
    barrierRule<"barrierInit">(1)(operation, context) ??
    need(
      Number.isInteger(operation.attributes.count) &&
        operation.attributes.count >= 1 &&
        operation.attributes.count < 2 ** 20,
      () => {
        return `a barrier expects 1 to ${2 ** 20 - 1} arrivals, not ${operation.attributes.count}`;
      },
    ),
  barrierArrive: barrierRule(1, 2),
  barrierArriveExpect: barrierRule(2),
  barrierWait: barrierRule(2),

  copyAsync,
  copyAsyncCommit: effectRule([]),
  copyAsyncWait: pending(2 ** 20),
  copyAsyncArrive: barrierRule(1),
  tensorLoad,
  tensorStore,
  tensorStoreCommit: effectRule([]),
  tensorStoreWait: pending(2 ** 20),
  prefetchTensorMap: effectRule([], (operation, { kernel }) =>
    need(
      kernel.parameters.includes(operation.attributes.map),
      () => `tensor map ${operation.attributes.map.name} is not a parameter of this kernel`,
    ),
  ),

  loadMatrix: eightByEight("write"),
  storeMatrix: eightByEight("read"),
  mma: (operation) => threeFragments(operation) ?? matrixRegisters(operation, operation.attributes),
  wmmaLoad: wmmaMemory("read", "write"),
  wmmaStore: wmmaMemory("write", "read"),
  wmmaMma: threeFragments,
  warpgroupFence: effectRule([]),
  warpgroupMma,
  warpgroupCommit: effectRule([]),
  warpgroupWait: pending(7),

  print: (operation) =>
    noResult(operation) ??
    need(operation.attributes.parts.length === operation.operands.length + 1, () => {
      return `print has ${operation.attributes.parts.length} texts around ${operation.operands.length} operands`;
    }),
  assert: effectRule([["bool"]]),
};
