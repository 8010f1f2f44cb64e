/**
 * @file A device that exists on paper: kernels are compiled for its facts and nothing runs. It shows what `gemm` would
 * do on a machine that is not here.
 */

import { UnsupportedError } from "../errors.ts";
import type { Backend, BackendBuffer } from "../runtime/backend.ts";
import { emit } from "../runtime/compile.ts";
import { createDevice, type Device } from "../runtime/device.ts";
import type { TargetFacts } from "../target/facts.ts";

/** A device of the given facts. Arrays take no memory; whatever would run or read throws. */
export function createPaperDevice(facts: TargetFacts): Device {
  const refuse = (): never => {
    throw new UnsupportedError(`${facts.name} is here on paper only: nothing runs on it`);
  };
  const backend: Backend = {
    // Nobody asks what kind it is.
    kind: "simulator",
    name: facts.name,
    facts,
    allocate: (bytes): BackendBuffer => ({ bytes }),
    free: () => {},
    write: refuse,
    read: refuse,
    copy: refuse,
    fill: refuse,
    load: refuse,
    prepare: () => ({ dispose: () => {} }),
    launch: refuse,
    capture: refuse,
    sync: () => Promise.resolve(),
    time: refuse,
    memory: () => ({ free: facts.machine.memoryBytes, total: facts.machine.memoryBytes }),
    dispose: () => {},
  };
  return createDevice(backend, {
    compile: async (kernel) => {
      const { optimised: ir, text } = emit(kernel, facts);
      const module = { name: kernel.name, text, hash: "", ir, slots: [] };
      const unknown = {
        registersPerThread: undefined,
        spilledBytes: undefined,
        blocksPerMultiprocessor: undefined,
      };
      return { ir, text, executable: { module, ...unknown } };
    },
  });
}
