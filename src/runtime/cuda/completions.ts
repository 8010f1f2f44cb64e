/**
 * @file What happens on the host once the device has come so far: promises that resolve, staging memory that is free
 * again, modules that can go.
 *
 * Everything is in one stream, so the marks are reached in the order in which they were set and only the oldest needs
 * asking. Waiting is polling: an event is asked at once for some 100 microseconds, then in every turn of the event loop
 * for two milliseconds, then by a timer whose period grows with the time waited. A thread that blocks in the driver would
 * need the context made current on it, which no pool of threads lets us do, and a callback from the driver would stall
 * the stream until JavaScript gets to it.
 */
import type { DriverContext } from "./context.ts";
import type { Address } from "./driver-library.ts";
import { EventPool } from "./events.ts";
import { status } from "./status.ts";

interface Mark {
  readonly event: Address;
  /** Launches enqueued before the mark. */
  readonly launches: number;
  /** Called once, with the fault that prevented the mark from being reached, if any. Must not throw. */
  readonly action: (fault: Error | undefined) => void;
}

const spinMilliseconds = 0.1;
const busyMilliseconds = 2;
const longestPause = 10;

/** Marks in the stream and what to do when they are reached. */
export class Completions {
  readonly #context: DriverContext;
  readonly #events: EventPool;
  readonly #marks: Mark[] = [];
  #waiting = 0;
  #polling = false;

  constructor(context: DriverContext) {
    this.#context = context;
    this.#events = new EventPool(context);
  }

  /** Marks that were not reached when last looked at. */
  get pending(): number {
    return this.#marks.length;
  }

  /** Runs `action` some time after all work enqueued so far is done. The context must be current. */
  after(action: (fault: Error | undefined) => void): void {
    const { library, stream, history } = this.#context;
    const event = this.#events.take();
    this.#context.check(library.cuEventRecord(event, stream), "Recording an event");
    this.#marks.push({ event, launches: history.count, action });
  }

  /**
   * Resolves when all work enqueued so far is done; rejects with the device's fault. `finish` runs before that, in
   * order with the other marks' actions; what it throws is what the promise rejects with. The context must be current.
   */
  reached(finish?: (fault: Error | undefined) => void): Promise<void> {
    this.#waiting++;
    const promise = new Promise<void>((resolve, reject) => {
      const action = (fault: Error | undefined): void => {
        this.#waiting--;
        try {
          finish?.(fault);
          if (fault === undefined) resolve();
          else reject(fault);
        } catch (error) {
          reject(error);
        }
      };
      try {
        this.after(action);
      } catch (error) {
        action(error as Error);
      }
    });
    if (!this.#polling && this.#waiting > 0) {
      this.#polling = true;
      // What the caller still enqueues in this turn comes before the first look.
      queueMicrotask(() => this.#spin());
    }
    return promise;
  }

  /** Runs the actions of the marks reached by now, without waiting. The context must be current. */
  drain(): void {
    const { library } = this.#context;
    while (this.#marks.length > 0) {
      const code = library.cuEventQuery(this.#marks[0]!.event);
      if (code === status.notReady) return;
      if (code !== status.success) {
        this.#fail(this.#context.recordFault(code));
        return;
      }
      this.#finishOldest();
    }
  }

  /** Blocks until the oldest mark is reached, then drains. The context must be current. */
  waitForOldest(): void {
    const oldest = this.#marks[0];
    if (oldest === undefined) return;
    const code = this.#context.library.cuEventSynchronize(oldest.event);
    if (code !== status.success) this.#fail(this.#context.recordFault(code));
    else this.drain();
  }

  /** Gives up on what is still pending. */
  dispose(reason: Error): void {
    this.#fail(reason);
    this.#events.dispose();
  }

  #finishOldest(): void {
    const mark = this.#marks.shift()!;
    this.#context.history.settle(mark.launches);
    this.#events.give(mark.event);
    mark.action(undefined);
  }

  #fail(reason: Error): void {
    for (const mark of this.#marks.splice(0)) {
      this.#events.give(mark.event);
      mark.action(reason);
    }
  }

  #spin(): void {
    const start = performance.now();
    const { library, handle } = this.#context;
    if (!this.#context.disposed) library.cuCtxSetCurrent(handle);
    do {
      this.drain();
      if (this.#waiting === 0) {
        this.#polling = false;
        return;
      }
    } while (performance.now() - start < spinMilliseconds);
    this.#pollLater(start);
  }

  #pollLater(start: number): void {
    const waited = performance.now() - start;
    const poll = (): void => this.#poll(start);
    if (waited < busyMilliseconds) setImmediate(poll);
    else setTimeout(poll, Math.min(longestPause, waited / 16));
  }

  #poll(start: number): void {
    if (this.#waiting === 0) {
      this.#polling = false;
      return;
    }
    const { library, handle } = this.#context;
    library.cuCtxSetCurrent(handle);
    const before = this.#marks.length;
    this.drain();
    // After progress the next mark may be near again.
    this.#pollLater(this.#marks.length < before ? performance.now() : start);
  }
}
