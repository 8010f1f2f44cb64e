/** @file Ctrl-C while a file is being written. At any other time it may end the process at once: nothing is left behind. */

const signals = ["SIGINT", "SIGTERM"] as const;

/** Does work that leaves something behind when it stops halfway; the first Ctrl-C aborts the signal, a second one kills. */
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
