/**
 * @file What a kernel author imports: `tilewright/lang`.
 */

export type { Lanes } from "../ir/nodes.ts";
export * from "../types/types.ts";
export {
  type BarrierArray,
  barrierInitFence,
  barriers,
  type CopyAsyncOptions,
  copyAsync,
  copyAsyncCommit,
  copyAsyncWait,
  fence,
  proxyFence,
  type TensorMap,
  tensorStoreCommit,
  tensorStoreWait,
  WindowMap,
} from "./asynchronous.ts";
export { block, cluster, namedBarrier } from "./block.ts";
export { type ReductionName, subgroup } from "./collective.ts";
export {
  breakLoop,
  type CounterType,
  continueLoop,
  exit,
  type LoopRange,
  loop,
  loopWhile,
  type Otherwise,
  when,
} from "./control.ts";
export { assert, print } from "./diagnostics.ts";
export { type AnyFragment, Fragment, type FragmentLayout, type FragmentUse } from "./fragment.ts";
export { type BlockSize, type Kernel, type KernelDefinition, kernel } from "./kernel.ts";
export {
  ceil,
  clamp,
  cos,
  dot4,
  exp,
  exp2,
  floor,
  leadingZeros,
  log,
  log2,
  max,
  min,
  mulHigh,
  permuteBytes,
  popcount,
  reciprocal,
  reciprocalSqrt,
  reverseBits,
  roundEven,
  select,
  sigmoid,
  sin,
  sqrt,
  tanh,
  tanhApproximate,
  trunc,
} from "./math.ts";
export {
  describeInstruction,
  findInstruction,
  type LoadMatrixOptions,
  loadMatrix,
  type Major,
  mma,
  mmaFragment,
  type SharedMatrixOperand,
  storeMatrix,
  type WarpgroupMmaOptions,
  warpgroupCommit,
  warpgroupFence,
  warpgroupFragment,
  warpgroupMma,
  warpgroupWait,
  wmma,
  wmmaFragment,
  wmmaLoad,
  wmmaStore,
} from "./matrix.ts";
export {
  type AccessOptions,
  type AtomicOptions,
  type GlobalArray,
  type IndexOperand,
  type LinearArray,
  type SharedArena,
  type SharedMemory,
  shared,
  sharedArena,
  type Table,
  table,
  toIndex,
} from "./memory.ts";
export {
  type ArrayArgument,
  type BufferDescriptor,
  type HostArguments,
  inout,
  input,
  type KernelArguments,
  output,
  type ParameterDescriptor,
  type ParameterDescriptors,
  type ScalarArgument,
  type ScalarType,
  type TensorMapDescriptor,
  type TensorMapOptions,
  tensorMap,
  type WindowedImages,
  type WindowMapDescriptor,
  windowMap,
} from "./parameters.ts";
export { setPositions } from "./position.ts";
export { normalPair, philox, type RandomWords, uniform } from "./random.ts";
export { type RoleDefinition, roles } from "./roles.ts";
export { type Coordinates, clusterId, grid, thread } from "./thread.ts";
export { type NibbleEncoding, unpack4 } from "./unpack.ts";
export {
  type AnyValue,
  type BinaryName,
  binary,
  type Condition,
  constant,
  fusedMultiplyAdd,
  type Operand,
  Value,
} from "./value.ts";
export { type AnyVariable, type Variable, variable, variables } from "./variable.ts";
export { type AnyVector, splat, unpack, Vector, type VectorLanes, vector } from "./vector.ts";
