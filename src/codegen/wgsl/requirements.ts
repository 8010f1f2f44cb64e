/** @file What each operation asks of a WebGPU target, checked for a whole kernel before any text is written. */
import { formatPosition, UnsupportedError } from "../../errors.ts";
import type { AnyOperation, KernelIr, Operand, OperationNode, ValueType } from "../../ir/nodes.ts";
import type { MatrixShape, OperationName } from "../../ir/operations.ts";
import { innerBlocks, visitStatements } from "../../ir/parameters.ts";
import type { MatrixInstruction } from "../../target/facts.ts";
import type { WebGpuFacts } from "../../target/webgpu.ts";
import type { ElementType } from "../../types/types.ts";

/** What is missing and what would serve instead; undefined when all is well. */
type Complaint = string | undefined;

type Requirement<Name extends OperationName> = (node: OperationNode<Name>, facts: WebGpuFacts) => Complaint;

type Requirements = { readonly [Name in OperationName]: Requirement<Name> };

const none = (): Complaint => undefined;

function never(instead: string): () => Complaint {
  return () => instead;
}

function elementOf(node: OperationNode): ElementType {
  return (node.result ?? node.operands[0]!).type.element;
}

function arithmeticOn(node: OperationNode, facts: WebGpuFacts): Complaint {
  const element = elementOf(node);
  if (element.class === "bool") return "bool has no arithmetic; use and, or, xor, not or select";
  return facts.arithmetic.has(element.name)
    ? undefined
    : `${element.name} has no arithmetic there; convert to f32 (or i32) first`;
}

function comparable(node: OperationNode, facts: WebGpuFacts): Complaint {
  const { element } = node.operands[0]!.type;
  if (element.class === "bool" || facts.arithmetic.has(element.name)) return undefined;
  return `${element.name} has no comparisons there; convert to f32 (or i32) first`;
}

function bitwise(node: OperationNode, facts: WebGpuFacts): Complaint {
  return elementOf(node).class === "bool" ? undefined : integersOnly(node, facts);
}

function integersOnly(node: OperationNode, facts: WebGpuFacts): Complaint {
  const { element } = (node.operands[0] ?? node.result!).type;
  if (element.class === "float") return "it is for integers; bitcast floats first";
  return facts.arithmetic.has(element.name)
    ? undefined
    : `it is for i32 and u32; convert ${element.name} first`;
}

function packedDot(_: OperationNode, facts: WebGpuFacts): Complaint {
  return facts.wgsl.packedDot
    ? undefined
    : "this browser has no packed dot products; unpack and multiply in i32";
}

function atomicExists(node: OperationNode<"atomic">, facts: WebGpuFacts): Complaint {
  const { operation, order } = node.attributes;
  const { element } = node.operands[1]!.type;
  if (order !== "relaxed") {
    return `WGSL's atomics are relaxed and ${order} is asked for; order memory with a block barrier, or split the kernel in two launches`;
  }
  if (facts.atomics.get(operation)?.has(element.name)) return undefined;
  return `atomic ${operation} on ${element.name} is missing there; a compare-exchange loop on u32 serves`;
}

function reducible(node: OperationNode<"subgroupReduce">, facts: WebGpuFacts): Complaint {
  const { operation } = node.attributes;
  return operation === "and" || operation === "or" || operation === "xor"
    ? bitwise(node, facts)
    : arithmeticOn(node, facts);
}

function shapeName({ m, n, k }: MatrixShape): string {
  return `m${m}n${n}k${k}`;
}

function alternatives(table: readonly MatrixInstruction[]): string {
  const shapes = new Set(table.map((one) => `${shapeName(one)} ${one.a}→${one.accumulator}`));
  return shapes.size > 0
    ? `this adapter has ${[...shapes].join(", ")}`
    : "this adapter lists no subgroup matrices; multiply in registers (fma)";
}

function matrixExists(
  { shape }: { readonly shape: MatrixShape },
  facts: WebGpuFacts,
  fits: (one: MatrixInstruction) => boolean,
): Complaint {
  const found = facts.wmma.some(
    (one) => one.m === shape.m && one.n === shape.n && one.k === shape.k && fits(one),
  );
  return found
    ? undefined
    : `no subgroup matrix of shape ${shapeName(shape)} with these types; ${alternatives(facts.wmma)}`;
}

const asynchronous = never("WGSL has no asynchronous copies; load and store through registers instead");
const mbarrier = never("WGSL has no barriers in memory; use the block barrier");
const tensorCopy = never("WGSL has no tensor maps; load and store through registers instead");
const warpgroup = never("wgmma needs sm_90a; wmma maps to subgroup matrices where the adapter has them");
const fragments = never(
  "WGSL knows no fragment layout; wmma maps to subgroup matrices where the adapter has them, and plain multiply-add works everywhere",
);

