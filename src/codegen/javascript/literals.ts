/** @file Constants as JavaScript text. */
import { roundingTo } from "../../types/convert.ts";
import { type ElementType, isFloat } from "../../types/types.ts";

/** A constant of an element type as a literal; floats are rounded to the type first. */
export function literal(element: ElementType, value: number | bigint | boolean): string {
  switch (typeof value) {
    case "boolean":
      return element.class === "bool" ? String(value) : value ? "1" : "0";
    case "bigint":
      return element.name === "i64" || element.name === "u64"
        ? bigintLiteral(value)
        : numberLiteral(Number(value));
    default:
      if (element.name === "i64" || element.name === "u64") return bigintLiteral(BigInt(value));
      if (isFloat(element) && element.name !== "tf32") return numberLiteral(roundingTo(element)(value));
      return numberLiteral(value);
  }
}

function bigintLiteral(value: bigint): string {
  return value < 0n ? `(${value}n)` : `${value}n`;
}

function numberLiteral(value: number): string {
  if (Object.is(value, -0)) return "(-0)";
  return value < 0 ? `(${value})` : String(value);
}
