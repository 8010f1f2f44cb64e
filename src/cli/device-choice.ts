/** @file Which device a command works on. */
import type { Device } from "../runtime/device.ts";
import { type DeviceKind, open } from "../runtime/open.ts";
import { UsageError } from "./failure.ts";
import type { Progress } from "./progress.ts";

const kinds: readonly DeviceKind[] = ["cuda", "webgpu", "simulator"];

/** How to work on the device. */
export interface DeviceUse {
  readonly progress: Progress;
  /** What goes on there, for progress. */
  readonly activity: string;
  readonly signal?: AbortSignal;
}

/**
 * Opens the device that `--device` names, "cuda" or "cuda:1", or the best one there is.
 * @throws UsageError for an unknown name, DeviceError for one that is not there
 */
export function openDevice(
  selector: string | undefined,
  { progress, activity, signal }: DeviceUse,
): Promise<Device> {
  return open({
    ...(selector === undefined ? {} : parse(selector)),
    // Commands say themselves what is missing.
    warn: false,
    onProgress: ({ done, total }) => progress.report(activity, done / total),
    ...(signal === undefined ? {} : { signal }),
  });
}

function parse(selector: string): { readonly kind: DeviceKind; readonly device: number } {
  const [name, number = "0", ...rest] = selector.split(":");
  const kind = kinds.find((known) => known === name);
  if (kind !== undefined && /^\d{1,4}$/.test(number) && rest.length === 0)
    return { kind, device: Number(number) };
  throw new UsageError(
    `--device ${selector} is not known; known are ${kinds.join(", ")}, and cuda:1 for the second of several`,
  );
}
