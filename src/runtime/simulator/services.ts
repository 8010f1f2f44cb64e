/** @file Everything that generated text calls, by the names that codegen/javascript/services.ts lists. */
import {
  bf16ToBits, e4m3ToBits, e5m2ToBits, f16ToBits, f32FromBits, f32ToBits, f64FromWords, f64HighWord, f64LowWord,
} from "../../types/bits.ts";
import { maxFloat, minFloat } from "../../types/float-arithmetic.ts";
import { fmaBF16, fmaF16, fmaF32, fmaF64 } from "../../types/fma.ts";
import { i32Arithmetic, i64Arithmetic, indexArithmetic, u32Arithmetic, u64Arithmetic } from "../../types/integers.ts";
import { roundToBF16, roundToE4M3, roundToE5M2, roundToF16, roundToTF32 } from "../../types/round.ts";
import {
  atomicGlobal, atomicShared, fence, proxyFence, readGlobal, readShared, readTable, SharedArrayFacts, TableFacts,
  writeGlobal, writeShared,
} from "./access.ts";
import {
  barrierArrive, barrierArriveExpect, barrierInit, barrierInitFence, barrierWait, blockBarrier, clusterArrive,
  clusterWait, namedBarrier, subgroupBarrier,
} from "./barriers.ts";
import { ballot, electOne, shuffle, subgroupReduce, vote } from "./collectives.ts";
import { closeRegion, countGlobal, countShared } from "./counters.ts";
import {
  copyAsync, copyAsyncArrive, copyAsyncCommit, copyAsyncWait, tensorLoad, tensorStore, tensorStoreCommit, tensorStoreWait,
} from "./deferred.ts";
import { assertion, checkQuotient, print, unassigned } from "./diagnostics.ts";
import { copied, exitLane, goOn, leftLoop, remaining, spin, split } from "./lanes.ts";
import { eightByEightPlan, loadMatrix, mma, mmaPlan, storeMatrix, wmmaLoad, wmmaMemoryPlan, wmmaPlan, wmmaStore } from "./matrix.ts";
import * as numbers from "./numbers.ts";
import { touchRegister } from "./registers.ts";
import { warpgroupCommit, warpgroupFence, warpgroupMma, warpgroupPlan, warpgroupWait } from "./warpgroup.ts";

const { fround, imul, abs, sqrt, pow, log2, sin, cos, tanh, floor, ceil, trunc } = Math;

/** The services. */
export const services: { readonly [name: string]: unknown } = {
  fround, imul, abs, sqrt, pow, log2, sin, cos, tanh, floor, ceil, trunc,
  asIntN: (bits: number, x: bigint): bigint => BigInt.asIntN(bits, x),
  asUintN: (bits: number, x: bigint): bigint => BigInt.asUintN(bits, x),
  ...numbers,
  roundToF16, roundToBF16, roundToTF32, roundToE4M3, roundToE5M2,
  fma_f16: fmaF16, fma_bf16: fmaBF16, fma_f32: fmaF32, fma_f64: fmaF64, minFloat, maxFloat,
  i32Arithmetic, u32Arithmetic, i64Arithmetic, u64Arithmetic, indexArithmetic,
  f16ToBits, bf16ToBits, e4m3ToBits, e5m2ToBits, f32ToBits, f32FromBits, f64LowWord, f64HighWord, f64FromWords,
  exitLane, remaining, split, copied, goOn, leftLoop, spin, closeRegion,
  sharedArray: (
    id: number, element: string, length: number, byteOffset: number, size: number, start: number, shift: number, base: number,
  ): SharedArrayFacts => new SharedArrayFacts(id, element, length, byteOffset, size, start, shift, base),
  constantTable: (id: number, element: string, values: readonly (number | bigint)[]): TableFacts => new TableFacts(id, element, values),
  readGlobal, writeGlobal, readShared, writeShared, readTable, atomicGlobal, atomicShared, countGlobal, countShared,
  checkQuotient, unassigned, touchRegister, print, assertion,
  fence, proxyFence, barrierInitFence, barrierInit, barrierArrive, barrierArriveExpect, barrierWait,
  blockBarrier, namedBarrier, subgroupBarrier, clusterArrive, clusterWait,
  copyAsync, copyAsyncCommit, copyAsyncWait, copyAsyncArrive, tensorLoad, tensorStore, tensorStoreCommit, tensorStoreWait,
  shuffle, vote, ballot, subgroupReduce, electOne, eightByEightPlan, loadMatrix, storeMatrix, mmaPlan, wmmaPlan, mma,
  wmmaMemoryPlan, wmmaLoad, wmmaStore, warpgroupPlan, warpgroupFence, warpgroupMma, warpgroupCommit, warpgroupWait,
};
