import { defineConfig } from "vite";

/** `npx vite examples/browser` serves the page, `npx vite build examples/browser` bundles it. */
export default defineConfig({
  // The library from its sources. A project that installed it needs no conditions.
  resolve: { conditions: ["tilewright-source", "browser"] },
  build: { target: "es2022", outDir: "dist", emptyOutDir: true },
  oxc: { target: "es2022" },
});
