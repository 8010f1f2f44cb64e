/** @file Structured control flow as labels and branches, or as predicated instructions where a branch is short. */
import type { Block, IfNode, LoopNode, Operand, RolesNode, Statement, WhileNode } from "../../ir/nodes.ts";
import { type OperationName, operations } from "../../ir/operations.ts";
import { isLongDivision } from "./division.ts";
import type { Emission } from "./emission.ts";
import { emitters } from "./emitters.ts";
import { builtin } from "./memory.ts";
import { formOf, instructionType } from "./registers.ts";

/** Where `break` and `continue` of the innermost loop go. */
interface LoopTargets {
  readonly leave: string;
  readonly next: string;
}

export function emitBlock(emission: Emission, block: Block, targets: LoopTargets | undefined): void {
  for (const statement of block.statements) {
    emitStatement(emission, statement, targets);
    if (isJump(statement)) return;
  }
}

function isJump(statement: Statement): boolean {
  return statement.kind === "break" || statement.kind === "continue" || statement.kind === "exit";
}

function emitStatement(emission: Emission, statement: Statement, targets: LoopTargets | undefined): void {
  switch (statement.kind) {
    case "operation":
      (emitters[statement.name] as (emission: Emission, node: typeof statement) => void)(emission, statement);
      return;
    case "if":
      emitIf(emission, statement, targets);
      return;
    case "loop":
      emitLoop(emission, statement);
      return;
    case "while":
      emitWhile(emission, statement);
      return;
    case "roles":
      emitRoles(emission, statement);
      return;
    case "exit":
      emission.effect("ret");
      return;
    case "break":
    case "continue":
      if (targets === undefined) throw emission.error(`${statement.kind} outside a loop`, statement.site);
      emission.effect(`bra ${statement.kind === "break" ? targets.leave : targets.next}`);
      return;
    default:
      statement satisfies never;
  }
}

/** Statements in both branches together up to which they are predicated. */
const shortBranch = 6;

function emitIf(emission: Emission, node: IfNode, targets: LoopTargets | undefined): void {
  if (node.condition.kind === "constant") {
    const taken = node.condition.value === true ? node.then : node.otherwise;
    emission.scope(() => emitBlock(emission, taken, targets));
    return;
  }
  const condition = emission.word(node.condition);
  if (isPredicable(node)) {
    guarded(emission, `@${condition} `, node.then, targets);
    guarded(emission, `@!${condition} `, node.otherwise, targets);
    return;
  }
  emitBranches(emission, node, condition, targets);
}

function guarded(emission: Emission, guard: string, block: Block, targets: LoopTargets | undefined): void {
  emission.guard = guard;
  emission.scope(() => emitBlock(emission, block, targets));
  emission.guard = "";
}

function emitBranches(
  emission: Emission,
  node: IfNode,
  condition: string,
  targets: LoopTargets | undefined,
): void {
  const [otherwise, end] = [emission.newLabel(), emission.newLabel()];
  const empty = node.otherwise.statements.length === 0;
  emission.raw(`@!${condition} bra ${empty ? end : otherwise}`);
  emission.scope(() => emitBlock(emission, node.then, targets));
  if (!empty) {
    if (!isJump(node.then.statements.at(-1) ?? node)) emission.raw(`bra ${end}`);
    emission.label(otherwise);
    emission.scope(() => emitBlock(emission, node.otherwise, targets));
  }
  emission.label(end);
}

function isPredicable(node: IfNode): boolean {
  const statements = [...node.then.statements, ...node.otherwise.statements];
  return statements.length <= shortBranch && statements.every((statement) => isSimple(statement));
}

/** Operations with effects whose emitters write one guardable line. */
const guardable: ReadonlySet<OperationName> = new Set<OperationName>([
  "readRegister",
  "writeRegister",
  "load",
  "store",
  "atomic",
  "fence",
  "proxyFence",
  "barrierInitFence",
  "barrierInit",
  "barrierArrive",
  "barrierArriveExpect",
  "copyAsync",
  "copyAsyncArrive",
  "tensorLoad",
  "tensorStore",
  "tensorStoreCommit",
  "prefetchTensorMap",
]);

function isSimple(statement: Statement): boolean {
  if (isJump(statement)) return true;
  if (statement.kind !== "operation") return false;
  if (!operations[statement.name].pure) return guardable.has(statement.name);
  return !isExpensive(statement.name, statement.operands);
}

