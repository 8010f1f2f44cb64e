/**
 * @file Which reads of register variables may come before any write: those are checked while running. Everything else is
 * known to be assigned and costs nothing.
 */
import type {
  AnyOperation,
  Block,
  KernelIr,
  RegisterRange,
  RegisterVariable,
  Statement,
} from "../../ir/nodes.ts";

/** Elements of variables, by `variable id * 2^20 + element`. */
type Elements = ReadonlySet<number>;

const stride = 2 ** 20;

/** Variables that are read somewhere without a write on every way there. */
export function possiblyUnassigned(kernel: KernelIr): ReadonlySet<RegisterVariable> {
  const analysis = new Assignment();
  analysis.block(kernel.body, new Set());
  return analysis.suspects;
}

class Assignment {
  readonly suspects = new Set<RegisterVariable>();

  /** What is assigned after a block; undefined when control does not reach its end. */
  block(block: Block, before: Elements): Elements | undefined {
    let assigned = new Set(before);
    for (const statement of block.statements) {
      const after = this.statement(statement, assigned);
      if (after === undefined) return undefined;
      assigned = after;
    }
    return assigned;
  }

  /** Adds to `assigned`, or gives another set. */
  private statement(statement: Statement, assigned: Set<number>): Set<number> | undefined {
    switch (statement.kind) {
      case "operation":
        this.operation(statement, assigned);
        return assigned;
      case "if":
        return intersection(this.block(statement.then, assigned), this.block(statement.otherwise, assigned));
      case "loop":
        this.block(statement.body, assigned);
        return assigned;
      case "while": {
        const tested = new Set(this.block(statement.condition, assigned) ?? assigned);
        this.block(statement.body, tested);
        return tested;
      }
      case "roles":
        for (const role of statement.roles) this.block(role.body, assigned);
        return assigned;
      default:
        return undefined;
    }
  }

  private operation(operation: AnyOperation, assigned: Set<number>): void {
    for (const range of operation.registers) {
      if (!reads(operation, range)) continue;
      for (const element of elementsOf(range)) if (!assigned.has(element)) this.suspects.add(range.variable);
    }
    for (const range of operation.registers) {
      if (range.access !== "read") for (const element of elementsOf(range)) assigned.add(element);
    }
  }
}

function elementsOf({ variable, offset, count }: RegisterRange): readonly number[] {
  return Array.from({ length: count }, (_, position) => variable.id * stride + offset + position);
}

/** A warpgroup product with accumulate off, or known only when running, needs no accumulator from before. */
function reads(operation: AnyOperation, range: RegisterRange): boolean {
  if (range.access === "write") return false;
  if (operation.name !== "warpgroupMma" || range !== operation.registers[0]) return true;
  const accumulate = operation.operands.at(-1)!;
  return accumulate.kind === "constant" && accumulate.value === true;
}

function intersection(a: Elements | undefined, b: Elements | undefined): Set<number> | undefined {
  if (a === undefined) return b === undefined ? undefined : new Set(b);
  return b === undefined ? new Set(a) : new Set([...a].filter((element) => b.has(element)));
}
