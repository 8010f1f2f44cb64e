/**
 * @file The launch argument block: which native arguments a kernel takes, in order. Emitters and runtimes agree on it
 * by both asking here.
 */
import type { ElementType } from "../types/types.ts";
import type { Block, KernelIr, Statement, TensorMapParameter } from "./nodes.ts";

/** One native argument of the compiled kernel. */
export type ArgumentSlot =
  | { readonly kind: "pointer"; readonly parameter: number }
  /** i32 extent. */
  | { readonly kind: "size"; readonly parameter: number; readonly dimension: number }
  /** 64-bit stride in elements. */
  | { readonly kind: "stride"; readonly parameter: number; readonly dimension: number }
  | { readonly kind: "scalar"; readonly parameter: number; readonly element: ElementType }
  | { readonly kind: "tensorMap"; readonly parameter: number; readonly map: TensorMapParameter };

/** Calls `visit` for every statement, nested ones included, in program order. */
export function visitStatements(block: Block, visit: (statement: Statement) => void): void {
  for (const statement of block.statements) {
    visit(statement);
    for (const inner of innerBlocks(statement)) visitStatements(inner, visit);
  }
}

/** The blocks nested directly in a statement. */
export function innerBlocks(statement: Statement): readonly Block[] {
  switch (statement.kind) {
    case "if":
      return [statement.then, statement.otherwise];
    case "loop":
      return [statement.body];
    case "while":
      return [statement.condition, statement.body];
    case "roles":
      return statement.roles.map((role) => role.body);
    default:
      return [];
  }
}

/**
 * Native arguments of a kernel: per parameter in declaration order; a buffer's pointer, then those of its sizes and
 * strides that the body reads.
 */
export function argumentSlots(kernel: KernelIr): readonly ArgumentSlot[] {
  const used = new Set<string>();
  visitStatements(kernel.body, (statement) => {
    if (statement.kind !== "operation") return;
    if (statement.name === "bufferSize" || statement.name === "bufferStride") {
      used.add(`${statement.name}:${statement.attributes.parameter}:${statement.attributes.dimension}`);
    }
  });
  const slots: ArgumentSlot[] = [];
  for (const parameter of kernel.parameters) {
    switch (parameter.kind) {
      case "scalar":
        slots.push({ kind: "scalar", parameter: parameter.id, element: parameter.element });
        break;
      case "tensorMap":
        slots.push({ kind: "tensorMap", parameter: parameter.id, map: parameter });
        break;
      case "buffer":
        slots.push({ kind: "pointer", parameter: parameter.id });
        for (let dimension = 0; dimension < parameter.rank; dimension++) {
          if (used.has(`bufferSize:${parameter.id}:${dimension}`)) {
            slots.push({ kind: "size", parameter: parameter.id, dimension });
          }
        }
        for (let dimension = 0; dimension < parameter.rank; dimension++) {
          if (used.has(`bufferStride:${parameter.id}:${dimension}`)) {
            slots.push({ kind: "stride", parameter: parameter.id, dimension });
          }
        }
        break;
    }
  }
  return slots;
}
