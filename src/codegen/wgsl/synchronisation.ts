/** @file Barriers, and what has no text in WGSL. */
import type { NodeEmitter } from "./arithmetic.ts";
import type { Emission } from "./emission.ts";

/** Orders memory for the workgroup: storage too, where a buffer is both written and read. */
export const emitBlockBarrier: NodeEmitter<"blockBarrier"> = (emission) => {
  if (exchangesThroughStorage(emission)) emission.line("storageBarrier();");
  emission.line("workgroupBarrier();");
};

function exchangesThroughStorage({ kernel, storage }: Emission): boolean {
  return (
    kernel.parameters.some((one) => one.kind === "buffer" && one.access === "readwrite") ||
    storage.bindings.some(({ slots, storage: { writable } }) => writable && slots.length > 1)
  );
}

/** Nothing: what the operation asks for is not there, and not missed. */
export const emitNothing = (): void => {};
