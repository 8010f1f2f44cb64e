/**
 * @file From a kernel to an executable: trace, verify, optimise, generate text, load. The one place where tracing,
 * passes and code generators meet.
 */
import { generateJavaScript } from "../codegen/javascript/index.ts";
import { generatePtx } from "../codegen/ptx/index.ts";
import { generateWgsl, lowerForWgsl } from "../codegen/wgsl/index.ts";
import { AbortedError, CompileError, TilewrightError, TraceError, UnsupportedError } from "../errors.ts";
import { hashText } from "../ir/hash.ts";
import type { KernelIr } from "../ir/nodes.ts";
import { type ArgumentSlot, argumentSlots } from "../ir/parameters.ts";
import { print } from "../ir/printer.ts";
import { verify } from "../ir/verifier.ts";
import type { Kernel } from "../lang/index.ts";
import { optimise } from "../passes/index.ts";
import type { TargetFacts } from "../target/facts.ts";
import type { ShaderInterface } from "../target/webgpu.ts";
import type { Backend, Executable, Module } from "./backend.ts";
import { BoundedCache } from "./bounded-cache.ts";
import { type DumpedKernel, dumpKernel } from "./compile-dump.ts";
import type { CompileOptions } from "./compiled-kernel.ts";
import type { KernelCompiler } from "./device.ts";
import type { KernelParts } from "./loaded-kernel.ts";

/** How text is generated, beyond what kernel and target say. */
export interface GenerationOptions {
  /** The simulator looks for faults. Default true. */
  readonly checks?: boolean | undefined;
  /** The simulator counts what hardware profilers count. Default false. */
  readonly counters?: boolean | undefined;
}

/** A kernel at the three stations on its way to a device. */
export interface GeneratedKernel {
  /** As traced. */
  readonly ir: KernelIr;
  readonly optimised: KernelIr;
  /** PTX, WGSL or JavaScript. */
  readonly text: string;
  /** How WGSL is launched. */
  readonly shader?: ShaderInterface | undefined;
}

/**
 * Traces a kernel for a target, verifies it, optimises it and generates its text; needs no device.
 * @throws TraceError, UnsupportedError, CompileError naming the kernel
 */
export function emit(kernel: Kernel, facts: TargetFacts, options: GenerationOptions = {}): GeneratedKernel {
  const ir = trace(kernel, facts);
  return namingKernel(kernel.name, () => {
    verify(ir);
    const optimised = optimise(lowerForWgsl(ir, facts), facts, {
      strictUniformity: facts.language === "wgsl",
    });
    return { ir, optimised, ...generate(optimised, facts, options) };
  });
}

function trace(kernel: Kernel, facts: TargetFacts): KernelIr {
  try {
    return kernel.trace(facts);
  } catch (error) {
    if (error instanceof TilewrightError) throw withKernelName(kernel.name, error);
    const message = error instanceof Error ? error.message : String(error);
    throw new TraceError(`kernel ${kernel.name}: its body threw while being traced: ${message}`, [], {
      cause: error,
    });
  }
}

function generate(
  kernel: KernelIr,
  facts: TargetFacts,
  options: GenerationOptions,
): Pick<GeneratedKernel, "text" | "shader"> {
  switch (facts.language) {
    case "ptx":
      return { text: generatePtx(kernel, facts).text };
    case "javascript": {
      const { checks = true, counters = false } = options;
      return { text: generateJavaScript(kernel, facts, { checks, counters }).text };
    }
    case "wgsl":
      return generateWgsl(kernel, facts);
    default:
      return facts.language satisfies never;
  }
}

function namingKernel<R>(name: string, work: () => R): R {
  try {
    return work();
  } catch (error) {
    throw withKernelName(name, error);
  }
}

/** The error itself if it names the kernel already, otherwise one of the same kind that does. */
function withKernelName(name: string, error: unknown): unknown {
  if (!(error instanceof TilewrightError)) {
    const message = error instanceof Error ? error.message : String(error);
    return new CompileError(`kernel ${name}: ${message}`, "", [], { cause: error });
  }
  if (error.message.toLowerCase().includes(`kernel ${name.toLowerCase()}`)) return error;
  const message = `kernel ${name}: ${error.message}`;
  if (error instanceof UnsupportedError) return new UnsupportedError(message, { cause: error });
  if (error instanceof TraceError) return new TraceError(message, error.positions, { cause: error });
  if (error instanceof CompileError)
    return new CompileError(message, error.log, error.positions, { cause: error });
  return error;
}

/** Executables that stay known by the hash of their text, however they are asked for. */
const executablesKept = 512;

/** A text may take arguments of several types: f16 and bf16 are the same 16 bits to it. */
function hashOf(text: string, slots: readonly ArgumentSlot[]): string {
  return hashText(`${text}\n${JSON.stringify(slots)}`);
}

/**
 * A compiler for one backend. Kernels of the same text share an executable, except on the simulator: it reads types and
 * the author's lines from the kernel itself.
 */
export function createCompiler(backend: Backend, options: GenerationOptions = {}): KernelCompiler {
  const executables = new BoundedCache<string, Promise<Executable>>(executablesKept);

  const load = (module: Module, { signal }: CompileOptions): Promise<Executable> => {
    if (backend.facts.language === "javascript") return backend.load(module, { signal });
    const known = executables.get(module.hash);
    if (known !== undefined) return known;
    const loading = backend.load(module, { signal });
    executables.set(module.hash, loading);
    loading.catch(() => executables.delete(module.hash));
    return loading;
  };

  return {
    async compile(kernel: Kernel, compileOptions: CompileOptions): Promise<KernelParts> {
      const { signal } = compileOptions;
      if (signal?.aborted === true) {
        throw new AbortedError(`kernel ${kernel.name}: compiling was stopped`, { cause: signal.reason });
      }
      const generated = emit(kernel, backend.facts, options);
      const { optimised: ir, text, shader } = generated;
      const slots = argumentSlots(ir);
      const module = { name: kernel.name, text, hash: hashOf(text, slots), ir, slots, shader };
      const dump = (log: string): void =>
        dumpKernel(describe(kernel.name, backend.facts, module.hash, generated, log));
      const executable = await load(module, compileOptions).catch((error: unknown) => {
        dump(error instanceof CompileError ? error.log : String(error));
        throw withKernelName(kernel.name, error);
      });
      dump(executable.log ?? "");
      return { ir, text, executable };
    },
  };
}

function describe(
  name: string,
  facts: TargetFacts,
  hash: string,
  { ir, optimised, text }: GeneratedKernel,
  log: string,
): DumpedKernel {
  const endings = { ptx: "ptx", wgsl: "wgsl", javascript: "js" } as const;
  const ending = endings[facts.language];
  return {
    name,
    target: facts.name,
    hash,
    ir: () => print(ir),
    optimised: () => print(optimised),
    text,
    ending,
    log,
  };
}
