import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Ring, type Span } from "./ring.ts";

describe("a ring", () => {
  it("gives space in order and again once the oldest is released", () => {
    const ring = new Ring(1024);
    const first = ring.take(512)!;
    const second = ring.take(512)!;
    expect([first.offset, second.offset]).toEqual([0, 512]);
    expect(ring.take(1)).toBeUndefined();
    ring.release(second);
    expect(ring.take(1)).toBeUndefined();
    ring.release(first);
    expect(ring.take(1024)?.offset).toBe(0);
  });

  it("wraps without splitting a span", () => {
    const ring = new Ring(1024);
    const first = ring.take(512)!;
    ring.take(256);
    ring.release(first);
    expect(ring.take(512)?.offset).toBe(0);
    expect(ring.take(256)).toBeUndefined();
  });

  it("never takes more than its capacity", () => {
    expect(new Ring(1024).take(1025)).toBeUndefined();
  });

  it("never lets two taken spans overlap, and is empty again in the end", () => {
    const step = fc.oneof(fc.nat(1500), fc.constant("oldest" as const), fc.constant("newest" as const));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const ring = new Ring(4096);
        const taken: Span[] = [];
        for (const action of steps) {
          if (typeof action === "number") {
            const span = ring.take(action);
            if (span === undefined) continue;
            expect(span.offset + span.bytes).toBeLessThanOrEqual(4096);
            for (const other of taken) {
              expect(
                span.offset + span.bytes <= other.offset || other.offset + other.bytes <= span.offset,
              ).toBe(true);
            }
            taken.push(span);
          } else {
            const span = action === "oldest" ? taken.shift() : taken.pop();
            if (span !== undefined) ring.release(span);
          }
        }
        for (const span of taken) ring.release(span);
        expect(ring.take(4096)?.offset).toBe(0);
      }),
      { seed: 1 },
    );
  });
});
