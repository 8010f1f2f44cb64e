/** @file Searching among candidates, and keeping what was found: `tilewright/tuning`. Families bring the candidates. */
export {
  type Measured,
  type Outcome,
  type SearchOptions,
  type SearchProgress,
  type SearchResult,
  search,
  type Trial,
} from "./search.ts";
export {
  memoryStore,
  type StoredValue,
  type TextKeeper,
  type TuningStore,
  tuningStore,
  usualStore,
} from "./store.ts";
