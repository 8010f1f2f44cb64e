/** @file Events: marks in the stream, reused since creating one costs more than recording it. */
import type { DriverContext } from "./context.ts";
import type { Address } from "./driver-library.ts";

const disableTiming = 2;

/** Creates an event that can tell time. The context must be current. */
export function createTimingEvent(context: DriverContext): Address {
  return createEvent(context, 0);
}

function createEvent(context: DriverContext, flags: number): Address {
  const out = new BigUint64Array(1);
  context.check(context.library.cuEventCreate(out, flags), "Creating an event");
  return Number(out[0]);
}

/** Events without a clock, for completion alone. */
export class EventPool {
  readonly #context: DriverContext;
  readonly #idle: Address[] = [];

  constructor(context: DriverContext) {
    this.#context = context;
  }

  take(): Address {
    return this.#idle.pop() ?? createEvent(this.#context, disableTiming);
  }

  give(event: Address): void {
    this.#idle.push(event);
  }

  /** Destroys the idle events. */
  dispose(): void {
    for (const event of this.#idle.splice(0)) this.#context.library.cuEventDestroy(event);
  }
}
