/** @file How long work takes: by the device's timestamps where they are allowed, else by the host's clock. */
import { bufferUsage, mapForReading } from "./constants.ts";
import type { CommandQueue } from "./queue.ts";

/** Seconds that the work enqueued by `enqueue` takes. */
export async function timed(queue: CommandQueue, enqueue: () => void): Promise<number> {
  return queue.device.features.has("timestamp-query")
    ? byTimestamps(queue, enqueue)
    : byHostClock(queue, enqueue);
}

async function byTimestamps(queue: CommandQueue, enqueue: () => void): Promise<number> {
  const { device } = queue;
  const querySet = device.createQuerySet({ type: "timestamp", count: 2 });
  const resolved = device.createBuffer({
    size: 16,
    usage: bufferUsage.queryResolve | bufferUsage.copySource,
  });
  const staging = device.createBuffer({ size: 16, usage: bufferUsage.mapRead | bufferUsage.copyTarget });
  try {
    queue.flush();
    // Passes without work: what lies between their stamps is the caller's.
    queue
      .encoder("a timer")
      .beginComputePass({ timestampWrites: { querySet, endOfPassWriteIndex: 0 } })
      .end();
    enqueue();
    const encoder = queue.encoder("a timer");
    encoder.beginComputePass({ timestampWrites: { querySet, beginningOfPassWriteIndex: 1 } }).end();
    encoder.resolveQuerySet(querySet, 0, 2, resolved, 0);
    encoder.copyBufferToBuffer(resolved, 0, staging, 0, 16);
    queue.flush();
    await staging.mapAsync(mapForReading);
    const [start, end] = new BigUint64Array(staging.getMappedRange());
    return Number(end! - start!) * 1e-9;
  } finally {
    querySet.destroy();
    resolved.destroy();
    staging.destroy();
  }
}

async function byHostClock(queue: CommandQueue, enqueue: () => void): Promise<number> {
  const { device } = queue;
  queue.flush();
  let earlierDone = 0;
  const before = device.queue.onSubmittedWorkDone().then(() => {
    earlierDone = performance.now();
  });
  const start = performance.now();
  enqueue();
  queue.flush();
  await Promise.all([before, device.queue.onSubmittedWorkDone()]);
  return (performance.now() - Math.max(start, earlierDone)) / 1000;
}
