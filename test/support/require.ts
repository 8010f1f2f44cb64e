/**
 * @file What a machine must have for some tests to mean anything: an assembler, a WebGPU adapter, a browser.
 *
 * A developer may lack one: its tests are skipped, loudly. CI may not: what TILEWRIGHT_REQUIRE names (a comma-separated
 * list) fails where it is absent, so that a missing install step cannot pass for a green run.
 */

import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

export type RequirementName = "ptxas" | "dawn-null" | "swiftshader" | "chromium";

export interface Requirement {
  readonly name: RequirementName;
  readonly available: boolean;
  /** The program or driver file that was found; empty for one that has no file of its own. */
  readonly location: string;
  /** Variables to set before the first use, in this process or in a child. */
  readonly environment: Readonly<Record<string, string>>;
  /** Why it is not available; empty when it is. */
  readonly reason: string;
}

type Finding = Partial<Omit<Requirement, "name" | "available">>;

const detectors: Readonly<Record<RequirementName, () => Finding>> = {
  ptxas: () => {
    const location = findFile(process.env.TILEWRIGHT_PTXAS, [
      ...programsNamed("ptxas"),
      "/usr/local/cuda/bin/ptxas",
    ]);
    return location ? { location } : { reason: "no ptxas on the PATH or in /usr/local/cuda/bin" };
  },

  "dawn-null": () => {
    const complaint = probeAdapter(["backend=null"], {});
    return complaint ? { reason: complaint } : {};
  },

  swiftshader: () => {
    const location = findFile(process.env.TILEWRIGHT_SWIFTSHADER_ICD, [
      "/usr/lib/chromium/vk_swiftshader_icd.json",
      "/usr/lib/chromium-browser/vk_swiftshader_icd.json",
      "/opt/google/chrome/vk_swiftshader_icd.json",
    ]);
    if (!location) return { reason: "no vk_swiftshader_icd.json: it comes with Chromium" };
    // Both names: the first is understood by old Vulkan loaders, the second by new ones.
    const environment = {
      VK_ICD_FILENAMES: location,
      VK_DRIVER_FILES: location,
      XDG_RUNTIME_DIR: process.env.XDG_RUNTIME_DIR ?? "/tmp",
    };
    const complaint = probeAdapter(["backend=vulkan"], environment);
    return complaint ? { location, environment, reason: complaint } : { location, environment };
  },

  chromium: () => {
    const location = findFile(process.env.TILEWRIGHT_CHROMIUM, [
      "/usr/bin/chromium",
      ...["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"].flatMap(programsNamed),
    ]);
    return location ? { location } : { reason: "no chromium on the PATH" };
  },
};

const known = new Map<RequirementName, Requirement>();

/**
 * Looks for `name` once a process. Use with `describe.skipIf(!requirement("ptxas").available)`.
 *
 * @throws Error when it is absent and TILEWRIGHT_REQUIRE names it
 */
export function requirement(name: RequirementName): Requirement {
  const found = known.get(name) ?? detect(name);
  known.set(name, found);
  if (!found.available && isRequired(name)) {
    throw new Error(`TILEWRIGHT_REQUIRE names ${name}, but ${found.reason}.`);
  }
  return found;
}

function detect(name: RequirementName): Requirement {
  const { location = "", environment = {}, reason = "" } = detectors[name]();
  const available = reason === "";
  if (!available && !isRequired(name)) console.warn(`\n  SKIPPED: tests that need ${name}: ${reason}.\n`);
  return { name, available, location, environment, reason };
}

function isRequired(name: RequirementName): boolean {
  const names = (process.env.TILEWRIGHT_REQUIRE ?? "").split(",").map((entry) => entry.trim());
  for (const entry of names) {
    if (entry !== "" && !(entry in detectors)) {
      throw new Error(
        `TILEWRIGHT_REQUIRE names ${entry}; the names are ${Object.keys(detectors).join(", ")}.`,
      );
    }
  }
  return names.includes(name);
}

function programsNamed(name: string): readonly string[] {
  return (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, name));
}

function findFile(chosen: string | undefined, candidates: readonly string[]): string | undefined {
  return (chosen ? [chosen] : candidates).find((path) => {
    try {
      accessSync(path, constants.R_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/**
 * Asks Dawn for an adapter in a child process, because a binary built for another C++ library may fail in ways that
 * would take the test run along, and because the Vulkan loader reads its environment only once.
 *
 * @returns what went wrong, or undefined
 */
function probeAdapter(
  flags: readonly string[],
  environment: Readonly<Record<string, string>>,
): string | undefined {
  const program = `
    const { create } = await import("webgpu");
    const gpu = create(${JSON.stringify(flags)});
    const adapter = await gpu.requestAdapter();
    if (!adapter) throw new Error("Dawn finds no adapter with ${flags.join(" ")}");
    process.exit(0);`;
  const { status, stderr, error } = spawnSync(process.execPath, ["--input-type=module", "--eval", program], {
    cwd: import.meta.dirname,
    env: { ...process.env, ...environment },
    encoding: "utf8",
    timeout: 60_000,
  });
  if (status === 0) return undefined;
  const complaint = /^(?:\w*Error: )(.*)$/m.exec(stderr)?.[1];
  return complaint ?? error?.message ?? `the probe for ${flags.join(" ")} ended with status ${status}`;
}
