/** @file Statements within a region: control flow of a single lane is JavaScript's own. */
import type { AnyOperation, Block, IfNode, LoopNode, Statement, WhileNode } from "../../ir/nodes.ts";
import type { ElementType } from "../../types/types.ts";
import { type InstructionClass, instructionClass } from "./instruction-classes.ts";
import { emitLaneOperation } from "./lane-operations.ts";
import type { Region } from "./region.ts";

/** Where `break` and `continue` lead: a label of the region, or out of it. */
interface Target {
  readonly label: string | undefined;
}

const outside: Target = { label: undefined };

/** Emits a run of statements. */
export function emitStatements(region: Region, statements: readonly Statement[]): void {
  region.touch(statements);
  emitRun(region, statements, outside);
}

function emitRun(region: Region, statements: readonly Statement[], target: Target): void {
  if (region.emission.mode.counters) countInstructions(region, statements);
  for (const statement of statements) emitStatement(region, statement, target);
}

function emitBlock(region: Region, block: Block, target: Target): void {
  emitRun(region, block.statements, target);
}

/** Adds a straight run's instructions to the counters, once per lane that gets there. */
function countInstructions(region: Region, statements: readonly Statement[]): void {
  const counts = new Map<InstructionClass, number>();
  for (const statement of statements) {
    const cls = instructionClass(statement);
    if (cls === undefined) continue;
    const amount =
      statement.kind === "operation" && cls === "arithmetic" ? (statement.result?.type.lanes ?? 1) : 1;
    counts.set(cls, (counts.get(cls) ?? 0) + amount);
  }
  if (counts.size === 0) return;
  const counted = region.constant("counted", "W.counters.instructions");
  region.line([...counts].map(([cls, amount]) => `${counted}.${cls} += ${amount};`).join(" "));
}

function emitStatement(region: Region, statement: Statement, target: Target): void {
  switch (statement.kind) {
    case "operation":
      emitLaneOperation(region, statement as AnyOperation);
      return;
    case "if":
      emitIf(region, statement, target);
      return;
    case "loop":
      emitLoop(region, statement);
      return;
    case "while":
      emitWhile(region, statement);
      return;
    case "break":
    case "continue":
      if (target.label === undefined) region.jump(statement.kind, statement.site);
      else region.line(`${statement.kind} ${target.label};`);
      return;
    case "exit":
      region.jump("exit", statement.site);
      return;
    case "roles":
      throw new RangeError("roles split subgroups, not the lanes of a region");
    default:
      statement satisfies never;
  }
}

function emitIf(region: Region, statement: IfNode, target: Target): void {
  region.line(`if (${region.operand(statement.condition)}) {`);
  emitBlock(region, statement.then, target);
  if (statement.otherwise.statements.length > 0) {
    region.line("} else {");
    emitBlock(region, statement.otherwise, target);
  }
  region.line("}");
}

/** `counter + step` in the counter's type. */
export function stepped(type: ElementType, counter: string, step: string): string {
  switch (type.name) {
    case "i32":
      return `${counter} + ${step} | 0`;
    case "u32":
      return `${counter} + ${step} >>> 0`;
    default:
      return `${counter} + ${step}`;
  }
}

function emitLoop(region: Region, loop: LoopNode): void {
  const [from, to, step] = [loop.from, loop.to, loop.step].map((bound) => region.operand(bound));
  const counter = region.declare(loop.counter);
  const label = region.label();
  const turn = `${counter}_`;
  // The body sees a constant of its own turn, as values are.
  region.line(
    `${label}: for (let ${turn} = ${from}; ${turn} < ${to}; ${turn} = ${stepped(loop.counter.type.element, turn, step!)}) {`,
  );
  region.line(`const ${counter} = ${turn};`);
  emitBlock(region, loop.body, { label });
  region.line("}");
}

function emitWhile(region: Region, loop: WhileNode): void {
  const label = region.label();
  if (region.checks) region.line(`let ${label}turns = 0;`);
  region.line(`${label}: for (;;) {`);
  if (region.checks) region.line(`if (++${label}turns > 100000000) endless(W, lane, ${loop.site});`);
  emitBlock(region, loop.condition, outside);
  region.line(`if (!(${region.operand(loop.test)})) break;`);
  region.line("{");
  emitBlock(region, loop.body, { label });
  region.line("}");
  region.line("}");
}
