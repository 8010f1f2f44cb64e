/**
 * @file The problem: which matrices, how they lie, in which types they are multiplied. Everything that can be wrong with
 * the arguments is said here, before anything reaches a device.
 */
import { ArgumentError, ShapeError, TypeMismatchError, UnsupportedError } from "../errors.ts";
import {
  bf16,
  byteSize,
  type ElementType,
  f16,
  f32,
  f64,
  i32,
  i64,
  isFloat,
  isInteger,
  type StorageType,
  tf32,
  u32,
  u64,
} from "../lang/index.ts";
import { type Device, DeviceArray, repeatsElements } from "../runtime/array.ts";
import { elementArray, elementOperand, type ProductElements, productElements } from "./algebras/matrix.ts";
import {
  batchShape,
  type OuterDimensions,
  resultShape,
  type VectorOperands,
  vectorAs,
  withVectorDimensions,
} from "./batch.ts";
import { checkExtras, commonAlignment } from "./extras.ts";
import { denseLayout, factsOf, streamsOf } from "./layouts/layout.ts";
import { multipliedType } from "./multiplied-type.ts";
import type { OperatorTypes } from "./operators/operator.ts";
import type { InputOperand, MatrixSource } from "./source.ts";
import type { GivenTransforms } from "./transforms.ts";

/** A dense matrix of a problem. */
export interface MatrixOperand extends InputOperand {
  readonly array: DeviceArray;
}

/** D = alpha · A · B + beta · C with A m x k and B k x n, for each matrix of a batch. */
export interface Problem {
  readonly device: Device;
  /** Shape of the batch; empty where there is none. */
  readonly outer: readonly number[];
  readonly vectors: VectorOperands;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly a: InputOperand;
  readonly b: InputOperand;
  readonly types: OperatorTypes;
  /** What elements are, where they are no single numbers. */
  readonly elements: ProductElements | undefined;
  /** Type of D where none is given. */
  readonly outputType: StorageType;
}

/**
 * How a matrix, or each matrix of a batch, lies in its array. A matrix of one column whose elements are neighbours lies
 * either way; `thin` says which is meant.
 * @throws ShapeError unless it has at least rank 2 and neighbours along one of the last dimensions
 */
export function matrixOperand(
  array: DeviceArray,
  name: string,
  thin: "row" | "column" = "row",
): MatrixOperand {
  const { type, offset, rank } = array;
  if (rank < 2) {
    throw new ShapeError(
      `gemm: ${name} is a matrix (rank 2), a batch of them or a vector; ${array.label} has rank ${rank}`,
    );
  }
  const [rows, columns] = array.shape.slice(-2);
  const [down, across] = array.strides.slice(-2);
  const outer = { shape: array.shape.slice(0, -2), strides: array.strides.slice(0, -2) };
  // Along a dimension with one element the stride means nothing.
  const column = thin === "column" && columns <= 1 && rows > 1 && down === 1;
  const rowMajor = !column && (across === 1 || columns <= 1);
  const columnMajor = !rowMajor && (down === 1 || rows <= 1);
  if (!rowMajor && !columnMajor) {
    throw new ShapeError(
      `gemm: ${name} (${array.label}, strides ${down}, ${across}) has neighbouring elements along neither dimension; copy() of tilewright/array-ops makes a contiguous matrix of it`,
    );
  }
  const major = rowMajor ? "row" : "column";
  const [lines, length, stride] = rowMajor ? [rows, columns, down] : [columns, rows, across];
  const steps = outer.strides.filter((_, dimension) => outer.shape[dimension] > 1);
  for (const step of lines > 1 ? [stride, ...steps] : steps) {
    if (step >= 0) continue;
    throw new ShapeError(
      `gemm: ${name} (${array.label}) runs backwards (stride ${step}); copy() of tilewright/array-ops turns it round`,
    );
  }
  const leading = lines <= 1 ? Math.max(length, 1) : stride;
  const size = byteSize(type);
  const bytes = [offset * size, ...(lines <= 1 ? [] : [leading * size]), ...steps.map((step) => step * size)];
  const alignment = Math.max(size, commonAlignment(bytes));
  const { label } = array;
  return {
    array,
    label,
    shape: [rows, columns],
    outer,
    type,
    layout: denseLayout(major),
    leading,
    alignment,
    extras: [],
  };
}

