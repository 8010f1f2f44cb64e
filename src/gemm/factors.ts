/**
 * @file alpha and beta as the caller gives them: numbers, or over an algebra also elements.
 */
import { ArgumentError } from "../errors.ts";
import type { ElementType } from "../lang/index.ts";
import { fits as holds } from "../types/convert.ts";
import type { ProductElements } from "./algebras/matrix.ts";
import type { RuntimeNumber } from "./extras.ts";

/** alpha or beta: a number, and where it is an element of an algebra, its components beside the number 1. */
export interface Factor {
  readonly number: number | bigint;
  readonly element: readonly RuntimeNumber[];
}

/** @throws ArgumentError for what is no factor in the type in which product and C are combined */
export function factorOf(
  value: unknown,
  name: string,
  type: ElementType,
  elements: ProductElements | undefined,
): Factor {
  if (!Array.isArray(value)) return { number: numberOf(value, name, type), element: [] };
  if (elements === undefined) {
    throw new ArgumentError(
      `gemm: ${name} is a number, not [${value.join(", ")}]: A and B have plain numbers`,
    );
  }
  const { name: algebra, dimension } = elements.algebra;
  if (value.length !== dimension) {
    throw new ArgumentError(
      `gemm: ${name} = [${value.join(", ")}] has ${value.length} components; ${algebra} numbers have ${dimension}`,
    );
  }
  const numbers = value.map((one) => numberOf(one, name, type));
  if (numbers.every((one) => Number(one) === 0)) return { number: 0, element: [] };
  return { number: 1, element: numbers.map((one) => ({ type, value: one })) };
}

function numberOf(value: unknown, name: string, type: ElementType): number | bigint {
  if (typeof value !== "number" && typeof value !== "bigint") {
    throw new ArgumentError(
      `gemm: ${name} is a number, not ${typeof value === "string" ? JSON.stringify(value) : typeof value}`,
    );
  }
  if (Number.isNaN(Number(value)) || !holds(value, type)) {
    throw new ArgumentError(
      `gemm: ${name} = ${String(value)} is no ${type.name}, the type in which product and C are combined`,
    );
  }
  return value;
}
