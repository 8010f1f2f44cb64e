/**
 * @file Facts of a WebGPU adapter, and what a generated shader says of itself to the one who launches it.
 */

import type { ElementType, TypeName } from "../types/types.ts";
import { types } from "../types/types.ts";
import type { MatrixInstruction, TargetFacts } from "./facts.ts";

/** A shape that an adapter's subgroup matrices have (`adapter.info.subgroupMatrixConfigs`). */
export interface SubgroupMatrixConfiguration {
  readonly componentType: string;
  readonly resultComponentType: string;
  readonly M: number;
  readonly N: number;
  readonly K: number;
}

/** What an adapter tells of itself; the shape of a `GPUAdapter`, so that one can be given. */
export interface WebGpuDescription {
  readonly features: { has(name: string): boolean };
  readonly limits: {
    readonly maxComputeInvocationsPerWorkgroup: number;
    readonly maxComputeWorkgroupSizeX: number;
    readonly maxComputeWorkgroupStorageSize: number;
    readonly maxComputeWorkgroupsPerDimension: number;
    readonly maxStorageBuffersPerShaderStage: number;
    readonly maxStorageBufferBindingSize: number;
    readonly maxBufferSize: number;
  };
  readonly info: {
    readonly vendor: string;
    readonly subgroupMinSize?: number | undefined;
    readonly subgroupMaxSize?: number | undefined;
    readonly subgroupMatrixConfigs?: Iterable<SubgroupMatrixConfiguration> | undefined;
  };
  /** `gpu.wgslLanguageFeatures`. */
  readonly languageFeatures: { has(name: string): boolean };
}

/** What a WGSL generator may use beyond {@link TargetFacts}. */
export interface WgslFeatures {
  /** `enable f16`. */
  readonly f16: boolean;
  /**
   * How lanes exchange values: "native" through subgroup operations of a width that is certain, "pinned" through such
   * operations with the width asked for by `@subgroup_size`, "emulated" through workgroup memory.
   */
  readonly subgroups: "native" | "pinned" | "emulated";
  /** `@builtin(subgroup_id)`. */
  readonly subgroupId: boolean;
  readonly packedDot: boolean;
  /** A store to one component of a vector in memory leaves the others alone, also for other threads. */
  readonly componentStores: boolean;
  readonly workgroupsPerDimension: number;
  readonly storageBuffers: number;
  readonly bindingBytes: number;
}

/** Facts of a WebGPU adapter. */
export interface WebGpuFacts extends TargetFacts {
  readonly language: "wgsl";
  readonly wgsl: WgslFeatures;
}

/** Whether facts are those of a WebGPU adapter. */
export function isWebGpuFacts(facts: TargetFacts): facts is WebGpuFacts {
  return facts.language === "wgsl" && "wgsl" in facts;
}

/** Choices that an adapter leaves open. */
export interface WebGpuFactsOptions {
  /** Lanes of a subgroup, where the adapter has a choice or none. Default 32, or the nearest the adapter has. */
  readonly subgroupWidth?: number | undefined;
  /** Exchange values through workgroup memory even where there are subgroup operations. Default false. */
  readonly emulateSubgroups?: boolean | undefined;
  /** What heuristics should take for the number of multiprocessors, which WebGPU does not tell. Default 32. */
  readonly multiprocessors?: number | undefined;
}

const defaultWidth = 32;

interface SubgroupPlan {
  readonly width: number;
  readonly way: WgslFeatures["subgroups"];
}

/** A width that is certain, or the one to emulate. */
function planSubgroups(description: WebGpuDescription, options: WebGpuFactsOptions): SubgroupPlan {
  const { features, info, limits } = description;
  const wanted = options.subgroupWidth ?? defaultWidth;
  const [least, most] = [info.subgroupMinSize ?? 0, info.subgroupMaxSize ?? 0];
  if (options.emulateSubgroups !== true && features.has("subgroups") && least > 0) {
    if (least === most) return { width: least, way: "native" };
    if (features.has("subgroup-size-control") && most <= 128) {
      return { width: Math.min(Math.max(wanted, least), most), way: "pinned" };
    }
  }
  return { width: Math.min(wanted, limits.maxComputeInvocationsPerWorkgroup), way: "emulated" };
}

const integers: readonly TypeName[] = ["i32", "u32"];

/** f32 goes through compare-exchange on its bits. */
function atomics(): TargetFacts["atomics"] {
  const whole = new Set(integers);
  const numbers = new Set<TypeName>([...integers, "f32"]);
  return new Map<string, ReadonlySet<TypeName>>([
    ["add", numbers],
    ["min", numbers],
    ["max", numbers],
    ["exchange", numbers],
    ["compareExchange", numbers],
    ["and", whole],
    ["or", whole],
    ["xor", whole],
  ]);
}

function matrixInstructions(
  { features, info }: WebGpuDescription,
  way: WgslFeatures["subgroups"],
): readonly MatrixInstruction[] {
  if (way === "emulated" || !features.has("chromium-experimental-subgroup-matrix")) return [];
  return [...(info.subgroupMatrixConfigs ?? [])].flatMap((one) => {
    const [component, result] = [one.componentType, one.resultComponentType];
    if (!(component in types && result in types)) return [];
    const needsHalves = (component === "f16" || result === "f16") && !features.has("shader-f16");
    if (needsHalves) return [];
    const [a, accumulator] = [component as TypeName, result as TypeName];
    return [{ a, b: a, accumulator, m: one.M, n: one.N, k: one.K }];
  });
}

