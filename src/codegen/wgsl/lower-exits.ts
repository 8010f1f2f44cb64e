/**
 * @file Threads that end early, in kernels where the others still meet at barriers. WGSL wants every thread of a block at
 * each barrier, so an ended thread walks on without effect: what computes goes on, what acts is guarded by a variable.
 *
 * Loops that hold a barrier are walked to their end by ended threads too: their bounds are uniform, or strict checks
 * refuse them. All other loops are left at once.
 */
import type { Block, KernelIr, Operand, RegisterVariable, Statement } from "../../ir/nodes.ts";
import { scalar } from "../../ir/nodes.ts";
import { type OperationName, operations } from "../../ir/operations.ts";
import { visitStatements } from "../../ir/parameters.ts";
import { bool } from "../../types/types.ts";
import { constantOf, contains, isConvergent, mapInnerBlocks, Sequence, Supply } from "./rewriting.ts";

const flag = scalar(bool);

/** The kernel with exits as guards where it has to be; the same kernel elsewhere. */
export function lowerExits(kernel: KernelIr): KernelIr {
  let [exits, meetings] = [false, false];
  visitStatements(kernel.body, (statement) => {
    exits ||= statement.kind === "exit";
    meetings ||= isConvergent(statement);
  });
  return exits && meetings ? new Lowering(kernel).kernel() : kernel;
}

const isExit = (statement: Statement): boolean => statement.kind === "exit";

class Lowering {
  readonly #supply: Supply;
  readonly #live: RegisterVariable;

  constructor(private readonly ir: KernelIr) {
    this.#supply = new Supply(ir);
    this.#live = this.#supply.variable("live", flag);
  }

  kernel(): KernelIr {
    const { ir } = this;
    const start = new Sequence(this.#supply, 0);
    start.write(this.#live, constantOf(flag, true));
    const body = this.#block(ir.body, { guarded: false, leave: false });
    return {
      ...ir,
      body: { statements: [...start.statements, ...body.statements] },
      variables: [...ir.variables, ...this.#supply.variables],
      valueCount: this.#supply.valueCount,
    };
  }

  /** `guarded`: some threads have ended before. `leave`: an exit leaves the loop around it. */
  #block(block: Block, { guarded, leave }: { guarded: boolean; leave: boolean }): Block {
    const statements: Statement[] = [];
    let ended = guarded;
    for (const statement of block.statements) {
      if (statement.kind === "exit") {
        statements.push(...this.#exit(statement.site, leave));
        break;
      }
      const exits = contains(statement, isExit);
      const rewritten = exits ? this.#exiting(statement, ended, leave) : statement;
      statements.push(...(ended ? this.#guard(rewritten, leave, exits) : [rewritten]));
      if (!exits) continue;
      ended = true;
      // An exit inside an inner loop has left that loop alone.
      if (leave && isLoop(statement)) statements.push(...this.#leaveIfEnded(statement.site));
    }
    return { statements };
  }

  #exit(site: number, leave: boolean): readonly Statement[] {
    const steps = new Sequence(this.#supply, site);
    steps.write(this.#live, constantOf(flag, false));
    return leave ? [...steps.statements, { kind: "break", site }] : steps.statements;
  }

  #exiting(statement: Statement, ended: boolean, leave: boolean): Statement {
    const meets = contains(statement, isConvergent);
    const inside = isLoop(statement)
      ? { guarded: (ended || meets) && meets, leave: !meets }
      : { guarded: ended && meets, leave };
    return mapInnerBlocks(statement, (block) => this.#block(block, inside));
  }

  #leaveIfEnded(site: number): readonly Statement[] {
    const steps = new Sequence(this.#supply, site);
    const live = steps.read(this.#live);
    steps.statements.push({
      kind: "if",
      condition: live,
      then: { statements: [] },
      otherwise: { statements: [{ kind: "break", site }] },
      site,
    });
    return steps.statements;
  }

  /** A statement that ended threads pass without effect. `done`: its inside has been guarded. */
  #guard(statement: Statement, leave: boolean, done: boolean): readonly Statement[] {
    if (statement.kind === "break" || statement.kind === "continue" || isHarmless(statement))
      return [statement];
    if (contains(statement, isConvergent)) {
      if (done || statement.kind === "operation") return [statement];
      return [mapInnerBlocks(statement, (block) => this.#block(block, { guarded: true, leave }))];
    }
    const steps = new Sequence(this.#supply, statement.site);
    const condition: Operand = steps.read(this.#live);
    const after = new Sequence(this.#supply, statement.site);
    const inner = [this.#carryingResult(statement, after)].flat();
    steps.statements.push({
      kind: "if",
      condition,
      then: { statements: inner },
      otherwise: { statements: [] },
      site: statement.site,
    });
    return [...steps.statements, ...after.statements];
  }

  /** A result, read after the guard, travels in a variable. */
  #carryingResult(statement: Statement, after: Sequence): readonly Statement[] {
    if (statement.kind !== "operation" || statement.result === undefined) return [statement];
    const carrier = this.#supply.variable("result", statement.result.type);
    const inside = new Sequence(this.#supply, statement.site);
    const own = this.#supply.value(statement.result.type);
    inside.statements.push({ ...statement, result: own });
    inside.write(carrier, own);
    after.read(carrier, statement.result);
    return inside.statements;
  }
}

function isLoop(statement: Statement): boolean {
  return statement.kind === "loop" || statement.kind === "while";
}

const harmless: ReadonlySet<OperationName> = new Set<OperationName>([
  "load",
  "readRegister",
  "writeRegister",
]);

/** What an ended thread may do unseen: an access outside an array gives some element of it. */
function isHarmless(statement: Statement): boolean {
  return statement.kind === "operation" && (operations[statement.name].pure || harmless.has(statement.name));
}
