import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Progress } from "./progress.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"] });
});

afterEach(() => {
  vi.useRealTimers();
});

/** What is shown when work reports every 50 ms for a time. */
function shown(milliseconds: number, watched: boolean): string {
  let text = "";
  const progress = new Progress({
    out: () => {
      throw new Error("progress goes to the standard error");
    },
    error: (part) => {
      text += part;
    },
    watched,
  });
  for (let elapsed = 0; elapsed <= milliseconds; elapsed += 50) {
    progress.report("working", elapsed / milliseconds);
    vi.advanceTimersByTime(50);
  }
  progress.end();
  return text;
}

it("says nothing of work within a second", () => {
  expect(shown(950, true)).toBe("");
});

it("says nothing where nobody watches", () => {
  expect(shown(5000, false)).toBe("");
});

it("rewrites one line ten times a second, and removes it", () => {
  const text = shown(2000, true);
  expect(text).not.toContain("\n");
  expect(text.split("\r").length - 1).toBe(11 + 1);
  expect(text).toContain(`${"█".repeat(10)}${"░".repeat(10)} working 50 %`);
  expect(text.endsWith("\r\u001b[2K")).toBe(true);
});
