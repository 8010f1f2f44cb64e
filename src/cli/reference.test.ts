import { expect, it } from "vitest";
import { f16 } from "../types/index.ts";
import { deviation } from "./reference.ts";

const a = { rows: 1, columns: 2, values: [3, 4] };
const b = { rows: 2, columns: 2, values: [1, 2, 5, -1] };

it("is zero for the exact product", () => {
  expect(deviation(a, b, [23, 2], f16)).toEqual({ largest: 0, worst: 0 });
});

it("accepts what rounding does and no more", () => {
  const half = 2 ** -11 * 23;
  expect(deviation(a, b, [23 + half, 2], f16).worst).toBeLessThanOrEqual(1);
  expect(deviation(a, b, [23 + 1.01 * half, 2], f16).worst).toBeGreaterThan(1);
});

it("is not fooled by NaN", () => {
  expect(deviation(a, b, [Number.NaN, 2], f16).worst).toBeNaN();
});