const requirements: Requirements = {
  add: arithmeticOn,
  sub: arithmeticOn,
  mul: arithmeticOn,
  mulHigh: integersOnly,
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
  equal: comparable,
  notEqual: comparable,
  less: comparable,
  lessEqual: comparable,
  greater: comparable,
  greaterEqual: comparable,
  isNaN: comparable,
  select: none,
  sqrt: arithmeticOn,
  reciprocalSqrt: arithmeticOn,
  reciprocal: arithmeticOn,
  exp2: arithmeticOn,
  log2: arithmeticOn,
  sin: arithmeticOn,
  cos: arithmeticOn,
  tanh: arithmeticOn,
  floor: arithmeticOn,
  ceil: arithmeticOn,
  trunc: arithmeticOn,
  roundEven: arithmeticOn,
  convert: none,
  bitcast: none,
  popcount: integersOnly,
  leadingZeros: integersOnly,
  reverseBits: integersOnly,
  dot4: packedDot,
  permuteBytes: none,
  compose: none,
  extract: none,
  builtin: none,
  parameter: none,
  bufferSize: none,
  bufferStride: none,

  readRegister: none,
  writeRegister: none,
  load: none,
  store: none,
  atomic: atomicExists,

  shuffle: none,
  vote: none,
  ballot: none,
  subgroupReduce: reducible,
  electOne: none,

  blockBarrier: none,
  namedBarrier: never("WGSL has one barrier for the whole block; use block.barrier()"),
  subgroupBarrier: none,
  fence: never(
    "WGSL has no fence: a block barrier orders memory within a block, and between blocks only the end of a launch does",
  ),
  proxyFence: asynchronous,
  barrierInitFence: mbarrier,
  clusterBarrier: never("WGSL has no clusters; split the kernel in two launches"),
  barrierInit: mbarrier,
  barrierArrive: mbarrier,
  barrierArriveExpect: mbarrier,
  barrierWait: mbarrier,

  copyAsync: asynchronous,
  copyAsyncCommit: asynchronous,
  copyAsyncWait: asynchronous,
  copyAsyncArrive: asynchronous,
  tensorLoad: tensorCopy,
  tensorStore: tensorCopy,
  tensorStoreCommit: tensorCopy,
  tensorStoreWait: tensorCopy,
  prefetchTensorMap: tensorCopy,

  loadMatrix: fragments,
  storeMatrix: fragments,
  mma: fragments,
  wmmaLoad: (node, facts) =>
    matrixExists(node.attributes, facts, (one) =>
      [one.a, one.b, one.accumulator].includes(node.attributes.element.name),
    ),
  wmmaStore: (node, facts) =>
    matrixExists(node.attributes, facts, (one) => one.accumulator === node.attributes.element.name),
  wmmaMma: (node, facts) =>
    matrixExists(node.attributes, facts, (one) => {
      const { a, b, accumulator } = node.attributes;
      return one.a === a.name && one.b === b.name && one.accumulator === accumulator.name;
    }),
  warpgroupFence: warpgroup,
  warpgroupMma: warpgroup,
  warpgroupCommit: warpgroup,
  warpgroupWait: warpgroup,

  print: none,
  assert: none,
};

/** What has no form in WGSL at all, for messages; what would serve. */
const foreignTypes: { readonly [name: string]: string } = {
  f64: "f32 serves; the simulator and CUDA have f64",
  i64: "index serves for positions, i32 for numbers; CUDA and the simulator have i64",
  u64: "u32 serves; CUDA and the simulator have u64",
  b1: "packed u32 words serve",
};

function foreignType(types: readonly ValueType[]): Complaint {
  for (const { element } of types) {
    const instead = foreignTypes[element.name];
    if (instead !== undefined) return `WGSL has no ${element.name}: ${instead}`;
  }
  return undefined;
}

function typesOf(node: AnyOperation): readonly ValueType[] {
  const operands: readonly Operand[] = node.operands;
  return [
    ...operands.map(({ type }) => type),
    ...(node.result === undefined ? [] : [node.result.type]),
    ...node.registers.map(({ variable }) => variable.type),
  ];
}

function checkOperation(node: AnyOperation, facts: WebGpuFacts, kernel: KernelIr): void {
  const require = requirements[node.name] as Requirement<OperationName>;
  const complaint = foreignType(typesOf(node)) ?? require(node as OperationNode<OperationName>, facts);
  if (complaint === undefined) return;
  throw new UnsupportedError(
    `kernel ${kernel.name}: ${node.name} cannot run on ${facts.name}: ${complaint} ${formatPosition(kernel.positions[node.site])}`,
  );
}

function checkParameters(kernel: KernelIr, facts: WebGpuFacts): void {
  let buffers = 0;
  for (const parameter of kernel.parameters) {
    const complaint = foreignType([{ element: parameter.element, lanes: 1 }]);
    if (complaint !== undefined) {
      throw new UnsupportedError(
        `kernel ${kernel.name}: parameter ${parameter.name} cannot be on ${facts.name}: ${complaint}`,
      );
    }
    if (parameter.kind === "buffer") buffers += 1;
  }
  if (buffers > facts.wgsl.storageBuffers) {
    throw new UnsupportedError(
      `kernel ${kernel.name} has ${buffers} array parameters; ${facts.name} binds at most ${facts.wgsl.storageBuffers}. Put several arrays into one`,
    );
  }
}

function checkLaunch(kernel: KernelIr, facts: WebGpuFacts): void {
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
  if ((kernel.cluster ?? [1, 1, 1]).some((size) => size > 1)) {
    throw new UnsupportedError(
      `kernel ${kernel.name} has clusters; ${facts.name} has none (sm_90 and later do)`,
    );
  }
}

/**
 * Checks that a target has all that a kernel uses.
 *
 * @throws UnsupportedError naming operation, target, the author's line and what would serve instead
 */
export function checkRequirements(kernel: KernelIr, facts: WebGpuFacts): void {
  checkLaunch(kernel, facts);
  checkParameters(kernel, facts);
  visitStatements(kernel.body, (statement) => {
    if (statement.kind === "operation") checkOperation(statement, facts, kernel);
    if (statement.kind !== "roles") return;
    const changing = statement.roles.find(({ registers }) => registers !== undefined);
    if (changing !== undefined && innerBlocks(statement).length > 0) {
      throw new UnsupportedError(
        `kernel ${kernel.name}: role ${changing.name} changes its registers, which ${facts.name} cannot (sm_90a can); leave registers out ${formatPosition(kernel.positions[statement.site])}`,
      );
    }
  });
}