/** What the caller may say about types. */
export interface TypeChoices {
  readonly accumulate?: ElementType | undefined;
  readonly compute?: ElementType | undefined;
}

/**
 * The types that A and B are multiplied and summed in: 16-bit floats sum in f32, 8-bit floats are widened to f16, small
 * integers sum in i32, mixed operands meet in the wider type.
 * @throws TypeMismatchError for pairs without a common type, UnsupportedError for sums that would lose what they hold
 */
export function operatorTypes(a: StorageType, b: StorageType, choices: TypeChoices): OperatorTypes {
  const { accumulate, compute } = choices;
  if (isFloat(a) !== isFloat(b)) {
    throw new TypeMismatchError(
      `gemm: A is ${a.name} and B is ${b.name}; convert() of tilewright/array-ops or a transform such as (x) => x.to(f16) brings them to one kind of number`,
    );
  }
  const types = isFloat(a) ? floatTypes(a, b, compute) : integerTypes(a, b);
  if (compute !== undefined && types.a !== compute) {
    throw new UnsupportedError(
      `gemm: ${a.name}·${b.name} cannot be multiplied in ${compute.name}; tf32 is for f32 operands`,
    );
  }
  if (accumulate === undefined || accumulate === types.accumulator) return types;
  const allowed = types.a === f16 && types.b === f16 ? [f16, f32] : [types.accumulator];
  if (!(allowed as readonly ElementType[]).includes(accumulate) && !widens(types.accumulator, accumulate)) {
    throw new UnsupportedError(
      `gemm: ${a.name}·${b.name} sums in ${allowed.map((type) => type.name).join(" or ")}, not in ${accumulate.name}`,
    );
  }
  return { ...types, accumulator: accumulate };
}

/** Sums that a wider type than usual can hold just as well. */
function widens(from: ElementType, to: ElementType): boolean {
  return (from === f32 && to === f64) || (from === i32 && to === i64) || (from === u32 && to === u64);
}

function floatTypes(a: StorageType, b: StorageType, compute: ElementType | undefined): OperatorTypes {
  if (compute === tf32 && a === f32 && b === f32) return { a: tf32, b: tf32, accumulator: f32 };
  if (compute === f16 || compute === bf16 || compute === f32 || compute === f64)
    return { a: compute, b: compute, accumulator: compute === f64 ? f64 : f32 };
  const narrow = (type: StorageType): StorageType => (type.bits === 8 ? f16 : type);
  const [left, right] = [narrow(a), narrow(b)];
  if (left === right) return { a: left, b: right, accumulator: left === f64 ? f64 : f32 };
  const common = left === f64 || right === f64 ? f64 : f32;
  return { a: common, b: common, accumulator: common };
}

function integerTypes(a: StorageType, b: StorageType): OperatorTypes {
  if (!isInteger(a) || !isInteger(b))
    throw new TypeMismatchError(`gemm: no product of ${a.name} and ${b.name}`);
  if (a.bits === 8 && b.bits === 8) return { a, b, accumulator: i32 };
  if (a.bits < 32 && b.bits < 32) return { a, b, accumulator: i32 };
  if (a !== b) {
    throw new TypeMismatchError(
      `gemm: A is ${a.name} and B is ${b.name}; convert() of tilewright/array-ops brings them to one type`,
    );
  }
  return { a, b, accumulator: a };
}

/** A or B as an operand, and the device that it is on. */
function inputOperand(
  given: DeviceArray | MatrixSource,
  name: "A" | "B",
): { readonly operand: InputOperand; readonly device: Device | undefined } {
  if (given instanceof DeviceArray) {
    given.check(`gemm: ${name}`);
    const matrix = vectorAs(name === "A" ? "row" : "column", given, name);
    return { operand: matrixOperand(matrix, name, "column"), device: given.device };
  }
  if (typeof given !== "object" || given === null || !("layout" in given)) {
    throw new ArgumentError(
      `gemm: ${name} is a device array or a structured matrix such as diagonal(vector), not ${String(given)}`,
    );
  }
  given.array?.check(`gemm: ${name}`);
  return { operand: given, device: given.device };
}

