/**
 * @file The interface of BLAS over the components of this library. Matrices are device arrays of either order (`transposed`
 * is a view, so there is no order argument); C, B and y are changed in place.
 */
export {
  type BlasFactor,
  type BlasMatrix,
  type BlasOptions,
  emptyLike,
  gemmEx,
  gemv,
  type Operation,
} from "./general.ts";
export { type Diagonal, type Side, symm, syrk, trmm } from "./structured.ts";
