/**
 * @file What enqueueing a planned product costs the host, against the driver's bare launch of the very same function with
 * the same arguments, in the same process and through the same foreign-function interface.
 */
import { type GemmOptions, mmaSync, planGemm } from "tilewright/gemm";
import { f16, f32, type StorageType } from "tilewright/lang";
import { resolve } from "../../src/gemm/resolve.ts";
import { argumentSlots } from "../../src/ir/parameters.ts";
import { createCompiler } from "../../src/runtime/compile.ts";
import type { CudaBackend, CudaExecutable } from "../../src/runtime/cuda/index.ts";
import { isUnavailable } from "../../src/runtime/cuda/index.ts";
import { loadDriverLibrary } from "../../src/runtime/cuda/koffi-library.ts";
import { createDevice } from "../../src/runtime/device.ts";
import { argumentValues } from "../../src/runtime/launch-arguments.ts";
import type { Prepared, WorkItem } from "../harness.ts";
import type { Suite } from "../suite.ts";

/** Launches of a round; the device is waited for after each. */
const launches = 10_000;

interface Way {
  readonly name: string;
  readonly operand: StorageType;
  readonly size: number;
  readonly options: GemmOptions;
}

const ways: readonly Way[] = [
  { name: "f32 16 x 16 x 16, plain", operand: f32, size: 16, options: {} },
  { name: "f16 16 x 16 x 16, mma", operand: f16, size: 16, options: { operator: mmaSync } },
  { name: "f16 64 x 64 x 64, as the library chooses", operand: f16, size: 64, options: {} },
];

function planned(backend: CudaBackend, { name, operand, size, options }: Way): WorkItem {
  return {
    id: `${launches} launches of ${name}`,
    clock: "host",
    prepare: async (): Promise<Prepared> => {
      const device = createDevice(backend, createCompiler(backend), []);
      const [a, b, d] = [1, 2, 3].map(() => device.array(operand, [size, size])) as [never, never, never];
      const plan = await planGemm(a, b, { ...options, d });
      const problem = resolve(a, b, { ...options, d });
      const { kind, schedule } = problem;
      const { executable, ir, kernel } = plan.compiled!;
      const given = schedule.arguments(kind, problem);
      const prepared = backend.prepare(executable, argumentValues(argumentSlots(ir), kernel.params, given));
      const driver = await loadDriverLibrary();
      if (isUnavailable(driver)) throw new Error(driver.reason);
      const { handle, block, dynamicSharedBytes } = (executable as CudaExecutable).kernel;
      const { parameters } = prepared.open();
      const { stream } = backend;
      const [x, y, z] = block;
      const blocks = schedule.blocks(kind, problem, device.facts);
      const bare = (): void => {
        driver.cuLaunchKernel(handle, blocks, 1, 1, x, y, z, dynamicSharedBytes, stream, parameters, 0);
      };
      const repeated = (launch: () => void) => (): void => {
        for (let count = 0; count < launches; count++) launch();
      };
      const note = `${kind.schedule}, ${Object.keys(given).length} arguments`;
      return {
        contenders: [
          { name: "cuLaunchKernel alone", role: "peer", enqueue: repeated(bare) },
          { name: "plan.run()", role: "ours", note, enqueue: repeated(() => plan.run()) },
        ],
        dispose: () => {
          prepared.dispose();
          plan.dispose();
          for (const array of [a, b, d] as { dispose(): void }[]) array.dispose();
        },
      };
    },
  };
}

export const plannedLaunchSuite: Suite = {
  name: "planned-launch",
  items: (backend) => ways.map((way) => planned(backend, way)),
};
