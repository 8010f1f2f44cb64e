/**
 * @file Matrix products from components: `tilewright/gemm`.
 */

export {
  type Algebra,
  type AlgebraDefinition,
  type BilinearAlgorithm,
  complex,
  complex3m,
  defineAlgebra,
  dual,
} from "./algebras/algebra.ts";
export { AlgebraMatrix, algebraMatrix } from "./algebras/matrix.ts";
export { algebraOperator } from "./algebras/operator.ts";
export * as blas from "./blas/index.ts";
export {
  type ContractionOptions,
  type ContractionPlan,
  contract,
  planContraction,
} from "./contraction/contract.ts";
export { type ConvolutionOptions, type ConvolutionPlan, conv2d, planConv2d } from "./convolution/conv2d.ts";
export type { GeometryOptions, Padding, PerDimension } from "./convolution/geometry.ts";
export type { Half } from "./dense-source.ts";
export {
  clampTo,
  erf,
  gelu,
  geluTanh,
  hardSwish,
  leakyRelu,
  relu,
  sigmoid,
  silu,
  tanh,
} from "./epilogues/activations.ts";
export type { Collectors, LaneGrid } from "./epilogues/collector.ts";
export { backward, derivative } from "./epilogues/derivatives.ts";
export { type DropoutOptions, dropout } from "./epilogues/dropout.ts";
export { defaultEpilogue, type Epilogue, type EpilogueContext } from "./epilogues/epilogue.ts";
export { applyMask, positiveMask } from "./epilogues/masks.ts";
export { quantise, saturate } from "./epilogues/quantisation.ts";
export {
  amax,
  type ReduceOptions,
  type ReductionTargets,
  reduceAll,
  reduceColumns,
  reduceRows,
} from "./epilogues/reducing-steps.ts";
export {
  type Collection,
  moments,
  type Reduction,
  type ReductionAxis,
  type ReductionName,
  softmaxStatistics,
} from "./epilogues/reduction.ts";
export type { EpilogueStep, StepArray, StepBehaviour } from "./epilogues/step.ts";
export type { StepOperand, StepOperandShape, StepRun } from "./epilogues/step-operand.ts";
export { auxiliary, bias, residual, scale } from "./epilogues/steps.ts";
export {
  columnVector,
  deviceScalar,
  rowVector,
  type StepAndTransform,
  sameShape,
  type Used,
  type Uses,
  type UsingFunction,
  uses,
} from "./epilogues/uses.ts";
export type {
  Bound,
  ExtraArgument,
  ExtraKind,
  ExtraValue,
  ExtraValues,
  RuntimeNumber,
} from "./extras.ts";
export {
  type GroupedOptions,
  type GroupedPlan,
  type GroupedProduct,
  gemmGrouped,
  planGrouped,
} from "./grouped.ts";
export { interleaveColumns } from "./interleave-columns.ts";
export type { GemmKind, OperandKind } from "./kind.ts";
export { banded, bandedPacked } from "./layouts/banded.ts";
export { blockMasked, blockSparse, blockTable } from "./layouts/block-sparse.ts";
export { diagonal } from "./layouts/diagonal.ts";
export { gathered } from "./layouts/gathered.ts";
export { generated } from "./layouts/generated.ts";
export { type Interval, type IntervalOf, stepsWithin } from "./layouts/interval.ts";
export {
  columnMajor,
  elementAt,
  firstElement,
  interned,
  type Layout,
  type LayoutFacts,
  layoutAt,
  type MatrixArea,
  type MatrixPlace,
  type MatrixTile,
  padded,
  rowMajor,
} from "./layouts/layout.ts";
export { type Mask, masked } from "./layouts/masked.ts";
export { swizzled } from "./layouts/swizzled.ts";
export { symmetric } from "./layouts/symmetric.ts";
export { triangular } from "./layouts/triangular.ts";
export { type Dot4Shape, dot4Operator, dot4Packed } from "./operators/dot4.ts";
export { type FmaShape, fma, fmaOperator, semiringOperator } from "./operators/fma.ts";
export { mmaOperator, mmaSync } from "./operators/mma.ts";
export type { Operator, OperatorFactory, OperatorTypes } from "./operators/operator.ts";
export { maxPlus, minPlus, orAnd, plusTimes, type Semiring } from "./operators/semiring.ts";
export { wmmaOperator, wmmaSync } from "./operators/wmma.ts";
export type { GemmParams } from "./params.ts";
export { type GemmPlan, gemm, planGemm } from "./plan.ts";
export { everyStep, type OutputTile, type Predicate } from "./predicate.ts";
export { gemmInt4, type Int4GemmOptions, type Int4GemmPlan, planGemmInt4 } from "./quantised/int4-gemm.ts";
export {
  type Int4Group,
  type Int4Options,
  type Int4Weights,
  int4Weights,
  quantiseInt4,
} from "./quantised/int4-weights.ts";
export type { GemmOptions } from "./resolve.ts";
export { type InputOperand, type MatrixSource, matrixSource, type SourceDescription } from "./source.ts";
export {
  bound,
  type ElementCoordinates,
  type GivenTransform,
  type GivenTransforms,
  type Transform,
  type Transforms,
  type TransformWithExtras,
} from "./transforms.ts";
export { type GemmTuning, type TuningOptions, type TuningProblem, tuneGemm } from "./tune.ts";
