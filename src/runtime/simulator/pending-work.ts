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

/** A tensor store on its way: {@link read} takes its source, {@link write} does the rest too. Both do nothing twice. */
export interface BulkStore {
  readonly read: () => void;
  readonly write: () => void;
  readonly time: number;
  readonly site: number;
}

/** A lane's stores. The first `read` of the closed groups have been waited for as read. */
export interface StoreGroups {
  open: BulkStore[];
  readonly closed: BulkStore[][];
  read: number;
}

export function newStoreGroups(): StoreGroups {
  return { open: [], closed: [], read: 0 };
}

/** The groups of one lane's copies, made when first asked for. */
export function groupsOf(lanes: (CopyGroups | undefined)[], lane: number): CopyGroups {
  let groups = lanes[lane];
  if (groups === undefined) {
    groups = { open: [], closed: [] };
    lanes[lane] = groups;
  }
  return groups;
}

/** Closes a lane's open group. */
export function commitGroup(lanes: (CopyGroups | undefined)[], lane: number): void {
  const groups = groupsOf(lanes, lane);
  groups.closed.push(groups.open);
  groups.open = [];
}
