/**
 * @file Where operations hold positions in arrays: which operand is the index, which attribute its constant part.
 */
import type { AnyOperation, ArrayReference, Operand, OperationNode, SharedArray } from "../ir/nodes.ts";
import type { SharedMatrix } from "../ir/operations.ts";

/** One position in an array that an operation names. */
export interface AccessSlot {
  /** Which operand is the index. */
  readonly operand: number;
  readonly array: ArrayReference;
  readonly offset: number;
  /** The operation with another index and offset here. */
  readonly with: (operation: AnyOperation, index: Operand, offset: number) => AnyOperation;
}

const noSlots: readonly AccessSlot[] = [];

/** All positions that an operation names. */
export function accessSlots(operation: AnyOperation): readonly AccessSlot[] {
  switch (operation.name) {
    case "load":
    case "store":
    case "atomic":
    case "wmmaLoad":
    case "wmmaStore":
      return [slot(0, operation.attributes.array, operation.attributes.offset, (offset) => ({ offset }))];
    case "barrierInit":
    case "barrierArrive":
    case "barrierArriveExpect":
    case "barrierWait":
    case "copyAsyncArrive":
    case "loadMatrix":
    case "storeMatrix":
      return [
        slot(0, sharedReference(operation.attributes.array), operation.attributes.offset, (offset) => ({
          offset,
        })),
      ];
    case "copyAsync": {
      const { target, targetOffset, source, sourceOffset } = operation.attributes;
      return [
        slot(0, sharedReference(target), targetOffset, (offset) => ({ targetOffset: offset })),
        slot(1, source, sourceOffset, (offset) => ({ sourceOffset: offset })),
      ];
    }
    case "tensorLoad": {
      const { target, targetOffset, barrier, barrierOffset } = operation.attributes;
      return [
        slot(0, sharedReference(target), targetOffset, (offset) => ({ targetOffset: offset })),
        slot(1, sharedReference(barrier), barrierOffset, (offset) => ({ barrierOffset: offset })),
      ];
    }
    case "tensorStore": {
      const { source, sourceOffset } = operation.attributes;
      return [slot(0, sharedReference(source), sourceOffset, (offset) => ({ sourceOffset: offset }))];
    }
    case "warpgroupMma":
      return warpgroupSlots(operation);
    default:
      return noSlots;
  }
}

function warpgroupSlots({
  attributes: { sharedA, sharedB },
}: OperationNode<"warpgroupMma">): readonly AccessSlot[] {
  const matrix = (position: number, operand: SharedMatrix, name: "sharedA" | "sharedB"): AccessSlot =>
    slot(position, sharedReference(operand.array), operand.offset, (offset) => ({
      [name]: { ...operand, offset },
    }));
  return sharedA === undefined
    ? [matrix(0, sharedB, "sharedB")]
    : [matrix(0, sharedA, "sharedA"), matrix(1, sharedB, "sharedB")];
}

function sharedReference(array: SharedArray): ArrayReference {
  return { kind: "shared", array };
}

function slot(
  operand: number,
  array: ArrayReference,
  offset: number,
  attribute: (offset: number) => object,
): AccessSlot {
  return {
    operand,
    array,
    offset,
    with: (operation, index, moved) =>
      ({
        ...operation,
        operands: operation.operands.with(operand, index),
        attributes: { ...operation.attributes, ...attribute(moved) },
      }) as AnyOperation,
  };
}
