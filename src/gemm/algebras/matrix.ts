/**
 * @file Matrices over an algebra: views of device arrays whose last axis counts the components.
 */
import { ArgumentError, ShapeError, UnsupportedError } from "../../errors.ts";
import { byteSize, index, type StorageType } from "../../lang/index.ts";
import { type Device, DeviceArray } from "../../runtime/array.ts";
import type { ValueArray } from "../../types/host.ts";
import { commonAlignment } from "../extras.ts";
import { interleaved, split } from "../layouts/components.ts";
import type { InputOperand, MatrixSource } from "../source.ts";
import type { Algebra } from "./algebra.ts";

/** A dense matrix whose elements have several components. */
export interface ElementOperand extends InputOperand {
  readonly array: DeviceArray;
  readonly outer: NonNullable<InputOperand["outer"]>;
}

/**
 * How a matrix of elements, or each of a batch, lies in its array [..., rows, columns, components]: components next to each
 * other, or each component a matrix; rows or columns contiguous.
 * @throws ShapeError for other shapes and arrangements
 */
export function elementOperand(algebra: Algebra, array: DeviceArray, name: string): ElementOperand {
  const { type, offset, rank, label } = array;
  const { dimension: n } = algebra;
  if (rank < 3 || array.shape[rank - 1] !== n) {
    throw new ShapeError(
      `gemm: ${name} over ${algebra.name} numbers has the shape [rows, columns, ${n}], with a batch in front if there is one; ${label} has not${rank === 3 && array.shape[0] === n ? `, and permute([1, 2, 0]) takes [${n}, rows, columns] to it` : ""}`,
    );
  }
  const [rows, columns] = array.shape.slice(-3);
  const [down, across, apart] = array.strides.slice(-3);
  const outer = { shape: array.shape.slice(0, -3), strides: array.strides.slice(0, -3) };
  const steps = outer.strides.filter((_, dimension) => outer.shape[dimension] > 1);
  const together = n === 1 || apart === 1;
  const unit = together ? n : 1;
  const rowMajor = across === unit || columns <= 1;
  const columnMajor = !rowMajor && (down === unit || rows <= 1);
  if (!rowMajor && !columnMajor) {
    throw new ShapeError(
      `gemm: ${name} (${label}, strides ${down}, ${across}, ${apart}) has neither neighbouring elements nor neighbouring numbers of one component; copy() of tilewright/array-ops makes a contiguous array of it`,
    );
  }
  const [lines, length, stride] = rowMajor ? [rows, columns, down] : [columns, rows, across];
  if ([apart, ...steps, ...(lines > 1 ? [stride] : [])].some((step) => step < 0)) {
    throw new ShapeError(
      `gemm: ${name} (${label}) runs backwards; copy() of tilewright/array-ops turns it round`,
    );
  }
  const leading = lines <= 1 ? Math.max(length * unit, 1) : stride;
  const size = byteSize(type);
  const bytes = [offset, ...(lines <= 1 ? [] : [leading]), ...(together ? [] : [apart]), ...steps].map(
    (count) => count * size,
  );
  const layout = (together ? interleaved : split)(rowMajor ? "row" : "column", n);
  return {
    array,
    label,
    shape: [rows, columns],
    outer,
    type,
    layout,
    leading,
    alignment: Math.max(size, commonAlignment(bytes)),
    extras: together ? [] : [{ type: index, value: apart }],
  };
}

/** A matrix over an algebra; made by {@link algebraMatrix}. Its views are free of cost, conjugation included. */
export class AlgebraMatrix implements MatrixSource {
  readonly label: string;
  readonly type: StorageType;
  readonly device: Device;
  readonly shape: readonly [rows: number, columns: number];
  readonly outer: NonNullable<MatrixSource["outer"]>;
  readonly layout: MatrixSource["layout"];
  readonly leading: number;
  readonly alignment: number;
  readonly extras: MatrixSource["extras"];
  readonly elements: NonNullable<MatrixSource["elements"]>;

  /** @internal */
  constructor(
    readonly algebra: Algebra,
    /** [..., rows, columns, components] of this view. */
    readonly array: DeviceArray,
    conjugated: boolean,
  ) {
    const operand = elementOperand(algebra, array, "a matrix");
    this.label = `${algebra.name} ${array.label}`;
    this.type = operand.type;
    this.device = array.device;
    this.shape = operand.shape;
    this.outer = operand.outer;
    this.layout = operand.layout;
    this.leading = operand.leading;
    this.alignment = operand.alignment;
    this.extras = operand.extras;
    this.elements = { algebra, conjugated };
  }

