/**
 * @file Transforms: functions of elements and their coordinates on any of the eight streams of a GEMM.
 */
import {
  type AnyValue,
  type ElementType,
  type I32,
  type StorageType,
  Value,
  Vector,
  vector,
} from "../lang/index.ts";
import type { ElementCoordinates } from "./coordinates.ts";
import type { Bound, ExtraArgument, ExtrasOf, ExtraValue, ExtraValues } from "./extras.ts";
import type { Elements } from "./layouts/layout.ts";

export type { ElementCoordinates } from "./coordinates.ts";

/** A function of one element. It may change the element type. */
export type Transform = (x: AnyValue, at: ElementCoordinates) => AnyValue;

/**
 * The eight streams. Transforms run in the order in which data moves: `globalToShared`, then `sharedToRegister` for the
 * operands A, B, C; `registerToShared`, then `sharedToGlobal` for the result D. A schedule that keeps a stream in registers
 * still applies both.
 */
export interface Transforms {
  readonly a?: { readonly globalToShared?: Transform; readonly sharedToRegister?: Transform };
  readonly b?: { readonly globalToShared?: Transform; readonly sharedToRegister?: Transform };
  readonly c?: { readonly globalToShared?: Transform; readonly sharedToRegister?: Transform };
  readonly d?: { readonly registerToShared?: Transform; readonly sharedToGlobal?: Transform };
}

/** A transform that takes arrays or numbers of its own: `extras` are what it was bound to. */
export type TransformWithExtras = (
  x: AnyValue,
  at: ElementCoordinates,
  extras: readonly ExtraValue[],
) => AnyValue;

/**
 * A transform with arrays and numbers of its own, which are arguments of the kernel: other arrays of the same types run
 * the same kernel. The function receives arrays as bare storage, numbers as values.
 *
 *     bound((x, { row }, [v]) => x.mul(v.loadAt(row)), factors)
 */
export function bound<const E extends readonly ExtraArgument[]>(
  component: (x: AnyValue, at: ElementCoordinates, extras: ExtraValues<E>) => AnyValue,
  ...extras: E
): Bound<TransformWithExtras> {
  return { component: component as unknown as TransformWithExtras, extras };
}

type Streams<T> = { readonly [Operand in keyof Transforms]?: Partial<Record<string, T>> };

/** Transforms as they are given: a function, or one bound to arrays and numbers by {@link bound}. */
export interface GivenTransforms {
  readonly a?: { readonly globalToShared?: GivenTransform; readonly sharedToRegister?: GivenTransform };
  readonly b?: { readonly globalToShared?: GivenTransform; readonly sharedToRegister?: GivenTransform };
  readonly c?: { readonly globalToShared?: GivenTransform; readonly sharedToRegister?: GivenTransform };
  readonly d?: { readonly registerToShared?: GivenTransform; readonly sharedToGlobal?: GivenTransform };
}

/** A transform on one stream. */
export type GivenTransform = Transform | Bound<TransformWithExtras>;

/** Replaces the transform of every stream; `owner` names the stream among the kernel's extras. */
function mapStreams<T, R>(streams: Streams<T>, change: (transform: T, owner: string) => R): Streams<R> {
  const changed = Object.entries(streams).map(([operand, stages]) => {
    const given = Object.entries(stages ?? {}).filter(([, transform]) => transform !== undefined);
    const entries = given.map(([stage, transform]) => [stage, change(transform as T, `${operand}_${stage}`)]);
    return [operand, Object.fromEntries(entries)] as const;
  });
  return Object.fromEntries(changed.filter(([, stages]) => Object.keys(stages).length > 0));
}

/** The functions of given transforms, and what they are bound to. */
export function unboundTransforms(given: GivenTransforms): {
  readonly transforms: Transforms;
  readonly extras: ExtrasOf<ExtraArgument>;
} {
  const extras: Record<string, readonly ExtraArgument[]> = {};
  const transforms = mapStreams<GivenTransform, unknown>(given, (transform, owner) => {
    if (typeof transform === "function") return transform;
    extras[owner] = transform.extras;
    return transform.component;
  });
  return { transforms: transforms as Transforms, extras };
}

/** Extents of the matrices that transforms run beyond: tiles of A and B may stand over their edges. */
export interface Extents {
  readonly m: Value<I32>;
  readonly n: Value<I32>;
  readonly k: Value<I32>;
}

/**
 * Transforms inside the kernel: functions of element and coordinates, whatever they are bound to. Those that are bound
 * are never asked beyond the edges of A and B, where they would read outside their arrays: they see the last row or column
 * there, and what they make of it counts for nothing. All are told the matrix's number where there is a batch.
 */
export function closedTransforms(
  transforms: Transforms,
  extras: ExtrasOf<ExtraValue>,
  { m, n, k }: Extents,
  batch?: Value<I32>,
): Transforms {
  const edges: Readonly<Record<string, readonly [Value<I32>, Value<I32>]>> = { a: [m, k], b: [k, n] };
  const close = (transform: TransformWithExtras, owner: string): Transform => {
    const own = extras[owner];
    const placed = (at: ElementCoordinates): ElementCoordinates =>
      batch === undefined ? at : { ...at, batch };
    if (own === undefined) return (x, at) => (transform as Transform)(x, placed(at));
    const edge = edges[owner[0]];
    if (edge === undefined) return (x, at) => transform(x, placed(at), own);
    const [rows, columns] = edge;
    return (x, { row, column }) =>
      transform(x, placed({ row: row.min(rows.sub(1)), column: column.min(columns.sub(1)) }), own);
  };
  return mapStreams(transforms as Streams<TransformWithExtras>, close) as Transforms;
}

/** Values as one value or vector. */
export function joined(values: readonly AnyValue[]): Elements {
  return values.length === 1 ? values[0] : vector(...values);
}

/** The values of one value or vector. */
export function separate(held: Elements): readonly AnyValue[] {
  return held instanceof Vector ? held.elements() : [held];
}

/** Converts one element or each of a vector; the same object if the type is already right. */
export function converted(held: Elements, type: ElementType): Elements {
  if (held.type === type) return held;
  if (held instanceof Value) return held.to(type);
  // A conversion of the whole vector stays packed where the result fits one access.
  return type.bits * held.lanes <= 128
    ? held.to(type)
    : joined(held.elements().map((value) => value.to(type)));
}

/** Neighbouring elements converted, in as few values and vectors of at most 16 bytes as hold them. */
export function convertedRuns(values: readonly AnyValue[], type: StorageType): readonly Elements[] {
  const [first] = values;
  const together = Math.min(values.length, Math.floor(128 / Math.max(first.type.bits, type.bits)));
  const runs: Elements[] = [];
  for (let e = 0; e < values.length; e += together) {
    runs.push(converted(joined(values.slice(e, e + together)), type));
  }
  return runs;
}