const costly: ReadonlySet<OperationName> = new Set<OperationName>([
  "div",
  "rem",
  "floorDiv",
  "floorMod",
  "sqrt",
  "reciprocalSqrt",
]);

/** Whether it is better to jump over a pure operation than to compute it for nothing. */
function isExpensive(name: OperationName, operands: readonly Operand[]): boolean {
  return costly.has(name) && operands.some((operand) => isLongDivision(operand.type.element));
}

function constantNumber(operand: Operand): number | undefined {
  return operand.kind === "constant" ? Number(operand.value) : undefined;
}

function runsAtLeastOnce(node: LoopNode): boolean {
  const [from, to] = [constantNumber(node.from), constantNumber(node.to)];
  return from !== undefined && to !== undefined && from < to;
}

/** Rotated: a guard before the first turn, the test for the next at the bottom. */
function emitLoop(emission: Emission, node: LoopNode): void {
  const { cls } = formOf(node.counter.type);
  const type = instructionType(node.counter.type.element);
  const [body, next, leave] = [emission.newLabel(), emission.newLabel(), emission.newLabel()];
  const [to, step] = [emission.word(node.to), emission.word(node.step)];
  const counter = emission.compute(cls, `mov.${cls}`, emission.word(node.from));
  emission.define(node.counter, [counter]);
  if (!runsAtLeastOnce(node))
    emission.raw(`@${emission.compute("pred", `setp.ge.${type}`, counter, to)} bra ${leave}`);
  emission.label(body);
  emission.scope(() => emitBlock(emission, node.body, { leave, next }));
  emission.label(next);
  emission.raw(`add.${type} ${counter}, ${counter}, ${step}`);
  emission.raw(`@${emission.compute("pred", `setp.lt.${type}`, counter, to)} bra ${body}`);
  emission.label(leave);
}

/** The condition stands once, below the body: convergent operations in it are not duplicated. */
function emitWhile(emission: Emission, node: WhileNode): void {
  const [body, next, leave] = [emission.newLabel(), emission.newLabel(), emission.newLabel()];
  emission.raw(`bra ${next}`);
  emission.label(body);
  emission.scope(() => emitBlock(emission, node.body, { leave, next }));
  emission.label(next);
  emission.scope(() => {
    emitBlock(emission, node.condition, undefined);
    emission.raw(`@${emission.word(node.test)} bra ${body}`);
  });
  emission.label(leave);
}

const warpWidth = 32;

/** Branches on ranges of warps; a change of registers is the first instruction of its branch. */
function emitRoles(emission: Emission, node: RolesNode): void {
  const [x, y, z] = emission.kernel.block;
  const warps = Math.ceil((x * y * z) / warpWidth);
  const end = emission.newLabel();
  const labels = node.roles.map(() => emission.newLabel());
  const warp = builtin(emission, "subgroupIndex");
  const covered = node.roles.reduce((sum, role) => sum + role.warps, 0) === warps;
  node.roles.forEach((role, index) => {
    if (covered && index === node.roles.length - 1) {
      emission.raw(`bra ${labels[index]}`);
      return;
    }
    emission.raw(`@${isWithin(emission, warp, role.firstWarp, role.warps, warps)} bra ${labels[index]}`);
  });
  if (!covered) emission.raw(`bra ${end}`);
  node.roles.forEach((role, index) => {
    emission.label(labels[index]!);
    if (role.registers !== undefined) {
      emission.needs(80);
      emission.raw(
        `setmaxnreg.${role.registers.direction === "increase" ? "inc" : "dec"}.sync.aligned.u32 ${role.registers.count}`,
      );
    }
    emission.scope(() => emitBlock(emission, role.body, undefined));
    if (index < node.roles.length - 1) emission.raw(`bra ${end}`);
  });
  emission.label(end);
}

function isWithin(emission: Emission, warp: string, first: number, count: number, all: number): string {
  if (first === 0) return emission.compute("pred", "setp.lt.u32", warp, count);
  if (first + count === all) return emission.compute("pred", "setp.ge.u32", warp, first);
  return emission.compute("pred", "setp.lt.u32", emission.compute("b32", "sub.s32", warp, first), count);
}
