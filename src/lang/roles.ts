/**
 * @file Roles: warpgroups of one block that do different jobs for the rest of the kernel.
 */
import type { Role } from "../ir/nodes.ts";
import { tracer } from "./trace.ts";

/** One role: `warpgroups` groups of 128 threads (or `warps` single subgroups) that run `body`. */
export interface RoleDefinition {
  readonly name?: string;
  readonly warpgroups?: number;
  readonly warps?: number;
  /** Registers per thread while in this role: a multiple of 8 from 24 to 256. */
  readonly registers?: number;
  readonly body: () => void;
}

/**
 * Splits the block once, in the given order from warp 0 on, for the rest of the kernel. Block-wide barriers inside a
 * role are refused; named barriers and barrier arrays serve.
 */
export function roles(definitions: readonly RoleDefinition[]): void {
  const trace = tracer();
  if (trace.scope !== trace.root)
    throw trace.error("roles() stands at the top level of a kernel, not inside a branch or loop");
  if (trace.roles) throw trace.error("roles() splits a block once; this kernel already has its roles");
  const { width } = trace.facts.subgroup;
  const threads = trace.block[0] * trace.block[1] * trace.block[2];
  const total = definitions.reduce((sum, definition) => sum + warpsOf(definition, width), 0);
  if (total * width !== threads) {
    throw trace.error(
      `the roles take ${total} subgroups of ${width} threads and the block has ${threads} threads`,
    );
  }
  const limit = trace.facts.limits.registersPerThread;
  // Before the split every thread holds an equal share of the register file, rounded down to the unit of 8.
  const share = Math.min(Math.floor(trace.facts.machine.registersPerMultiprocessor / threads / 8) * 8, limit);
  const site = trace.site();
  const built: Role[] = [];
  let firstWarp = 0;
  definitions.forEach((definition, number) => {
    const { registers } = definition;
    if (registers !== undefined && (registers % 8 !== 0 || registers < 24 || registers > 256)) {
      throw trace.error(`a role's registers are a multiple of 8 from 24 to 256, not ${registers}`);
    }
    const warps = warpsOf(definition, width);
    const name = definition.name ?? `role${number}`;
    built.push({
      name,
      firstWarp,
      warps,
      registers:
        registers === undefined
          ? undefined
          : { count: registers, direction: registers < share ? "decrease" : "increase" },
      body: trace.nested(`the role ${name}`, false, definition.body),
    });
    firstWarp += warps;
  });
  trace.rolesNode(built, site);
}

function warpsOf(definition: RoleDefinition, width: number): number {
  if (definition.warps !== undefined) return definition.warps;
  return ((definition.warpgroups ?? 1) * 128) / width;
}
