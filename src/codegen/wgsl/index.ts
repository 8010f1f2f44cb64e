/** @file Code generation for WebGPU: IR in, WGSL text out. */
export { generateWgsl } from "./kernel.ts";
export { lowerForWgsl } from "./lower.ts";
export { checkRequirements } from "./requirements.ts";
