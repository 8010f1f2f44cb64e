import { describe, expect, it } from "vitest";
import { dot4Operator } from "./dot4.ts";
import { fma, fmaOperator, semiringOperator } from "./fma.ts";
import { mmaOperator, mmaSync } from "./mma.ts";
import { maxPlus } from "./semiring.ts";
import { wmmaOperator, wmmaSync } from "./wmma.ts";

/** Kinds are found by the identity of their components: equal parameters must not compile again. */
describe("operators of equal parameters", () => {
  const lanes = (rows: number) => ({ laneRows: 4, laneColumns: 8, rows, columns: 2 });

  it("are one object", () => {
    expect(fmaOperator(lanes(2))).toBe(fmaOperator(lanes(2)));
    expect(fmaOperator()).toBe(fma);
    expect(semiringOperator(maxPlus, lanes(2))).toBe(semiringOperator(maxPlus, lanes(2)));
    expect(mmaOperator({ m: 16, k: 8 })).toBe(mmaOperator({ k: 8, m: 16 }));
    expect(mmaOperator({})).toBe(mmaSync);
    expect(wmmaOperator({ m: 32 })).toBe(wmmaOperator({ m: 32 }));
    expect(wmmaOperator()).toBe(wmmaSync);
    const packed = { ...lanes(2), depth: 4 } as const;
    expect(dot4Operator(packed)).toBe(dot4Operator({ ...packed }));
  });

  it("and others are others", () => {
    expect(fmaOperator(lanes(2))).not.toBe(fmaOperator(lanes(4)));
    expect(semiringOperator(maxPlus, lanes(2))).not.toBe(fmaOperator(lanes(2)));
    expect(mmaOperator({ k: 8 })).not.toBe(mmaSync);
  });
});
