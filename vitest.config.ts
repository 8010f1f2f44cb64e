import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig, type TestProjectInlineConfiguration } from "vitest/config";

/**
 * The test projects. `npm test` runs all but `gpu`, which wants an NVIDIA machine (`npm run test:gpu`).
 *
 * The GPU machine carries no typescript, browser driver or linter, so nothing here may import them.
 */

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Everything runs from src/, never from a build that may be stale. */
const fromSource = {
  resolve: { conditions: ["tilewright-source", "node"] },
  ssr: { resolve: { conditions: ["tilewright-source", "node"] } },
};

/** Positions make a failing kernel name its line; a published build leaves them off. */
const env = { TILEWRIGHT_POSITIONS: "1", TILEWRIGHT_CACHE: "off" };

const project = (
  name: string,
  test: TestProjectInlineConfiguration["test"],
): TestProjectInlineConfiguration => ({
  ...fromSource,
  test: { name, environment: "node", pool: "forks", ...test, env: { ...env, ...test?.env } },
});

/** Tests that share a device: one process, one file at a time, and patience for the first compilation. */
const onOneDevice = { maxWorkers: 1, fileParallelism: false, isolate: false } as const;

/** Limits end what hangs; a machine with much else to do must not fail a test. */
const minutes = (count: number): number => count * 60_000;

const projects: TestProjectInlineConfiguration[] = [
  project("unit", { include: ["src/**/*.test.ts", "bench/**/*.test.ts"], testTimeout: minutes(3) }),
  project("conformance", {
    include: [
      "test/conformance/**/*.test.ts",
      "test/language/**/*.test.ts",
      "test/cases/**/*.test.ts",
      "test/simulator/**/*.test.ts",
      "test/mutation/**/*.test.ts",
    ],
    testTimeout: minutes(10),
    hookTimeout: minutes(3),
  }),
  project("examples", {
    include: ["test/examples/**/*.test.ts", "test/cli/**/*.test.ts", "test/pages/**/*.test.ts"],
    testTimeout: minutes(5),
  }),
  project("package", {
    include: ["test/package/**/*.test.ts"],
    globalSetup: here("./test/package/install.ts"),
    testTimeout: minutes(5),
  }),
  project("architecture", { include: ["test/architecture/**/*.test.ts"], testTimeout: minutes(3) }),
  project("gpu", {
    include: [
      "test/gpu/**/*.test.ts",
      "test/conformance/**/*.test.ts",
      "test/language/**/*.test.ts",
      "test/cases/**/*.test.ts",
    ],
    // Choose the CPU's Vulkan driver for the whole process, or need no GPU.
    exclude: ["test/conformance/webgpu-*.test.ts"],
    env: { TILEWRIGHT_DEVICES: process.env.TILEWRIGHT_DEVICES ?? "cuda,webgpu" },
    ...onOneDevice,
    testTimeout: minutes(5),
    hookTimeout: minutes(5),
  }),
];

if (existsSync(here("./node_modules/typescript/package.json"))) {
  projects.push(
    project("types", {
      include: [],
      typecheck: {
        enabled: true,
        only: true,
        include: ["src/**/*.test-d.ts"],
        tsconfig: here("./tsconfig.test-d.json"),
        ignoreSourceErrors: true,
      },
    }),
  );
}

export default defineConfig({
  test: {
    projects,
    passWithNoTests: true,
    // Vitest would leave one core to its main process, which has little to do: on two cores that is half of the machine.
    maxWorkers: availableParallelism(),
  },
});
