/** @file The example page, driven as a person would: by labels and keys, with and without WebGPU, in light and dark. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { requirement } from "../support/require.ts";
import { bundle, launchChromium, openPage, type Site } from "./chromium.ts";

const root = fileURLToPath(new URL("../../examples/browser", import.meta.url));
const patience = { timeout: 90_000 };

async function status(page: Page, wanted: RegExp): Promise<void> {
  await page.getByRole("status").filter({ hasText: wanted }).waitFor(patience);
}

async function fillSizes(page: Page, m: number, n: number, k: number): Promise<void> {
  await page.getByLabel("M", { exact: true }).fill(String(m));
  await page.getByLabel("N", { exact: true }).fill(String(n));
  await page.getByLabel("K", { exact: true }).fill(String(k));
}

/** Colours of a picture, by the browser's own decoder. TILEWRIGHT_SCREENSHOTS names a folder to keep pictures in. */
async function coloursOf(page: Page, name: string): Promise<number> {
  const picture = await page.screenshot({ fullPage: true });
  const folder = process.env.TILEWRIGHT_SCREENSHOTS;
  if (folder) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `${name}.png`), picture);
  }
  return page.evaluate(
    `(async () => {
      const bytes = Uint8Array.from(atob("${picture.toString("base64")}"), (c) => c.charCodeAt(0));
      const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
      const canvas = new OffscreenCanvas(image.width, image.height);
      const context = canvas.getContext("2d");
      context.drawImage(image, 0, 0);
      return new Set(new Uint32Array(context.getImageData(0, 0, image.width, image.height).data.buffer)).size;
    })()`,
  );
}

describe.skipIf(!requirement("chromium").available)("the example page", () => {
  let site: Site;
  let browser: Browser;
  beforeAll(async () => {
    site = await bundle(root);
    browser = await launchChromium({ webgpu: true });
  }, 120_000);
  afterAll(async () => {
    await browser?.close();
    await site?.close();
  });

  it("multiplies on WebGPU and shows device, route, text, time and error", { timeout: 180_000 }, async () => {
    const { page, complaints } = await openPage(browser, site.url, {
      viewport: { width: 1200, height: 900 },
    });
    await status(page, /^Ready/);
    const facts = await page.locator("#facts").textContent();
    expect(facts).toContain("Kindwebgpu");
    expect(facts).toContain("Subgroup4 lanes");
    expect(await page.getByRole("note").isHidden()).toBe(true);

    await fillSizes(page, 40, 33, 20);
    await page.getByLabel("B is stored").selectOption({ label: "column by column" });
    await page.getByLabel("f, on A's way in").selectOption({ label: "ReLU" });
    await page.getByLabel("Activation").selectOption({ label: "GELU" });
    await page.getByLabel("Bias").check();
    await page.getByLabel("K", { exact: true }).press("Enter");
    await status(page, /^Done/);
    expect(await page.locator("#verdict").textContent()).toBe("right");
    expect(await page.locator("#time").textContent()).toMatch(/^[\d.]+(e-\d+)? m?s$/);
    expect(Number.parseFloat((await page.locator("#rate").textContent())!)).toBeGreaterThan(0);
    const error = Number(await page.locator("#deviation").textContent());
    expect(error).toBeGreaterThan(0);
    expect(error).toBeLessThan(1e-4);
    expect(await page.locator("#route").textContent()).toMatch(/40 x 33 x 20[\s\S]*operator\s+fma/);
    await page.locator("summary").press("Enter");
    expect(await page.locator("#text").textContent()).toMatch(/@compute @workgroup_size/);
    await page.locator("summary").press("Enter");
    expect(await coloursOf(page, "light")).toBeGreaterThan(50);
    await page.emulateMedia({ colorScheme: "dark" });
    const background = await page.evaluate("getComputedStyle(document.body).backgroundColor");
    expect(background).toBe("rgb(20, 23, 28)");
    expect(await coloursOf(page, "dark")).toBeGreaterThan(50);
    expect(complaints).toEqual([]);

    // What a type has not cannot be chosen for it.
    await page.getByLabel("Types").selectOption({ label: "i8, summed in i32" });
    expect(await page.getByLabel("Activation").inputValue()).toBe("0");
    expect(await page.getByRole("option", { name: "SiLU" }).isDisabled()).toBe(true);

    // An error is told, and the page goes on.
    await page.evaluate(`
      globalThis.whole = GPUDevice.prototype.createComputePipelineAsync;
      GPUDevice.prototype.createComputePipelineAsync = () => Promise.reject(new Error("no pipelines today"));`);
    await page.getByRole("button", { name: "Multiply" }).click();
    await page.getByRole("alert").filter({ hasText: "no pipelines today" }).waitFor(patience);
    await page.evaluate("GPUDevice.prototype.createComputePipelineAsync = globalThis.whole");
    await page.getByRole("button", { name: "Multiply" }).click();
    await status(page, /^Done/);
    expect(await page.getByRole("alert").isHidden()).toBe(true);
    expect(await page.locator("#deviation").textContent()).toBe("0");
    await page.close();
  });

  it("falls back to the simulator and says why", { timeout: 120_000 }, async () => {
    const without = await launchChromium({ webgpu: false });
    try {
      const { page, complaints } = await openPage(without, site.url, {
        viewport: { width: 420, height: 900 },
      });
      await status(page, /^Ready/);
      expect(await page.getByRole("note").textContent()).toMatch(/No WebGPU: .+simulator/);
      expect(await page.locator("#facts").textContent()).toContain("Kindsimulator");
      await fillSizes(page, 9, 7, 5);
      await page.getByRole("button", { name: "Multiply" }).click();
      await status(page, /^Done/);
      expect(await page.locator("#verdict").textContent()).toBe("right");
      const overflowing = await page.evaluate(
        "document.documentElement.scrollWidth > document.documentElement.clientWidth",
      );
      expect(overflowing).toBe(false);
      expect(await coloursOf(page, "narrow")).toBeGreaterThan(50);
      expect(complaints).toEqual([]);
    } finally {
      await without.close();
    }
  });
});
