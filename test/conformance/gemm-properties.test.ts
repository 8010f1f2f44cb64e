/** @file Random products from the whole space of components. A failure names its seed, and TILEWRIGHT_SEED repeats it. */
import { describe, expect, it } from "vitest";
import { checkRandomProduct, type Outcome } from "./random-products.ts";
import { onEveryDevice } from "./table.ts";

const soak = process.env.TILEWRIGHT_SOAK === "1";
const named = process.env.TILEWRIGHT_SEED;

/** The seed that is named, many new ones in soak, else the same few every time. */
function seeds(): readonly number[] {
  if (named !== undefined) return [Number(named)];
  const first = soak ? Date.now() % 2 ** 30 : 1;
  return Array.from({ length: soak ? 2000 : 48 }, (_, i) => first + i);
}

onEveryDevice((device) => {
  describe("products drawn from the whole space of components", () => {
    it("are right, or refused for a reason", { timeout: 3_600_000 }, async () => {
      const outcomes: Outcome[] = [];
      for (const seed of seeds()) outcomes.push(await checkRandomProduct(device(), seed));
      const ran = outcomes.filter(({ refused }) => refused === undefined);
      // What is drawn is meant to run: refusals are the exception.
      if (named === undefined) expect(ran.length).toBeGreaterThan(0.6 * outcomes.length);
    });
  });
});
