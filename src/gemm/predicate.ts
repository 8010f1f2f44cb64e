/**
 * @file Predicates: which K steps of a tile count.
 */
import { type I32, loopWhile, type Value, variable } from "../lang/index.ts";
import type { ExtraValue } from "./extras.ts";

/** The output tile of a block, in elements. */
export interface OutputTile {
  readonly row: Value<I32>;
  readonly column: Value<I32>;
  readonly rows: number;
  readonly columns: number;
  /** Extent of one K step. */
  readonly depth: number;
  /** Number of K steps of a tile where all count. */
  readonly steps: Value<I32>;
}

/**
 * Says which K steps count for a tile. `next` gives the first step ≥ `step` that counts, or anything ≥ the number of
 * steps when none does; it is a function of its arguments and extras alone and the same in all threads of a block. A tile
 * with no steps still runs its epilogue.
 */
export interface Predicate {
  readonly name: string;
  /** The steps that count follow each other without a gap: saves asking twice. */
  readonly contiguous?: boolean;
  /** Tiles further down and to the right have more steps: they are computed first. */
  readonly growing?: boolean;
  next(tile: OutputTile, step: Value<I32>, extras: readonly ExtraValue[]): Value<I32>;
}

/** Every step counts. */
export const everyStep: Predicate = { name: "every step", contiguous: true, next: (_, step) => step };

/** A predicate whose extras are known. */
export interface StepSequence {
  readonly contiguous: boolean;
  next(tile: OutputTile, step: Value<I32>): Value<I32>;
}

/** A predicate with its extras; nothing for one that counts every step. */
export function sequenceOf(
  predicate: Predicate | undefined,
  extras: readonly ExtraValue[],
): readonly StepSequence[] {
  if (predicate === undefined || predicate === everyStep) return [];
  return [
    {
      contiguous: predicate.contiguous ?? false,
      next: (tile, step) => predicate.next(tile, step, extras),
    },
  ];
}

/**
 * The steps that count for all: each sequence in turn moves on to its own next step until none moves. One sequence with
 * gaps has to be asked once, between two rounds of those without; only two with gaps need a loop.
 */
export function intersection(sequences: readonly StepSequence[]): StepSequence {
  if (sequences.length === 1) return sequences[0];
  const through = (list: readonly StepSequence[], tile: OutputTile, step: Value<I32>): Value<I32> =>
    list.reduce((at, sequence) => sequence.next(tile, at), step);
  const intervals = sequences.filter(({ contiguous }) => contiguous);
  const gapped = sequences.filter(({ contiguous }) => !contiguous);
  if (gapped.length < 2) {
    const again = [...intervals, ...gapped, ...(sequences.length > 1 ? intervals : [])];
    return { contiguous: gapped.length === 0, next: (tile, step) => through(again, tile, step) };
  }
  return {
    contiguous: false,
    next(tile, step) {
      const before = variable(step.type, step.sub(1));
      const at = variable(step.type, step);
      loopWhile(
        () => at.value.ne(before.value).and(at.value.lt(tile.steps)),
        () => {
          const here = at.value;
          before.value = here;
          at.value = through(sequences, tile, here);
        },
      );
      return at.value;
    },
  };
}
