/**
 * @file Layouts of matrices whose elements have several components: together in memory, or each component a matrix of its
 * own. Accesses are those of the matrices of numbers that they consist of.
 */
import { UnsupportedError } from "../../errors.ts";
import type { AnyValue, Index, Value, VectorLanes } from "../../lang/index.ts";
import { linearise } from "../../tile/index.ts";
import { denseLayout, interned, type Layout, type MatrixPlace, type MatrixTile } from "./layout.ts";

type Major = Layout["major"];

function refuse(name: string): never {
  throw new UnsupportedError(
    `the layout ${name} holds elements of several components, which are no single values; its streams are matrices of numbers`,
  );
}

/** The components of an element follow each other, as re, im of complex numbers. The leading dimension counts numbers. */
export function interleaved(major: Major, count: number): Layout {
  return interned(`${major}-major, ${count} interleaved`, (name) => ({
    ...denseLayout(major),
    name,
    facts: { movement: "registers" },
    position: undefined,
    load: () => refuse(name),
    store: () => refuse(name),
    streams: [{ layout: denseLayout(major), components: Array.from({ length: count }, (_, p) => p) }],
  }));
}

/** Each component is a dense matrix of its own; the layout's extra is the distance between them, in numbers. */
export function split(major: Major, count: number): Layout {
  return interned(`${major}-major, ${count} split`, (name) => ({
    ...denseLayout(major),
    name,
    facts: { movement: "registers" },
    position: undefined,
    load: () => refuse(name),
    store: () => refuse(name),
    streams: Array.from({ length: count }, (_, p) => ({ layout: plane(major, p), components: [p] })),
  }));
}

/** One component of split storage. */
function plane(major: Major, component: number): Layout {
  const whole = denseLayout(major);
  if (component === 0) return whole;
  const position = ({ leading, extras = [] }: MatrixPlace, tile: MatrixTile): Value<Index> => {
    const within = linearise(major === "row" ? tile.project("R", "C") : tile.project("C", "R"), leading);
    const distance = (extras[0] as AnyValue as Value<Index>).mul(component);
    return distance.add(within as Value<Index>);
  };
  return interned(`${whole.name}, plane ${component}`, (name) => ({
    ...whole,
    name,
    facts: { movement: "run" },
    position,
    load(source, place, tile) {
      const lanes = tile.size.R * tile.size.C;
      const at = position(place, tile);
      return lanes === 1 ? source.loadAt(at) : source.loadVectorAt(lanes as VectorLanes, at);
    },
    store(target, place, tile, value) {
      const at = position(place, tile);
      if (tile.size.R * tile.size.C === 1) target.storeAt(at, value as AnyValue);
      else target.storeVectorAt(at, value as never);
    },
  }));
}
