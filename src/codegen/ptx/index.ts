/** @file Code generation for NVIDIA GPUs: IR in, PTX text out. */
export { generatePtx, type PtxModule } from "./kernel.ts";
export { checkRequirements } from "./requirements.ts";
