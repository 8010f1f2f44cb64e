/** @file The table: how each operation is written in PTX. Which targets have it is said in requirements.ts. */
import type { OperationNode } from "../../ir/nodes.ts";
import type { OperationName } from "../../ir/operations.ts";
import * as arithmetic from "./arithmetic.ts";
import * as asynchronous from "./asynchronous.ts";
import * as collectives from "./collectives.ts";
import { emitConvert } from "./convert.ts";
import { emitAssert, emitPrint } from "./diagnostics.ts";
import * as division from "./division.ts";
import type { Emission } from "./emission.ts";
import * as functions from "./functions.ts";
import * as lanes from "./lanes.ts";
import * as matrix from "./matrix.ts";
import * as memory from "./memory.ts";
import * as synchronisation from "./synchronisation.ts";
import * as warpgroup from "./warpgroup.ts";

export type Emitters = {
  readonly [Name in OperationName]: (emission: Emission, node: OperationNode<Name>) => void;
};

export const emitters: Emitters = {
  add: arithmetic.emitAdd,
  sub: arithmetic.emitSub,
  mul: arithmetic.emitMul,
  mulHigh: arithmetic.emitMulHigh,
  div: division.emitDiv,
  rem: division.emitRem,
  floorDiv: division.emitFloorDiv,
  floorMod: division.emitFloorMod,
  neg: arithmetic.emitNeg,
  abs: arithmetic.emitAbs,
  min: arithmetic.emitMin,
  max: arithmetic.emitMax,
  fma: arithmetic.emitFma,
  and: arithmetic.emitAnd,
  or: arithmetic.emitOr,
  xor: arithmetic.emitXor,
  not: arithmetic.emitNot,
  shiftLeft: arithmetic.emitShiftLeft,
  shiftRight: arithmetic.emitShiftRight,
  equal: arithmetic.comparison("equal"),
  notEqual: arithmetic.comparison("notEqual"),
  less: arithmetic.comparison("less"),
  lessEqual: arithmetic.comparison("lessEqual"),
  greater: arithmetic.comparison("greater"),
  greaterEqual: arithmetic.comparison("greaterEqual"),
  isNaN: arithmetic.emitIsNaN,
  select: arithmetic.emitSelect,
  sqrt: functions.emitSqrt,
  reciprocalSqrt: functions.emitReciprocalSqrt,
  reciprocal: functions.emitReciprocal,
  exp2: functions.emitExp2,
  log2: functions.emitLog2,
  sin: functions.emitSin,
  cos: functions.emitCos,
  tanh: functions.emitTanh,
  floor: functions.emitFloor,
  ceil: functions.emitCeil,
  trunc: functions.emitTrunc,
  roundEven: functions.emitRoundEven,
  convert: emitConvert,
  bitcast: lanes.emitBitcast,
  popcount: functions.emitPopcount,
  leadingZeros: functions.emitLeadingZeros,
  reverseBits: functions.emitReverseBits,
  dot4: functions.emitDot4,
  permuteBytes: functions.emitPermuteBytes,
  compose: lanes.emitCompose,
  extract: lanes.emitExtract,
  builtin: memory.emitBuiltin,
  parameter: memory.emitParameter,
  bufferSize: memory.emitBufferSize,
  bufferStride: memory.emitBufferStride,

  readRegister: memory.emitReadRegister,
  writeRegister: memory.emitWriteRegister,
  load: memory.emitLoad,
  store: memory.emitStore,
  atomic: memory.emitAtomic,

  shuffle: collectives.emitShuffle,
  vote: collectives.emitVote,
  ballot: collectives.emitBallot,
  subgroupReduce: collectives.emitSubgroupReduce,
  electOne: collectives.emitElectOne,

  blockBarrier: synchronisation.emitBlockBarrier,
  namedBarrier: synchronisation.emitNamedBarrier,
  subgroupBarrier: synchronisation.emitSubgroupBarrier,
  fence: synchronisation.emitFence,
  proxyFence: synchronisation.emitProxyFence,
  barrierInitFence: synchronisation.emitBarrierInitFence,
  clusterBarrier: synchronisation.emitClusterBarrier,
  barrierInit: synchronisation.emitBarrierInit,
  barrierArrive: synchronisation.emitBarrierArrive,
  barrierArriveExpect: synchronisation.emitBarrierArriveExpect,
  barrierWait: synchronisation.emitBarrierWait,

  copyAsync: asynchronous.emitCopyAsync,
  copyAsyncCommit: asynchronous.emitCopyAsyncCommit,
  copyAsyncWait: asynchronous.emitCopyAsyncWait,
  copyAsyncArrive: asynchronous.emitCopyAsyncArrive,
  tensorLoad: asynchronous.emitTensorLoad,
  tensorStore: asynchronous.emitTensorStore,
  tensorStoreCommit: asynchronous.emitTensorStoreCommit,
  tensorStoreWait: asynchronous.emitTensorStoreWait,
  prefetchTensorMap: asynchronous.emitPrefetchTensorMap,

  loadMatrix: matrix.emitLoadMatrix,
  storeMatrix: matrix.emitStoreMatrix,
  mma: matrix.emitMma,
  wmmaLoad: matrix.emitWmmaLoad,
  wmmaStore: matrix.emitWmmaStore,
  wmmaMma: matrix.emitWmmaMma,
  warpgroupFence: warpgroup.emitWarpgroupFence,
  warpgroupMma: warpgroup.emitWarpgroupMma,
  warpgroupCommit: warpgroup.emitWarpgroupCommit,
  warpgroupWait: warpgroup.emitWarpgroupWait,

  print: emitPrint,
  assert: emitAssert,
};
