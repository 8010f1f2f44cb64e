/**
 * @file Operators: the inner product on what a warp holds in registers.
 */
import type { AnyValue, ElementType, SharedMemory, StorageType } from "../../lang/index.ts";
import type { TargetFacts } from "../../target/facts.ts";
import type { Coordinate, Tile } from "../../tile/index.ts";
import type { Term } from "../algebras/product-plan.ts";
import type { Layout } from "../layouts/layout.ts";
import type { Semiring } from "./semiring.ts";

/** A matrix tile in shared memory, as an operator finds it. */
export interface SharedTile {
  readonly memory: SharedMemory<StorageType>;
  readonly layout: Layout;
  readonly leading: number;
  /** First element of the tile in the array: the stage, where there are several. */
  readonly origin: Coordinate;
  /** Elements between the tile and the next one like it: the planes that hold the components of an algebra's elements. */
  readonly planeLength?: number;
}

/** A fragment in a sum: added with sign 1, subtracted with -1. */
export interface FragmentTerm<F> {
  readonly fragment: F;
  readonly sign: number;
}

/** What happens to an element between shared memory and registers; `at` counts within the block's tile. */
export type FragmentTransform = (value: AnyValue, row: Coordinate, column: Coordinate) => AnyValue;

/** What one operator call multiplies, and what it holds while it does. */
export interface OperatorShape {
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

/** Types an operator multiplies and accumulates in. */
export interface OperatorTypes {
  /** Types of the registers' elements. */
  readonly a: ElementType;
  readonly b: ElementType;
  readonly accumulator: ElementType;
  /**
   * Elements of K that an instruction with a narrow accumulator of its own sums, before what it has is added to the
   * accumulator proper; all of K unless given.
   */
  readonly promotionInterval?: number;
}

/**
 * The inner product D += A · B of an m x k by a k x n tile by one warp. `FA`, `FB`, `FC` are whatever the operator keeps
 * for its fragments. All methods run while tracing.
 */
export interface Operator<FA = unknown, FB = unknown, FC = unknown> {
  readonly name: string;
  readonly shape: OperatorShape;
  readonly types: OperatorTypes;
  /** Element types of the shared tiles it reads; what comes from global memory is converted to them. */
  readonly shared: { readonly a: StorageType; readonly b: StorageType };
  /** How it likes a shared tile to lie, given how the global matrix lies. */
  sharedMajor(operand: "a" | "b", global: "row" | "column"): "row" | "column";
  /** Padding of a shared line, in elements, that keeps its accesses off each other's banks. */
  sharedPadding(operand: "a" | "b", major: "row" | "column"): number;
  /**
   * Whether it asks the shared tile's layout for every position, so that lines may be swizzled; then the padding is what it
   * takes of each line in one pass over the banks. Otherwise lines lie at one distance.
   */
  readonly swizzles?: boolean;
  createA(): FA;
  createB(): FB;
  /** Accumulators, all zero. */
  createAccumulator(): FC;
  loadA(
    target: FA,
    source: SharedTile,
    tile: Tile<"R" | "C">,
    transform: FragmentTransform | undefined,
  ): void;
  loadB(
    target: FB,
    source: SharedTile,
    tile: Tile<"R" | "C">,
    transform: FragmentTransform | undefined,
  ): void;
  multiply(accumulator: FC, a: FA, b: FB): void;
  /** Stores an accumulator tile of the accumulator's type to shared memory. */
  storeD(accumulator: FC, target: SharedTile, tile: Tile<"R" | "C">): void;
  /** What elements beyond the matrices count as; 0 unless said. */
  readonly outside?: number;
  /** Whether the lanes know which elements they hold; otherwise functions of coordinates go through shared memory. */
  readonly opaque: boolean;
  /** Whether the lanes' own arithmetic multiplies, though K goes by more than one step; else that means a matrix instruction. */
  readonly byLanes?: boolean;
  /**
   * Sets a fragment of A or of B to a sum of others, rounded to the operand's type. Absent where elements are packed so
   * narrow that even a negated one may not exist.
   */
  combineFactors?(target: FA | FB, terms: readonly FragmentTerm<FA | FB>[]): void;
  /** Sets an accumulator to a sum of others. */
  combineAccumulators?(target: FC, terms: readonly FragmentTerm<FC>[]): void;
  /** Components of an element, each in a plane of its own in shared tiles; elements are single numbers unless said. */
  readonly components?: number;
  /** What a tile holds in registers, in fragments of the kind that other operators hold one of. */
  readonly held?: { readonly accumulators: number; readonly left: number; readonly right: number };
}

/** Makes an operator for a target; refused with the reason where the target cannot. */
export interface OperatorFactory {
  readonly name: string;
  /** False where sums are no sums: then alpha and C, which multiply and add, are refused. */
  readonly ring?: boolean;
  /** What stands for nothing in sums of a type; 0 unless given. Operands that cannot hold it are multiplied in the sums' type. */
  readonly zero?: (accumulator: ElementType) => number;
  /** What products are made of, where the lanes' own arithmetic makes them in any grid of lanes: then other schedules may, too. */
  readonly semiring?: Semiring;
  /** Components of an element, for operators over an algebra. */
  readonly components?: number;
  /** The products of components that make an element, where each is of single ones: then other schedules may make them, too. */
  readonly terms?: readonly Term[];
  /** The same operator with less in each lane, so that `count` accumulators of a tile fit the registers. */
  narrowed?(count: number): OperatorFactory;
  create(types: OperatorTypes, facts: TargetFacts): Operator;
}
