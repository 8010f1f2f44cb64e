/** @file Typed views of what an access of a matrix operation names. */
import { type StorageType, types } from "../../types/types.ts";
import type { BufferBinding } from "./arguments.ts";
import type { SharedArrayFacts, TableFacts } from "./array-facts.ts";
import type { TypedArray } from "./buffers.ts";
import type { SharedViews, Warp } from "./state.ts";

/** The view of shared memory that holds elements of a type. */
export function sharedView(shared: SharedViews, element: StorageType["name"]): TypedArray {
  switch (element) {
    case "f16":
    case "bf16":
      return shared.u16;
    case "e4m3":
    case "e5m2":
      return shared.u8;
    default:
      return shared[element];
  }
}

/** View and what to add to element numbers. */
export function viewOf(
  warp: Warp,
  access: {
    readonly parameter?: number;
    readonly array?: SharedArrayFacts;
    readonly table?: TableFacts;
    readonly element: string;
  },
): { readonly view: TypedArray; readonly base: number } {
  const element = access.element as StorageType["name"];
  if (access.array !== undefined) {
    return {
      view: sharedView(warp.block.shared, element),
      base: (access.array.byteOffset * 8) / types[element].bits,
    };
  }
  if (access.table !== undefined) return { view: access.table.view, base: 0 };
  return { view: (warp.args[access.parameter!] as BufferBinding).view, base: 0 };
}
