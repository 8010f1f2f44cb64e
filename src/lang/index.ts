/**
 * @file What a kernel author imports: `tilewright/lang`.
 */
export { assert, print } from "./diagnostics.ts";
export {
  type BarrierArray, barrierInitFence, barriers, copyAsync, copyAsyncCommit, type CopyAsyncOptions, copyAsyncWait, fence,
  proxyFence, type TensorMap, tensorStoreCommit, tensorStoreWait,
} from "./asynchronous.ts";
export { block, cluster, namedBarrier } from "./block.ts";
export { type ReductionName, subgroup } from "./collective.ts";
export {
  breakLoop, continueLoop, type CounterType, exit, loop, type LoopRange, loopWhile, type Otherwise, when,
} from "./control.ts";
export { type AnyFragment, Fragment, type FragmentLayout, type FragmentUse } from "./fragment.ts";
export { type BlockSize, type Kernel, kernel, type KernelDefinition } from "./kernel.ts";
export {
  ceil, clamp, cos, dot4, exp, exp2, floor, leadingZeros, log, log2, max, min, mulHigh, permuteBytes, popcount,
  reciprocal, reciprocalSqrt, reverseBits, roundEven, select, sigmoid, sin, sqrt, tanh, tanhApproximate, trunc,
} from "./math.ts";
export {
  describeInstruction, findInstruction, loadMatrix, type LoadMatrixOptions, type Major, mma, mmaFragment,
  type SharedMatrixOperand, storeMatrix, warpgroupCommit, warpgroupFence, warpgroupFragment, warpgroupMma,
  type WarpgroupMmaOptions, warpgroupWait, wmma, wmmaFragment, wmmaLoad, wmmaStore,
} from "./matrix.ts";
export {
  type AccessOptions, type AtomicOptions, type GlobalArray, type IndexOperand, type LinearArray, shared, type SharedArena,
  sharedArena, type SharedMemory, type Table, table, toIndex,
} from "./memory.ts";
export {
  type ArrayArgument, type BufferDescriptor, type HostArguments, inout, input, type KernelArguments, output,
  type ParameterDescriptor, type ParameterDescriptors, type ScalarArgument, tensorMap, type TensorMapDescriptor,
} from "./parameters.ts";
export { setPositions } from "./position.ts";
export { normalPair, philox, type RandomWords, uniform } from "./random.ts";
export { type RoleDefinition, roles } from "./roles.ts";
export { clusterId, type Coordinates, grid, thread } from "./thread.ts";
export { type AnyValue, binary, type BinaryName, type Condition, constant, fusedMultiplyAdd, type Operand, Value } from "./value.ts";
export { type AnyVariable, type Variable, variable, variables } from "./variable.ts";
export { type AnyVector, splat, unpack, Vector, vector, type VectorLanes } from "./vector.ts";
export type { Lanes } from "../ir/nodes.ts";
export * from "../types/types.ts";
