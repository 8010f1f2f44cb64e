/**
 * @file Measures contenders side by side: in one process, on one stream, on the device's own clock, turn by turn, so that
 * a warm or throttled device is so for all of them.
 */
import type { LimitKind } from "./limits.ts";
import { type Summary, summarise } from "./statistics.ts";

/** One way to do a work item's work. */
export interface Contender {
  readonly name: string;
  /** What is measured, what it is measured against, or neither. */
  readonly role: "ours" | "peer" | "reference";
  /** What the reader should know: which algorithm, which configuration. */
  readonly note?: string | undefined;
  /** Enqueues the work once. `turn` counts up, for contenders that take turns on several copies of their operands. */
  enqueue(turn: number): void;
}

/** Work with known amounts. */
export interface WorkItem {
  /** Unique in its suite and stable over time: "f16 4096 x 4096 x 4096 TN". */
  readonly id: string;
  /** Operations and bytes of one turn, as far as they say something. */
  readonly operations?: number | undefined;
  readonly bytes?: number | undefined;
  /** What can at best be reached. */
  readonly limit?: LimitKind | undefined;
  /** `device`: time on the device, the default. `host`: time until everything is enqueued. */
  readonly clock?: "device" | "host" | undefined;
  /** Makes operands and contenders. The device's memory is free again after `dispose`. */
  prepare(): Promise<Prepared>;
}

/** A work item that is ready to run. */
export interface Prepared {
  readonly contenders: readonly Contender[];
  dispose(): void;
}

/** The part of a device that measuring needs; a backend has it. */
export interface Clock {
  time(enqueue: () => void): Promise<number>;
  sync(): Promise<void>;
}

/** How carefully to measure. */
export interface Care {
  /** Samples of each contender. */
  readonly rounds: number;
  /** Least duration of one sample; short work is repeated in it. */
  readonly sampleSeconds: number;
  /** Work done before the first sample, for the clocks to settle. */
  readonly warmUpSeconds: number;
}

/** 15 samples of 5 ms after 0.3 s. */
export const usualCare: Care = Object.freeze({ rounds: 15, sampleSeconds: 5e-3, warmUpSeconds: 0.3 });

/** Seconds per turn of each contender, in their order. */
export async function measure(
  clock: Clock,
  contenders: readonly Contender[],
  kind: "device" | "host" = "device",
  care: Care = usualCare,
): Promise<readonly Summary[]> {
  const runners = contenders.map((contender) => new Runner(clock, contender, kind));
  for (const runner of runners) await runner.calibrate(care.sampleSeconds);
  for (let spent = 0; spent < care.warmUpSeconds; ) {
    for (const runner of runners) spent += (await runner.sample()) * runner.repeats;
  }
  const samples: number[][] = contenders.map(() => []);
  for (let round = 0; round < care.rounds; round++) {
    for (let step = 0; step < runners.length; step++) {
      const index = (round + step) % runners.length;
      samples[index]!.push(await runners[index]!.sample());
    }
  }
  return samples.map(summarise);
}

const mostRepeats = 20_000;

class Runner {
  readonly #clock: Clock;
  readonly #contender: Contender;
  readonly #kind: "device" | "host";
  #turn = 0;
  repeats = 1;

  constructor(clock: Clock, contender: Contender, kind: "device" | "host") {
    this.#clock = clock;
    this.#contender = contender;
    this.#kind = kind;
  }

  /** Finds how many turns make a sample long enough. The first turn may compile and does not count. */
  async calibrate(sampleSeconds: number): Promise<void> {
    await this.sample();
    for (;;) {
      const seconds = Math.max(await this.sample(), 1e-9);
      const wanted = Math.min(mostRepeats, Math.ceil(sampleSeconds / seconds));
      if (wanted <= 2 * this.repeats) {
        this.repeats = Math.max(this.repeats, wanted);
        return;
      }
      // A single short turn is mostly launch latency, so the estimate is raised step by step.
      this.repeats = Math.min(wanted, 10 * this.repeats);
    }
  }

  /** Seconds per turn. */
  async sample(): Promise<number> {
    const run = (): void => {
      for (let repeat = 0; repeat < this.repeats; repeat++) this.#contender.enqueue(this.#turn++);
    };
    if (this.#kind === "device") return (await this.#clock.time(run)) / this.repeats;
    await this.#clock.sync();
    const start = performance.now();
    run();
    const seconds = (performance.now() - start) / 1000;
    await this.#clock.sync();
    return seconds / this.repeats;
  }
}