  /** The elements of this view in row-major order, components next to each other, as {@link DeviceArray.read} gives numbers. */
  async read(): Promise<ValueArray<StorageType>> {
    const values = await this.array.read();
    if (!this.elements.conjugated) return values;
    const { conjugation = [], dimension } = this.algebra;
    values.forEach((value: number | bigint, i: number) => {
      if (conjugation[i % dimension] < 0) values[i] = -value;
    });
    return values;
  }

  /** Rows and columns exchanged. */
  get transposed(): AlgebraMatrix {
    const { rank } = this.array;
    const batch = Array.from({ length: rank - 3 }, (_, dimension) => dimension);
    const exchanged = this.array.permute([...batch, rank - 2, rank - 3, rank - 1]);
    return new AlgebraMatrix(this.algebra, exchanged, this.elements.conjugated);
  }
  /** Each element's conjugate. @throws UnsupportedError for an algebra that has none */
  get conjugate(): AlgebraMatrix {
    const { name, conjugation } = this.algebra;
    if (conjugation === undefined) {
      throw new UnsupportedError(
        `${name} numbers have no conjugates; defineAlgebra takes some, such as conjugate: "1 -i -j -k"`,
      );
    }
    return new AlgebraMatrix(this.algebra, this.array, !this.elements.conjugated);
  }
  /** The conjugate transpose. */
  get adjoint(): AlgebraMatrix {
    return this.transposed.conjugate;
  }
}

/**
 * A device array as a matrix over an algebra. The array has the shape [rows, columns, n] with n components an element,
 * in order of the basis: interleaved as it is made, or, of an array [n, rows, columns], split as its view
 * `array.permute([1, 2, 0])`. Rows or columns are contiguous; leading dimensions are free. Dimensions in front are a batch,
 * as in `gemm`.
 * @throws ShapeError for other shapes and arrangements
 */
export function algebraMatrix(algebra: Algebra, array: DeviceArray): AlgebraMatrix {
  if (!(array instanceof DeviceArray))
    throw new ArgumentError(
      `a matrix over ${algebra.name} numbers is made of a device array, not ${String(array)}`,
    );
  array.check(`a matrix over ${algebra.name} numbers`);
  return new AlgebraMatrix(algebra, array, false);
}

/** The algebra of a product and which of its operands are conjugated. */
export interface ProductElements {
  readonly algebra: Algebra;
  readonly conjugated: { readonly a: boolean; readonly b: boolean };
}

/**
 * What the elements of a product are; undefined for matrices of numbers.
 * @throws ArgumentError for operands of different kinds
 */
export function productElements(a: InputOperand, b: InputOperand): ProductElements | undefined {
  const [left, right] = [a.elements, b.elements];
  if (left === undefined && right === undefined) return undefined;
  if (left === undefined || right === undefined || left.algebra !== right.algebra) {
    throw new ArgumentError(`gemm: A has ${named(a)} and B ${named(b)}; both must be over one algebra`);
  }
  return { algebra: left.algebra, conjugated: { a: left.conjugated, b: right.conjugated } };
}

function named({ elements, label }: Pick<InputOperand, "elements" | "label">): string {
  return elements === undefined ? `plain numbers (${label})` : `${elements.algebra.name} numbers`;
}

/**
 * The array of a C or D that is given as a matrix, where it or the product is over an algebra.
 * @throws ArgumentError for elements that are others than the product's, or conjugated
 */
export function elementArray(
  given: MatrixSource,
  name: "C" | "D",
  elements: ProductElements | undefined,
): DeviceArray {
  const { array, elements: own } = given;
  if (array === undefined || own?.algebra !== elements?.algebra) {
    const wanted = elements === undefined ? "plain numbers" : `${elements.algebra.name} numbers`;
    throw new ArgumentError(
      `gemm: ${name} has ${named(given)} and A and B have ${wanted}; all must be over one algebra`,
    );
  }
  if (own?.conjugated === true) {
    throw new ArgumentError(
      `gemm: ${name} (${given.label}) is a conjugated view, and C and D are what is stored; give its conjugate`,
    );
  }
  return array;
}
