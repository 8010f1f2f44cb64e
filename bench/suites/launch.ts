/** @file What a launch costs the host, against the bare call of the driver through the same foreign-function interface. */
import type { ArgumentValue } from "../../src/runtime/backend.ts";
import { type CudaBackend, isUnavailable, type PtxParameter } from "../../src/runtime/cuda/index.ts";
import { loadDriverLibrary } from "../../src/runtime/cuda/koffi-library.ts";
import type { Prepared, WorkItem } from "../harness.ts";
import type { Suite } from "../suite.ts";

/** A kernel that does nothing, with one pointer and `numbers` 32-bit parameters. */
function emptyKernel(target: string, numbers: number): string {
  const parameters = [".param .u64 p", ...Array.from({ length: numbers }, (_, i) => `.param .u32 n${i}`)];
  return `.version 8.0\n.target ${target}\n.address_size 64\n.visible .entry nothing(${parameters.join(", ")})\n{\n  ret;\n}\n`;
}

function launchItem(backend: CudaBackend, numbers: number): WorkItem {
  return {
    id: `launch with ${numbers + 1} arguments`,
    clock: "host",
    prepare: async (): Promise<Prepared> => {
      const program = backend.loadPtx(emptyKernel(backend.facts.name, numbers), "nothing");
      const parameters: readonly PtxParameter[] = [
        "pointer",
        ...new Array<PtxParameter>(numbers).fill("u32"),
      ];
      const kernel = program.kernel("nothing", { parameters, block: [32, 1, 1] });
      const buffer = backend.allocate(256);
      const values: readonly ArgumentValue[] = [
        { kind: "pointer", buffer, byteOffset: 0, byteLength: 256 },
        ...Array.from({ length: numbers }, (_, i): ArgumentValue => ({ kind: "number", value: i })),
      ];
      const prepared = kernel.prepare(values);
      const driver = await loadDriverLibrary();
      if (isUnavailable(driver)) throw new Error(driver.reason);
      const { handle } = kernel.function;
      const { stream } = backend;
      const { parameters: addresses } = prepared.open();
      return {
        contenders: [
          {
            name: "cuLaunchKernel alone",
            role: "peer",
            enqueue: () => driver.cuLaunchKernel(handle, 1, 1, 1, 32, 1, 1, 0, stream, addresses, 0),
          },
          { name: "prepared", role: "ours", enqueue: () => kernel.launch([1, 1, 1], prepared) },
          {
            name: "prepared each time",
            role: "ours",
            enqueue: () => {
              const once = kernel.prepare(values);
              kernel.launch([1, 1, 1], once);
              once.dispose();
            },
          },
        ],
        dispose: () => {
          prepared.dispose();
          backend.free(buffer);
        },
      };
    },
  };
}

export const launchSuite: Suite = {
  name: "launch",
  items: (backend) => [launchItem(backend, 0), launchItem(backend, 5), launchItem(backend, 15)],
};
