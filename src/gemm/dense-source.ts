/**
 * @file Structured matrices that lie in a dense one.
 */
import { ArgumentError } from "../errors.ts";
import type { DeviceArray } from "../runtime/array.ts";
import type { ExtraArgument } from "./extras.ts";
import type { Layout } from "./layouts/layout.ts";
import { matrixOperand } from "./problem.ts";
import type { MatrixSource } from "./source.ts";

/** What a structure makes of a dense matrix. */
export interface DenseStructure {
  /** Names the structure in messages. */
  readonly name: string;
  /** The structure's layout over the dense one. */
  layout(dense: Layout): Layout;
  readonly extras?: readonly ExtraArgument[];
  /** Rows and columns, where they are not the array's. */
  readonly shape?: readonly [rows: number, columns: number];
  transposed(): MatrixSource;
}

/** A structured matrix in an array of rank 2. @throws ShapeError */
export function denseSource(array: DeviceArray, structure: DenseStructure): MatrixSource {
  const operand = matrixOperand(array, structure.name);
  return {
    ...operand,
    label: `${structure.name} ${array.label}`,
    device: array.device,
    shape: structure.shape ?? operand.shape,
    layout: structure.layout(operand.layout),
    extras: structure.extras ?? [],
    get transposed() {
      return structure.transposed();
    },
  };
}

/** Which half of a square matrix is stored. */
export type Half = "lower" | "upper";

/** @throws ArgumentError unless it is one */
export function checkHalf(half: unknown, who: string): void {
  if (half === "lower" || half === "upper") return;
  throw new ArgumentError(`${who} wants "lower" or "upper", not ${JSON.stringify(half) ?? String(half)}`);
}
