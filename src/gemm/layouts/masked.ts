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
  type MatrixTile,
  runOf,
} from "./layout.ts";

/** Which elements are read from a layout within. */
export interface Mask {
  /** Whether an element is stored. Along a line, those that are must be neighbours, for a run is asked at both its ends. */
  counts(row: Value<I32>, column: Value<I32>, extras: readonly ExtraValue[]): Value<Bool>;
  readonly steps: NonNullable<Layout["steps"]>;
}

/** A layout of which only the elements that count are read; the others are the operator's zero. */
export function masked(name: string, inner: Layout, mask: Mask): Layout {
  const { widest } = factsOf(inner);
  return {
    ...inner,
    name,
    facts: { movement: "registers", ...(widest === undefined ? {} : { widest }) },
    position: undefined,
    ...mask,
    load(source, place, tile) {
      const { zero = 0, extras = [] } = place;
      const asked = (at: MatrixTile): Value<Bool> => {
        const { row, column } = firstElement(at);
        return mask.counts(row, column, extras);
      };
      return loadWhere(source.type, tile, zero, asked, (at) => inner.load(source, place, at));
    },
  };
}

/**
 * The elements of a tile that is one access: at once if the first and the last are there, else those that are one by one,
 * and `zero` for the others.
 */
export function loadWhere(
  type: StorageType,
  tile: MatrixTile,
  zero: number,
  counts: (at: MatrixTile) => Value<Bool>,
  load: (at: MatrixTile) => Elements,
): Elements {
  const { count } = runOf(tile);
  const held = variables(type, count, zero);
  const singly = (e: number): void => {
    const at = elementOf(tile, e);
    when(counts(at), () => {
      held[e].value = load(at) as AnyValue;
    });
  };
  if (count === 1) singly(0);
  else {
    const whole = counts(elementOf(tile, 0)).and(counts(elementOf(tile, count - 1)));
    when(whole, () => {
      separate(load(tile)).forEach((value, e) => {
        held[e].value = value;
      });
    }).otherwise(() => {
      for (let e = 0; e < count; e++) singly(e);
    });
  }
  return joined(held.map(({ value }) => value));
}
