/** @file Facts of the simulator: everything that the table of operations has, or those of an NVIDIA target. */
import { ArgumentError } from "../errors.ts";
import type { TypeName } from "../types/types.ts";
import type { TargetFacts } from "./facts.ts";
import { nvidiaTarget } from "./nvidia.ts";

/** What the simulator should be like. */
export interface SimulatorFactsOptions {
  /** Lanes of a subgroup: a power of two from 4 to 128. Default 32; only that has matrix operations. */
  readonly subgroupWidth?: number;
  /** Facts to imitate; kernels are then traced and checked as for that target. */
  readonly imitate?: TargetFacts;
  /** Single facts to replace. */
  readonly facts?: Partial<Omit<TargetFacts, "name" | "language" | "subgroup">>;
}

const arithmetic: readonly TypeName[] = ["f16", "bf16", "f32", "f64", "i32", "i64", "u32", "u64", "index"];
const integers: readonly TypeName[] = ["i32", "i64", "u32", "u64"];

function atomics(): TargetFacts["atomics"] {
  const numbers: ReadonlySet<TypeName> = new Set<TypeName>([...integers, "f16", "bf16", "f32", "f64"]);
  const whole = new Set(integers);
  return new Map<string, ReadonlySet<TypeName>>([
    ["add", numbers],
    ["min", numbers],
    ["max", numbers],
    ["and", whole],
    ["or", whole],
    ["xor", whole],
    ["exchange", numbers],
    ["compareExchange", numbers],
  ]);
}

/** The widest subgroup operations need 128 lanes; narrower than 4 there is nothing to shuffle. */
function checkedWidth(width: number): number {
  if (Number.isInteger(width) && width >= 4 && width <= 128 && (width & (width - 1)) === 0) return width;
  throw new ArgumentError(`a subgroup of ${width} lanes; the simulator has 4, 8, 16, 32, 64 or 128`);
}

/**
 * Facts of a simulator.
 *
 * @throws ArgumentError for an impossible subgroup width
 */
export function simulatorFacts(options: SimulatorFactsOptions = {}): TargetFacts {
  if (options.imitate !== undefined) {
    return {
      ...options.imitate,
      ...options.facts,
      name: `simulator (${options.imitate.name})`,
      language: "javascript",
    };
  }
  const width = checkedWidth(options.subgroupWidth ?? 32);
  const hopper = nvidiaTarget("sm_90a");
  const matrices = width === 32;
  return {
    ...hopper,
    name: "simulator",
    language: "javascript",
    subgroup: { width },
    arithmetic: new Set(arithmetic),
    mma: matrices ? hopper.mma : [],
    wmma: matrices ? hopper.wmma : [],
    warpgroupMma: matrices ? hopper.warpgroupMma : [],
    loadMatrix: matrices,
    storeMatrix: matrices,
    registerReallocation: matrices,
    atomics: atomics(),
    machine: { ...hopper.machine, memoryBytes: 4 * 2 ** 30 },
    ...options.facts,
  };
}
