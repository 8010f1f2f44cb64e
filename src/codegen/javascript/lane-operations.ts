/** @file The operations that a lane does alone, complete by type: the others stand in {@link subgroupOperationTexts}. */
import type { AnyOperation, OperationNode } from "../../ir/nodes.ts";
import type { OperationName } from "../../ir/operations.ts";
import { isInteger } from "../../types/types.ts";
import { emitCopyAsync, emitTensorLoad, emitTensorStore, wordPosition } from "./asynchronous.ts";
import { bitcastTexts } from "./bitcast.ts";
import { dot4Text, elementwiseText } from "./expressions.ts";
import { emitAtomic, emitLoad, emitStore } from "./memory.ts";
import type { Region } from "./region.ts";

type Emitter<Name extends OperationName> = (region: Region, node: OperationNode<Name>) => void;

/** Operations of the subgroup's function; see subgroup-operations.ts. */
export type SubgroupOperationName =
  | "shuffle"
  | "vote"
  | "ballot"
  | "subgroupReduce"
  | "electOne"
  | "blockBarrier"
  | "namedBarrier"
  | "subgroupBarrier"
  | "clusterBarrier"
  | "barrierWait"
  | "loadMatrix"
  | "storeMatrix"
  | "mma"
  | "wmmaLoad"
  | "wmmaStore"
  | "wmmaMma"
  | "warpgroupFence"
  | "warpgroupMma"
  | "warpgroupCommit"
  | "warpgroupWait";

type LaneOperationName = Exclude<OperationName, SubgroupOperationName>;

function elementwise<Name extends LaneOperationName>(region: Region, node: OperationNode<Name>): void {
  const { type } = node.result!;
  const first = node.operands[0]!.type.element;
  const texts = Array.from({ length: type.lanes }, (_, lane) => {
    const operands = node.operands.map((operand) => region.operand(operand, lane));
    return elementwiseText(node.name, first, operands, type.element)!;
  });
  region.define(node.result!, texts);
}

/** Integer quotients: a zero divisor has a defined result, and is reported all the same. */
function quotient<Name extends "div" | "rem" | "floorDiv" | "floorMod">(
  region: Region,
  node: OperationNode<Name>,
): void {
  const [a, b] = node.operands as [AnyOperation["operands"][number], AnyOperation["operands"][number]];
  if (region.checks && isInteger(a.type.element) && !(b.kind === "constant" && Number(b.value) > 0)) {
    for (let lane = 0; lane < node.result!.type.lanes; lane++) {
      const [x, y] = [region.operand(a, lane), region.operand(b, lane)];
      const bits = a.type.element.class === "signed" ? a.type.element.bits : 0;
      region.line(`if (${y} == 0 || ${y} == -1) checkQuotient(W, lane, ${node.site}, ${x}, ${y}, ${bits});`);
    }
  }
  elementwise(region, node);
}

function call(name: string): Emitter<LaneOperationName> {
  return (region, node) => region.line(`${name}(W, lane, ${node.site});`);
}

function emitBuiltin(region: Region, node: OperationNode<"builtin">): void {
  const [x, y] = region.emission.kernel.block;
  const flat = y === 1 && region.emission.kernel.block[2] === 1;
  const thread = "first + lane";
  const texts = {
    threadIndexX: flat ? thread : `(${thread}) % ${x}`,
    threadIndexY: `((${thread}) / ${x} | 0) % ${y}`,
    threadIndexZ: `(${thread}) / ${x * y} | 0`,
    blockIndexX: "W.block.x",
    blockIndexY: "W.block.y",
    blockIndexZ: "W.block.z",
    gridSizeX: "W.launch.gridX",
    gridSizeY: "W.launch.gridY",
    gridSizeZ: "W.launch.gridZ",
    lane: "lane",
    subgroupIndex: "W.index",
    clusterRank: "W.block.rank",
    clusterIndexX: "W.block.clusterX",
    clusterIndexY: "W.block.clusterY",
    clusterIndexZ: "W.block.clusterZ",
  } as const;
  region.define(node.result!, [texts[node.attributes.builtin]]);
}

