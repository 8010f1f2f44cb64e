/**
 * @file Rewritings of a verified kernel that come before all passes, so that what they bring in (barriers above all) is
 * checked and optimised like the author's own.
 */
import type { Block, KernelIr, Statement } from "../../ir/nodes.ts";
import type { TargetFacts } from "../../target/facts.ts";
import { isWebGpuFacts } from "../../target/webgpu.ts";
import { lowerExits } from "./lower-exits.ts";
import { lowerSubgroups } from "./lower-subgroups.ts";
import { mapInnerBlocks } from "./rewriting.ts";

/**
 * A kernel in terms that WGSL has: subgroup operations through workgroup memory where the target's subgroups are not to
 * be relied on, subgroup barriers and block-wide fences as block barriers, threads that end before a barrier as guards.
 */
export function lowerForWgsl(kernel: KernelIr, facts: TargetFacts): KernelIr {
  if (!isWebGpuFacts(facts)) return kernel;
  const lowered = facts.wgsl.subgroups === "emulated" ? lowerSubgroups(kernel) : kernel;
  return lowerExits({ ...lowered, body: widenBarriers(lowered.body) });
}

function widenBarriers(block: Block): Block {
  return { statements: block.statements.map(widened) };
}

function widened(statement: Statement): Statement {
  if (statement.kind !== "operation") return mapInnerBlocks(statement, widenBarriers);
  const isFence = statement.name === "fence" && statement.attributes.scope === "block";
  if (statement.name !== "subgroupBarrier" && !isFence) return statement;
  return { ...statement, name: "blockBarrier", attributes: {} };
}
