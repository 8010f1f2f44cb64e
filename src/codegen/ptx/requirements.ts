/** @file What each operation asks of a target, checked for a whole kernel before any text is written. */
import { CompileError, formatPosition, UnsupportedError } from "../../errors.ts";
import type { AnyOperation, KernelIr, OperationNode, RolesNode, ValueType } from "../../ir/nodes.ts";
import type { MatrixShape, OperationName } from "../../ir/operations.ts";
import { visitStatements } from "../../ir/parameters.ts";
import type { MatrixInstruction, TargetFacts } from "../../target/facts.ts";
import type { ElementType } from "../../types/types.ts";
import { registerBits } from "./registers.ts";

/** What is missing and what would serve instead; undefined when all is well. */
type Complaint = string | undefined;

type Requirement<Name extends OperationName> = (
  node: OperationNode<Name>,
  facts: TargetFacts,
  kernel: KernelIr,
) => Complaint;

type Requirements = { readonly [Name in OperationName]: Requirement<Name> };

const none = (): Complaint => undefined;

/** A yes-or-no fact. */
function fact(
  name:
    | "loadMatrix"
    | "storeMatrix"
    | "asyncCopy"
    | "bulkCopy"
    | "barriers"
    | "namedBarriers"
    | "subgroupOperations",
  instead: string,
): (node: unknown, facts: TargetFacts) => Complaint {
  return (_, facts) => (facts[name] ? undefined : instead);
}

const bulkCopy = fact("bulkCopy", "it needs sm_90 or later");
const asyncCopy = fact("asyncCopy", "it needs sm_80 or later; load and store through registers instead");
const barriers = fact("barriers", "mbarriers need sm_80 or later; use block or named barriers instead");

function arithmeticOn(
  node: {
    readonly result: { readonly type: ValueType } | undefined;
    readonly operands: readonly { readonly type: ValueType }[];
  },
  facts: TargetFacts,
): Complaint {
  const element = (node.result ?? node.operands[0]!).type.element;
  if (element.class === "bool") return `${element.name} has no arithmetic; use and, or, xor, not or select`;
  return facts.arithmetic.has(element.name)
    ? undefined
    : `${element.name} has no arithmetic there; convert to f32 (or i32) first`;
}

/** Approximate functions exist in f32; halves go through it. */
function singleOnly(node: OperationNode, facts: TargetFacts): Complaint {
  if (node.result!.type.element.name === "f64")
    return "it has no f64 form; convert to f32 and back, or compute it from a series";
  return arithmeticOn(node, facts);
}

function floatsOnly(node: OperationNode, facts: TargetFacts): Complaint {
  return node.result!.type.element.class === "float" ? arithmeticOn(node, facts) : "it is for floats";
}

function integersOnly(node: OperationNode): Complaint {
  const { element } = (node.operands[0] ?? node.result!).type;
  const integer = element.class === "signed" || element.class === "unsigned";
  return integer && registerBits(element) >= 32
    ? undefined
    : `it is for integers of 32 and 64 bits; convert ${element.name} first`;
}

function integersIn32(node: OperationNode): Complaint {
  const { element } = node.result!.type;
  const fits = element.class !== "float" && registerBits(element) === 32;
  return fits ? undefined : `it is for i32 and u32, not ${element.name}`;
}

function bitwise(node: OperationNode): Complaint {
  return node.result!.type.element.class === "float"
    ? "it is for integers and bool; bitcast floats first"
    : undefined;
}

function convertible(node: OperationNode<"convert">, facts: TargetFacts): Complaint {
  const [from, to] = [node.operands[0]!.type.element, node.result!.type.element];
  if (from.name === "b1" || to.name === "b1") return "b1 lives in packed words; use comparisons and ballots";
  const rounds = to.name === "tf32" && !facts.mma.some((instruction) => instruction.a === "tf32");
  return rounds ? "tf32 needs sm_80 or later; use f16 with f32 accumulation" : undefined;
}

function bits(type: ValueType): number {
  return registerBits(type.element) * type.lanes;
}

