/** @file The page's device: the best there is or the simulator, opened again after a loss. */
import { type Device, open } from "tilewright";
import { isWebGpuFacts } from "tilewright/webgpu";

/** What the page shows of a device, in order. */
export function factsOf(device: Device): readonly (readonly [string, string])[] {
  const { facts } = device;
  const yes = (value: boolean): string => (value ? "yes" : "no");
  const general = [
    ["Name", device.name],
    ["Kind", device.kind],
    ["Subgroup", `${facts.subgroup.width} lanes`],
    ["Threads a block", String(facts.limits.threadsPerBlock)],
    ["Shared memory", `${facts.limits.sharedBytes / 1024} KiB a block`],
    ["Arithmetic", [...facts.arithmetic].join(", ")],
  ] as const;
  const matrices = facts.wmma.map(({ a, accumulator, m, n, k }) => `${a} to ${accumulator} ${m}x${n}x${k}`);
  if (!isWebGpuFacts(facts)) return general;
  return [
    ...general,
    ["Subgroup operations", facts.wgsl.subgroups],
    ["f16 in registers", yes(facts.wgsl.f16)],
    ["Packed dot products", yes(facts.packedDot.length > 0)],
    ["Subgroup matrices", matrices.length === 0 ? "none" : matrices.join("; ")],
    ["Largest binding", `${Math.round(facts.wgsl.bindingBytes / 2 ** 20)} MiB`],
  ];
}

/** Why there is nothing better, in a sentence or two; undefined when there is. */
export function whyNotBetter(device: Device): string | undefined {
  if (device.kind !== "simulator") return undefined;
  const webgpu = device.missing.find(({ kind }) => kind === "webgpu");
  return webgpu === undefined
    ? "The simulator runs the same kernels on the processor: exact, and slow."
    : `No WebGPU: ${webgpu.reason} ${webgpu.remedy} Until then the simulator runs the same kernels on the processor: exact, and slow.`;
}

/** Keeps one device of a kind open. */
export class PageDevice {
  #kind = "";
  #device: Device | undefined;

  async open(kind: string): Promise<Device> {
    if (this.#device !== undefined && this.#kind === kind) return this.#device;
    this.close();
    this.#device =
      kind === "simulator"
        ? await open({ kind: "simulator", simulator: { checks: false } })
        : await open({ warn: false });
    this.#kind = kind;
    return this.#device;
  }

  /** Lets go of the device, which may be lost: the next one is a new one. */
  close(): void {
    this.#device?.dispose();
    this.#device = undefined;
  }
}
