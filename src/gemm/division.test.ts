import { describe, expect, it } from "vitest";
import { reciprocalOf } from "./division.ts";

/** What the kernel computes. */
function quotient(n: number, divisor: number): number {
  const { multiplier, shift } = reciprocalOf(divisor);
  return Number(((BigInt(n) * 2n * BigInt(multiplier)) >> 32n) >> BigInt(shift));
}

describe("division by multiplication", () => {
  it("is exact at multiples of the divisor, below and above", () => {
    const divisors = [1, 2, 3, 5, 6, 7, 9, 10, 11, 641, 1000, 65535, 65536, 65537, 2 ** 30, 2 ** 31 - 1];
    for (const divisor of divisors) {
      expect(reciprocalOf(divisor).multiplier).toBeLessThan(2 ** 32);
      const largest = Math.floor((2 ** 31 - 1) / divisor);
      for (const factor of [0, 1, 2, 3, largest - 1, largest]) {
        for (const n of [factor * divisor - 1, factor * divisor, factor * divisor + 1, 2 ** 31 - 1]) {
          if (n >= 0 && n < 2 ** 31) expect(quotient(n, divisor)).toBe(Math.floor(n / divisor));
        }
      }
    }
  });
});
