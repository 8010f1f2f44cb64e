/**
 * @file What a search for params has tried, kept in the store beside what was found for as long as the search is unfinished:
 * another call goes on from there.
 */
import type { Outcome, StoredValue, TuningStore } from "../tuning/index.ts";

/** Outcomes of candidates by their text. */
export class Journal {
  readonly #store: TuningStore;
  readonly #place: readonly [device: string, subject: string];
  readonly #before: ReadonlyMap<string, Outcome>;
  readonly #outcomes: Map<string, Outcome>;

  constructor(store: TuningStore, [device, subject]: readonly [string, string], afresh: boolean) {
    this.#store = store;
    this.#place = [device, `${subject}, unfinished`];
    this.#before = afresh ? new Map() : read(store.get(...this.#place));
    this.#outcomes = new Map(this.#before);
  }

  /** What an earlier search found of a candidate. */
  known(candidate: string): Outcome | undefined {
    return this.#before.get(candidate);
  }

  add(candidate: string, outcome: Outcome): void {
    this.#outcomes.set(candidate, outcome);
    this.#store.put(...this.#place, Object.fromEntries(this.#outcomes));
  }

  /** Whether nothing was faster. */
  isFastest(outcome: Outcome): boolean {
    const seconds = secondsOf(outcome);
    return (
      seconds < Number.POSITIVE_INFINITY &&
      [...this.#outcomes.values()].every((one) => secondsOf(one) >= seconds)
    );
  }

  /** The search is finished. */
  end(): void {
    this.#store.remove(...this.#place);
  }
}

function secondsOf(outcome: Outcome): number {
  return "seconds" in outcome ? outcome.seconds : Number.POSITIVE_INFINITY;
}

/** Outcomes out of somebody's file: what is none is left out. */
function read(value: StoredValue | undefined): ReadonlyMap<string, Outcome> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return new Map();
  const outcomes = new Map<string, Outcome>();
  for (const [candidate, found] of Object.entries(value)) {
    if (typeof found !== "object" || found === null || Array.isArray(found)) continue;
    const { seconds, reason } = found as { readonly [name: string]: StoredValue };
    if (typeof seconds === "number" && seconds > 0) outcomes.set(candidate, { seconds });
    else if (typeof reason === "string") outcomes.set(candidate, { reason });
  }
  return outcomes;
}
