/**
 * @file The rule of asynchronous matrix products: from a warpgroupMma until a warpgroupWait covers its group, nothing may
 * touch the registers of its accumulator or of its A fragment (PTX ISA, wgmma.mma_async).
 *
 * The check follows structured control flow. At joins it keeps whatever may be in flight on either way; a loop body is
 * followed twice, the second time with what the first turn left in flight, so that the usual pipeline (issue, commit,
 * wait until one group is pending, around and around) passes and only touches of registers in flight do not.
 */
import { traceErrorAt } from "./error-at.ts";
import type { AnyOperation, Block, KernelIr, RegisterRange, RegisterVariable, Statement } from "./nodes.ts";
import { visitStatements } from "./parameters.ts";

/** Registers in flight: by variable, the ranges and the sites of the products that hold them. */
interface Held {
  readonly offset: number;
  readonly count: number;
  readonly site: number;
  readonly access: RegisterRange["access"];
}
type Group = ReadonlyMap<RegisterVariable, readonly Held[]>;

/** Groups in flight, newest first; `open` is the one that no commit has closed yet. */
interface Flight {
  readonly open: Group;
  readonly committed: readonly Group[];
}

/** No hardware keeps more groups apart: a wait names at most 7. Older ones are one group. */
const deepest = 8;
const nothing: Group = new Map();
const calm: Flight = { open: nothing, committed: [] };

/** @throws TraceError naming the touch and the product, if a register in flight is touched */
export function checkAsynchronousProducts(kernel: KernelIr): void {
  let products = false;
  visitStatements(kernel.body, (statement) => {
    products ||= statement.kind === "operation" && statement.name === "warpgroupMma";
  });
  if (products) new Follower(kernel).block(kernel.body, calm);
}

function mergeGroups(a: Group, b: Group): Group {
  if (a === b || b.size === 0) return a;
  if (a.size === 0) return b;
  const merged = new Map(a);
  for (const [variable, ranges] of b) {
    const known = merged.get(variable) ?? [];
    const added = ranges.filter((range) => !known.some((other) => sameRange(range, other)));
    merged.set(variable, [...known, ...added]);
  }
  return merged;
}

function sameRange(a: Held, b: Held): boolean {
  return a.offset === b.offset && a.count === b.count && a.site === b.site && a.access === b.access;
}

/** `undefined` stands for a place that control does not reach. */
function join(a: Flight | undefined, b: Flight | undefined): Flight | undefined {
  if (a === undefined || a === b) return b;
  if (b === undefined) return a;
  const depth = Math.max(a.committed.length, b.committed.length);
  const committed = Array.from({ length: depth }, (_, age) =>
    mergeGroups(a.committed[age] ?? nothing, b.committed[age] ?? nothing),
  );
  return { open: mergeGroups(a.open, b.open), committed };
}

/** Where the jumps of the innermost loop lead. */
interface LoopExits {
  breaks: Flight | undefined;
  continues: Flight | undefined;
}

class Follower {
  private readonly loops: LoopExits[] = [];

  constructor(private readonly kernel: KernelIr) {}

  /** What is in flight after a block, undefined if control does not reach its end. */
  block(block: Block, before: Flight | undefined): Flight | undefined {
    let flight = before;
    for (const statement of block.statements) {
      if (flight === undefined) return undefined;
      flight = this.statement(statement, flight);
    }
    return flight;
  }

  private statement(statement: Statement, flight: Flight): Flight | undefined {
    switch (statement.kind) {
      case "operation":
        return this.operation(statement, flight);
      case "if":
        return join(this.block(statement.then, flight), this.block(statement.otherwise, flight));
      case "loop":
        return this.loop(flight, (start) => ({ test: start, end: this.block(statement.body, start) }));
      case "while":
        return this.loop(flight, (start) => {
          const test = this.block(statement.condition, start);
          return { test, end: this.block(statement.body, test) };
        });
      case "break":
      case "continue": {
        const exits = this.loops.at(-1);
        if (exits === undefined) return undefined;
        if (statement.kind === "break") exits.breaks = join(exits.breaks, flight);
        else exits.continues = join(exits.continues, flight);
        return undefined;
      }
      case "exit":
        return undefined;
      case "roles":
        for (const role of statement.roles) this.block(role.body, flight);
        return flight;
      default:
        return statement satisfies never;
    }
  }

  /** `turn` gives what is in flight at the loop's test and at the end of its body. */
  private loop(
    before: Flight,
    turn: (start: Flight | undefined) => { test: Flight | undefined; end: Flight | undefined },
  ): Flight | undefined {
    const exits: LoopExits = { breaks: undefined, continues: undefined };
    this.loops.push(exits);
    const once = turn(before);
    const again = join(before, join(once.end, exits.continues));
    const twice = turn(again);
    this.loops.pop();
    // A loop's test comes before each turn: also before the one that does not happen.
    const left = join(join(once.test, twice.test), join(twice.end, exits.continues));
    return join(left, exits.breaks);
  }

  private operation(operation: AnyOperation, flight: Flight): Flight {
    switch (operation.name) {
      case "warpgroupMma": {
        // Products may follow each other on one accumulator, and share an A fragment; one's A is no other's accumulator.
        for (const range of operation.registers) this.checkProduct(range, operation, flight);
        return { ...flight, open: mergeGroups(flight.open, groupOf(operation)) };
      }
      case "warpgroupCommit": {
        const oldest = flight.committed.slice(deepest - 1).reduce(mergeGroups, nothing);
        const kept = flight.committed.slice(0, deepest - 1);
        return { open: nothing, committed: [flight.open, ...kept, ...(oldest.size > 0 ? [oldest] : [])] };
      }
      case "warpgroupWait":
        return { open: flight.open, committed: flight.committed.slice(0, operation.attributes.pending) };
      default:
        for (const range of operation.registers) this.checkTouch(range, operation, flight);
        return flight;
    }
  }

  private checkTouch(range: RegisterRange, operation: AnyOperation, flight: Flight): void {
    for (const group of [flight.open, ...flight.committed]) {
      const held = group.get(range.variable)?.find((other) => overlaps(range, other));
      if (held !== undefined) this.refuse(range, operation, held);
    }
  }

  /** A product on registers in flight: allowed as the very same range in the same part, which the hardware keeps in order. */
  private checkProduct(range: RegisterRange, operation: AnyOperation, flight: Flight): void {
    for (const group of [flight.open, ...flight.committed]) {
      const held = group
        .get(range.variable)
        ?.find(
          (other) =>
            overlaps(range, other) &&
            (other.offset !== range.offset || other.count !== range.count || other.access !== range.access),
        );
      if (held !== undefined) this.refuse(range, operation, held);
    }
  }

  private refuse(range: RegisterRange, operation: AnyOperation, held: Held): never {
    throw traceErrorAt(
      this.kernel,
      `${operation.name} touches variable ${range.variable.name} while an asynchronous product holds it ` +
        "(first the touch, then the product); put warpgroupWait between them",
      operation.site,
      held.site,
    );
  }
}

function overlaps(a: { offset: number; count: number }, b: { offset: number; count: number }): boolean {
  return a.offset < b.offset + b.count && b.offset < a.offset + a.count;
}

function groupOf(operation: AnyOperation): Group {
  const group = new Map<RegisterVariable, readonly Held[]>();
  for (const { variable, offset, count, access } of operation.registers) {
    group.set(variable, [...(group.get(variable) ?? []), { offset, count, access, site: operation.site }]);
  }
  return group;
}
