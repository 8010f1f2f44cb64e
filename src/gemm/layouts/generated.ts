/**
 * @file Generated matrices: elements are computed where they are needed, nothing is stored.
 */
import { ArgumentError } from "../../errors.ts";
import type { AnyValue, I32, StorageType, Value } from "../../lang/index.ts";
import { DeviceArray } from "../../runtime/array.ts";
import type { ExtraArgument, ExtraValue, ExtraValues } from "../extras.ts";
import type { MatrixSource } from "../source.ts";
import { joined } from "../transforms.ts";
import { elementOf, firstElement, type Layout, rowMajor, runOf } from "./layout.ts";

type Generator = (row: Value<I32>, column: Value<I32>, extras: readonly ExtraValue[]) => AnyValue;

/** Layouts by function, then by type and order of its coordinates. */
const layouts: WeakMap<Generator, Map<string, Layout>> = new WeakMap();

function generatedLayout(value: Generator, type: StorageType, flipped: boolean): Layout {
  const ofFunction = layouts.get(value) ?? new Map<string, Layout>();
  layouts.set(value, ofFunction);
  const key = `${type.name}${flipped ? " transposed" : ""}`;
  const known = ofFunction.get(key);
  if (known !== undefined) return known;
  const made: Layout = {
    ...rowMajor,
    name: "generated",
    facts: { movement: "registers", pure: true },
    position: undefined,
    load(_, { extras = [] }, tile) {
      const values = Array.from({ length: runOf(tile).count }, (_, e) => {
        const { row, column } = firstElement(elementOf(tile, e));
        return flipped ? value(column, row, extras) : value(row, column, extras);
      });
      return joined(values.map((one) => one.to(type)));
    },
    store() {
      throw new TypeError("a generated matrix cannot be written");
    },
  };
  ofFunction.set(key, made);
  return made;
}

/**
 * The matrix of `shape` whose element (i, j) is `value(i, j)`, converted to `type`; nothing is stored or read. The function
 * is traced: i and j are i32 values, inside the matrix. What else it needs of the device, arrays and numbers, follows and
 * comes to it as its third argument. A function kept in a constant is traced once.
 *
 *     generated([n, n], f32, (i, j) => i.add(j).add(1).to(f32).reciprocal())   // Hilbert's matrix
 *
 * @throws ArgumentError for a shape that is none
 */
export function generated<const E extends readonly ExtraArgument[]>(
  shape: readonly [rows: number, columns: number],
  type: StorageType,
  value: (row: Value<I32>, column: Value<I32>, extras: ExtraValues<E>) => AnyValue,
  ...extras: E
): MatrixSource {
  if (shape.length !== 2 || shape.some((extent) => !Number.isInteger(extent) || extent < 0))
    throw new ArgumentError(`generated() wants [rows, columns], not [${shape.join(", ")}]`);
  return source(shape, type, value as unknown as Generator, extras, false);
}

function source(
  [rows, columns]: readonly [number, number],
  type: StorageType,
  value: Generator,
  extras: readonly ExtraArgument[],
  flipped: boolean,
): MatrixSource {
  return {
    label: `generated ${type.name}[${rows}, ${columns}]`,
    device: extras.find((extra) => extra instanceof DeviceArray)?.device,
    type,
    shape: [rows, columns],
    layout: generatedLayout(value, type, flipped),
    array: undefined,
    leading: columns,
    alignment: 16,
    extras,
    get transposed() {
      return source([columns, rows], type, value, extras, !flipped);
    },
  };
}
