import { defineConfig } from "tsdown";

/**
 * One output file for each source file: the folders of src/ stay recognisable in stack traces, and a bundler that
 * imports one family takes only what that family needs.
 */
export default defineConfig({
  entry: ["src/**/*.ts", "!src/**/*.test.ts", "!src/**/*.test-d.ts", "!src/**/*-for-tests.ts"],
  root: "src",
  unbundle: true,
  format: "esm",
  platform: "neutral",
  target: "es2022",
  fixedExtension: true,
  sourcemap: true,
  clean: true,
  dts: { sourcemap: true },
  tsconfig: "tsconfig.build.json",
  // Dependencies, optional ones and the imports map are resolved where the package is installed, not here.
  deps: { neverBundle: [/^#/, /^node:/, "koffi", "webgpu", "commander"] },
});
