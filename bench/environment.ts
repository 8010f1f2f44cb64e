/** @file What a result must be read with: device, driver, date, commit. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { CudaBackend } from "../src/runtime/cuda/index.ts";

/** Where and when something was measured. */
export interface Environment {
  readonly device: string;
  /** NVIDIA's driver, "580.159.04", where the system tells. */
  readonly driver: string | undefined;
  /** CUDA version that the driver supports. */
  readonly cuda: string;
  readonly node: string;
  readonly date: string;
  /** Of the sources; "-dirty" when they differ from it. TILEWRIGHT_COMMIT says it where there is no repository. */
  readonly commit: string | undefined;
}

/** Of this process and device. */
export function environment(backend: CudaBackend): Environment {
  return {
    device: backend.name,
    driver: driverVersion(),
    cuda: backend.device.driver.join("."),
    node: process.version,
    date: new Date().toISOString(),
    commit: commit(),
  };
}

function driverVersion(): string | undefined {
  try {
    return /Kernel Module[^\n]*?\s(\d+\.\d+(?:\.\d+)?)\s/.exec(
      readFileSync("/proc/driver/nvidia/version", "utf8"),
    )?.[1];
  } catch {
    return undefined;
  }
}

function commit(): string | undefined {
  const given = process.env.TILEWRIGHT_COMMIT;
  if (given !== undefined && given !== "") return given;
  try {
    const git = (...args: string[]): string =>
      execFileSync("git", args, { encoding: "utf8", stdio: "pipe" }).trim();
    const dirty =
      git("status", "--porcelain", "--untracked-files=no", "--", "src", "bench", ":!bench/results") !== "";
    return git("rev-parse", "--short=12", "HEAD") + (dirty ? "-dirty" : "");
  } catch {
    return undefined;
  }
}

/** `nvidia-h200`: for file names. */
export function slug(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");
}
