/**
 * @file What A and B may be: arrays, or matrices of which less is stored than they have elements.
 */
import type { StorageType } from "../lang/index.ts";
import type { Device, DeviceArray } from "../runtime/array.ts";
import type { Algebra } from "./algebras/algebra.ts";
import type { OuterDimensions } from "./batch.ts";
import type { ExtraArgument } from "./extras.ts";
import type { OperandKind } from "./kind.ts";

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
  /** What the layout takes at run time beside the array. */
  readonly extras: readonly ExtraArgument[];
  /** What elements are, where they are no single numbers, and whether each counts as its conjugate. */
  readonly elements?: { readonly algebra: Algebra; readonly conjugated: boolean };
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
