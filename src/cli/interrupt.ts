/** @file Ctrl-C. */

const signals = ["SIGINT", "SIGTERM"] as const;

/** Does work that can be stopped: the first Ctrl-C aborts the signal, a second one ends the process. */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const abort = (): void => {
    stopListening();
    controller.abort();
  };
  const stopListening = (): void => {
    for (const name of signals) process.removeListener(name, abort);
  };
  for (const name of signals) process.on(name, abort);
  try {
    return await work(controller.signal);
  } finally {
    stopListening();
  }
}
