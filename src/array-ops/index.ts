/**
 * @file What lies between two products: `tilewright/array-ops`. All of it takes arrays and views of any strides and any
 * size, none included.
 */
export { convert } from "./convert.ts";
export { copy, copyInto, slice } from "./copy.ts";
export type { Accumulated, Stored } from "./element-types.ts";
export { fill } from "./fill.ts";
export { type Arrays, type Elements, type MapOptions, map } from "./map.ts";
export { type RandomOptions, random } from "./random.ts";
export { type ReduceOptions, type Reducer, type ReductionName, reduce } from "./reduce.ts";
