import { describe, expect, it } from "vitest";
import { quantile, summarise } from "./statistics.ts";

describe("statistics", () => {
  it("interpolate between samples", () => {
    expect(quantile([4, 1, 3, 2], 0.5)).toBe(2.5);
    expect(quantile([5], 0.25)).toBe(5);
    expect(() => quantile([], 0.5)).toThrow(RangeError);
  });

  it("summarise by what outliers do not move", () => {
    expect(summarise([1, 1, 1, 1, 100])).toEqual({ median: 1, low: 1, high: 100, spread: 0, samples: 5 });
  });
});