/** Checks A and B and how they go together. */
export function problemOf(
  a: DeviceArray | MatrixSource,
  b: DeviceArray | MatrixSource,
  choices: TypeChoices & { readonly transforms?: GivenTransforms; readonly grouped?: boolean },
): Problem {
  const [left, right] = [inputOperand(a, "A"), inputOperand(b, "B")];
  const device = left.device ?? right.device;
  if (device === undefined) {
    throw new ArgumentError(
      `gemm: A (${a.label}) and B (${b.label}) are on no device; one of them must be, to say where the product is made`,
    );
  }
  for (const { device: other } of [left, right]) {
    if (other === undefined || other === device) continue;
    throw new ArgumentError(
      `gemm: A is on ${device.name} and B on ${other.name}; both must be on one device`,
    );
  }
  checkExtras("A", left.operand.extras, device);
  checkExtras("B", right.operand.extras, device);
  const [m, k] = left.operand.shape;
  const [inner, n] = right.operand.shape;
  if (k !== inner) {
    throw new ShapeError(
      `gemm: A is ${m} x ${k} and B is ${inner} x ${n}; A's columns must equal B's rows${hintTransposed(m, k, inner, n)}`,
    );
  }
  const { transforms = {} } = choices;
  const outer = batchShape(left.operand, right.operand);
  const where = { facts: device.facts, batched: outer.length > 0 || choices.grouped === true };
  const types = operatorTypes(
    multipliedType(transforms.a?.globalToShared, a.type, where),
    multipliedType(transforms.b?.globalToShared, b.type, where),
    choices,
  );
  const outputType = outputTypeOf(a.type, b.type, types);
  const vectors = { a: isVector(a), b: isVector(b) };
  const elements = productElements(left.operand, right.operand);
  return { device, outer, vectors, m, n, k, a: left.operand, b: right.operand, types, elements, outputType };
}

function isVector(given: DeviceArray | MatrixSource): boolean {
  return given instanceof DeviceArray && given.rank === 1;
}

/** Type of a D that is not given. */
export function outputTypeOf(a: StorageType, b: StorageType, types: OperatorTypes): StorageType {
  if (isFloat(a) && a === b && a.bits > 8) return a;
  return (types.accumulator === f32 && types.a === f16 ? f16 : types.accumulator) as StorageType;
}

function hintTransposed(m: number, k: number, inner: number, n: number): string {
  if (k === n) return " (b.transposed would fit)";
  if (m === inner) return " (a.transposed would fit)";
  return "";
}

/** Shape of C and D: the batch, rows and columns without those of vectors, and the components of an algebra's elements. */
export function resultExtents({ outer, m, n, vectors, elements }: Problem): readonly number[] {
  return [
    ...resultShape(outer, m, n, vectors),
    ...(elements === undefined ? [] : [elements.algebra.dimension]),
  ];
}

/** Checks C or D: an array of the product's shape on the same device. C may be one matrix for all of a batch. */
export function resultOperand(
  given: DeviceArray | MatrixSource,
  name: "C" | "D",
  problem: Problem,
): MatrixOperand {
  const { outer, vectors, elements } = problem;
  const array = given instanceof DeviceArray ? given : storedArray(given, name, elements);
  array.check(`gemm: ${name}`);
  if (array.device !== problem.device) {
    throw new ArgumentError(
      `gemm: ${name} is on ${array.device.name}, A and B on ${problem.device.name}; all must be on one device`,
    );
  }
  if (!(given instanceof DeviceArray) && elements === undefined) {
    checkStructured(given, name, problem);
    return { ...given, array };
  }
  const shape = resultExtents(problem);
  const missing = shape.length - array.rank;
  const fits = (extent: number, dimension: number): boolean =>
    array.shape[dimension - missing] === extent ||
    (name === "C" && dimension < outer.length && [1, undefined].includes(array.shape[dimension - missing]));
  if (missing < 0 || (missing > 0 && name === "D") || !shape.every(fits)) {
    throw new ShapeError(`gemm: ${name} must be ${shape.join(" x ")} like the product; it is ${array.label}`);
  }
  if (name === "D") checkOwnElements(array);
  if (elements !== undefined) return elementOperand(elements.algebra, array, name);
  return matrixOperand(withVectorDimensions(array, vectors), name);
}

