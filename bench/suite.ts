/** @file A suite of work items and how it is run: in shards, within a time, going on where an earlier run stopped. */
import type { CudaBackend } from "../src/runtime/cuda/index.ts";
import { environment } from "./environment.ts";
import { type Care, measure, usualCare, type WorkItem } from "./harness.ts";
import { formatItem, type ItemResult, itemResult, ResultStore } from "./results.ts";

/** Benchmarks that belong together. */
export interface Suite {
  readonly name: string;
  /** The items for this device; making the list costs nothing. */
  items(backend: CudaBackend): readonly WorkItem[];
}

/** Which items to run, and where results go. */
export interface Selection {
  readonly directory: string;
  /** Items whose id matches. */
  readonly only?: RegExp | undefined;
  /** Every `of`-th item from `part` on, counted from 1. */
  readonly shard?: { readonly part: number; readonly of: number } | undefined;
  /** Starts no further item after so many seconds. */
  readonly seconds?: number | undefined;
  /** Also what was measured at this commit before. */
  readonly again?: boolean | undefined;
  readonly care?: Care | undefined;
}

/** `3/8` → part 3 of 8. @throws RangeError */
export function parseShard(text: string): { readonly part: number; readonly of: number } {
  const match = /^(\d+)\/(\d+)$/.exec(text);
  const [part, of] = [Number(match?.[1]), Number(match?.[2])];
  if (!(part >= 1 && part <= of))
    throw new RangeError(`a shard is PART/OF, such as 1/4; "${text}" was given`);
  return { part, of };
}

/** The chosen items, in their order. */
export function select<Item extends Pick<WorkItem, "id">>(
  items: readonly Item[],
  { only, shard }: Pick<Selection, "only" | "shard">,
): readonly Item[] {
  return items
    .filter(({ id }) => only === undefined || only.test(id))
    .filter((_, index) => shard === undefined || index % shard.of === shard.part - 1);
}

/** Runs a suite. An item that fails is written down as such and the next is tried, unless the device is lost. */
export async function runSuite(suite: Suite, backend: CudaBackend, selection: Selection): Promise<void> {
  const here = environment(backend);
  const store = new ResultStore(selection.directory, suite.name, backend.name);
  const started = performance.now();
  const items = select(suite.items(backend), selection);
  let left = items.length;
  for (const item of items) {
    if (selection.again !== true && store.isFresh(item.id, here.commit)) {
      left--;
      continue;
    }
    if (selection.seconds !== undefined && performance.now() - started > 1000 * selection.seconds) {
      console.log(`${suite.name}: ${left} items left for another run`);
      return;
    }
    const result = await runItem(item, backend, selection.care ?? usualCare);
    store.put(item.id, result);
    console.log(formatItem(item.id, result));
    left--;
    await backend.sync();
  }
}

async function runItem(item: WorkItem, backend: CudaBackend, care: Care): Promise<ItemResult> {
  const here = environment(backend);
  try {
    const prepared = await item.prepare();
    try {
      const summaries = await measure(backend, prepared.contenders, item.clock, care);
      return itemResult(item, prepared.contenders, summaries, here);
    } finally {
      prepared.dispose();
    }
  } catch (error) {
    return {
      ...here,
      clock: item.clock ?? "device",
      error: error instanceof Error ? error.message : String(error),
    };
  }
}
