/** @file What all parts of one generation share: the kernel, its cut, its slots, and the pieces of text so far. */
import type { AnyOperation, KernelIr, RegisterVariable } from "../../ir/nodes.ts";
import { possiblyUnassigned } from "./assignment.ts";
import { granulesOf, type SharedGranules } from "./granules.ts";
import { Storage } from "./storage.ts";
import { Structure, visitOperations } from "./structure.ts";

/** What the generated text does besides computing. */
export interface SimulationMode {
  /** Reports faults: out of bounds, races, uninitialised reads… */
  readonly checks: boolean;
  /** Counts what hardware profilers count. */
  readonly counters: boolean;
}

/** The state of one generation. */
export class Emission {
  readonly structure: Structure;
  readonly storage: Storage;
  readonly granules: SharedGranules;
  /** Variables whose reads are checked. */
  readonly unassigned: ReadonlySet<RegisterVariable>;
  /** Variables that asynchronous products hold at times. */
  readonly flying: ReadonlySet<RegisterVariable>;
  /** Region functions. */
  readonly functions: string[] = [];
  /** Literals of the matrix and tensor operations, `plans[n]` in the text. */
  readonly plans: string[] = [];
  private sets = 0;
  private loops = 0;

  constructor(
    readonly kernel: KernelIr,
    readonly mode: SimulationMode,
  ) {
    this.structure = new Structure(kernel.body);
    this.storage = new Storage(kernel);
    this.granules = granulesOf(kernel);
    this.unassigned = mode.checks ? possiblyUnassigned(kernel) : new Set();
    this.flying = mode.checks ? flyingVariables(kernel) : new Set();
  }

  /** Number of a new set of lanes. */
  newSet(): number {
    return this.sets++;
  }
  get setCount(): number {
    return this.sets;
  }

  /** Number of a loop of the subgroup's function, from 1. */
  newLoop(): number {
    return ++this.loops;
  }

  /** Adds a plan; returns the text that names it. */
  plan(literal: string): string {
    return `plans[${this.plans.push(literal) - 1}]`;
  }
}

function flyingVariables(kernel: KernelIr): ReadonlySet<RegisterVariable> {
  const variables = new Set<RegisterVariable>();
  visitOperations(kernel.body, (operation: AnyOperation) => {
    if (operation.name === "warpgroupMma")
      for (const { variable } of operation.registers) variables.add(variable);
  });
  return variables;
}