/** @throws ShapeError unless a structured C or D is the product's m x n, of which there is one */
function checkStructured({ shape, label }: MatrixSource, name: "C" | "D", { m, n, outer }: Problem): void {
  if (outer.length === 0 && shape[0] === m && shape[1] === n) return;
  const wanted = [...outer, m, n].join(" x ");
  throw new ShapeError(
    `gemm: ${name} must be ${wanted} like the product; it is ${shape.join(" x ")} of ${label}`,
  );
}

/**
 * The array of a C or D that is given as a matrix: of an algebra's elements as they are stored, or structured, every element
 * of which must be there.
 */
function storedArray(
  given: MatrixSource,
  name: "C" | "D",
  elements: ProductElements | undefined,
): DeviceArray {
  const { label, array, layout } = given;
  if (elements !== undefined || given.elements !== undefined) return elementArray(given, name, elements);
  const stored = layout.position !== undefined && layout.counts === undefined;
  if (array === undefined || !(stored || factsOf(layout).keepsOthers === true)) {
    throw new UnsupportedError(
      `gemm: ${name} (${label}, ${layout.name}) has elements that are stored nowhere; give an array`,
    );
  }
  return array;
}

/** D's lines and matrices must not run into each other: each element is written by one thread. */
function checkOwnElements(array: DeviceArray): void {
  if (!repeatsElements(array)) return;
  throw new ShapeError(
    `gemm: D (${array.label}, strides ${array.strides.join(", ")}) has lines or matrices that hold elements of each other: they overlap`,
  );
}

function outerOf({ outer }: MatrixOperand): OuterDimensions {
  return outer ?? { shape: [], strides: [] };
}

/** The bytes that an array of any rank spans in its allocation. */
function arraySpan({ shape, strides, type, offset }: DeviceArray): readonly [number, number] {
  const size = byteSize(type);
  if (shape.includes(0)) return [0, 0];
  const last = shape.reduce((sum, extent, dimension) => sum + (extent - 1) * strides[dimension], offset);
  return [offset * size, (last + 1) * size];
}

function isDense(operand: InputOperand): operand is MatrixOperand {
  const { layout } = operand;
  return operand.array !== undefined && (factsOf(layout).movement === "box" || layout.streams !== undefined);
}

/** Whether the components of an element lie in matrices of their own. */
function inPlanes({ layout }: MatrixOperand): boolean {
  return streamsOf(layout).length > 1;
}

/**
 * Whether two matrices share memory. Interleaved dense matrices of one leading dimension are told apart; of a structured
 * one the whole allocation counts as its memory, or all that its array spans if its elements are read in runs.
 */
export function overlap(x: MatrixOperand, y: InputOperand): boolean {
  const { allocation } = x.array;
  const extras = y.extras.some((extra) => extra instanceof DeviceArray && extra.allocation === allocation);
  if (extras || y.array?.allocation !== allocation) return extras;
  if (!isDense(y) && factsOf(y.layout).movement !== "run") return true;
  const [first, last] = arraySpan(x.array);
  const [begin, end] = arraySpan(y.array);
  if (first >= end || begin >= last) return false;
  if (!isDense(x) || !isDense(y) || inPlanes(x) || inPlanes(y)) return true;
  const sameLines = x.layout.major === y.layout.major && x.leading === y.leading && x.type === y.type;
  const ofLines = [x, y].every((one) => outerOf(one).strides.every((stride) => stride % x.leading === 0));
  if (!sameLines || !ofLines) return true;
  const length = ({ layout, shape }: MatrixOperand): number =>
    shape[layout.major === "row" ? 1 : 0] * streamsOf(layout)[0].components.length;
  const distance = (((y.array.offset - x.array.offset) % x.leading) + x.leading) % x.leading;
  return distance < length(x) || distance + length(y) > x.leading;
}

/** Whether two operands are the very same matrix. */
export function identical(x: MatrixOperand, y: MatrixOperand): boolean {
  return (
    x.array.allocation === y.array.allocation &&
    x.array.offset === y.array.offset &&
    x.type === y.type &&
    x.leading === y.leading &&
    x.layout === y.layout &&
    outerOf(x).shape.every((extent, i) => extent === outerOf(y).shape[i]) &&
    outerOf(x).strides.every((stride, i) => outerOf(x).shape[i] <= 1 || stride === outerOf(y).strides[i]) &&
    (factsOf(x.layout).movement === "box" ||
      `${x.array.strides} ${x.array.shape}` === `${y.array.strides} ${y.array.shape}`)
  );
}
