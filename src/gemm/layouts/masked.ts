/**
 * @file Masks: matrices of which some elements are not stored, or not to be read.
 */
import {
  type AnyValue,
  type Bool,
  type I32,
  type StorageType,
  type Value,
  variables,
  when,
} from "../../lang/index.ts";
import type { ExtraValue } from "../extras.ts";
import { joined, separate } from "../transforms.ts";
import {
  type Elements,
  elementOf,
  factsOf,
  firstElement,
  type Layout,
  type MatrixArea,
  type MatrixTile,
  runOf,
} from "./layout.ts";

/** Which elements are read from a layout within. */
export interface Mask {
  /** Whether an element is stored. Along a line, those that are must be neighbours, for a run is asked at both its ends. */
  counts(row: Value<I32>, column: Value<I32>, extras: readonly ExtraValue[]): Value<Bool>;
  /** Whether all elements of an area are stored; it may say no where they are. */
  allCount?(area: MatrixArea, extras: readonly ExtraValue[]): Value<Bool>;
  /** The elements of one access all count or none does: only one of them is asked then. */
  readonly wholly?: boolean;
  readonly steps: NonNullable<Layout["steps"]>;
}

/** A layout of which only the elements that count are read; the others are the operator's zero. */
export function masked(name: string, inner: Layout, mask: Mask): Layout {
  const { counts, allCount, steps, wholly = false } = mask;
  const { widest, movement } = factsOf(inner);
  return {
    ...inner,
    name,
    facts: {
      movement: "registers",
      maskedBox: movement === "box",
      ...(widest === undefined ? {} : { widest }),
    },
    position: undefined,
    counts,
    ...(allCount === undefined ? {} : { allCount }),
    steps,
    load(source, place, tile) {
      const { zero = 0, extras = [] } = place;
      const asked = (at: MatrixTile): Value<Bool> => {
        const { row, column } = firstElement(at);
        return counts(row, column, extras);
      };
      const load = (at: MatrixTile): Elements => inner.load(source, place, at);
      return loadWhere(source.type, tile, zero, asked, load, wholly);
    },
  };
}

/**
 * The elements of a tile that is one access: at once if the first and the last are there, else those that are one by one,
 * and `zero` for the others. `wholly` promises that all are there or none.
 */
export function loadWhere(
  type: StorageType,
  tile: MatrixTile,
  zero: number,
  counts: (at: MatrixTile) => Value<Bool>,
  load: (at: MatrixTile) => Elements,
  wholly: boolean,
): Elements {
  const { count } = runOf(tile);
  const held = variables(type, count, zero);
  const singly = (e: number): void => {
    const at = elementOf(tile, e);
    when(counts(at), () => {
      held[e].value = load(at) as AnyValue;
    });
  };
  const together = (): void => {
    separate(load(tile)).forEach((value, e) => {
      held[e].value = value;
    });
  };
  if (count === 1) singly(0);
  else if (wholly) when(counts(elementOf(tile, 0)), together);
  else {
    when(counts(elementOf(tile, 0)).and(counts(elementOf(tile, count - 1))), together).otherwise(() => {
      for (let e = 0; e < count; e++) singly(e);
    });
  }
  return joined(held.map(({ value }) => value));
}
