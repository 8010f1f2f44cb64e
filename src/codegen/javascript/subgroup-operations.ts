/**
 * @file The operations that a subgroup does as a whole, as calls in its function. A call that may have to wait says so by
 * its result, and the function yields to the scheduler.
 */
import type { AnyOperation, ArrayReference, Operand, OperationNode } from "../../ir/nodes.ts";
import type { SharedMatrix } from "../../ir/operations.ts";
import { byteSize } from "../../types/types.ts";
import type { Emission } from "./emission.ts";
import type { SubgroupOperationName } from "./lane-operations.ts";
import { bankOf } from "./storage.ts";

/** Text of an operation for the set of lanes named `m`. */
type Emitter<Name extends SubgroupOperationName> = (
  emission: Emission,
  node: OperationNode<Name>,
  m: string,
) => string;

/** Slot of an operand's lane. */
function slot(emission: Emission, operand: Operand, lane = 0): number {
  return operand.kind === "constant"
    ? emission.storage.constantSlot(operand)
    : emission.storage.valueSlot(operand, lane);
}

/** Bank and slots of all lanes of an operand. */
function lanes(emission: Emission, operand: Operand): string {
  const { element, lanes: count } = operand.type;
  return `"${bankOf(element)}", [${Array.from({ length: count }, (_, lane) => slot(emission, operand, lane)).join(", ")}]`;
}

function call(
  name: string,
  m: string,
  site: number,
  ...rest: readonly (string | number | boolean)[]
): string {
  return `${name}(${["W", m, site, ...rest].join(", ")})`;
}

function plain(name: string): Emitter<SubgroupOperationName> {
  return (_emission, node, m) => `${call(name, m, node.site)};`;
}

/** A call after which the subgroup waits if the result says so. */
function waiting(text: string): string {
  return `if (${text}) yield;`;
}

/** Where an access goes and how its index is found. */
function accessLiteral(emission: Emission, array: ArrayReference, offset: number, index: Operand): string {
  const element =
    array.kind === "buffer"
      ? array.parameter.element
      : array.kind === "shared"
        ? array.array.element
        : array.table.element;
  const place =
    array.kind === "buffer"
      ? `parameter: ${array.parameter.id}`
      : array.kind === "shared"
        ? `array: a${array.array.id}`
        : `table: c${array.table.id}`;
  return `{${place}, element: "${element.name}", offset: ${offset}, index: ${indexLiteral(emission, index)}}`;
}

function indexLiteral(emission: Emission, index: Operand): string {
  return `{bank: "${bankOf(index.type.element)}", slot: ${slot(emission, index)}, unsigned: ${index.type.element.name === "u32"}}`;
}

function shapeLiteral({ m, n, k }: { readonly m: number; readonly n: number; readonly k: number }): string {
  return `m: ${m}, n: ${n}, k: ${k}`;
}

function ranges(emission: Emission, node: AnyOperation | OperationNode): string {
  return `ranges: [${node.registers.map((range) => emission.storage.rangeLiteral(range)).join(", ")}]`;
}

function matrixPlan(
  emission: Emission,
  kind: string,
  node: OperationNode<"mma"> | OperationNode<"wmmaMma">,
): string {
  const { shape, a, b, accumulator } = node.attributes;
  return emission.plan(
    `${kind}({${shapeLiteral(shape)}, a: "${a.name}", b: "${b.name}", accumulator: "${accumulator.name}", ${ranges(emission, node)}})`,
  );
}

function eightByEight(name: "loadMatrix" | "storeMatrix"): Emitter<"loadMatrix" | "storeMatrix"> {
  return (emission, node, m) => {
    const { array, offset, count, transpose } = node.attributes;
    const access = accessLiteral(emission, { kind: "shared", array }, offset, node.operands[0]!);
    const plan = emission.plan(
      `eightByEightPlan({count: ${count}, transpose: ${transpose}, access: ${access}, ${ranges(emission, node)}})`,
    );
    return `${call(name, m, node.site, plan)};`;
  };
}

function wmmaMemory(name: "wmmaLoad" | "wmmaStore"): Emitter<"wmmaLoad" | "wmmaStore"> {
  return (emission, node, m) => {
    const { array, offset, shape, element, major } = node.attributes;
    const use = node.name === "wmmaLoad" ? (node as OperationNode<"wmmaLoad">).attributes.use : "accumulator";
    const access = accessLiteral(emission, array, offset, node.operands[0]!);
    const leading = indexLiteral(emission, node.operands[1]!);
    const plan = emission.plan(
      `wmmaMemoryPlan({${shapeLiteral(shape)}, use: "${use}", element: "${element.name}", major: "${major}", access: ${access}, leading: ${leading}, ${ranges(emission, node)}})`,
    );
    return `${call(name, m, node.site, plan)};`;
  };
}

