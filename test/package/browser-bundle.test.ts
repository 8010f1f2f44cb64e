import { gzipSync } from "node:zlib";
import { build, type Plugin } from "esbuild";
import { describe, expect, inject, it } from "vitest";

/** What a page that imports all of an entry would load. */

const consumer = inject("consumer");
const nodeOnly = ["tilewright/cuda", "tilewright/npy/node"];
const browserSafe = inject("entries").filter((entry) => !nodeOnly.includes(entry));

/** Notes every import of something that no browser has, and lets the bundle go on without it. */
function recordForeign(found: Set<string>): Plugin {
  return {
    name: "record-foreign",
    setup({ onResolve }) {
      onResolve({ filter: /^(node:|koffi$|webgpu$)/ }, ({ path, importer }) => {
        found.add(`${path} from ${importer.replace(/^.*\/node_modules\//, "")}`);
        return { path, external: true };
      });
    },
  };
}

describe.skipIf(browserSafe.length === 0)("a browser bundle", () => {
  it.each(browserSafe)("of %s needs nothing that a browser lacks", async (entry) => {
    const foreign = new Set<string>();
    const { outputFiles } = await build({
      stdin: { contents: `import * as all from "${entry}"; globalThis.all = all;`, resolveDir: consumer },
      platform: "browser",
      format: "esm",
      bundle: true,
      minify: true,
      write: false,
      logLevel: "silent",
      plugins: [recordForeign(foreign)],
    });
    const [bundle] = outputFiles;
    const kilobytes = (bytes: number): string => `${(bytes / 1024).toFixed(1)} KiB`;
    console.log(
      `${entry}: ${kilobytes(bundle!.contents.length)} minified, ${kilobytes(gzipSync(bundle!.contents).length)} gzip`,
    );
    expect([...foreign]).toEqual([]);
  });
});
