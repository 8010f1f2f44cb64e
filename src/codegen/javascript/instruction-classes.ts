/** @file Classes of instructions for the counters. */
import type { Statement } from "../../ir/nodes.ts";
import { operations } from "../../ir/operations.ts";

/** What an instruction is counted as. */
export type InstructionClass =
  | "arithmetic"
  | "memory"
  | "control"
  | "matrix"
  | "synchronisation"
  | "conversion"
  | "other";

const matrix: ReadonlySet<string> = new Set([
  "loadMatrix",
  "storeMatrix",
  "mma",
  "wmmaLoad",
  "wmmaStore",
  "wmmaMma",
  "warpgroupMma",
]);
const memory: ReadonlySet<string> = new Set([
  "load",
  "store",
  "atomic",
  "copyAsync",
  "tensorLoad",
  "tensorStore",
]);
/** Names for what is there already: no instruction. */
const free: ReadonlySet<string> = new Set([
  "builtin",
  "parameter",
  "bufferSize",
  "bufferStride",
  "compose",
  "extract",
  "readRegister",
  "writeRegister",
  "bitcast",
]);

/** The class of a statement itself, undefined for what costs nothing. */
export function instructionClass(statement: Statement): InstructionClass | undefined {
  if (statement.kind !== "operation") return statement.kind === "roles" ? undefined : "control";
  const { name } = statement;
  if (free.has(name)) return undefined;
  if (matrix.has(name)) return "matrix";
  if (memory.has(name)) return "memory";
  if (name === "convert") return "conversion";
  const info = operations[name];
  if (info.orders) return "synchronisation";
  return info.pure ? "arithmetic" : "other";
}