function emitReadRegister(region: Region, node: OperationNode<"readRegister">): void {
  const { variable, offset } = node.registers[0]!;
  const { element, lanes } = variable.type;
  if (!region.isChecked(variable)) {
    region.define(
      node.result!,
      Array.from({ length: lanes }, (_, lane) => region.variable(variable, offset, lane)),
    );
    return;
  }
  const { storage, unassigned, flying, kernel } = region.emission;
  const number = storage.elementBase.get(variable)! + offset;
  if (unassigned.has(variable)) {
    region.line(
      `if (W.assigned[${number * kernel.subgroupSize} + lane] === 0) unassigned(W, lane, ${node.site}, ${variable.id}, ${offset});`,
    );
  }
  if (flying.has(variable)) region.line(`touchRegister(W, lane, ${node.site}, ${number}, false);`);
  const bank = region.bank(
    element.name === "i64" || element.name === "u64"
      ? "b"
      : element.class === "float" || element.name === "index"
        ? "f"
        : "i",
  );
  region.define(
    node.result!,
    Array.from({ length: lanes }, (_, lane) => {
      const text = `${bank}[${storage.variableSlot(variable, offset, lane)} + lane]`;
      return element.class === "bool" ? `${text} !== 0` : element.name === "u32" ? `${text} >>> 0` : text;
    }),
  );
}

function emitWriteRegister(region: Region, node: OperationNode<"writeRegister">): void {
  const { variable, offset } = node.registers[0]!;
  const { element, lanes } = variable.type;
  const texts = region.lanes(node.operands[0]!);
  if (!region.isChecked(variable)) {
    texts.forEach((text, lane) => {
      region.line(`${region.variable(variable, offset, lane)} = ${text};`);
    });
    return;
  }
  const { storage, unassigned, flying, kernel } = region.emission;
  const number = storage.elementBase.get(variable)! + offset;
  if (unassigned.has(variable)) region.line(`W.assigned[${number * kernel.subgroupSize} + lane] = 1;`);
  if (flying.has(variable)) region.line(`touchRegister(W, lane, ${node.site}, ${number}, true);`);
  const bank = region.bank(
    element.name === "i64" || element.name === "u64"
      ? "b"
      : element.class === "float" || element.name === "index"
        ? "f"
        : "i",
  );
  for (let lane = 0; lane < lanes; lane++) {
    const text = texts[lane] ?? texts[0]!;
    region.line(
      `${bank}[${storage.variableSlot(variable, offset, lane)} + lane] = ${element.class === "bool" ? `${text} ? 1 : 0` : text};`,
    );
  }
}

function emitSelect(region: Region, node: OperationNode<"select">): void {
  const [condition, a, b] = node.operands as [
    AnyOperation["operands"][number],
    AnyOperation["operands"][number],
    AnyOperation["operands"][number],
  ];
  const texts = Array.from(
    { length: node.result!.type.lanes },
    (_, lane) =>
      `(${region.operand(condition, lane)} ? ${region.operand(a, lane)} : ${region.operand(b, lane)})`,
  );
  region.define(node.result!, texts);
}

function emitBitcast(region: Region, node: OperationNode<"bitcast">): void {
  const operand = node.operands[0]!;
  const texts = bitcastTexts(operand.type, region.lanes(operand), node.result!.type, (text) =>
    region.temporary(text),
  );
  region.define(node.result!, texts);
}

function barrier(
  name: string,
  more: (region: Region, node: OperationNode<LaneOperationName>) => readonly string[],
): Emitter<"barrierInit" | "barrierArrive" | "barrierArriveExpect" | "copyAsyncArrive"> {
  return (region, node) => {
    const word = wordPosition(region, node.operands[0]!, node.attributes);
    const rest = more(region, node as OperationNode<LaneOperationName>);
    region.line(`${name}(${["W", "lane", node.site, word, ...rest].join(", ")});`);
  };
}

