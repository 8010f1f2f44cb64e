/**
 * @file Mutants: a traced kernel with one of its synchronising statements left out, run on the checking simulator in
 * several orders of warps, lanes and asynchronous work.
 */
import { readFileSync } from "node:fs";
import {
  type Device,
  type Kernel,
  open,
  SimulationError,
  type SimulatorOptions,
  TraceError,
} from "tilewright";
import type { SourcePosition } from "../../src/errors.ts";
import type { AnyOperation, Block, KernelIr, Statement } from "../../src/ir/nodes.ts";
import type { OperationName } from "../../src/ir/operations.ts";

/** What orders or waits. */
const synchronising: ReadonlySet<OperationName> = new Set<OperationName>([
  "blockBarrier",
  "namedBarrier",
  "subgroupBarrier",
  "clusterBarrier",
  "fence",
  "proxyFence",
  "barrierInitFence",
  "barrierInit",
  "barrierArrive",
  "barrierArriveExpect",
  "barrierWait",
  "copyAsyncCommit",
  "copyAsyncWait",
  "copyAsyncArrive",
  "tensorStoreCommit",
  "tensorStoreWait",
  "warpgroupFence",
  "warpgroupCommit",
  "warpgroupWait",
]);

/** A kernel without one statement. */
export interface Mutant {
  readonly ir: KernelIr;
  readonly operation: OperationName;
  readonly position: SourcePosition;
  /** `operation: text of its line`, the same wherever the line moves. */
  readonly name: string;
}

/** Every mutant of a traced kernel, in program order. */
export function mutantsOf(ir: KernelIr): readonly Mutant[] {
  const found: AnyOperation[] = [];
  visit(ir.body, (statement) => {
    if (statement.kind === "operation" && synchronising.has(statement.name)) found.push(statement);
  });
  return found.map((statement) => {
    const position = ir.positions[statement.site];
    if (position === undefined) throw new Error("mutants need positions: set TILEWRIGHT_POSITIONS=1");
    return {
      ir: { ...ir, body: without(ir.body, statement) },
      operation: statement.name,
      position,
      name: `${statement.name}: ${lineAt(position)}`,
    };
  });
}

function bodiesOf(statement: Statement): readonly Block[] {
  switch (statement.kind) {
    case "if":
      return [statement.then, statement.otherwise];
    case "loop":
      return [statement.body];
    case "while":
      return [statement.condition, statement.body];
    case "roles":
      return statement.roles.map(({ body }) => body);
    default:
      return [];
  }
}

function visit(block: Block, meet: (statement: Statement) => void): void {
  for (const statement of block.statements) {
    meet(statement);
    for (const body of bodiesOf(statement)) visit(body, meet);
  }
}

function without(block: Block, dropped: Statement): Block {
  const inside = (body: Block): Block => without(body, dropped);
  return {
    statements: block.statements
      .filter((statement) => statement !== dropped)
      .map((statement): Statement => {
        switch (statement.kind) {
          case "if":
            return { ...statement, then: inside(statement.then), otherwise: inside(statement.otherwise) };
          case "loop":
            return { ...statement, body: inside(statement.body) };
          case "while":
            return { ...statement, condition: inside(statement.condition), body: inside(statement.body) };
          case "roles":
            return {
              ...statement,
              roles: statement.roles.map((role) => ({ ...role, body: inside(role.body) })),
            };
          default:
            return statement;
        }
      }),
  };
}

function lineAt({ file, line }: SourcePosition): string {
  return readFileSync(file, "utf8").split("\n")[line - 1]!.trim();
}

/** Orders in which simulators take warps, lanes and asynchronous work. */
export const orders: readonly NonNullable<SimulatorOptions["schedule"]>[] = [
  "forward",
  "reverse",
  { seed: 1 },
  { seed: 2 },
  { seed: 3 },
];

/** A kernel that can be launched on a device, or a mutant of it in its place. */
export interface Prepared {
  readonly kernel: Kernel;
  launch(kernel: Kernel): Promise<void>;
}

/** Makes operands on a device. */
export type Prepare = (device: Device) => Prepared;

/** The kernel of a fresh simulator's operands, as traced. */
export async function traceOf(prepare: Prepare, options: SimulatorOptions): Promise<KernelIr> {
  await using device = await open({ kind: "simulator", simulator: options });
  return prepare(device).kernel.trace(device.facts);
}

/** What the first order that finds something says of a kernel, or of `ir` in its place; undefined where none does. */
export async function faultOf(
  prepare: Prepare,
  options: SimulatorOptions,
  ir?: KernelIr,
): Promise<SimulationError | TraceError | undefined> {
  for (const schedule of orders) {
    const device = await open({ kind: "simulator", simulator: { ...options, schedule } });
    try {
      const { kernel, launch } = prepare(device);
      const { name, params } = kernel;
      await launch(ir === undefined ? kernel : { name, params, trace: () => ir });
      await device.sync();
    } catch (error) {
      if (error instanceof SimulationError || error instanceof TraceError) return error;
      throw error;
    } finally {
      device.dispose();
    }
  }
  return undefined;
}

/** Whether an error's message names a line of a file whose path contains `part`. */
export function namesLineOf(error: SimulationError | TraceError, part: string): boolean {
  const positions = error instanceof SimulationError ? error.details.positions : error.positions;
  return positions.some(
    (position) =>
      position?.file.includes(part) && error.message.includes(`${position.file}:${position.line}:`),
  );
}
