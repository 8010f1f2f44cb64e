/**
 * @file How a kernel is cut for execution by whole subgroups.
 *
 * A subgroup runs as one generator function. What its lanes must do together (collectives) and where they may have to
 * wait stands in that function; every run of other statements becomes a *region*: a plain function that takes the lanes
 * one after another through the run. So a region has no suspension inside, and what outlives it lies in arrays.
 */
import type { AnyOperation, Block, Operand, Statement, WhileNode } from "../../ir/nodes.ts";
import type { OperationName } from "../../ir/operations.ts";
import { visitStatements } from "../../ir/parameters.ts";

/** Operations that a subgroup does as a whole, or that may have to wait. */
const subgroupOperations: ReadonlySet<OperationName> = new Set<OperationName>([
  "shuffle",
  "vote",
  "ballot",
  "subgroupReduce",
  "electOne",
  "blockBarrier",
  "namedBarrier",
  "subgroupBarrier",
  "clusterBarrier",
  "barrierWait",
  "loadMatrix",
  "storeMatrix",
  "mma",
  "wmmaLoad",
  "wmmaStore",
  "wmmaMma",
  "warpgroupFence",
  "warpgroupMma",
  "warpgroupCommit",
  "warpgroupWait",
]);

/** A run of statements that lanes do alone, or one statement of the subgroup. */
export type Segment =
  | { readonly kind: "region"; readonly id: number; readonly statements: readonly Statement[] }
  | { readonly kind: "subgroup"; readonly statement: Statement };

/**
 * Operations in one region. Most kernels run once, so what counts is how soon the JavaScript engine has optimised them:
 * short functions are optimised early and quickly, and keeping values between them costs little.
 */
const largestRegion = 64;

/** The cut of a kernel. */
export class Structure {
  private readonly segments = new Map<Block, readonly Segment[]>();
  private readonly suspending = new Map<Statement, boolean>();
  private readonly definedIn = new Map<number, number>();
  private readonly kept = new Set<number>();
  private nextRegion = 1;

  constructor(body: Block) {
    this.cut(body);
  }

  /** The segments of a block that belongs to the subgroup's function. */
  segmentsOf(block: Block): readonly Segment[] {
    const segments = this.segments.get(block);
    if (segments === undefined) throw new RangeError("the block lies within a region");
    return segments;
  }

  /** Whether a value outlives the region that makes it, or is made by the whole subgroup. */
  isKept(valueId: number): boolean {
    return this.kept.has(valueId);
  }

  /** Whether a block needs the subgroup's function. */
  blockSuspends(block: Block): boolean {
    return block.statements.some((statement) => this.suspends(statement));
  }

  private suspends(statement: Statement): boolean {
    const known = this.suspending.get(statement);
    if (known !== undefined) return known;
    const suspends = this.compute(statement);
    this.suspending.set(statement, suspends);
    return suspends;
  }

  private compute(statement: Statement): boolean {
    switch (statement.kind) {
      case "operation":
        return subgroupOperations.has(statement.name);
      case "if":
        return this.blockSuspends(statement.then) || this.blockSuspends(statement.otherwise);
      case "loop":
        return this.blockSuspends(statement.body);
      case "while":
        return (
          isSpinning(statement) ||
          this.blockSuspends(statement.condition) ||
          this.blockSuspends(statement.body)
        );
      case "roles":
        return true;
      default:
        return false;
    }
  }

  private cut(block: Block): void {
    const segments: Segment[] = [];
    let run: Statement[] = [];
    let size = 0;
    const close = (): void => {
      if (run.length === 0) return;
      const id = this.nextRegion++;
      for (const statement of run) this.enterRegion(statement, id);
      segments.push({ kind: "region", id, statements: run });
      run = [];
      size = 0;
    };
    for (const statement of block.statements) {
      if (this.suspends(statement)) {
        close();
        segments.push({ kind: "subgroup", statement });
        this.enterSubgroup(statement);
        continue;
      }
      const added = sizeOf(statement);
      if (size + added > largestRegion) close();
      run.push(statement);
      size += added;
    }
    close();
    this.segments.set(block, segments);
  }

  private enterRegion(statement: Statement, region: number): void {
    visitStatements({ statements: [statement] }, (inner) => {
      if (inner.kind === "operation" && inner.result !== undefined)
        this.definedIn.set(inner.result.id, region);
      if (inner.kind === "loop") this.definedIn.set(inner.counter.id, region);
    });
    visitStatements({ statements: [statement] }, (inner) => {
      for (const operand of operandsOf(inner)) this.use(operand, region);
    });
  }

  private use(operand: Operand, region: number | undefined): void {
    if (operand.kind === "value" && this.definedIn.get(operand.id) !== region) this.kept.add(operand.id);
  }

  private enterSubgroup(statement: Statement): void {
    for (const operand of operandsOf(statement)) if (statement.kind !== "while") this.keep(operand);
    switch (statement.kind) {
      case "operation":
        if (statement.result !== undefined) this.kept.add(statement.result.id);
        break;
      case "if":
        this.cut(statement.then);
        this.cut(statement.otherwise);
        break;
      case "loop":
        this.kept.add(statement.counter.id);
        this.cut(statement.body);
        break;
      case "while":
        this.cut(statement.condition);
        this.keep(statement.test);
        this.cut(statement.body);
        break;
      case "roles":
        for (const role of statement.roles) this.cut(role.body);
        break;
    }
  }

  private keep(operand: Operand): void {
    if (operand.kind === "value") this.kept.add(operand.id);
  }
}

/** Whether a while loop may wait for another thread: it looks at memory that others change. */
export function isSpinning(loop: WhileNode): boolean {
  let looks = false;
  const visit = (statement: Statement): void => {
    if (statement.kind !== "operation") return;
    looks ||=
      statement.name === "atomic" || (statement.name === "load" && statement.attributes.cache === "volatile");
  };
  visitStatements(loop.condition, visit);
  visitStatements(loop.body, visit);
  return looks;
}

/** Operands of the statement itself, not of statements nested in it. */
function operandsOf(statement: Statement): readonly Operand[] {
  switch (statement.kind) {
    case "operation":
      return statement.operands;
    case "if":
      return [statement.condition];
    case "loop":
      return [statement.from, statement.to, statement.step];
    case "while":
      return [statement.test];
    default:
      return [];
  }
}

function sizeOf(statement: Statement): number {
  let size = 0;
  visitStatements({ statements: [statement] }, (inner) => {
    size += inner.kind === "operation" ? (inner.result?.type.lanes ?? 1) : 1;
  });
  return size;
}

/** Calls `visit` for every operation of a block, nested ones included. */
export function visitOperations(block: Block, visit: (operation: AnyOperation) => void): void {
  visitStatements(block, (statement) => {
    if (statement.kind === "operation") visit(statement);
  });
}
