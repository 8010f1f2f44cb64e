/** @file From the caller's choices to a device: whose GPU, which adapter, with all features and limits that serve. */
import { findGpu } from "#dawn";
import type { WebGpuDescription } from "../../target/webgpu.ts";
import { isUnavailable, type Unavailable, unavailable } from "./availability.ts";
import type { GpuChoices } from "./gpu-browser.ts";

/** Which WebGPU device to use. */
export interface AdapterChoices extends GpuChoices {
  /** Another implementation than the environment's own. */
  readonly gpu?: GPU | undefined;
  /** An adapter the caller has. */
  readonly adapter?: GPUAdapter | undefined;
  /** A device the caller has, with whatever features and limits it was made; it is not destroyed with the backend. */
  readonly device?: GPUDevice | undefined;
  readonly powerPreference?: GPUPowerPreference | undefined;
}

/** A device and what is known of it. */
export interface OpenedDevice {
  readonly device: GPUDevice;
  /** Held for as long as the device: some implementations end with it. */
  readonly gpu: GPU | undefined;
  readonly name: string;
  readonly description: WebGpuDescription;
  /** Whether the backend made the device, and ends it. */
  readonly own: boolean;
}

const wantedFeatures = [
  "shader-f16",
  "subgroups",
  "subgroup-size-control",
  "timestamp-query",
  "chromium-experimental-subgroup-matrix",
] as const;

const wantedLimits = [
  "maxBufferSize",
  "maxStorageBufferBindingSize",
  "maxStorageBuffersPerShaderStage",
  "maxComputeWorkgroupStorageSize",
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX",
  "maxComputeWorkgroupsPerDimension",
] as const;

/** Opens a device. */
export async function openDevice(choices: AdapterChoices): Promise<OpenedDevice | Unavailable> {
  if (choices.device !== undefined) return adoptedDevice(choices.device, choices);
  const found = await findAdapter(choices);
  if (isUnavailable(found)) return found;
  const { gpu, adapter, name } = found;
  const requiredFeatures = wantedFeatures.filter((feature) =>
    adapter.features.has(feature),
  ) as GPUFeatureName[];
  const requiredLimits = Object.fromEntries(wantedLimits.map((limit) => [limit, adapter.limits[limit]]));
  try {
    const device = await adapter.requestDevice({ requiredFeatures, requiredLimits });
    return opened(device, adapter.info, gpu, true);
  } catch (error) {
    return unavailable(
      `${name} gives no device: ${error instanceof Error ? error.message : String(error)}`,
      "An adapter gives one device only; request another adapter, or give the device itself.",
    );
  }
}

/** An adapter and whose it is. */
export interface FoundAdapter {
  readonly gpu: GPU | undefined;
  readonly adapter: GPUAdapter;
  readonly name: string;
}

/** The adapter that a device would be made from. */
export async function findAdapter(choices: AdapterChoices = {}): Promise<FoundAdapter | Unavailable> {
  const gpu = choices.gpu ?? (choices.adapter === undefined ? await findGpu(choices) : undefined);
  if (gpu !== undefined && isUnavailable(gpu)) return gpu;
  const adapter = choices.adapter ?? (await requestAdapter(gpu!, choices));
  return isUnavailable(adapter) ? adapter : { gpu, adapter, name: adapterName(adapter.info) };
}

async function requestAdapter(
  gpu: GPU,
  { powerPreference }: AdapterChoices,
): Promise<GPUAdapter | Unavailable> {
  const preference = powerPreference ?? "high-performance";
  const adapter = await gpu.requestAdapter({ powerPreference: preference });
  return (
    adapter ??
    unavailable(
      "WebGPU finds no adapter.",
      "Check the GPU's driver (Vulkan on Linux); browsers may need hardware acceleration switched on.",
    )
  );
}

function adoptedDevice(device: GPUDevice, { gpu, adapter }: AdapterChoices): Promise<OpenedDevice> {
  const info = (device as { readonly adapterInfo?: GPUAdapterInfo }).adapterInfo ?? adapter?.info;
  return opened(device, info, gpu, false);
}

const unknownInfo = { vendor: "", architecture: "", device: "", description: "" };

async function opened(
  device: GPUDevice,
  info: GPUAdapterInfo | typeof unknownInfo = unknownInfo,
  gpu: GPU | undefined,
  own: boolean,
): Promise<OpenedDevice> {
  const { navigator } = globalThis as { readonly navigator?: { readonly gpu?: GPU } };
  const languageFeatures = (gpu ?? navigator?.gpu)?.wgslLanguageFeatures ?? new Set<string>();
  const features = await featuresOf(device);
  const { limits } = device;
  const description = { features, limits, info, languageFeatures } as WebGpuDescription;
  return { device, gpu, name: adapterName(info), description, own };
}

/** Features by the directive that a shader enables them with. Some implementations name what their compilers refuse. */
const directives: { readonly [feature: string]: string } = {
  "shader-f16": "f16",
  subgroups: "subgroups",
  "subgroup-size-control": "subgroup_size_control",
  "chromium-experimental-subgroup-matrix": "chromium_experimental_subgroup_matrix",
};

async function featuresOf(device: GPUDevice): Promise<ReadonlySet<string>> {
  const features = new Set<string>(device.features);
  const claimed = Object.keys(directives).filter((feature) => features.has(feature));
  const accepted = await Promise.all(claimed.map((feature) => compiles(device, directives[feature]!)));
  claimed.forEach((feature, i) => {
    if (!accepted[i]) features.delete(feature);
  });
  return features;
}

async function compiles(device: GPUDevice, directive: string): Promise<boolean> {
  device.pushErrorScope("validation");
  const code = `enable ${directive};\n@compute @workgroup_size(1) fn main() {}`;
  const module = device.createShaderModule({ code });
  const [error, { messages }] = await Promise.all([device.popErrorScope(), module.getCompilationInfo()]);
  return error === null && messages.every(({ type }) => type !== "error");
}

/** What the maker calls it, as far as the implementation tells. */
function adapterName({
  vendor,
  architecture,
  device,
  description,
}: GPUAdapterInfo | typeof unknownInfo): string {
  const name =
    description !== "" ? description : [vendor, architecture, device].filter((part) => part !== "").join(" ");
  return `WebGPU (${name === "" ? "unnamed adapter" : name})`;
}