/** The table. */
const emitters: { readonly [Name in LaneOperationName]: Emitter<Name> } = {
  add: elementwise,
  sub: elementwise,
  mul: elementwise,
  mulHigh: elementwise,
  neg: elementwise,
  abs: elementwise,
  min: elementwise,
  max: elementwise,
  fma: elementwise,
  and: elementwise,
  or: elementwise,
  xor: elementwise,
  not: elementwise,
  shiftLeft: elementwise,
  shiftRight: elementwise,
  equal: elementwise,
  notEqual: elementwise,
  less: elementwise,
  lessEqual: elementwise,
  greater: elementwise,
  greaterEqual: elementwise,
  isNaN: elementwise,
  sqrt: elementwise,
  reciprocalSqrt: elementwise,
  reciprocal: elementwise,
  exp2: elementwise,
  log2: elementwise,
  sin: elementwise,
  cos: elementwise,
  tanh: elementwise,
  floor: elementwise,
  ceil: elementwise,
  trunc: elementwise,
  roundEven: elementwise,
  convert: elementwise,
  popcount: elementwise,
  leadingZeros: elementwise,
  reverseBits: elementwise,
  div: quotient,
  rem: quotient,
  floorDiv: quotient,
  floorMod: quotient,
  select: emitSelect,
  bitcast: emitBitcast,
  dot4: (region, node) =>
    region.define(node.result!, [
      dot4Text(
        node.attributes,
        node.operands.map((operand) => region.operand(operand)),
      ),
    ]),
  permuteBytes: (region, node) =>
    region.define(node.result!, [
      `permuteBytes(${node.operands.map((operand) => region.operand(operand)).join(", ")})`,
    ]),
  compose: (region, node) =>
    region.define(
      node.result!,
      node.operands.map((operand) => region.operand(operand)),
    ),
  extract: (region, node) =>
    region.define(node.result!, [region.operand(node.operands[0]!, node.attributes.lane)]),
  builtin: emitBuiltin,
  parameter: (region, node) => region.define(node.result!, [`W.args[${node.attributes.parameter}]`]),
  bufferSize: (region, node) =>
    region.define(node.result!, [`W.args[${node.attributes.parameter}].sizes[${node.attributes.dimension}]`]),
  bufferStride: (region, node) =>
    region.define(node.result!, [
      `W.args[${node.attributes.parameter}].strides[${node.attributes.dimension}]`,
    ]),
  readRegister: emitReadRegister,
  writeRegister: emitWriteRegister,
  load: emitLoad,
  store: emitStore,
  atomic: emitAtomic,
  fence: call("fence"),
  proxyFence: call("proxyFence"),
  barrierInitFence: call("barrierInitFence"),
  barrierInit: (region, node) => barrier("barrierInit", () => [String(node.attributes.count)])(region, node),
  barrierArrive: barrier("barrierArrive", (region, node) => [
    node.operands[1] === undefined ? "-1" : region.operand(node.operands[1]),
  ]),
  barrierArriveExpect: barrier("barrierArriveExpect", (region, node) => [region.operand(node.operands[1]!)]),
  copyAsync: emitCopyAsync,
  copyAsyncCommit: call("copyAsyncCommit"),
  copyAsyncWait: (region, node) =>
    region.line(`copyAsyncWait(W, lane, ${node.site}, ${node.attributes.pending});`),
  copyAsyncArrive: barrier("copyAsyncArrive", () => []),
  tensorLoad: emitTensorLoad,
  tensorStore: emitTensorStore,
  tensorStoreCommit: call("tensorStoreCommit"),
  tensorStoreWait: (region, node) =>
    region.line(
      `tensorStoreWait(W, lane, ${node.site}, ${node.attributes.pending}, ${node.attributes.read});`,
    ),
  prefetchTensorMap: () => {},
  print: (region, node) =>
    region.line(
      `print(W, lane, ${node.site}, [${node.operands.map((operand) => (operand.type.lanes === 1 ? region.operand(operand) : `[${region.lanes(operand).join(", ")}]`)).join(", ")}]);`,
    ),
  assert: (region, node) =>
    region.line(`if (!(${region.operand(node.operands[0]!)})) assertion(W, lane, ${node.site});`),
};

/** Emits one operation of a lane. */
export function emitLaneOperation(region: Region, node: AnyOperation): void {
  // The table is indexed by the name that the operation has, which TypeScript cannot follow through a union.
  const emitter = emitters[node.name as LaneOperationName] as Emitter<LaneOperationName> | undefined;
  if (emitter === undefined) throw new RangeError(`${node.name} belongs to the subgroup's function`);
  emitter(region, node as OperationNode<LaneOperationName>);
}
