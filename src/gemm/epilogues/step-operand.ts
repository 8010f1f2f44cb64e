/**
 * @file What a step works on: a run of neighbouring elements, and arrays and numbers of its own.
 */
import {
  type AnyValue,
  byteSize,
  type GlobalArray,
  type Index,
  index,
  type StorageType,
  type Value,
  type VectorLanes,
  vector,
} from "../../lang/index.ts";
import type { ElementCoordinates } from "../coordinates.ts";

/** Neighbouring elements of D that a step sees together. */
export interface StepRun {
  readonly count: number;
  /** Direction in which they are neighbours: "C" along a row (their columns count up), "R" along a column. */
  readonly along: "R" | "C";
  /** Whether the first one's coordinate along that direction is a multiple of `count`. */
  readonly aligned: boolean;
  /** The part of the first one's coordinates that is known while tracing, on top of what the lane decides. */
  readonly offset: { readonly row: number; readonly column: number };
  /** Coordinates of element `e`. */
  at(e: number): ElementCoordinates;
}

/**
 * How a step uses an operand: a vector with an element per column or row of D, a row-major matrix of D's shape, a row-major
 * matrix of u32 words that hold 32 columns each ("bits"), one element ("scalar"), or a number of the host.
 */
export interface StepOperandShape {
  readonly shape: "perColumn" | "perRow" | "matrix" | "bits" | "scalar" | "number";
  /** Arrays of results are written by the kernel that finishes a reduction ("finish"), the others by the product's. */
  readonly access: "read" | "write" | "finish";
  /** Type that is wanted, where not any serves; the type of a number. */
  readonly type?: StorageType;
  /** Whether the array must hold zeros before the product begins; the plan sees to it. */
  readonly cleared?: boolean;
}

/** The compiled-in part of a step's operand. */
export interface StepOperandKind extends StepOperandShape {
  readonly type: StorageType;
  /** Bytes to which the start (and every line) is aligned. */
  readonly alignment: number;
}

/** What a step finds of one of its operands. */
export class StepOperand {
  constructor(
    readonly kind: StepOperandKind,
    /** The array; for a number its value. */
    private readonly held: GlobalArray<StorageType> | AnyValue,
    private readonly leading: Value<Index> | undefined,
  ) {}

  get #array(): GlobalArray<StorageType> {
    return this.held as GlobalArray<StorageType>;
  }

  /** The elements that belong to a run; a scalar or a number for each of them. */
  load(run: StepRun): readonly AnyValue[] {
    const { count } = run;
    if (this.kind.shape === "number") return Array.from({ length: count }, () => this.held as AnyValue);
    if (!this.#varies(run)) {
      const same = this.#array.loadAt(this.#position(run, 0));
      return Array.from({ length: count }, () => same);
    }
    if (this.#wide(run))
      return this.#array.loadVectorAt(count as VectorLanes, this.#position(run, 0)).elements();
    return Array.from({ length: count }, (_, e) => this.#array.loadAt(this.#position(run, e)));
  }
  /** Stores the elements of a run. */
  store(run: StepRun, values: readonly AnyValue[]): void {
    const held = values.map((value) => value.to(this.kind.type) as AnyValue);
    if (this.#wide(run)) {
      this.#array.storeVectorAt(this.#position(run, 0), vector(...held));
      return;
    }
    held.forEach((value, e) => {
      this.#array.storeAt(this.#position(run, e), value);
    });
  }
  /** The array itself, for those who know their own positions. */
  get memory(): GlobalArray<StorageType> {
    return this.#array;
  }
  /** Position of an element of a matrix, or of words of bits, by row and column of its own. */
  positionAt(row: AnyValue, column: AnyValue): Value<Index> {
    return row
      .to(index)
      .mul(this.leading as Value<Index>)
      .add(column.to(index));
  }

  /** Whether neighbouring elements of a run belong to different elements of the array. */
  #varies({ count, along }: StepRun): boolean {
    const { shape } = this.kind;
    return count > 1 && (shape === "matrix" || shape === (along === "C" ? "perColumn" : "perRow"));
  }
  #wide(run: StepRun): boolean {
    const bytes = run.count * byteSize(this.kind.type);
    const inLine = this.kind.shape !== "matrix" || run.along === "C";
    return run.count > 1 && inLine && this.#varies(run) && bytes <= 16 && this.kind.alignment >= bytes;
  }
  #position(run: StepRun, e: number): Value<Index> | number {
    if (this.kind.shape === "scalar") return 0;
    const { row, column } = run.at(e);
    if (this.kind.shape === "perColumn") return column.to(index);
    if (this.kind.shape === "perRow") return row.to(index);
    return this.positionAt(row, column);
  }
}
