/**
 * @file Extras: what a component takes at run time beside the matrices, device arrays and numbers.
 *
 * A component is a function, compiled in and compared by identity; its extras are arguments of the kernel. So one kernel
 * serves all bitmaps, index vectors and scales of a kind. Layouts, predicates, transforms and epilogue steps share this.
 */
import { ArgumentError } from "../errors.ts";
import {
  type AnyValue,
  byteSize,
  type ElementType,
  type GlobalArray,
  inout,
  input,
  type ParameterDescriptor,
  type ParameterDescriptors,
  type ScalarType,
  type StorageType,
  type Value,
} from "../lang/index.ts";
import { type Device, DeviceArray } from "../runtime/array.ts";

/** A number that is an argument, of a type that is compiled in. */
export interface RuntimeNumber<T extends ElementType = ElementType> {
  readonly type: T;
  readonly value: number | bigint;
}

/** What the host gives: an array, or a number. */
export type ExtraArgument = DeviceArray | RuntimeNumber;

/** What the component receives: bare storage to index linearly, or a value. */
export type ExtraValue = GlobalArray<StorageType> | AnyValue;

/** What a component receives for its extras, one by one. */
export type ExtraValues<E extends readonly ExtraArgument[]> = {
  readonly [K in keyof E]: E[K] extends DeviceArray<infer T>
    ? GlobalArray<T>
    : E[K] extends RuntimeNumber<infer N>
      ? Value<N>
      : ExtraValue;
};

/** The compiled-in part of an extra. Alignment is that of an array's first element, in bytes. */
export type ExtraKind =
  | {
      readonly array: true;
      readonly type: StorageType;
      readonly access: "read" | "write";
      readonly alignment: number;
    }
  | { readonly array: false; readonly type: ElementType };

/** A component with its extras. */
export interface Bound<C> {
  readonly component: C;
  readonly extras: readonly ExtraArgument[];
  /** Refuses extras that do not go with the extents of the matrix it is used on. `who` begins the message. */
  readonly check?: (who: string, rows: number, columns: number) => void;
}

/** Extras by who takes them: "layoutA", "predicate" and so on. */
export type ExtrasOf<E> = Readonly<Record<string, readonly E[]>>;

/** Alignments that kinds tell apart, in bytes. */
const alignments = [16, 8, 4, 2, 1] as const;

/** The widest alignment that all of these byte counts have. */
export function commonAlignment(bytes: readonly number[]): number {
  return alignments.find((unit) => bytes.every((count) => count % unit === 0)) ?? 1;
}

/** The compiled-in part of what the host gives. */
export function extraKind(extra: ExtraArgument): ExtraKind {
  if (!(extra instanceof DeviceArray)) return { array: false, type: extra.type };
  const alignment = commonAlignment([extra.offset * byteSize(extra.type)]);
  return { array: true, type: extra.type, access: "read", alignment };
}

/**
 * Checks that arrays are there and on the problem's device.
 * @throws DisposedError, ArgumentError
 */
export function checkExtras(who: string, extras: readonly ExtraArgument[], device: Device): void {
  for (const extra of extras) {
    if (!(extra instanceof DeviceArray)) continue;
    extra.check(`gemm: ${who}`);
    if (extra.device === device) continue;
    throw new ArgumentError(
      `gemm: ${who} uses an array on ${extra.device.name}; the matrices are on ${device.name}`,
    );
  }
}

const parameterName = (owner: string, position: number): string => `${owner}Extra${position}`;

/** Parameters of one owner's extras. */
export function extraParameters(owner: string, kinds: readonly ExtraKind[]): ParameterDescriptors {
  const descriptor = (kind: ExtraKind): ParameterDescriptor => {
    if (!kind.array) return kind.type as ScalarType;
    return kind.access === "read" ? input(kind.type, 0) : inout(kind.type, 0);
  };
  return Object.fromEntries(kinds.map((kind, i) => [parameterName(owner, i), descriptor(kind)]));
}

/** One owner's extras inside the kernel. */
export function extraValues(
  owner: string,
  kinds: readonly ExtraKind[],
  args: Readonly<Record<string, unknown>>,
): readonly ExtraValue[] {
  return kinds.map((_, i) => args[parameterName(owner, i)] as ExtraValue);
}

/** Host arguments of one owner's extras. */
export function extraArguments(
  owner: string,
  extras: readonly ExtraArgument[],
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    extras.map((extra, i) => [parameterName(owner, i), extra instanceof DeviceArray ? extra : extra.value]),
  );
}

/** Every extra replaced. */
export function mapExtras<E, R>(extras: ExtrasOf<E>, change: (extra: E) => R): ExtrasOf<R> {
  return Object.fromEntries(Object.entries(extras).map(([owner, list]) => [owner, list.map(change)]));
}

/** Parameters of all owners' extras. */
export function allExtraParameters(extras: ExtrasOf<ExtraKind>): ParameterDescriptors {
  return Object.assign({}, ...Object.entries(extras).map(([owner, kinds]) => extraParameters(owner, kinds)));
}

/** All owners' extras inside the kernel. */
export function allExtraValues(
  extras: ExtrasOf<ExtraKind>,
  args: Readonly<Record<string, unknown>>,
): ExtrasOf<ExtraValue> {
  return Object.fromEntries(
    Object.entries(extras).map(([owner, kinds]) => [owner, extraValues(owner, kinds, args)]),
  );
}

/** Host arguments of all owners' extras. */
export function allExtraArguments(extras: ExtrasOf<ExtraArgument>): Readonly<Record<string, unknown>> {
  return Object.assign({}, ...Object.entries(extras).map(([owner, list]) => extraArguments(owner, list)));
}

/** A text that is equal for equal kinds. */
export function extrasKey(kinds: readonly ExtraKind[]): string {
  return kinds
    .map((kind) => `${kind.type.name}${kind.array ? `[]/${kind.access}/${kind.alignment}` : ""}`)
    .join(",");
}