function sameWidth(node: OperationNode<"bitcast">): Complaint {
  const [from, to] = [node.operands[0]!.type, node.result!.type];
  if (from.element.class === "bool" || to.element.class === "bool")
    return "bool has no bits; use select or a comparison";
  return bits(from) === bits(to) ? undefined : `${bits(from)} bits cannot become ${bits(to)}`;
}

function accessible(type: ValueType): Complaint {
  return bits(type) <= 128
    ? undefined
    : `one access moves at most 16 bytes, not ${bits(type) / 8}; split the vector`;
}

function atomicExists(node: OperationNode<"atomic">, facts: TargetFacts): Complaint {
  const { operation, scope } = node.attributes;
  const { element } = node.operands[1]!.type;
  if (scope === "cluster" && !facts.bulkCopy)
    return "cluster scope needs sm_90; device scope serves everywhere";
  if (facts.atomics.get(operation)?.has(element.name)) return undefined;
  return `atomic ${operation} on ${element.name} is missing there; a compare-exchange loop on u32 or u64 serves`;
}

function reducible(node: OperationNode<"subgroupReduce">, facts: TargetFacts): Complaint {
  const { operation } = node.attributes;
  return operation === "and" || operation === "or" || operation === "xor"
    ? bitwise(node)
    : arithmeticOn(node, facts);
}

function describeShape(
  a: ElementType,
  b: ElementType,
  accumulator: ElementType,
  { m, n, k }: MatrixShape,
): string {
  return `m${m}n${n}k${k} of ${a.name} × ${b.name} + ${accumulator.name}`;
}

/** The instructions of these element types, for messages. */
function alternatives(table: readonly MatrixInstruction[], a: ElementType): string {
  const shapes = table
    .filter((one) => one.a === a.name)
    .map((one) => `m${one.m}n${one.n}k${one.k} (${one.accumulator})`);
  if (shapes.length > 0) return `with ${a.name} there are ${[...new Set(shapes)].join(", ")}`;
  const kinds = [...new Set(table.map((one) => one.a))];
  return kinds.length > 0
    ? `element types there: ${kinds.join(", ")}`
    : "there are no such instructions at all; multiply in registers (fma)";
}

function matrixExists(
  table: readonly MatrixInstruction[],
  attributes: {
    readonly shape: MatrixShape;
    readonly a: ElementType;
    readonly b: ElementType;
    readonly accumulator: ElementType;
  },
): Complaint {
  const { shape, a, b, accumulator } = attributes;
  const found = table.some(
    (one) =>
      one.a === a.name &&
      one.b === b.name &&
      one.accumulator === accumulator.name &&
      one.m === shape.m &&
      one.n === shape.n &&
      one.k === shape.k,
  );
  return found
    ? undefined
    : `${describeShape(a, b, accumulator, shape)} is missing; ${alternatives(table, a)}`;
}

function wmmaShapeExists(
  node: OperationNode<"wmmaLoad"> | OperationNode<"wmmaStore">,
  facts: TargetFacts,
): Complaint {
  const { shape, element } = node.attributes;
  const found = facts.wmma.some(
    (one) =>
      one.m === shape.m &&
      one.n === shape.n &&
      one.k === shape.k &&
      [one.a, one.b, one.accumulator].includes(element.name),
  );
  return found
    ? undefined
    : `no wmma of shape m${shape.m}n${shape.n}k${shape.k} has ${element.name} fragments; ${alternatives(facts.wmma, element)}`;
}

/** n runs over multiples of 8; of 16 from 32 on for integers. */
function isWidth(n: number, largest: number, a: ElementType): boolean {
  const step = a.class === "float" || n < 32 ? 8 : 16;
  return n >= 8 && n <= largest && n % step === 0;
}