function sharedMatrixLiteral(emission: Emission, matrix: SharedMatrix, index: Operand): string {
  const { array, offset, swizzle, major, leadingBytes, strideBytes } = matrix;
  const access = accessLiteral(emission, { kind: "shared", array }, offset, index);
  return `{access: ${access}, swizzle: ${swizzle}, major: "${major}", leadingBytes: ${leadingBytes}, strideBytes: ${strideBytes}}`;
}

function warpgroupMma(emission: Emission, node: OperationNode<"warpgroupMma">, m: string): string {
  const { shape, a, b, accumulator, sharedA, sharedB, negateA, negateB } = node.attributes;
  const operands = [...node.operands];
  const left =
    sharedA === undefined ? "undefined" : sharedMatrixLiteral(emission, sharedA, operands.shift()!);
  const right = sharedMatrixLiteral(emission, sharedB, operands.shift()!);
  const accumulate = slot(emission, operands.shift()!);
  const plan = emission.plan(
    `warpgroupPlan({${shapeLiteral(shape)}, a: "${a.name}", b: "${b.name}", accumulator: "${accumulator.name}", left: ${left}, right: ${right}, accumulate: ${accumulate}, negateA: ${negateA}, negateB: ${negateB}, ${ranges(emission, node)}})`,
  );
  return waiting(call("warpgroupMma", m, node.site, plan));
}

function barrierWait(emission: Emission, node: OperationNode<"barrierWait">, m: string): string {
  const { array, offset } = node.attributes;
  const [index, parity] = node.operands as [Operand, Operand];
  const base = array.byteOffset / byteSize(array.element) + offset;
  return `while (${call("barrierWait", m, node.site, base, indexLiteral(emission, index), slot(emission, parity))}) yield;`;
}

/** The table. */
const emitters: { readonly [Name in SubgroupOperationName]: Emitter<Name> } = {
  shuffle: (emission, node, m) => {
    const [value, by] = node.operands as [Operand, Operand];
    const { mode, width } = node.attributes;
    return `${call("shuffle", m, node.site, `"${mode}"`, width, lanes(emission, value), slot(emission, by), slot(emission, node.result!))};`;
  },
  vote: (emission, node, m) =>
    `${call("vote", m, node.site, node.attributes.mode === "all", slot(emission, node.operands[0]!), slot(emission, node.result!))};`,
  ballot: (emission, node, m) =>
    `${call("ballot", m, node.site, slot(emission, node.operands[0]!), slot(emission, node.result!))};`,
  subgroupReduce: (emission, node, m) => {
    const value = node.operands[0]!;
    return `${call("subgroupReduce", m, node.site, `"${node.attributes.operation}"`, `"${value.type.element.name}"`, lanes(emission, value), slot(emission, node.result!))};`;
  },
  electOne: (emission, node, m) => `${call("electOne", m, node.site, slot(emission, node.result!))};`,
  blockBarrier: (_emission, node, m) => waiting(call("blockBarrier", m, node.site)),
  namedBarrier: (emission, node, m) =>
    waiting(
      call(
        "namedBarrier",
        m,
        node.site,
        node.attributes.action === "sync",
        node.attributes.threads,
        slot(emission, node.operands[0]!),
      ),
    ),
  subgroupBarrier: plain("subgroupBarrier"),
  clusterBarrier: (_emission, node, m) =>
    node.attributes.action === "arrive"
      ? `${call("clusterArrive", m, node.site)};`
      : waiting(call("clusterWait", m, node.site)),
  barrierWait,
  loadMatrix: eightByEight("loadMatrix"),
  storeMatrix: eightByEight("storeMatrix"),
  mma: (emission, node, m) => `${call("mma", m, node.site, matrixPlan(emission, "mmaPlan", node))};`,
  wmmaLoad: wmmaMemory("wmmaLoad"),
  wmmaStore: wmmaMemory("wmmaStore"),
  wmmaMma: (emission, node, m) => `${call("mma", m, node.site, matrixPlan(emission, "wmmaPlan", node))};`,
  warpgroupFence: plain("warpgroupFence"),
  warpgroupMma,
  warpgroupCommit: plain("warpgroupCommit"),
  warpgroupWait: (_emission, node, m) => `${call("warpgroupWait", m, node.site, node.attributes.pending)};`,
};

/** The text of one operation of the subgroup. */
export function subgroupOperationText(emission: Emission, node: AnyOperation, m: string): string {
  const emitter = emitters[node.name as SubgroupOperationName] as Emitter<SubgroupOperationName> | undefined;
  if (emitter === undefined) throw new RangeError(`${node.name} is an operation of single lanes`);
  return emitter(emission, node as OperationNode<SubgroupOperationName>, m);
}
