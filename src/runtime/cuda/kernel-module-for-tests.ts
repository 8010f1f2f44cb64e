/** @file Modules for the tests of the backend: a kernel's outside, without a body. */
import type { KernelIr } from "../../ir/nodes.ts";
import type { ArgumentSlot } from "../../ir/parameters.ts";
import type { Module } from "../backend.ts";

/** A module of one kernel with the given argument slots. */
export function moduleForTests(
  name: string,
  slots: readonly ArgumentSlot[],
  header: Partial<KernelIr> = {},
  comment = "",
): Module {
  const ir: KernelIr = {
    name,
    parameters: [],
    shared: [],
    sharedBytes: 0,
    sharedAlignment: 16,
    constants: [],
    variables: [],
    block: [128, 1, 1],
    cluster: undefined,
    subgroupSize: 32,
    blocksPerMultiprocessor: undefined,
    body: { statements: [] },
    valueCount: 0,
    positions: [],
    ...header,
  };
  const shared = ir.sharedBytes > 0 ? ".extern .shared .align 16 .b8 arena[];\n" : "";
  const text = `.version 7.8\n.target sm_90a\n// ${comment}\n${shared}.visible .entry ${name}()\n`;
  return { name, text, hash: `${name} ${comment}`, ir, slots };
}