function warpgroupExists(node: OperationNode<"warpgroupMma">, facts: TargetFacts): Complaint {
  const { shape, a, b, accumulator, sharedA, sharedB } = node.attributes;
  const found = facts.warpgroupMma.some(
    (one) =>
      one.a === a.name &&
      one.b === b.name &&
      one.accumulator === accumulator.name &&
      one.m === shape.m &&
      one.k === shape.k &&
      isWidth(shape.n, one.n, a),
  );
  if (!found)
    return `wgmma ${describeShape(a, b, accumulator, shape)} is missing; ${alternatives(facts.warpgroupMma, a)}`;
  const transposes = [sharedA, sharedB].some((matrix) => matrix?.major === "mn");
  return transposes && a.bits !== 16
    ? `only 16-bit types can be M- or N-major in shared memory; store ${a.name} K-major`
    : undefined;
}

const warpgroup = (_: unknown, facts: TargetFacts): Complaint =>
  facts.warpgroupMma.length > 0 ? undefined : "wgmma needs sm_90a; mma.sync serves from sm_75 on";

function clusterValue(node: OperationNode<"builtin">, facts: TargetFacts): Complaint {
  return node.attributes.builtin.startsWith("cluster") ? bulkCopy(node, facts) : undefined;
}

function barrierIsNamed(node: OperationNode<"namedBarrier">, facts: TargetFacts): Complaint {
  if (!facts.namedBarriers) return "use the block barrier";
  return node.attributes.threads % 32 === 0 ? undefined : "the number of threads must be a multiple of 32";
}

const requirements: Requirements = {
  add: arithmeticOn,
  sub: arithmeticOn,
  mul: arithmeticOn,
  mulHigh: integersIn32,
  div: arithmeticOn,
  rem: integersOnly,
  floorDiv: integersOnly,
  floorMod: integersOnly,
  neg: arithmeticOn,
  abs: arithmeticOn,
  min: arithmeticOn,
  max: arithmeticOn,
  fma: arithmeticOn,
  and: bitwise,
  or: bitwise,
  xor: bitwise,
  not: bitwise,
  shiftLeft: integersOnly,
  shiftRight: integersOnly,
  equal: none,
  notEqual: none,
  less: none,
  lessEqual: none,
  greater: none,
  greaterEqual: none,
  isNaN: none,
  select: none,
  sqrt: floatsOnly,
  reciprocalSqrt: floatsOnly,
  reciprocal: floatsOnly,
  exp2: singleOnly,
  log2: singleOnly,
  sin: singleOnly,
  cos: singleOnly,
  tanh: singleOnly,
  floor: floatsOnly,
  ceil: floatsOnly,
  trunc: floatsOnly,
  roundEven: floatsOnly,
  convert: convertible,
  bitcast: sameWidth,
  popcount: integersOnly,
  leadingZeros: integersOnly,
  reverseBits: integersOnly,
  dot4: none,
  permuteBytes: none,
  compose: none,
  extract: none,
  builtin: clusterValue,
  parameter: none,
  bufferSize: none,
  bufferStride: none,

  readRegister: none,
  writeRegister: none,
  load: (node) => accessible(node.result!.type),
  store: (node) => accessible(node.operands[1]!.type),
  atomic: atomicExists,

  shuffle: none,
  vote: none,
  ballot: none,
  subgroupReduce: reducible,
  electOne: none,

  blockBarrier: none,
  namedBarrier: barrierIsNamed,
  subgroupBarrier: none,
  fence: (node, facts) => (node.attributes.scope === "cluster" ? bulkCopy(node, facts) : undefined),
  proxyFence: bulkCopy,
  barrierInitFence: bulkCopy,
  clusterBarrier: bulkCopy,
  barrierInit: barriers,
  barrierArrive: (node, facts) => (node.operands.length > 1 ? bulkCopy(node, facts) : barriers(node, facts)),
  barrierArriveExpect: bulkCopy,
  barrierWait: barriers,

  copyAsync: asyncCopy,
  copyAsyncCommit: asyncCopy,
  copyAsyncWait: asyncCopy,
  copyAsyncArrive: asyncCopy,
  tensorLoad: bulkCopy,
  tensorStore: bulkCopy,
  tensorStoreCommit: bulkCopy,
  tensorStoreWait: bulkCopy,
  prefetchTensorMap: bulkCopy,

  loadMatrix: fact("loadMatrix", "load the fragments element by element"),
  storeMatrix: fact("storeMatrix", "it needs sm_90 or later; store the fragments element by element"),
  mma: (node, facts) => matrixExists(facts.mma, node.attributes),
  wmmaLoad: wmmaShapeExists,
  wmmaStore: wmmaShapeExists,
  wmmaMma: (node, facts) => matrixExists(facts.wmma, node.attributes),
  warpgroupFence: warpgroup,
  warpgroupMma: warpgroupExists,
  warpgroupCommit: warpgroup,
  warpgroupWait: warpgroup,

  print: none,
  assert: none,
};

