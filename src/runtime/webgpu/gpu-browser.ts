/** @file Where WebGPU comes from in a page or worker: `#dawn` leads here outside Node.js. */
import { type Unavailable, unavailable } from "./availability.ts";

/** Choices that only an implementation in Node.js can follow. */
export interface GpuChoices {
  /** Dawn toggles to switch on besides the usual ones, or with "!" before them off. */
  readonly toggles?: readonly string[] | undefined;
  /** Dawn's own name of a backend: "vulkan", "metal", "d3d12", "null". */
  readonly backend?: string | undefined;
}

/** The browser's own WebGPU. */
export async function findGpu(_choices: GpuChoices): Promise<GPU | Unavailable> {
  const { navigator } = globalThis as { readonly navigator?: { readonly gpu?: GPU } };
  if (navigator?.gpu !== undefined) return navigator.gpu;
  return (globalThis as { readonly isSecureContext?: boolean }).isSecureContext === false
    ? unavailable(
        "WebGPU is for secure contexts, and this page is none.",
        "Serve it over https or from localhost.",
      )
    : unavailable("This browser has no WebGPU.", "Use a recent Chrome, Edge, Safari or Firefox.");
}
