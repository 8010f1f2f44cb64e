/** @file Which buffers of a launch get shadow memory. */
import { type ArgumentBinding, BufferBinding, TensorBinding } from "./arguments.ts";
import type { SimulatorBuffer } from "./buffers.ts";
import type { Program } from "./program.ts";
import { BufferShadow } from "./shadow-cells.ts";

/** Gives the buffers that a launch may write a shadow; parameters over one buffer share it. */
export function shadowBuffers(program: Program, bindings: readonly ArgumentBinding[]): void {
  if (!program.generated.checks) return;
  const granules = new Map<SimulatorBuffer, number>();
  const written = new Set<SimulatorBuffer>();
  const sizes = new Map(program.generated.bufferGranules);
  const writes = program.writtenParameters;
  bindings.forEach((binding, parameter) => {
    if (!(binding instanceof BufferBinding || binding instanceof TensorBinding)) return;
    binding.shadow = undefined;
    const size = sizes.get(parameter);
    if (size === undefined) return;
    granules.set(binding.buffer, Math.min(granules.get(binding.buffer) ?? 16, size));
    if (writes.has(parameter)) written.add(binding.buffer);
  });
  const shadows = new Map<SimulatorBuffer, BufferShadow>();
  for (const buffer of written) shadows.set(buffer, new BufferShadow(granules.get(buffer)!));
  for (const binding of bindings) {
    if (binding instanceof BufferBinding || binding instanceof TensorBinding)
      binding.shadow = shadows.get(binding.buffer);
  }
}
