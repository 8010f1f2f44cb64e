/**
 * @file What A and B may be: arrays, or matrices of which less is stored than they have elements.
 */
import { ArgumentError, UnsupportedError } from "../errors.ts";
import { byteSize, type StorageType, type WindowedImages } from "../lang/index.ts";
import type { Device, DeviceArray } from "../runtime/array.ts";
import type { Algebra } from "./algebras/algebra.ts";
import type { OuterDimensions } from "./batch.ts";
import type { ExtraArgument } from "./extras.ts";
import type { OperandKind } from "./kind.ts";
import type { Layout } from "./layouts/layout.ts";

/** A or B of a problem: what is compiled in, and what the kernel is given. */
export interface InputOperand extends OperandKind {
  /** Names it in messages. */
  readonly label: string;
  /** Rows and columns of the logical matrix. */
  readonly shape: readonly [rows: number, columns: number];
  /** Dimensions in front, of an array of matrices; one matrix for a whole batch unless given. */
  readonly outer?: OuterDimensions;
  /** What is stored; nothing where the layout is pure. */
  readonly array: DeviceArray | undefined;
  /** Elements between lines of the array. */
  readonly leading: number;
  /** How the matrix can be copied to lines of neighbours, where the layout's own are none; undefined where it cannot. */
  readonly lines?: (major: "row" | "column") => SourceLines | undefined;
  /** The images that the layout's windows are of, as a map of windows takes them. */
  readonly images?: WindowedImages<StorageType>;
  /** What the layout takes at run time beside the array. */
  readonly extras: readonly ExtraArgument[];
  /** What elements are, where they are no single numbers, and whether each counts as its conjugate. */
  readonly elements?: { readonly algebra: Algebra; readonly conjugated: boolean };
}

/** A matrix as lines whose elements one copy puts side by side. */
export interface SourceLines {
  /** [several, lines, elements of a line]; the last two dimensions hold a stride of 1. */
  readonly source: DeviceArray;
  /** Strides of those dimensions where lines are `leading` elements apart. */
  strides(leading: number): readonly [number, number, number];
}

/**
 * A structured matrix: A or B of a product, of which the layout knows where elements are, which of them there are and
 * which K steps they leave. Made by {@link diagonal}, {@link triangular} and others; a new kind of structure is a layout
 * and a function that returns one of these.
 */
export interface MatrixSource extends InputOperand {
  readonly type: StorageType;
  /** Where it lives; undefined for what is on no device, which then goes to the other operand's. */
  readonly device: Device | undefined;
  /** The transposed matrix, free of cost. */
  readonly transposed: MatrixSource;
}

/** What {@link matrixSource} makes a matrix of. */
export interface SourceDescription {
  readonly shape: readonly [rows: number, columns: number];
  readonly layout: Layout;
  /** Elements between lines of the array, for the layout to use; the array's first stride unless given. */
  readonly leading?: number;
  /** Bytes to which all accesses that the layout makes are aligned: a power of two, one element unless given. */
  readonly alignment?: number;
  /** What the layout takes at run time beside the array. */
  readonly extras?: readonly ExtraArgument[];
  /** The transposed matrix; asked for without, an error says that there is none. */
  readonly transposed?: () => MatrixSource;
}

/**
 * The matrix that a layout of your own sees in an array: A or B of a product.
 * @throws ArgumentError for extents or an alignment that are none
 */
export function matrixSource(array: DeviceArray, description: SourceDescription): MatrixSource {
  const { shape, layout, extras = [], transposed } = description;
  const { type, device, strides } = array;
  const { leading = strides[0] ?? 1, alignment = byteSize(type) } = description;
  const who = `matrixSource() of ${array.label}`;
  for (const extent of shape) {
    if (!Number.isInteger(extent) || extent < 0)
      throw new ArgumentError(
        `${who}: shape is two extents that are not negative, not [${shape.join(", ")}]`,
      );
  }
  if (![1, 2, 4, 8, 16].includes(alignment) || alignment < byteSize(type))
    throw new ArgumentError(
      `${who}: alignment is a power of two from ${byteSize(type)} (an element) to 16 bytes, not ${alignment}`,
    );
  return {
    label: `${layout.name} ${array.label}`,
    device,
    type,
    shape,
    layout,
    array,
    leading,
    alignment,
    extras,
    get transposed(): MatrixSource {
      if (transposed !== undefined) return transposed();
      throw new UnsupportedError(`${who}: it was made without a transposed matrix; give \`transposed\``);
    },
  };
}
