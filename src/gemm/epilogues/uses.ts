/**
 * @file Functions that use device scalars, vectors, matrices and numbers of their own: as steps of an epilogue, and as
 * transforms on any of the eight streams.
 *
 *     uses({ v: columnVector(v), gain: deviceScalar(g) }, (x, { v, gain }) => x.mul(v).add(gain))
 *
 * The function is compiled in; what it uses are arguments, so that the same function with other arrays or numbers runs the
 * same kernel.
 */
import { ArgumentError, ShapeError } from "../../errors.ts";
import {
  type AnyValue,
  f32,
  type GlobalArray,
  type Index,
  index,
  type StorageType,
  type Value,
} from "../../lang/index.ts";
import { DeviceArray } from "../../runtime/array.ts";
import type { ElementCoordinates } from "../coordinates.ts";
import type { Bound, ExtraArgument, ExtraValue } from "../extras.ts";
import type { TransformWithExtras } from "../transforms.ts";
import type { EpilogueStep, StepArray, StepBehaviour } from "./step.ts";
import type { StepOperandShape } from "./step-operand.ts";

/** An array and which of its elements belongs to an element of the stream. */
export interface Used {
  readonly array: DeviceArray;
  readonly shape: "perColumn" | "perRow" | "matrix" | "scalar";
}

/** A single element, the same for all: shape [1] or []. */
export function deviceScalar(array: DeviceArray): Used {
  return { array, shape: "scalar" };
}

/** A row vector, 1 x columns: its element j belongs to column j. */
export function rowVector(array: DeviceArray): Used {
  return { array, shape: "perColumn" };
}

/** A column vector, rows x 1: its element i belongs to row i. */
export function columnVector(array: DeviceArray): Used {
  return { array, shape: "perRow" };
}

/** A row-major matrix of the stream's own shape. */
export function sameShape(array: DeviceArray): Used {
  return { array, shape: "matrix" };
}

/** What a function uses, by name; numbers become f32 arguments. */
export type Uses = Readonly<Record<string, Used | number>>;

/** A function of an element, of what it uses, and of the element's coordinates. */
export type UsingFunction<Name extends string = string> = (
  x: AnyValue,
  used: { readonly [N in Name]: AnyValue },
  at: ElementCoordinates,
) => AnyValue;

/** Goes into an epilogue's list, and on any stream of `transforms`. */
export type StepAndTransform = EpilogueStep & Bound<TransformWithExtras>;

/**
 * A function with arrays and numbers of its own. It receives the values that belong to its element: those of vectors,
 * matrices and scalars in their arrays' types.
 *
 * @throws ArgumentError for something that is no array; vectors of the wrong length are refused by `gemm` (ShapeError)
 */
export function uses<U extends Uses>(used: U, body: UsingFunction<keyof U & string>): StepAndTransform {
  const names = Object.keys(used);
  for (const name of names) {
    const one = used[name];
    if (typeof one !== "number" && !(one?.array instanceof DeviceArray)) {
      throw new ArgumentError(
        `gemm: uses({ ${name} }) takes deviceScalar(array), rowVector(array), columnVector(array), sameShape(array) or a number`,
      );
    }
  }
  const { behaviour, component } = compiledPart(used, body);
  const given = names.map((name) => used[name]);
  return {
    behaviour,
    arrays: given.map((one): StepArray => (typeof one === "number" ? one : one.array)),
    component,
    extras: given.flatMap((one): readonly ExtraArgument[] => {
      if (typeof one === "number") return [{ type: f32, value: one }];
      return one.shape === "matrix"
        ? [one.array, { type: index, value: one.array.strides[0] ?? 1 }]
        : [one.array];
    }),
    check: (who, rows, columns) => {
      for (const name of names) checkUsed(`${who}: ${name}`, used[name], rows, columns);
    },
  };
}

function checkUsed(who: string, used: Used | number, rows: number, columns: number): void {
  if (typeof used === "number") return;
  const { array, shape } = used;
  const wanted = {
    perColumn: [columns],
    perRow: [rows],
    matrix: [rows, columns],
    scalar: array.shape.map(() => 1),
  }[shape];
  const fits = array.shape.length === wanted.length && array.shape.every((extent, d) => extent === wanted[d]);
  const dense = array.size <= 1 || array.shape.at(-1) === 1 || array.strides.at(-1) === 1;
  if (fits && dense) return;
  throw new ShapeError(
    `gemm: ${who} is to have shape [${wanted.join(", ")}], neighbours together; it was given ${array.label} with strides [${array.strides.join(", ")}]`,
  );
}

interface CompiledPart {
  readonly behaviour: StepBehaviour;
  readonly component: TransformWithExtras;
}

const known: WeakMap<UsingFunction, Map<string, CompiledPart>> = new WeakMap();

/** The same objects for the same function and the same names and shapes. */
function compiledPart(used: Uses, body: UsingFunction): CompiledPart {
  const entries = Object.entries(used).map(
    ([name, one]) => [name, typeof one === "number" ? "number" : one.shape] as const,
  );
  const parts = known.get(body) ?? new Map<string, CompiledPart>();
  known.set(body, parts);
  const key = entries.map(([name, shape]) => `${name}:${shape}`).join(" ");
  const found = parts.get(key) ?? {
    behaviour: stepPart(entries, body),
    component: streamPart(entries, body),
  };
  parts.set(key, found);
  return found;
}

type Entries = readonly (readonly [name: string, shape: Used["shape"] | "number"])[];

function stepPart(entries: Entries, body: UsingFunction): StepBehaviour {
  return {
    name: `function of ${entries.map(([name]) => name).join(", ")}`,
    operands: entries.map(
      ([, shape]): StepOperandShape => ({
        shape,
        access: "read",
        ...(shape === "number" ? { type: f32 } : {}),
      }),
    ),
    apply(values, run, operands) {
      const loaded = operands.map((operand) => operand.load(run));
      return values.map((x, e) =>
        body(x, Object.fromEntries(entries.map(([name], i) => [name, loaded[i][e]])), run.at(e)),
      );
    },
  };
}

function streamPart(entries: Entries, body: UsingFunction): TransformWithExtras {
  return (x, at, extras) => {
    const rest = extras.values();
    const next = (): ExtraValue => rest.next().value as ExtraValue;
    const loaded = entries.map(([name, shape]): [string, AnyValue] => {
      if (shape === "number") return [name, next() as AnyValue];
      const array = next() as GlobalArray<StorageType>;
      if (shape === "scalar") return [name, array.loadAt(0) as AnyValue];
      if (shape === "perColumn") return [name, array.loadAt(at.column) as AnyValue];
      if (shape === "perRow") return [name, array.loadAt(at.row) as AnyValue];
      const leading = next() as Value<Index>;
      return [name, array.loadAt(at.row.to(index).mul(leading).add(at.column.to(index))) as AnyValue];
    });
    return body(x, Object.fromEntries(loaded), at);
  };
}
