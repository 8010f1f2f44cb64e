/**
 * @file Kinds: everything about a multiplication that is compiled in. Sizes, leading dimensions and factors are not.
 */
import { byteSize, type ElementType, f32, f64, type StorageType } from "../lang/index.ts";
import type { BatchScheme } from "./batch.ts";
import type { Epilogue } from "./epilogues/epilogue.ts";
import type { StepKind } from "./epilogues/step.ts";
import type { ExtraKind, ExtrasOf } from "./extras.ts";
import { factsOf, type Layout } from "./layouts/layout.ts";
import type { OperatorFactory, OperatorTypes } from "./operators/operator.ts";
import type { GemmParams } from "./params.ts";
import type { Predicate } from "./predicate.ts";
import type { Transform, Transforms } from "./transforms.ts";

/** One operand of a kind. */
export interface OperandKind {
  readonly type: StorageType;
  readonly layout: Layout;
  /** Bytes to which every line of the matrix is aligned: 16, 8, 4, or the element's size. */
  readonly alignment: number;
}

/** Everything that is compiled in. */
export interface GemmKind {
  readonly a: OperandKind;
  readonly b: OperandKind;
  /** Undefined where beta is zero. */
  readonly c: OperandKind | undefined;
  readonly d: OperandKind;
  readonly types: OperatorTypes;
  /** How its matrices are found. */
  readonly batch: BatchScheme;
  /** Of grouped products: whether all matrices of an operand lie in one allocation. */
  readonly places?: "near" | "anywhere";
  readonly operator: OperatorFactory;
  /** The schedule's name. */
  readonly schedule: string;
  readonly params: GemmParams;
  readonly transforms: Transforms;
  /** What becomes of the first factor of a gated product; undefined where there is one product. */
  readonly gate: Transform | undefined;
  readonly epilogue: Epilogue;
  /** What happens to results between the combination with C and D's transforms. */
  readonly steps: readonly StepKind[];
  readonly predicate: Predicate;
  /** What layouts, transforms and the predicate take at run time. */
  readonly extras: ExtrasOf<ExtraKind>;
}

/** Components of an element. */
export function componentsOf({ operator }: Pick<GemmKind, "operator">): number {
  return operator.components ?? 1;
}

/** Type of alpha, beta and their combination. */
export function scaleTypeOf(accumulator: ElementType): ElementType {
  if (accumulator.class !== "float") return accumulator;
  return accumulator === f64 ? f64 : f32;
}

/** Elements of one access for an operand: what alignment and layout allow, at most 16 bytes, dividing `extent`. */
export function accessWidth(operand: OperandKind, extent: number, most: number | undefined): number {
  const size = byteSize(operand.type);
  let width = Math.max(1, Math.min(operand.alignment, 16) / size);
  width = Math.min(width, most ?? width, factsOf(operand.layout).widest ?? width);
  while (width > 1 && extent % width !== 0) width /= 2;
  return width;
}
