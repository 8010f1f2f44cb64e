/** @file Where WebGPU comes from in Node.js: the runtime's own, or Dawn through the optional package `webgpu`. */
import { type Unavailable, unavailable } from "./availability.ts";
import type { GpuChoices } from "./gpu-browser.ts";

export type { GpuChoices } from "./gpu-browser.ts";

/**
 * Experimental features are behind `allow_unsafe_apis`; f16 on NVIDIA under Vulkan, and with it the matrices of f16, behind
 * a toggle of its own. Rounded timestamps protect web pages from each other, and there are none here. Nor are there other
 * pages' data to keep from kernels that read out of bounds: clamped indices, which the simulator's checks do not need, cost a
 * third of the speed of products (H200: 110 and 162 TFLOP/s in f16). `toggles: ["!disable_robustness"]` brings them back.
 */
const usualToggles = [
  "allow_unsafe_apis",
  "vulkan_enable_f16_on_nvidia",
  "disable_robustness",
  "!timestamp_quantization",
];

/** Dawn, or what the runtime (Deno, say) brings. */
export async function findGpu({ toggles = [], backend }: GpuChoices): Promise<GPU | Unavailable> {
  const own = (globalThis as { readonly navigator?: { readonly gpu?: GPU } }).navigator?.gpu;
  if (own !== undefined && backend === undefined && toggles.length === 0) return own;
  try {
    const { create } = await import("webgpu");
    return create(flags([...usualToggles, ...toggles], backend)) as GPU;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return isMissing(error)
      ? unavailable("The package webgpu is not installed.", "Install it: npm install webgpu@0.6.2.")
      : unavailable(
          `The package webgpu does not load: ${message.split("\n")[0]}`,
          "Version 0.6.2 loads where older C++ libraries are; see its requirements.",
        );
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND";
}

function flags(toggles: readonly string[], backend: string | undefined): string[] {
  const on = toggles.filter((name) => !name.startsWith("!") && !toggles.includes(`!${name}`));
  const off = toggles.filter((name) => name.startsWith("!")).map((name) => name.slice(1));
  return [
    `enable-dawn-features=${on.join(",")}`,
    `disable-dawn-features=${off.join(",")}`,
    ...(backend === undefined ? [] : [`backend=${backend}`]),
  ];
}
