/** @file Shaders to pipelines, once for each text. */
import { AbortedError, CompileError } from "../../errors.ts";
import type { ShaderInterface, ShaderText } from "../../target/webgpu.ts";
import { BoundedCache } from "../bounded-cache.ts";
import { computeStage } from "./constants.ts";

/** A pipeline and how its arguments are bound. */
export interface LoadedShader {
  readonly pipeline: GPUComputePipeline;
  readonly groupLayout: GPUBindGroupLayout;
  readonly shader: ShaderInterface;
  /** What the compiler said. */
  readonly log: string;
}

const pipelinesKept = 512;

export class Pipelines {
  readonly #loaded: BoundedCache<string, Promise<LoadedShader>> = new BoundedCache(pipelinesKept);
  readonly #merged: BoundedCache<string, LoadedShader> = new BoundedCache(pipelinesKept);

  constructor(private readonly device: GPUDevice) {}

  /** @throws CompileError with the compiler's words, AbortedError */
  load(
    name: string,
    hash: string,
    { text, shader }: ShaderText,
    signal: AbortSignal | undefined,
  ): Promise<LoadedShader> {
    const known = this.#loaded.get(hash);
    if (known !== undefined) return known;
    const loading = this.#compile(name, text, shader, signal);
    this.#loaded.set(hash, loading);
    loading.catch(() => this.#loaded.delete(hash));
    return loading;
  }

  async #compile(
    name: string,
    text: string,
    shader: ShaderInterface,
    signal: AbortSignal | undefined,
  ): Promise<LoadedShader> {
    const { device } = this;
    const groupLayout = this.#groupLayout(shader);
    device.pushErrorScope("validation");
    const module = device.createShaderModule({ code: text });
    const scope = device.popErrorScope();
    const log = await compilationLog(module);
    if ((await scope) !== null) throw refused(name, log);
    try {
      const pipeline = await device.createComputePipelineAsync(this.#descriptor(module, shader, groupLayout));
      if (signal?.aborted === true) {
        throw new AbortedError(`kernel ${name}: compiling was stopped`, { cause: signal.reason });
      }
      return { pipeline, groupLayout, shader, log };
    } catch (error) {
      if (error instanceof AbortedError) throw error;
      throw refused(
        name,
        [log, error instanceof Error ? error.message : String(error)].filter(Boolean).join("\n"),
      );
    }
  }

  /** A variant for arrays that share memory. It is made while arguments are bound, which cannot wait. */
  merged(hash: string, shader: ShaderInterface, groups: readonly (readonly number[])[]): LoadedShader {
    const key = `${hash}:${JSON.stringify(groups)}`;
    const known = this.#merged.get(key);
    if (known !== undefined) return known;
    const { text, shader: variant } = shader.merged(groups);
    const groupLayout = this.#groupLayout(variant);
    const module = this.device.createShaderModule({ code: text });
    const pipeline = this.device.createComputePipeline(this.#descriptor(module, variant, groupLayout));
    const loaded = { pipeline, groupLayout, shader: variant, log: "" };
    this.#merged.set(key, loaded);
    return loaded;
  }

  #groupLayout({ bindings }: ShaderInterface): GPUBindGroupLayout {
    const types = bindings.map(
      ({ writable }): GPUBufferBindingType => (writable ? "storage" : "read-only-storage"),
    );
    return this.device.createBindGroupLayout({
      entries: [...types, "uniform" as const].map((type, binding) => ({
        binding,
        visibility: computeStage,
        buffer: { type },
      })),
    });
  }

  #descriptor(
    module: GPUShaderModule,
    { entryPoint }: ShaderInterface,
    groupLayout: GPUBindGroupLayout,
  ): GPUComputePipelineDescriptor {
    const layout = this.device.createPipelineLayout({ bindGroupLayouts: [groupLayout] });
    return { layout, compute: { module, entryPoint } };
  }
}

async function compilationLog(module: GPUShaderModule): Promise<string> {
  const { messages } = await module.getCompilationInfo();
  return messages
    .map(({ type, lineNum, linePos, message }) => `${type} at ${lineNum}:${linePos}: ${message}`)
    .join("\n");
}

function refused(name: string, log: string): CompileError {
  return new CompileError(
    `kernel ${name}: the WebGPU implementation refuses the generated shader, which is a fault of this library or a limit of the device:\n${log}`,
    log,
  );
}
