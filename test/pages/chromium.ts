/** @file Pages in headless Chromium: what Vite serves from the sources, or what it bundles of them. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { build, createServer, type InlineConfig, preview } from "vite";
import { requirement } from "../support/require.ts";

/** Without the flag Chromium gives a machine without a GPU no adapter. */
export async function launchChromium(options: { readonly webgpu: boolean }): Promise<Browser> {
  return chromium.launch({
    executablePath: requirement("chromium").location,
    args: [
      "--no-sandbox",
      ...(options.webgpu ? ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"] : []),
    ],
  });
}

/** A page that collects what the console calls errors, and what nobody caught. */
export async function openPage(
  browser: Browser,
  url: string,
  options: Parameters<Browser["newPage"]>[0] = {},
): Promise<{ readonly page: Page; readonly complaints: readonly string[] }> {
  const page = await browser.newPage(options);
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(url);
  return { page, complaints };
}

/** A site at an address, until it is closed. */
export interface Site {
  readonly url: string;
  close(): Promise<void>;
}

const usual: InlineConfig = {
  logLevel: "error",
  resolve: { conditions: ["tilewright-source", "browser"] },
  build: { target: "es2022" },
  oxc: { target: "es2022" },
};

/** Module by module, as in development. */
export async function serve(root: string): Promise<Site> {
  const cacheDir = mkdtempSync(join(tmpdir(), "tilewright-vite-"));
  const server = await createServer({
    ...usual,
    configFile: false,
    root,
    cacheDir,
    server: { port: 0, host: "127.0.0.1", hmr: false, fs: { strict: false }, watch: null },
  });
  await server.listen();
  return {
    url: server.resolvedUrls!.local[0]!,
    close: async () => {
      await server.close();
      rmSync(cacheDir, { recursive: true, force: true });
    },
  };
}

/** Bundled and minified, as published. */
export async function bundle(root: string): Promise<Site> {
  const outDir = mkdtempSync(join(tmpdir(), "tilewright-bundle-"));
  const config: InlineConfig = {
    ...usual,
    configFile: false,
    root,
    build: { ...usual.build, outDir, minify: true },
  };
  await build(config);
  const server = await preview({ ...config, preview: { port: 0, host: "127.0.0.1" } });
  return {
    url: server.resolvedUrls!.local[0]!,
    close: async () => {
      await new Promise((resolve) => server.httpServer.close(resolve));
      rmSync(outDir, { recursive: true, force: true });
    },
  };
}
