/**
 * @file WebGPU without a GPU: Dawn's null backend, which judges every shader and runs none, and SwiftShader, which runs
 * them on the processor.
 */

import { argumentSlots } from "../../src/ir/parameters.ts";
import type { Kernel } from "../../src/lang/index.ts";
import { createCompiler, emit } from "../../src/runtime/compile.ts";
import { createDevice, type Device } from "../../src/runtime/device.ts";
import { createSimulatorBackend } from "../../src/runtime/simulator/index.ts";
import { createWebgpuBackend, WebgpuBackend, type WebgpuOptions } from "../../src/runtime/webgpu/index.ts";
import type { WebGpuFacts } from "../../src/target/webgpu.ts";
import { requirement } from "./require.ts";

/** Dawn's null backend: adapters with every feature that Dawn knows. */
export async function openNullBackend(options: WebgpuOptions = {}): Promise<WebgpuBackend> {
  const backend = await createWebgpuBackend({ backend: "null", ...options });
  if (!(backend instanceof WebgpuBackend)) throw new Error(`${backend.reason} ${backend.remedy}`);
  return backend;
}

/** SwiftShader. The Vulkan loader reads the environment once, so nothing else may have used it in this process. */
export async function openSwiftShaderBackend(options: WebgpuOptions = {}): Promise<WebgpuBackend> {
  Object.assign(process.env, requirement("swiftshader").environment);
  const backend = await createWebgpuBackend({ backend: "vulkan", ...options });
  if (!(backend instanceof WebgpuBackend)) throw new Error(`${backend.reason} ${backend.remedy}`);
  return backend;
}

/** A device over a WebGPU backend. */
export function deviceOf(backend: WebgpuBackend): Device {
  return createDevice(backend, createCompiler(backend));
}

/** Compiles a kernel's WGSL on a device of Dawn's. @throws CompileError with Tint's words */
export async function validate(
  backend: WebgpuBackend,
  kernel: Kernel,
  facts: WebGpuFacts = backend.facts,
): Promise<void> {
  const { text, shader, optimised } = emit(kernel, facts);
  await backend.load({
    name: kernel.name,
    text,
    hash: text,
    ir: optimised,
    slots: argumentSlots(optimised),
    shader,
  });
}

/**
 * A simulator that imitates the null backend's adapter, or one of the facts given, and has each kernel judged by Dawn before
 * running it: numbers from the one, validity from the other.
 */
export function judgedSimulator(backend: WebgpuBackend, facts: WebGpuFacts = backend.facts): Device {
  const simulator = createSimulatorBackend({ imitate: facts, checks: false });
  const compiler = createCompiler(simulator, simulator.mode);
  return createDevice(simulator, {
    async compile(kernel, options) {
      await validate(backend, kernel, facts);
      return compiler.compile(kernel, options);
    },
  });
}
