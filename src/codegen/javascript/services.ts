/** @file The names that generated text expects of the simulator; the simulator's services are complete over them. */

/** Every service, by the name that the text uses. */
export const serviceNames = [
  // Numbers.
  "fround", "imul", "abs", "sqrt", "pow", "log2", "sin", "cos", "tanh", "floor", "ceil", "trunc", "roundEven",
  "asIntN", "asUintN", "roundToF16", "roundToBF16", "roundToTF32", "roundToE4M3", "roundToE5M2",
  "fma_f16", "fma_bf16", "fma_f32", "fma_f64", "minFloat", "maxFloat",
  "i32Arithmetic", "u32Arithmetic", "i64Arithmetic", "u64Arithmetic", "indexArithmetic", "conversions",
  "mulHigh_i32", "mulHigh_u32", "mulHigh_i64", "mulHigh_u64",
  "popcount32", "popcount64", "leadingZeros32", "leadingZeros64",
  "reverseBits_i32", "reverseBits_u32", "reverseBits_i64", "reverseBits_u64", "dot4", "permuteBytes",
  "f16Values", "bf16Values", "e4m3Values", "e5m2Values", "f16ToBits", "bf16ToBits", "e4m3ToBits", "e5m2ToBits",
  "f32ToBits", "f32FromBits", "f64LowWord", "f64HighWord", "f64FromWords",
  "lowWord", "highWord", "signedFromWords", "unsignedFromWords",
  // Lanes and control.
  "exitLane", "remaining", "split", "copied", "goOn", "leftLoop", "spin", "closeRegion",
  // Memory.
  "sharedArray", "constantTable", "readGlobal", "writeGlobal", "readShared", "writeShared", "readTable",
  "atomicGlobal", "atomicShared", "countGlobal", "countShared",
  // Checks.
  "checkQuotient", "unassigned", "touchRegister", "print", "assertion",
  // Synchronisation.
  "fence", "proxyFence", "barrierInitFence", "barrierInit", "barrierArrive", "barrierArriveExpect", "barrierWait",
  "blockBarrier", "namedBarrier", "subgroupBarrier", "clusterArrive", "clusterWait",
  // Asynchronous copies.
  "copyAsync", "copyAsyncCommit", "copyAsyncWait", "copyAsyncArrive", "tensorLoad", "tensorStore",
  "tensorStoreCommit", "tensorStoreWait",
  // Collectives and matrices.
  "shuffle", "vote", "ballot", "subgroupReduce", "electOne", "eightByEightPlan", "loadMatrix", "storeMatrix",
  "mmaPlan", "wmmaPlan", "mma", "wmmaMemoryPlan", "wmmaLoad", "wmmaStore", "warpgroupPlan", "warpgroupFence",
  "warpgroupMma", "warpgroupCommit", "warpgroupWait",
] as const;

export type ServiceName = (typeof serviceNames)[number];
