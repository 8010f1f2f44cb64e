/** @file A simulator to judge kernels with: its device, what it reports, and what it counts. */
import { argumentSlots } from "../../ir/parameters.ts";
import type { Kernel, ParameterDescriptors } from "../../lang/index.ts";
import { createCompiler } from "../compile.ts";
import type { LaunchOptions } from "../compiled-kernel.ts";
import { createDevice, type Device } from "../device.ts";
import { argumentValues, checkArguments } from "../launch-arguments.ts";
import { createSimulatorBackend, type SimulatorOptions } from "./backend.ts";
import type { Counters } from "./counters.ts";
import type { Report } from "./state.ts";

/** What to launch and count. */
export type ProfileOptions<P extends ParameterDescriptors> = LaunchOptions<P> & {
  /** The blocks of the grid to run; all unless given. */
  readonly only?: readonly (readonly [x: number, y: number, z: number])[];
};

/** A simulator that is open. */
export interface Simulator {
  readonly device: Device;
  /** Faults with defined results, such as divisions by zero, newest last. */
  readonly reports: readonly Report[];
  /** Runs a kernel, with its effects on arrays, and counts what a GPU's profiler would. */
  profile<P extends ParameterDescriptors>(kernel: Kernel<P>, options: ProfileOptions<P>): Promise<Counters>;
}

/** Opens a simulator that counts, besides what `open("simulator")` does. */
export function openSimulator(options: SimulatorOptions = {}): Simulator {
  const backend = createSimulatorBackend({ counters: true, ...options });
  const device = createDevice(backend, createCompiler(backend, backend.mode));
  return {
    device,
    reports: backend.reports,
    async profile(kernel, { blocks, args, only }) {
      checkArguments({ kernel: kernel.name, device, params: kernel.params }, args);
      const { executable, ir } = await device.compile(kernel);
      const [x, y = 1, z = 1] = typeof blocks === "number" ? [blocks] : blocks;
      const prepared = backend.prepare(executable, argumentValues(argumentSlots(ir), kernel.params, args));
      return backend.profile(executable, [x!, y, z], prepared, { blocks: only });
    },
  };
}
