import { playwright } from "@vitest/browser-playwright";
import { defineConfig } from "vitest/config";
import { requirement } from "./test/support/require.ts";

/**
 * The tests that run in a page, in headless Chromium. Apart from vitest.config.ts because the machines that run the
 * other projects need no browser driver.
 */

const chromium = requirement("chromium");

export default defineConfig({
  resolve: { conditions: ["tilewright-source", "browser"] },
  // Found while a test runs, they would make the page load anew.
  optimizeDeps: { include: ["typegpu", "typegpu/data"] },
  test: {
    name: "browser",
    include: chromium.available ? ["test/browser/**/*.test.ts"] : [],
    passWithNoTests: !chromium.available,
    env: { TILEWRIGHT_POSITIONS: "1" },
    testTimeout: 60_000,
    browser: {
      enabled: chromium.available,
      headless: true,
      screenshotFailures: false,
      provider: playwright({
        launchOptions: {
          executablePath: chromium.location,
          args: [
            "--no-sandbox",
            // Without it there is no adapter on a machine without a GPU.
            "--enable-unsafe-webgpu",
            "--use-webgpu-adapter=swiftshader",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
          ],
        },
      }),
      instances: [{ browser: "chromium" }],
    },
  },
});