/** Facts of an adapter, or of a device made from it. */
export function webGpuFacts(description: WebGpuDescription, options: WebGpuFactsOptions = {}): WebGpuFacts {
  const { features, limits, info, languageFeatures } = description;
  const { width, way } = planSubgroups(description, options);
  const f16 = features.has("shader-f16");
  const threads = Math.min(limits.maxComputeInvocationsPerWorkgroup, limits.maxComputeWorkgroupSizeX);
  return {
    name: "wgsl",
    language: "wgsl",
    subgroup: { width },
    arithmetic: new Set<TypeName>(["f32", "i32", "u32", "index", ...(f16 ? (["f16"] as const) : [])]),
    storage: new Set<TypeName>([
      "f32",
      "i32",
      "u32",
      "f16",
      "bf16",
      "e4m3",
      "e5m2",
      "i8",
      "i16",
      "u8",
      "u16",
    ]),
    limits: {
      threadsPerBlock: threads,
      sharedBytes: limits.maxComputeWorkgroupStorageSize,
      registersPerThread: 128,
      namedBarriers: 0,
      gridX: 2 ** 31 - 1,
      gridY: limits.maxComputeWorkgroupsPerDimension,
      gridZ: limits.maxComputeWorkgroupsPerDimension,
      blocksPerCluster: 1,
    },
    mma: [],
    wmma: matrixInstructions(description, way),
    warpgroupMma: [],
    loadMatrix: false,
    storeMatrix: false,
    asyncCopy: false,
    bulkCopy: false,
    barriers: false,
    registerReallocation: false,
    namedBarriers: false,
    subgroupOperations: true,
    // Of mixed signs there is none: those bytes would be unpacked first.
    packedDot: languageFeatures.has("packed_4x8_integer_dot_product")
      ? [
          ["i8", "i8"],
          ["u8", "u8"],
        ]
      : [],
    fp8Conversion: false,
    byteAddressable: false,
    atomics: atomics(),
    machine: {
      multiprocessors: options.multiprocessors ?? 32,
      sharedBytesPerMultiprocessor: 2 * limits.maxComputeWorkgroupStorageSize,
      registersPerMultiprocessor: 65536,
      l2Bytes: 4 * 2 ** 20,
      memoryBytes: limits.maxBufferSize,
    },
    wgsl: {
      f16,
      subgroups: way,
      subgroupId: languageFeatures.has("subgroup_id"),
      packedDot: languageFeatures.has("packed_4x8_integer_dot_product"),
      // Metal's compiler writes a whole vector where one component is assigned.
      componentStores: info.vendor !== "" && info.vendor !== "apple",
      workgroupsPerDimension: limits.maxComputeWorkgroupsPerDimension,
      storageBuffers: limits.maxStorageBuffersPerShaderStage,
      bindingBytes: Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize),
    },
  };
}

/**
 * An adapter on paper: the limits that every WebGPU implementation has (W3C WebGPU, section 3.6.2), f16, and subgroups of
 * 32 lanes.
 */
export const commonAdapter: WebGpuDescription = {
  features: new Set(["shader-f16", "subgroups"]),
  limits: {
    maxComputeInvocationsPerWorkgroup: 256,
    maxComputeWorkgroupSizeX: 256,
    maxComputeWorkgroupStorageSize: 16384,
    maxComputeWorkgroupsPerDimension: 65535,
    maxStorageBuffersPerShaderStage: 8,
    maxStorageBufferBindingSize: 2 ** 27,
    maxBufferSize: 2 ** 28,
  },
  info: { vendor: "", subgroupMinSize: 32, subgroupMaxSize: 32 },
  languageFeatures: new Set(["packed_4x8_integer_dot_product", "subgroup_id"]),
};

// What a shader says of itself ----------------------------------------------------------------------------------------

/** One 32-bit word of the uniform block, in order. */
export type BlockWord =
  /** A size, stride or scalar: argument slot `slot`, in the form that {@link encodeScalar} gives. */
  | { readonly kind: "slot"; readonly slot: number; readonly element: ElementType }
  /** First element of the array in slot `slot`, counted from the start of its binding. */
  | { readonly kind: "base"; readonly slot: number }
  /** Extent of the grid along x, y, z. */
  | { readonly kind: "grid"; readonly axis: 0 | 1 | 2 }
  /** Workgroups along x of a dispatch that is folded over two axes; 0 for one that is not. */
  | { readonly kind: "fold" }
  /** Always 0, which the shader's compiler does not know. */
  | { readonly kind: "zero" };

/** One storage binding: the arrays of these pointer slots, which lie in one buffer if they are several. */
export interface ShaderBinding {
  readonly slots: readonly number[];
  readonly writable: boolean;
  /** Bytes to which the first element of each array must be aligned. */
  readonly alignment: number;
}

/**
 * What launches need to know of a shader. Binding i of group 0 is `bindings[i]`; the uniform block follows as the last
 * binding.
 */
export interface ShaderInterface {
  readonly entryPoint: string;
  readonly bindings: readonly ShaderBinding[];
  readonly block: readonly BlockWord[];
  /**
   * The kernel for arrays that share a buffer of which something is written: each group of pointer slots becomes one
   * binding, as WebGPU lets a launch bind written memory only once.
   */
  readonly merged: (groups: readonly (readonly number[])[]) => ShaderText;
}

/** WGSL and how to launch it. */
export interface ShaderText {
  readonly text: string;
  readonly shader: ShaderInterface;
}
