/**
 * @file Search over candidates that a family gives: each is made ready, checked, timed roughly; the best few are timed
 * again, turn by turn. What a candidate is, how it runs and what makes its result right is the family's business.
 */
import { AbortedError } from "../errors.ts";

/** A candidate that is ready to run. */
export interface Trial {
  /** Enqueues the work once. */
  enqueue(): void;
  /** Runs once and looks at the result: what is wrong with it, or undefined. */
  verify(): Promise<string | undefined>;
  dispose(): void;
}

/** How far a search is. */
export interface SearchProgress {
  /** Candidates dealt with, of all. */
  readonly done: number;
  readonly total: number;
  /** Seconds of the fastest verified candidate so far. */
  readonly seconds: number | undefined;
}

/** What became of a candidate: the seconds of its work, or why it does not count. */
export type Outcome = { readonly seconds: number } | { readonly reason: string };

/** What to search, and how carefully. */
export interface SearchOptions<T> {
  readonly candidates: readonly T[];
  /** What an earlier search that was stopped found of a candidate, which then is not tried again unless it is a finalist. */
  known?(candidate: T): Outcome | undefined;
  /** Told of each candidate that was tried, before the next is: what a stopped search leaves. */
  onOutcome?(candidate: T, outcome: Outcome): void;
  /** Makes a candidate ready; what it throws rules the candidate out. */
  prepare(candidate: T): Promise<Trial>;
  /** Seconds that enqueued work takes on the device. */
  time(enqueue: () => void): Promise<number>;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: SearchProgress) => void) | undefined;
  /** Least duration of a sample; short work is repeated in it. Default 2 ms. */
  readonly sampleSeconds?: number | undefined;
  /** Candidates that are timed again. Default 4. */
  readonly finalists?: number | undefined;
  /** Samples of each finalist. Default 5. */
  readonly rounds?: number | undefined;
}

/** A candidate with the seconds that its work takes. */
export interface Measured<T> {
  readonly candidate: T;
  readonly seconds: number;
}

/** A search's outcome. */
export interface SearchResult<T> {
  /** The fastest of the candidates that gave right results; undefined where none did. */
  readonly best: Measured<T> | undefined;
  /** All that were timed, fastest first. Finalists by the median of their samples, others by one sample. */
  readonly measured: readonly Measured<T>[];
  /** Candidates that could not run, or gave wrong results. */
  readonly refused: readonly { readonly candidate: T; readonly reason: string }[];
}

interface Finalist<T> extends Measured<T> {
  readonly trial: Trial;
  readonly repeats: number;
}

type Refused<T> = { readonly candidate: T; readonly reason: string };

const mostRepeats = 1000;

/** Searches. @throws AbortedError when the signal says so */
export async function search<T>(options: SearchOptions<T>): Promise<SearchResult<T>> {
  const { candidates, known, onOutcome, signal, onProgress, finalists: places = 4 } = options;
  const refused: Refused<T>[] = [];
  /** Timed by an earlier search. */
  const earlier: Measured<T>[] = [];
  /** Too slow for the final, so that nothing is kept ready of them. */
  const left: Measured<T>[] = [];
  let finalists: Finalist<T>[] = [];
  const enter = (finalist: Finalist<T>): void => {
    finalists = [...finalists, finalist].sort(bySeconds);
    for (const { trial, candidate, seconds } of finalists.splice(places)) {
      trial.dispose();
      left.push({ candidate, seconds });
    }
  };
  const fastest = (): number | undefined =>
    [...finalists.slice(0, 1), ...earlier].sort(bySeconds)[0]?.seconds;
  try {
    for (const [done, candidate] of candidates.entries()) {
      stopIfAborted(signal);
      onProgress?.({ done, total: candidates.length, seconds: fastest() });
      const before = known?.(candidate);
      if (before !== undefined) {
        if ("reason" in before) refused.push({ candidate, reason: before.reason });
        else earlier.push({ candidate, seconds: before.seconds });
        continue;
      }
      const outcome = await attempt(candidate, options);
      if ("reason" in outcome) {
        refused.push(outcome);
        onOutcome?.(candidate, { reason: outcome.reason });
      } else {
        enter(outcome);
        onOutcome?.(candidate, { seconds: outcome.seconds });
      }
    }
    // Of what an earlier search timed, the fast are made ready and checked once more.
    for (const measured of earlier.sort(bySeconds)) {
      stopIfAborted(signal);
      if (finalists.length === places && measured.seconds >= finalists.at(-1)!.seconds) {
        left.push(measured);
        continue;
      }
      const outcome = await attempt(measured.candidate, options);
      if ("reason" in outcome) refused.push(outcome);
      else enter(outcome);
    }
    const ranked = await final(finalists, options);
    onProgress?.({ done: candidates.length, total: candidates.length, seconds: ranked[0]?.seconds });
    return { best: ranked[0], measured: [...ranked, ...left.sort(bySeconds)], refused };
  } finally {
    for (const { trial } of finalists) trial.dispose();
  }
}

function bySeconds(x: { readonly seconds: number }, y: { readonly seconds: number }): number {
  return x.seconds - y.seconds;
}

function stopIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw new AbortedError("tuning was stopped", { cause: signal.reason });
}

/** Makes ready, checks and times once. */
async function attempt<T>(candidate: T, options: SearchOptions<T>): Promise<Finalist<T> | Refused<T>> {
  let trial: Trial | undefined;
  try {
    trial = await options.prepare(candidate);
    const complaint = await trial.verify();
    if (complaint === undefined) return { candidate, trial, ...(await sample(trial, options)) };
    trial.dispose();
    return { candidate, reason: complaint };
  } catch (error) {
    trial?.dispose();
    if (error instanceof AbortedError) throw error;
    return { candidate, reason: error instanceof Error ? error.message : String(error) };
  }
}

/** A single turn is mostly the cost of a launch: short work is timed again in a sample of many turns. */
async function sample<T>(
  trial: Trial,
  { time, sampleSeconds = 2e-3 }: SearchOptions<T>,
): Promise<{ readonly seconds: number; readonly repeats: number }> {
  const once = Math.max(await time(() => trial.enqueue()), 1e-9);
  const repeats = Math.min(mostRepeats, Math.ceil(sampleSeconds / once));
  if (repeats <= 1) return { seconds: once, repeats: 1 };
  return { seconds: await perTurn(trial, repeats, time), repeats };
}

async function perTurn(
  trial: Trial,
  repeats: number,
  time: (enqueue: () => void) => Promise<number>,
): Promise<number> {
  const seconds = await time(() => {
    for (let turn = 0; turn < repeats; turn++) trial.enqueue();
  });
  return seconds / repeats;
}

/** Times the finalists turn by turn, so that a device that slows down does so for all of them. */
async function final<T>(
  finalists: readonly Finalist<T>[],
  { time, signal, rounds = 5 }: SearchOptions<T>,
): Promise<readonly Measured<T>[]> {
  const samples = finalists.map(({ seconds }) => [seconds]);
  for (let round = 0; finalists.length > 1 && round < rounds; round++) {
    for (const [i, { trial, repeats }] of finalists.entries()) {
      stopIfAborted(signal);
      samples[i]!.push(await perTurn(trial, repeats, time));
    }
  }
  return finalists.map(({ candidate }, i) => ({ candidate, seconds: median(samples[i]!) })).sort(bySeconds);
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((x, y) => x - y);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
