/** @file The simulator: `tilewright/simulator`. */
export {
  createSimulatorBackend,
  type SimulatorBackend,
  type SimulatorOptions,
  type SimulatorProgress,
} from "./backend.ts";
export { Counters, type InstructionCounts } from "./counters.ts";
export type { Fault } from "./faults.ts";
export { openSimulator, type ProfileOptions, type Simulator } from "./open-simulator.ts";
export type { Report, Schedule } from "./state.ts";
