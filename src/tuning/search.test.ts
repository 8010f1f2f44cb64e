import { describe, expect, it } from "vitest";
import { AbortedError } from "../errors.ts";
import { type SearchOptions, search, type Trial } from "./search.ts";

/** A device whose work takes as long as it says: candidates are the seconds of one turn. */
function fakeDevice(behaviour: Partial<SearchOptions<number>> = {}) {
  const log: string[] = [];
  let elapsed = 0;
  const options = (candidates: readonly number[]): SearchOptions<number> => ({
    candidates,
    prepare: async (seconds): Promise<Trial> => ({
      enqueue: () => {
        elapsed += seconds;
      },
      verify: async () => undefined,
      dispose: () => log.push(`dispose ${seconds}`),
    }),
    time: async (enqueue) => {
      const before = elapsed;
      enqueue();
      return elapsed - before;
    },
    ...behaviour,
  });
  return { log, options };
}

describe("search", () => {
  it("finds the fastest and gives everything back", async () => {
    const { log, options } = fakeDevice();
    const { best, measured, refused } = await search(options([5, 1, 4, 2, 3, 6]));
    expect(best).toEqual({ candidate: 1, seconds: 1 });
    expect(measured.map(({ candidate }) => candidate)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(refused).toEqual([]);
    expect(log.toSorted()).toEqual([1, 2, 3, 4, 5, 6].map((seconds) => `dispose ${seconds}`));
  });

  it("counts only candidates whose results are right", async () => {
    const { options } = fakeDevice();
    const base = options([3, 1, 2]);
    const { best, refused } = await search({
      ...base,
      prepare: async (candidate) => {
        if (candidate === 2) throw new Error("does not fit");
        const trial = await base.prepare(candidate);
        return { ...trial, verify: async () => (candidate === 1 ? "its result is wrong" : undefined) };
      },
    });
    expect(best?.candidate).toBe(3);
    expect(refused).toEqual([
      { candidate: 1, reason: "its result is wrong" },
      { candidate: 2, reason: "does not fit" },
    ]);
  });

  it("repeats short work in a sample, and times finalists again in turn", async () => {
    const turns = new Map<number, number>();
    const { options } = fakeDevice();
    const base = options([1e-4, 2e-4, 1]);
    await search({
      ...base,
      sampleSeconds: 1e-3,
      finalists: 2,
      rounds: 3,
      prepare: async (candidate) => {
        const trial = await base.prepare(candidate);
        return {
          ...trial,
          enqueue: () => {
            turns.set(candidate, (turns.get(candidate) ?? 0) + 1);
            trial.enqueue();
          },
        };
      },
    });
    // Once, then ten (five) in a sample, then three such samples; the slow one is never repeated.
    expect(Object.fromEntries(turns)).toEqual({ 1e-4: 1 + 10 + 3 * 10, 2e-4: 1 + 5 + 3 * 5, 1: 1 });
  });

  it("is not misled by one lucky sample", async () => {
    let calls = 0;
    const { options } = fakeDevice();
    const base = options([2, 1]);
    const { best } = await search({
      ...base,
      // The very first sample, of the slower one, comes out far too short.
      time: async (enqueue) => (calls++ === 0 ? 0.5 : base.time(enqueue)),
    });
    expect(best?.candidate).toBe(1);
  });

  it("tells how far it is, and stops when told", async () => {
    const stopping = new AbortController();
    const seen: number[] = [];
    const { log, options } = fakeDevice({
      signal: stopping.signal,
      onProgress: ({ done, total }) => {
        seen.push(done / total);
        if (done === 2) stopping.abort();
      },
    });
    await expect(search(options([1, 2, 3, 4]))).rejects.toThrow(AbortedError);
    expect(seen).toEqual([0, 0.25, 0.5]);
    expect(log.toSorted()).toEqual(["dispose 1", "dispose 2", "dispose 3"]);
  });

  it("says when nothing was right", async () => {
    const { options } = fakeDevice({ prepare: () => Promise.reject(new Error("no")) });
    const { best, measured, refused } = await search(options([1, 2]));
    expect([best, measured, refused.length]).toEqual([undefined, [], 2]);
  });
});
