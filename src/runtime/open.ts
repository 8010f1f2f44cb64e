/**
 * @file Opening devices: the best one there is, or the one asked for.
 */
import { createCudaBackend, isUnavailable, listCudaDevices } from "#cuda";
import { readEnvironment } from "#host";
import { ArgumentError, DeviceError } from "../errors.ts";
import type { MissingDevice } from "./array.ts";
import { createCompiler } from "./compile.ts";
import { createDevice, type Device } from "./device.ts";
import { createSimulatorBackend, type SimulatorOptions, type SimulatorProgress } from "./simulator/index.ts";
import { createWebgpuBackend, findWebgpuAdapter, type WebgpuOptions } from "./webgpu/index.ts";

export type { SimulatorOptions, SimulatorProgress } from "./simulator/index.ts";
export type { WebgpuOptions } from "./webgpu/index.ts";

/** Kinds of devices, the preferred ones first. */
export type DeviceKind = "cuda" | "webgpu" | "simulator";

const kinds: readonly DeviceKind[] = ["cuda", "webgpu", "simulator"];

/** What to open. */
export interface OpenOptions {
  /** This kind and no other. The best there is unless given. */
  readonly kind?: DeviceKind | undefined;
  /** "gpu": throw where only the simulator would be left. */
  readonly require?: "gpu" | undefined;
  /** Which of several devices of a kind, from 0. Default 0. */
  readonly device?: number | undefined;
  /** Whether to warn when there is nothing better than the simulator. Default true; the warning comes once. */
  readonly warn?: boolean | undefined;
  /** Which WebGPU device, and how: a `GPUDevice` or adapter of the caller's, a subgroup width, Dawn's toggles. */
  readonly webgpu?: WebgpuOptions | undefined;
  /**
   * Options of the simulator. Its checks are on when the simulator is asked for, and off when it stands in for a GPU that
   * is not there.
   */
  readonly simulator?: SimulatorOptions | undefined;
  /** Ends work on the simulator, which can take long: the next `sync` or `read` rejects with an AbortedError. */
  readonly signal?: AbortSignal | undefined;
  /** Called while the simulator is at work, several times a second. */
  readonly onProgress?: ((progress: SimulatorProgress) => void) | undefined;
}

/**
 * Opens a device: the best of CUDA, WebGPU and the simulator, or the kind given. `device.missing` says why nothing
 * better was found, and what would help.
 *
 *     await using device = await open();
 *     await using judge = await open("simulator");
 *
 * @throws DeviceError when the kind asked for, or any GPU where one is required, is not there
 */
export async function open(options: DeviceKind | OpenOptions = {}): Promise<Device> {
  const wanted: OpenOptions = typeof options === "string" ? { kind: options } : options;
  check(wanted);
  if (wanted.kind === "simulator") return openSimulator(wanted, { checks: true }, []);
  const missing: MissingDevice[] = [];
  for (const [kind, openKind] of Object.entries(gpus)) {
    if (wanted.kind !== undefined && wanted.kind !== kind) continue;
    const found = await openKind(wanted, missing);
    if (!("reason" in found)) return found;
    missing.push(found);
  }
  if (wanted.kind !== undefined || wanted.require === "gpu") throw noDevice(wanted, missing);
  if (wanted.warn ?? true) warnOnce(missing);
  return openSimulator(wanted, { checks: false }, missing);
}

function check({ kind, require, device }: OpenOptions): void {
  if (kind !== undefined && !kinds.includes(kind)) {
    throw new ArgumentError(`open() knows ${kinds.join(", ")}, not ${String(kind)}`);
  }
  if (require !== undefined && require !== "gpu") {
    throw new ArgumentError(`open() can require "gpu", not ${String(require)}`);
  }
  if (require === "gpu" && kind === "simulator")
    throw new ArgumentError("the simulator is no GPU, which open() was to require");
  if (device !== undefined && (!Number.isInteger(device) || device < 0)) {
    throw new ArgumentError(`devices are counted by whole numbers from 0, and ${String(device)} is none`);
  }
}

type Opening = (options: OpenOptions, missing: readonly MissingDevice[]) => Promise<Device | MissingDevice>;

/** GPUs, the preferred first. */
const gpus: { readonly [kind in Exclude<DeviceKind, "simulator">]: Opening } = {
  cuda: async ({ device }, missing) => {
    const backend = await createCudaBackend({ device });
    return isUnavailable(backend) ? backend : createDevice(backend, createCompiler(backend), missing);
  },
  webgpu: async ({ webgpu }, missing) => {
    const backend = await createWebgpuBackend(webgpu);
    return "reason" in backend ? backend : createDevice(backend, createCompiler(backend), missing);
  },
};

function openSimulator(
  { simulator, signal, onProgress }: OpenOptions,
  defaults: SimulatorOptions,
  missing: readonly MissingDevice[],
): Device {
  const backend = createSimulatorBackend({
    ...defaults,
    ...(onProgress === undefined ? {} : { onProgress }),
    ...simulator,
  });
  backend.setSignal(signal);
  return createDevice(backend, createCompiler(backend, backend.mode), missing);
}

function noDevice({ kind }: OpenOptions, missing: readonly MissingDevice[]): DeviceError {
  const what = kind === undefined ? "no GPU can be used" : `no ${kind} device can be used`;
  const why = missing.map(({ kind: which, reason, remedy }) => `${which}: ${reason} ${remedy}`);
  return new DeviceError([`${what} here`, ...why].join("\n  "), "absent");
}

let warned = false;

function warnOnce(missing: readonly MissingDevice[]): void {
  if (warned || readEnvironment("TILEWRIGHT_QUIET") === "1") return;
  warned = true;
  const why = missing.map(({ kind, reason, remedy }) => `\n  ${kind}: ${reason} ${remedy}`);
  console.warn(
    `tilewright: no GPU can be used, so kernels run on the simulator, slowly and without its checks (open("simulator") has them).${why.join("")}`,
  );
}

/** A device that {@link open} can open. */
export interface FoundDevice {
  readonly kind: DeviceKind;
  /** For `open({ kind, device })`. */
  readonly device: number;
  readonly name: string;
  readonly memoryBytes: number | undefined;
}

/** The devices of this machine, the preferred first, and what is missing. Opens none. */
export async function devices(): Promise<{
  readonly found: readonly FoundDevice[];
  readonly missing: readonly MissingDevice[];
}> {
  const found: FoundDevice[] = [];
  const missing: MissingDevice[] = [];
  const cuda = await listCudaDevices();
  if (isUnavailable(cuda)) missing.push(cuda);
  else if (cuda.length === 0) missing.push(noCudaDevice);
  else
    for (const { index, name, memoryBytes } of cuda)
      found.push({ kind: "cuda", device: index, name, memoryBytes });
  const adapter = await findWebgpuAdapter();
  if ("reason" in adapter) missing.push(adapter);
  else found.push({ kind: "webgpu", device: 0, name: adapter.name, memoryBytes: undefined });
  found.push({ kind: "simulator", device: 0, name: "simulator", memoryBytes: undefined });
  return { found, missing };
}

const noCudaDevice: MissingDevice = Object.freeze({
  kind: "cuda",
  reason: "The NVIDIA driver shows no device.",
  remedy: "Check that `nvidia-smi` lists a device and that CUDA_VISIBLE_DEVICES does not hide it.",
});
