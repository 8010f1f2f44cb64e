import { describe, expect, it } from "vitest";
import { type Clock, type Contender, measure } from "./harness.ts";

/** A device on which each contender takes a fixed time, and every timing costs a fixed latency on top. */
class FakeClock implements Clock {
  readonly order: string[] = [];
  #now = 0;

  contender(name: string, seconds: number): Contender {
    return {
      name,
      role: "peer",
      enqueue: () => {
        this.#now += seconds;
        if (this.order.at(-1) !== name) this.order.push(name);
      },
    };
  }

  async time(enqueue: () => void): Promise<number> {
    const start = this.#now;
    enqueue();
    return this.#now - start + 1e-6;
  }

  async sync(): Promise<void> {}
}

const care = { rounds: 4, sampleSeconds: 1e-3, warmUpSeconds: 0.01 };

describe("measuring", () => {
  it("repeats short work until latency does not count", async () => {
    const clock = new FakeClock();
    const [fast, slow] = await measure(
      clock,
      [clock.contender("fast", 1e-6), clock.contender("slow", 5e-3)],
      "device",
      care,
    );
    expect(fast!.median).toBeGreaterThan(1e-6);
    expect(fast!.median).toBeLessThan(1.01e-6);
    expect(slow!.median).toBeCloseTo(5e-3, 5);
    expect(fast!.samples).toBe(4);
  });

  it("takes turns, and begins each round with another contender", async () => {
    const clock = new FakeClock();
    await measure(
      clock,
      [clock.contender("a", 1e-3), clock.contender("b", 1e-3), clock.contender("c", 1e-3)],
      "device",
      {
        ...care,
        rounds: 3,
        warmUpSeconds: 0,
      },
    );
    expect(clock.order.slice(-8)).toEqual(["b", "c", "b", "c", "a", "c", "a", "b"]);
  });

  it("counts turns for contenders with several copies of their operands", async () => {
    const clock = new FakeClock();
    const turns: number[] = [];
    await measure(clock, [{ ...clock.contender("a", 1), enqueue: (turn) => void turns.push(turn) }], "host", {
      ...care,
      sampleSeconds: 0,
    });
    expect(turns).toEqual(turns.map((_, i) => i));
  });
});