function checkOperation(node: AnyOperation, facts: TargetFacts, kernel: KernelIr): void {
  const require = requirements[node.name] as Requirement<OperationName>;
  const complaint = require(node, facts, kernel);
  if (complaint === undefined) return;
  throw new UnsupportedError(
    `kernel ${kernel.name}: ${node.name} cannot run on ${facts.name}: ${complaint} ${formatPosition(kernel.positions[node.site])}`,
  );
}

function checkRoles(node: RolesNode, facts: TargetFacts, kernel: KernelIr): void {
  const at = formatPosition(kernel.positions[node.site]);
  for (const role of node.roles) {
    if (role.registers === undefined) continue;
    if (!facts.registerReallocation) {
      throw new UnsupportedError(
        `kernel ${kernel.name}: role ${role.name} changes its registers, which ${facts.name} cannot (sm_90a can); leave registers out ${at}`,
      );
    }
    if (role.firstWarp % 4 !== 0 || role.warps % 4 !== 0) {
      throw new CompileError(
        `kernel ${kernel.name}: role ${role.name} changes its registers, so it must be whole warpgroups of 4 warps, not warps ` +
          `${role.firstWarp} to ${role.firstWarp + role.warps - 1} ${at}`,
      );
    }
    if (role.registers.count % 8 !== 0 || role.registers.count < 24 || role.registers.count > 256) {
      throw new CompileError(
        `kernel ${kernel.name}: role ${role.name} asks for ${role.registers.count} registers; a multiple of 8 from 24 to 256 is needed ${at}`,
      );
    }
  }
}

function checkLaunch(kernel: KernelIr, facts: TargetFacts): void {
  const threads = kernel.block[0] * kernel.block[1] * kernel.block[2];
  if (threads > facts.limits.threadsPerBlock) {
    throw new UnsupportedError(
      `kernel ${kernel.name} has ${threads} threads per block; ${facts.name} takes at most ${facts.limits.threadsPerBlock}`,
    );
  }
  if (kernel.sharedBytes > facts.limits.sharedBytes) {
    throw new UnsupportedError(
      `kernel ${kernel.name} needs ${kernel.sharedBytes} bytes of shared memory; ${facts.name} has ${facts.limits.sharedBytes} per block`,
    );
  }
  if (kernel.cluster === undefined) return;
  const blocks = kernel.cluster[0] * kernel.cluster[1] * kernel.cluster[2];
  if (!facts.bulkCopy || blocks > facts.limits.blocksPerCluster) {
    throw new UnsupportedError(
      `kernel ${kernel.name} has clusters of ${blocks} blocks; ${facts.name} takes ${facts.bulkCopy ? `at most ${facts.limits.blocksPerCluster}` : "none (sm_90 or later does)"}`,
    );
  }
}

/**
 * Checks that a target has all that a kernel uses.
 *
 * @throws UnsupportedError naming operation, target, the author's line and what would serve instead
 * @throws CompileError for a register request that no target takes
 */
export function checkRequirements(kernel: KernelIr, facts: TargetFacts): void {
  checkLaunch(kernel, facts);
  visitStatements(kernel.body, (statement) => {
    if (statement.kind === "operation") checkOperation(statement, facts, kernel);
    if (statement.kind === "roles") checkRoles(statement, facts, kernel);
  });
}
