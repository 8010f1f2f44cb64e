/** @file Faults as errors: who, where in the grid, and at which of the author's lines. */
import { formatPosition, SimulationError, type SourcePosition } from "../../errors.ts";
import type { Block, Warp } from "./state.ts";

/** The kinds of faults. */
export type Fault =
  | "race"
  | "outOfBounds"
  | "misaligned"
  | "unwrittenShared"
  | "uninitialisedRegister"
  | "divergentCollective"
  | "divergentBarrier"
  | "deadlock"
  | "proxy"
  | "inFlight"
  | "barrierPhase"
  | "expectedBytes"
  | "assert"
  | "integerDivision"
  | "missingFence";

/** The error of a fault. `sites` and `threads` are the most relevant first; {0}, {1}… in the message become their lines. */
export function faultError(
  block: Block,
  fault: Fault,
  message: string,
  threads: readonly number[],
  sites: readonly number[],
): SimulationError {
  const { kernel } = block.launch.program;
  const positions: (SourcePosition | undefined)[] = sites.map((site) => kernel.positions[site]);
  const placed = message.replace(/\{(\d)\}/g, (_, position: string) =>
    formatPosition(positions[Number(position)]),
  );
  return new SimulationError(
    `kernel ${kernel.name}, block (${block.x}, ${block.y}, ${block.z}): ${placed}`,
    fault,
    { kernel: kernel.name, block: [block.x, block.y, block.z], threads, positions },
  );
}

/** Throws the error of a fault of one lane. */
export function laneFault(warp: Warp, lane: number, site: number, fault: Fault, message: string): never {
  const thread = warp.first + lane;
  throw faultError(warp.block, fault, `thread ${thread}: ${message} at {0}`, [thread], [site]);
}

/** The name of the array or other thing that the operation at a site works on. */
export function subjectOf(block: Block, site: number): string {
  const operation = block.launch.program.operationAt(site);
  if (operation === undefined) return "memory";
  switch (operation.name) {
    case "load":
    case "store":
    case "atomic":
    case "wmmaLoad":
    case "wmmaStore": {
      const { array } = operation.attributes;
      if (array.kind === "buffer") return `array ${array.parameter.name}`;
      return array.kind === "shared" ? `shared array ${array.array.name}` : `table ${array.table.name}`;
    }
    case "loadMatrix":
    case "storeMatrix":
      return `shared array ${operation.attributes.array.name}`;
    case "copyAsync":
    case "tensorLoad":
      return `shared array ${operation.attributes.target.name}`;
    case "tensorStore":
      return `shared array ${operation.attributes.source.name}`;
    default:
      return "memory";
  }
}

/** "store of", "copyAsync into": what an operation does, for messages. */
export function actionAt(block: Block, site: number): string {
  return block.launch.program.operationAt(site)?.name ?? "access";
}
