/** @file A loaded kernel: what its text returned, and what the simulator looks up in it by site. */
import type { AnyOperation, KernelIr, Statement } from "../../ir/nodes.ts";
import { visitStatements } from "../../ir/parameters.ts";

/** What generated text returns. */
export interface GeneratedKernel {
  /** The generator of one subgroup, given its state. */
  readonly main: (warp: object) => Generator<void, void, void>;
  readonly checks: boolean;
  readonly counters: boolean;
  readonly floats: number;
  readonly integers: number;
  readonly bigints: number;
  readonly sets: number;
  readonly elements: number;
  readonly constants: readonly (readonly ["f" | "i" | "b", number, number | bigint])[];
  readonly sharedGranules: number;
  /** Register elements whose accesses are checked: 1 for assignment, 2 for asynchronous products. */
  readonly checked: readonly (readonly [element: number, kinds: number])[];
  readonly bufferGranules: readonly (readonly [number, number])[];
}

/** How the block's participants in ordering are numbered; see clocks.ts. */
export interface Numbering {
  readonly threads: number;
  readonly warps: number;
  /** First of the barrier words' numbers, and so on. */
  readonly barriers: number;
  /** Of the engines of tensor stores: as readers of shared memory, and as writers of tensors. One of each a warp. */
  readonly bulkReaders: number;
  readonly bulkWriters: number;
  readonly matrixEngines: number;
  readonly size: number;
}

/** A kernel ready to run. */
export class Program {
  readonly numbering: Numbering;
  readonly statements: ReadonlyMap<number, Statement>;
  /** Checks of each register element, as bits: see {@link GeneratedKernel.checked}. */
  readonly checkedElements: Uint8Array;

  constructor(
    readonly kernel: KernelIr,
    readonly generated: GeneratedKernel,
  ) {
    this.numbering = numberingOf(kernel);
    const statements = new Map<number, Statement>();
    visitStatements(kernel.body, (statement) => {
      if (!statements.has(statement.site)) statements.set(statement.site, statement);
    });
    this.statements = statements;
    this.checkedElements = new Uint8Array(this.generated.elements);
    for (const [element, kinds] of this.generated.checked) this.checkedElements[element] = kinds;
  }

  /** Parameters whose buffers the kernel writes. */
  get writtenParameters(): ReadonlySet<number> {
    const written = new Set<number>();
    visitStatements(this.kernel.body, (statement) => {
      if (statement.kind !== "operation") return;
      if (statement.name === "store" || statement.name === "atomic" || statement.name === "wmmaStore") {
        const { array } = statement.attributes;
        if (array.kind === "buffer") written.add(array.parameter.id);
      }
      if (statement.name === "tensorStore") written.add(statement.attributes.map.id);
    });
    return written;
  }

  /** Variable id and position of a register element. */
  elementName(element: number): readonly [variable: number, position: number] {
    let rest = element;
    for (const { id, count } of this.kernel.variables) {
      if (rest < count) return [id, rest];
      rest -= count;
    }
    return [-1, rest];
  }

  /** The operation that stands at a site. */
  operationAt(site: number): AnyOperation | undefined {
    const statement = this.statements.get(site);
    return statement?.kind === "operation" ? statement : undefined;
  }
}

function numberingOf(kernel: KernelIr): Numbering {
  const threads = kernel.block[0] * kernel.block[1] * kernel.block[2];
  const warps = Math.ceil(threads / kernel.subgroupSize);
  const words = kernel.shared.some(({ purpose }) => purpose === "barrier")
    ? Math.ceil(kernel.sharedBytes / 8)
    : 0;
  const barriers = threads;
  const bulkReaders = barriers + words;
  const bulkWriters = bulkReaders + warps;
  const matrixEngines = bulkWriters + warps;
  return {
    threads,
    warps,
    barriers,
    bulkReaders,
    bulkWriters,
    matrixEngines,
    size: matrixEngines + Math.ceil(threads / 128),
  };
}
