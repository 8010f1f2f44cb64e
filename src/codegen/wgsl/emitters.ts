/** @file The table: how each operation is written in WGSL. Which targets have it is said in requirements.ts. */
import type { OperationNode } from "../../ir/nodes.ts";
import type { OperationName } from "../../ir/operations.ts";
import * as arithmetic from "./arithmetic.ts";
import { emitBitcast, emitCompose, emitConvert, emitExtract } from "./convert.ts";
import type { Emission } from "./emission.ts";
import { emitWmmaLoad, emitWmmaMma, emitWmmaStore } from "./matrix.ts";
import * as memory from "./memory.ts";
import * as subgroups from "./subgroups.ts";
import { emitBlockBarrier, emitNothing } from "./synchronisation.ts";

export type Emitters = {
  readonly [Name in OperationName]: (emission: Emission, node: OperationNode<Name>) => void;
};

/** requirements.ts refuses these, or lower.ts replaces them, before anything is written. */
function absent(emission: Emission, node: OperationNode): never {
  throw emission.error(`${node.name} has no form in WGSL`, node.site);
}

export const emitters: Emitters = {
  add: arithmetic.emitAdd,
  sub: arithmetic.emitSub,
  mul: arithmetic.emitMul,
  mulHigh: arithmetic.emitMulHigh,
  div: arithmetic.emitDiv,
  rem: arithmetic.emitRem,
  floorDiv: arithmetic.emitFloorDiv,
  floorMod: arithmetic.emitFloorMod,
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
  equal: arithmetic.comparison("==", { below: false, above: false }),
  notEqual: arithmetic.comparison("!=", { below: true, above: true }),
  less: arithmetic.comparison("<", { below: false, above: true }),
  lessEqual: arithmetic.comparison("<=", { below: false, above: true }),
  greater: arithmetic.comparison(">", { below: true, above: false }),
  greaterEqual: arithmetic.comparison(">=", { below: true, above: false }),
  isNaN: arithmetic.emitIsNaN,
  select: arithmetic.emitSelect,
  sqrt: arithmetic.named("sqrt"),
  reciprocalSqrt: arithmetic.named("inverseSqrt"),
  reciprocal: arithmetic.emitReciprocal,
  exp2: arithmetic.named("exp2"),
  log2: arithmetic.named("log2"),
  sin: arithmetic.named("sin"),
  cos: arithmetic.named("cos"),
  tanh: arithmetic.emitTanh,
  floor: arithmetic.named("floor"),
  ceil: arithmetic.named("ceil"),
  trunc: arithmetic.named("trunc"),
  roundEven: arithmetic.named("round"),
  convert: emitConvert,
  bitcast: emitBitcast,
  popcount: arithmetic.emitPopcount,
  leadingZeros: arithmetic.emitLeadingZeros,
  reverseBits: arithmetic.named("reverseBits"),
  dot4: arithmetic.emitDot4,
  permuteBytes: arithmetic.emitPermuteBytes,
  compose: emitCompose,
  extract: emitExtract,
  builtin: memory.emitBuiltin,
  parameter: memory.emitParameter,
  bufferSize: memory.emitBufferSize,
  bufferStride: memory.emitBufferStride,

  readRegister: memory.emitReadRegister,
  writeRegister: memory.emitWriteRegister,
  load: memory.emitLoad,
  store: memory.emitStore,
  atomic: memory.emitAtomic,

  shuffle: subgroups.emitShuffle,
  vote: subgroups.emitVote,
  ballot: subgroups.emitBallot,
  subgroupReduce: subgroups.emitSubgroupReduce,
  electOne: subgroups.emitElectOne,

  blockBarrier: emitBlockBarrier,
  namedBarrier: absent,
  // lowerForWgsl has made a block barrier of it.
  subgroupBarrier: absent,
  fence: absent,
  proxyFence: absent,
  barrierInitFence: absent,
  clusterBarrier: absent,
  barrierInit: absent,
  barrierArrive: absent,
  barrierArriveExpect: absent,
  barrierWait: absent,

  copyAsync: absent,
  copyAsyncCommit: absent,
  copyAsyncWait: absent,
  copyAsyncArrive: absent,
  tensorLoad: absent,
  tensorStore: absent,
  tensorStoreCommit: absent,
  tensorStoreWait: absent,
  prefetchTensorMap: absent,

  loadMatrix: absent,
  storeMatrix: absent,
  mma: absent,
  wmmaLoad: emitWmmaLoad,
  wmmaStore: emitWmmaStore,
  wmmaMma: emitWmmaMma,
  warpgroupFence: absent,
  warpgroupMma: absent,
  warpgroupCommit: absent,
  warpgroupWait: absent,

  print: emitNothing,
  assert: emitNothing,
};
