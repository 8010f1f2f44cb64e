/**
 * @file Granules of race detection: the smallest unit of memory that the kernel's accesses can tell apart. Shared arrays
 * that overlap have one granule together.
 */
import type { ArrayReference, KernelIr, SharedArray } from "../../ir/nodes.ts";
import { byteSize } from "../../types/types.ts";
import { visitOperations } from "./structure.ts";

/** Where a shared array's granules are: granule of byte x is `base + ((x - start) >> shift)`. */
export interface GranuleRange {
  readonly start: number;
  readonly shift: number;
  readonly base: number;
}

export interface SharedGranules {
  readonly arrays: ReadonlyMap<SharedArray, GranuleRange>;
  readonly count: number;
  /** Bytes of a buffer parameter's granule, by parameter id. */
  readonly buffers: ReadonlyMap<number, number>;
}

const widest = 16;

/** Bytes of the smallest access to each array. */
interface Smallest {
  readonly shared: Map<SharedArray, number>;
  readonly buffers: Map<number, number>;
}

function smallestAccesses(kernel: KernelIr): Smallest {
  const smallest: Smallest = { shared: new Map(), buffers: new Map() };
  const lower = <Key>(sizes: Map<Key, number>, key: Key, bytes: number): void => {
    sizes.set(key, Math.min(sizes.get(key) ?? widest, bytes));
  };
  const access = (array: ArrayReference, bytes: number): void => {
    if (array.kind === "shared") lower(smallest.shared, array.array, bytes);
    if (array.kind === "buffer") lower(smallest.buffers, array.parameter.id, bytes);
  };
  visitOperations(kernel.body, (operation) => {
    switch (operation.name) {
      case "load":
        access(
          operation.attributes.array,
          operation.result!.type.lanes * elementBytes(operation.attributes.array),
        );
        break;
      case "store":
        access(
          operation.attributes.array,
          operation.operands[1]!.type.lanes * elementBytes(operation.attributes.array),
        );
        break;
      case "atomic":
      case "wmmaLoad":
      case "wmmaStore":
        access(operation.attributes.array, elementBytes(operation.attributes.array));
        break;
      case "copyAsync":
        lower(smallest.shared, operation.attributes.target, operation.attributes.bytes);
        // The source may be read in part.
        access(operation.attributes.source, elementBytes(operation.attributes.source));
        break;
      case "tensorLoad":
      case "tensorStore":
        smallest.buffers.set(operation.attributes.map.id, byteSize(operation.attributes.map.element));
        break;
    }
  });
  return smallest;
}

function elementBytes(array: ArrayReference): number {
  switch (array.kind) {
    case "buffer":
      return byteSize(array.parameter.element);
    case "shared":
      return byteSize(array.array.element);
    default:
      return byteSize(array.table.element);
  }
}

/** The largest power of two, up to 16, that divides a number of bytes. */
function alignmentOf(bytes: number): number {
  let alignment = widest;
  while (bytes % alignment !== 0) alignment /= 2;
  return alignment;
}

/** The granules of a kernel's arrays. */
export function granulesOf(kernel: KernelIr): SharedGranules {
  const smallest = smallestAccesses(kernel);
  const arrays = new Map<SharedArray, GranuleRange>();
  const sorted = kernel.shared.filter(({ length }) => length > 0).sort((a, b) => a.byteOffset - b.byteOffset);
  let count = 0;
  for (let first = 0; first < sorted.length; ) {
    let end = endOf(sorted[first]!);
    let next = first + 1;
    while (next < sorted.length && sorted[next]!.byteOffset < end)
      end = Math.max(end, endOf(sorted[next++]!));
    const together = sorted.slice(first, next);
    const granule = Math.min(
      ...together.map((array) =>
        Math.min(smallest.shared.get(array) ?? widest, alignmentOf(array.byteOffset)),
      ),
    );
    const range = { start: together[0]!.byteOffset, shift: Math.log2(granule), base: count };
    for (const array of together) arrays.set(array, range);
    count += Math.ceil((end - range.start) / granule);
    first = next;
  }
  return { arrays, count, buffers: smallest.buffers };
}

function endOf(array: SharedArray): number {
  return array.byteOffset + array.length * byteSize(array.element);
}
