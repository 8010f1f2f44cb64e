/** @file Loads, stores and atomics of one lane. */
import type { ArrayReference, Operand, OperationNode } from "../../ir/nodes.ts";
import type { MemoryOrder } from "../../ir/operations.ts";
import { byteSize, type ElementType, type StorageType } from "../../types/types.ts";
import { elementwiseText } from "./expressions.ts";
import type { Region } from "./region.ts";

/** Name of the typed array that stores a type. */
export function viewName(type: StorageType): string {
  switch (type.name) {
    case "f16":
    case "bf16":
      return "u16";
    case "e4m3":
    case "e5m2":
      return "u8";
    default:
      return type.name;
  }
}

/** An element's value from what its typed array holds. */
function decoded(type: StorageType, text: string): string {
  switch (type.name) {
    case "f16":
    case "bf16":
    case "e4m3":
    case "e5m2":
      return `${type.name}Values[${text}]`;
    default:
      return text;
  }
}

function encoded(type: StorageType, text: string): string {
  switch (type.name) {
    case "f16":
    case "bf16":
    case "e4m3":
    case "e5m2":
      return `${type.name}ToBits(${text})`;
    default:
      return text;
  }
}

/** An array as a region sees it. */
interface Place {
  readonly element: StorageType;
  /** Typed array, and what to add to an element number there. */
  readonly view: string;
  readonly base: number;
  /** What checks are told. */
  readonly descriptor: string;
  readonly space: "Global" | "Shared" | "Table";
}

/** The binding of a buffer or tensor parameter. */
export function binding(region: Region, parameter: number): string {
  return region.constant(`P${parameter}`, `W.args[${parameter}]`);
}

function placeOf(region: Region, array: ArrayReference): Place {
  switch (array.kind) {
    case "buffer": {
      const { id, element } = array.parameter;
      const descriptor = binding(region, id);
      return {
        element,
        view: region.constant(`p${id}`, `${descriptor}.view`),
        base: 0,
        descriptor,
        space: "Global",
      };
    }
    case "shared": {
      const { id, element, byteOffset } = array.array;
      const view = region.constant(`s_${viewName(element)}`, `W.block.shared.${viewName(element)}`);
      return { element, view, base: byteOffset / byteSize(element), descriptor: `a${id}`, space: "Shared" };
    }
    default: {
      const { id, element } = array.table;
      return { element, view: `c${id}.view`, base: 0, descriptor: `c${id}`, space: "Table" };
    }
  }
}

/** Index operand plus the access's constant part. */
export function position(region: Region, operand: Operand, offset: number): string {
  const text = region.operand(operand);
  if (operand.kind === "constant") return String(Number(operand.value) + offset);
  return offset === 0 ? text : `${text} + ${offset}`;
}

function checkedPosition(region: Region, operand: Operand, offset: number): string {
  const text = position(region, operand, offset);
  return /^\w+$/.test(text) ? text : region.temporary(text);
}

function cell({ view, base }: Place, element: string, lane: number): string {
  const offset = base + lane;
  if (/^\d+$/.test(element)) return `${view}[${Number(element) + offset}]`;
  return offset === 0 ? `${view}[${element}]` : `${view}[${element} + ${offset}]`;
}

/** Emits the check of an access and its record for the counters. */
function check(
  region: Region,
  kind: "read" | "write",
  place: Place,
  element: string,
  lanes: number,
  site: number,
): void {
  if (region.checks)
    region.line(`${kind}${place.space}(W, lane, ${site}, ${place.descriptor}, ${element}, ${lanes});`);
  record(region, kind, place, element, lanes, site);
}

function record(
  region: Region,
  kind: "read" | "write",
  place: Place,
  element: string,
  lanes: number,
  site: number,
): void {
  if (!region.emission.mode.counters || place.space === "Table") return;
  const bytes = byteSize(place.element);
  region.line(
    `count${place.space}(W, lane, ${site}, ${place.descriptor}, ${element}, ${lanes * bytes}, ${kind === "write"});`,
  );
}

export function emitLoad(region: Region, node: OperationNode<"load">): void {
  const { array, offset, cache } = node.attributes;
  const result = node.result!;
  const { lanes } = result.type;
  const place = placeOf(region, array);
  const element = checkedPosition(region, node.operands[0]!, offset);
  if (cache === "volatile" && place.space !== "Table") {
    synchronise(region, place, element, lanes, node.site, 0, "load");
    record(region, "read", place, element, lanes, node.site);
  } else check(region, "read", place, element, lanes, node.site);
  region.define(
    result,
    Array.from({ length: lanes }, (_, lane) => decoded(place.element, cell(place, element, lane))),
  );
}

export function emitStore(region: Region, node: OperationNode<"store">): void {
  const { array, offset, cache } = node.attributes;
  const value = node.operands[1]!;
  const { lanes } = value.type;
  const place = placeOf(region, array);
  const element = checkedPosition(region, node.operands[0]!, offset);
  if (cache === "volatile") {
    synchronise(region, place, element, lanes, node.site, 0, "store");
    record(region, "write", place, element, lanes, node.site);
    region.line("W.launch.changes++;");
  } else check(region, "write", place, element, lanes, node.site);
  for (let lane = 0; lane < lanes; lane++) {
    region.line(`${cell(place, element, lane)} = ${encoded(place.element, region.operand(value, lane))};`);
  }
}

/** Bit 0: what others released becomes known; bit 1: what is known here is released. */
function orderBits(order: MemoryOrder): number {
  return { relaxed: 0, acquire: 1, release: 2, acquireRelease: 3 }[order];
}

type Strength = "load" | "store" | "update";

/** An access that may meet others: atomics and volatile accesses. */
function synchronise(
  region: Region,
  place: Place,
  element: string,
  lanes: number,
  site: number,
  order: number,
  strength: Strength,
): void {
  if (!region.checks) return;
  region.line(
    `atomic${place.space}(W, lane, ${site}, ${place.descriptor}, ${element}, ${lanes}, ${order}, "${strength}");`,
  );
}

export function emitAtomic(region: Region, node: OperationNode<"atomic">): void {
  const { array, offset, operation, order } = node.attributes;
  const place = placeOf(region, array);
  const element = checkedPosition(region, node.operands[0]!, offset);
  synchronise(region, place, element, 1, node.site, orderBits(order), "update");
  record(region, "write", place, element, 1, node.site);
  const where = cell(place, element, 0);
  const before = region.temporary(where);
  const old = decoded(place.element, before);
  const operands = node.operands.slice(1).map((operand) => region.operand(operand));
  const result = node.result === undefined ? region.temporary(old) : undefined;
  if (node.result !== undefined) region.define(node.result, [old]);
  const current = result ?? region.operand(node.result!);
  region.line(`${where} = ${encoded(place.element, updated(operation, place.element, current, operands))};`);
  region.line(`if (${where} !== ${before}) W.launch.changes++;`);
}

function updated(operation: string, element: ElementType, old: string, operands: readonly string[]): string {
  switch (operation) {
    case "exchange":
      return operands[0]!;
    case "compareExchange":
      return `${old} === ${operands[0]} ? ${operands[1]} : ${old}`;
    default:
      return elementwiseText(operation as "add", element, [old, operands[0]!], element)!;
  }
}
