/** @file Asynchronous work that was started and is not done yet. */
import type { BufferBinding } from "./arguments.ts";
import type { SharedArrayFacts } from "./array-facts.ts";

/** Work that the scheduler will do. */
export interface DeferredWork {
  readonly run: () => void;
}

/** A copy of a single thread. */
export interface ThreadCopy {
  readonly array: SharedArrayFacts;
  readonly address: number;
  readonly source: BufferBinding;
  readonly sourceByte: number;
  readonly bytes: number;
  readonly valid: number;
  readonly site: number;
  landed: boolean;
}

export interface CopyGroups {
  open: ThreadCopy[];
  readonly closed: ThreadCopy[][];
}

/** A tensor store on its way. */
export interface BulkStore {
  readonly perform: () => void;
  readonly time: number;
  done: boolean;
}

export interface StoreGroups {
  open: BulkStore[];
  readonly closed: BulkStore[][];
}

/** The groups of one lane, made when first asked for. */
export function groupsOf<T>(
  lanes: ({ open: T[]; readonly closed: T[][] } | undefined)[],
  lane: number,
): { open: T[]; readonly closed: T[][] } {
  let groups = lanes[lane];
  if (groups === undefined) {
    groups = { open: [], closed: [] };
    lanes[lane] = groups;
  }
  return groups;
}

/** Closes a lane's open group. */
export function commitGroup<T>(
  lanes: ({ open: T[]; readonly closed: T[][] } | undefined)[],
  lane: number,
): void {
  const groups = groupsOf(lanes, lane);
  groups.closed.push(groups.open);
  groups.open = [];
}
