/**
 * @file How many blocks a kernel gets that steps over its work by the whole grid.
 */
import type { Device } from "../runtime/device.ts";

/** Threads of a block of these kernels. */
export const blockThreads = 256;

/** Blocks for a number of tasks, one a thread: enough to fill the device a few times over, and no more. */
export function threadBlocks(device: Device, tasks: number): number {
  return Math.min(
    Math.ceil(tasks / blockThreads),
    device.facts.machine.multiprocessors * 16,
    device.facts.limits.gridX,
  );
}

/** Blocks for a number of tasks, one a block. */
export function taskBlocks(device: Device, tasks: number): number {
  return Math.min(tasks, device.facts.machine.multiprocessors * 32, device.facts.limits.gridX);
}
