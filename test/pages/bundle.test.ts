/** @file A bundled and minified page makes the same texts and the same numbers as one whose modules are served one by one. */
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { requirement } from "../support/require.ts";
import { bundle, launchChromium, openPage, type Site, serve } from "./chromium.ts";

const root = fileURLToPath(new URL("./subject", import.meta.url));

interface Outcome {
  readonly texts: readonly string[];
  readonly numbers: readonly (readonly number[])[];
}

it.skipIf(!requirement("chromium").available)(
  "Vite's minified bundle computes what its sources compute",
  async () => {
    const browser = await launchChromium({ webgpu: true });
    const sites: Site[] = [await serve(root), await bundle(root)];
    try {
      const outcomes: Outcome[] = [];
      for (const { url } of sites) {
        const { page, complaints } = await openPage(browser, url);
        await page.waitForFunction("globalThis.outcome");
        outcomes.push((await page.evaluate("globalThis.outcome")) as Outcome);
        expect(complaints).toEqual([]);
        await page.close();
      }
      const [served, bundled] = outcomes as [Outcome, Outcome];
      const hashes = ({ texts }: Outcome): readonly string[] =>
        texts.map((text) => createHash("sha256").update(text).digest("hex"));
      expect(hashes(bundled)).toEqual(hashes(served));
      expect(bundled.numbers).toEqual(served.numbers);
      expect(served.texts.map((text) => text.includes("@compute"))).toEqual([true, true, true, true]);
      // By hand: Σ of the sixty-four, and of the first four.
      expect(served.numbers[0]).toEqual([sum(64), sum(4)]);
    } finally {
      await browser.close();
      for (const site of sites) await site.close();
    }
  },
  180_000,
);

function sum(count: number): number {
  return Array.from({ length: count }, (_, i) => ((i * 37) % 19) - 9).reduce((all, value) => all + value, 0);
}
