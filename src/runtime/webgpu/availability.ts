/** @file Why there is no WebGPU device, and what would help. */

/** A kind of device that cannot be used here. */
export interface Unavailable {
  readonly kind: "webgpu";
  /** What is missing or broken. */
  readonly reason: string;
  /** What the user can do about it. */
  readonly remedy: string;
}

/** An {@link Unavailable} for WebGPU. */
export function unavailable(reason: string, remedy: string): Unavailable {
  return Object.freeze({ kind: "webgpu", reason, remedy });
}

/** Tells an {@link Unavailable} from what was asked for. */
export function isUnavailable(result: object): result is Unavailable {
  return "reason" in result && "remedy" in result;
}
