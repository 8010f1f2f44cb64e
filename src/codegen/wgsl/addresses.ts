/** @file Where in a declared array an access goes: the position of its first element, in elements and in scalars. */
import type { Operand } from "../../ir/nodes.ts";
import { byteSize } from "../../types/types.ts";
import type { Emission } from "./emission.ts";
import type { View } from "./storage.ts";

/** A u32 expression plus a constant. */
export interface Position {
  readonly variable: string | undefined;
  readonly constant: number;
}

/** An operand as u32, wrapped. */
export function asU32(emission: Emission, operand: Operand): string {
  const lane = emission.lane(operand);
  return operand.type.element.name === "i32" ? `u32(${lane})` : lane;
}

/** An operand as i32, wrapped. */
export function asI32(emission: Emission, operand: Operand): string {
  const lane = emission.lane(operand);
  return operand.type.element.name === "i32" ? lane : `i32(${lane})`;
}

/** Position of an element of a view in its storage, in elements of the view. */
export function elementPosition(emission: Emission, view: View, index: Operand, offset: number): Position {
  const size = byteSize(view.element);
  const known = index.kind === "constant";
  const constant = view.byteOffset / size + offset + (known ? Number(index.value) : 0);
  const parts = [known ? undefined : asU32(emission, index), view.base].filter((part) => part !== undefined);
  return { variable: parts.length === 0 ? undefined : parts.join(" + "), constant };
}

/** A position as an expression that may stand anywhere. */
export function written({ variable, constant }: Position): string {
  if (variable === undefined) return `${constant >>> 0}u`;
  if (constant === 0) return variable.includes(" ") ? `(${variable})` : variable;
  return constant > 0 ? `(${variable} + ${constant}u)` : `(${variable} - ${-constant}u)`;
}

/** The position divided by a power of two. Exact where the position is a multiple. */
export function divided(position: Position, by: number): Position {
  if (by === 1) return position;
  if (position.variable === undefined)
    return { variable: undefined, constant: Math.floor(position.constant / by) };
  const shift = Math.log2(by);
  return position.constant % by === 0
    ? { variable: `(${bracketed(position.variable)} >> ${shift}u)`, constant: position.constant / by }
    : { variable: `(${written(position)} >> ${shift}u)`, constant: 0 };
}

function bracketed(text: string): string {
  return text.includes(" ") ? `(${text})` : text;
}

/** What is left of the position after {@link divided}. */
export function remainder(position: Position, by: number): Position {
  if (by === 1) return { variable: undefined, constant: 0 };
  if (position.variable === undefined) return { variable: undefined, constant: position.constant % by };
  const whole = position.constant % by === 0 ? bracketed(position.variable) : written(position);
  return { variable: `(${whole} & ${by - 1}u)`, constant: 0 };
}

export function plus(position: Position, by: number): Position {
  return { ...position, constant: position.constant + by };
}

/** The position in units that are `by` times smaller, or, for a fraction, larger. */
export function scaled(position: Position, by: number): Position {
  if (by <= 1) return divided(position, 1 / by);
  const { variable, constant } = position;
  const product = variable === undefined ? undefined : `(${bracketed(variable)} << ${Math.log2(by)}u)`;
  return { variable: product, constant: constant * by };
}
