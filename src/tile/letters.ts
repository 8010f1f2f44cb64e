/**
 * @file Names of dimensions: one upper-case letter each.
 *
 * Only `tile()` asks for a {@link Letter}; everything made from a tile takes its names as strings. A parameter that
 * extended `Letter` would send the type checker through all the words of 26 letters.
 */

/** A dimension's name. */
export type Letter =
  | "A"
  | "B"
  | "C"
  | "D"
  | "E"
  | "F"
  | "G"
  | "H"
  | "I"
  | "J"
  | "K"
  | "L"
  | "M"
  | "N"
  | "O"
  | "P"
  | "Q"
  | "R"
  | "S"
  | "T"
  | "U"
  | "V"
  | "W"
  | "X"
  | "Y"
  | "Z";

/**
 * Every word of distinct letters out of `D`, in any order: `M`, `K`, `MK`, `KM`. None where `D` may be any letter: those
 * words are beyond counting.
 */
export type Words<D extends string> = [Letter] extends [D] ? never : Permutations<D>;

type Permutations<D extends string, First extends string = D> = First extends string
  ? First | `${First}${Permutations<Exclude<D, First>>}`
  : never;

/** The letters of a word. */
export type LettersOf<Word extends string> = Word extends `${infer First}${infer Rest}`
  ? First | LettersOf<Rest>
  : never;

/** A number for each dimension. */
export type Sizes<D extends string> = Readonly<Record<D, number>>;

/** More dimensions than any tensor contraction of the literature needs, and few enough for the types of all words. */
export const mostDimensions = 6;

/** Whether `name` can name a dimension. */
export function isLetter(name: string): name is Letter {
  return /^[A-Z]$/.test(name);
}
