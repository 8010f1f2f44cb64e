/** @file What a CUresult means: names and texts from the driver, and errors made of them. */
import { DeviceError } from "../../errors.ts";
import type { DriverLibrary, Status } from "./driver-library.ts";

/** The statuses that the backend itself looks at. */
export const status: {
  readonly success: 0;
  readonly outOfMemory: 2;
  readonly notReady: 600;
} = Object.freeze({ success: 0, outOfMemory: 2, notReady: 600 });

/**
 * Statuses after which a context answers everything with the same error: uncorrectable memory errors, illegal addresses
 * and instructions, time-outs, asserts, traps.
 */
const faults: ReadonlySet<Status> = new Set([
  214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721,
]);

/** Whether a status means that the context is lost. */
export function isFault(code: Status): boolean {
  return faults.has(code);
}

/** `CUDA_ERROR_ILLEGAL_ADDRESS`, or a number where the driver has no name. */
export function statusName(library: DriverLibrary, code: Status): string {
  return library.errorName(code) ?? `CUDA_ERROR_${code}`;
}

/** `CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)`. */
export function describeStatus(library: DriverLibrary, code: Status): string {
  const text = library.errorText(code);
  return text === undefined ? statusName(library, code) : `${statusName(library, code)} (${text})`;
}

/** The error of a driver call that failed. `what` says what was being done: "Creating a stream". */
export function statusError(library: DriverLibrary, code: Status, what: string, advice = ""): DeviceError {
  const tail = advice === "" ? "" : ` ${advice}`;
  return new DeviceError(
    `${what} failed: ${describeStatus(library, code)}.${tail}`,
    statusName(library, code),
  );
}

/** Throws a {@link DeviceError} unless the call succeeded. */
export function check(library: DriverLibrary, code: Status, what: string): void {
  if (code !== status.success) throw statusError(library, code, what);
}
