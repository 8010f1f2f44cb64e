/** @file Structured control flow, which WGSL has as it is. */
import type { Block, IfNode, LoopNode, RolesNode, Statement, WhileNode } from "../../ir/nodes.ts";
import { i32 } from "../../types/types.ts";
import type { Emission } from "./emission.ts";
import { emitters } from "./emitters.ts";
import { emitBuiltin } from "./memory.ts";

export function emitBlock(emission: Emission, block: Block): void {
  for (const statement of block.statements) {
    emitStatement(emission, statement);
    if (isJump(statement)) return;
  }
}

function isJump(statement: Statement): boolean {
  return statement.kind === "break" || statement.kind === "continue" || statement.kind === "exit";
}

function emitStatement(emission: Emission, statement: Statement): void {
  switch (statement.kind) {
    case "operation":
      (emitters[statement.name] as (emission: Emission, node: typeof statement) => void)(emission, statement);
      return;
    case "if":
      emitIf(emission, statement);
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
      emission.line("return;");
      return;
    case "break":
    case "continue":
      emission.line(`${statement.kind};`);
      return;
    default:
      statement satisfies never;
  }
}

function emitIf(emission: Emission, node: IfNode): void {
  const empty = node.otherwise.statements.length === 0;
  emission.nested(
    `if (${emission.lane(node.condition)}) {`,
    () => emitBlock(emission, node.then),
    empty ? "}" : "} else {",
  );
  if (!empty) emission.nested("", () => emitBlock(emission, node.otherwise));
}

function emitLoop(emission: Emission, node: LoopNode): void {
  const [from, to, step] = [node.from, node.to, node.step].map((operand) => emission.lane(operand));
  const counter = emission.name();
  const type = emission.laneType(node.counter.type.element);
  emission.define(node.counter, { lanes: [counter] });
  emission.nested(
    `for (var ${counter}: ${type} = ${from}; ${counter} < ${to}; ${counter} += ${step}) {`,
    () => emitBlock(emission, node.body),
  );
}

function emitWhile(emission: Emission, node: WhileNode): void {
  emission.nested("loop {", () => {
    emitBlock(emission, node.condition);
    emission.line(`if (!(${emission.lane(node.test)})) { break; }`);
    emitBlock(emission, node.body);
  });
}

/** Branches on ranges of subgroups. */
function emitRoles(emission: Emission, node: RolesNode): void {
  const index = { kind: "value", id: -1, type: { element: i32, lanes: 1 } } as const;
  emitBuiltin(emission, {
    kind: "operation",
    name: "builtin",
    result: index,
    operands: [],
    registers: [],
    attributes: { builtin: "subgroupIndex" },
    site: node.site,
  });
  const subgroup = emission.lane(index);
  for (const { firstWarp, warps, body } of node.roles) {
    emission.nested(`if (${subgroup} >= ${firstWarp}i && ${subgroup} < ${firstWarp + warps}i) {`, () =>
      emitBlock(emission, body),
    );
  }
}
