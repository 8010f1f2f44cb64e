/**
 * @file wgmma: matrix instructions of a warpgroup on shared memory. Accumulator and A registers appear in the
 * instructions in place: any copy between issue and wait would make the assembler serialise the whole stage.
 */
import type { KernelIr, Operand, OperationNode, RegisterRange } from "../../ir/nodes.ts";
import type { SharedMatrix } from "../../ir/operations.ts";
import { visitStatements } from "../../ir/parameters.ts";
import { byteSize } from "../../types/types.ts";
import { addressRegister, arena, sharedAddress } from "./addresses.ts";
import type { Emission } from "./emission.ts";
import { group, matrixType } from "./matrix.ts";

export function emitWarpgroupFence(emission: Emission): void {
  emission.needs(80);
  emission.effect("wgmma.fence.sync.aligned");
}

export function emitWarpgroupCommit(emission: Emission): void {
  emission.needs(80);
  emission.effect("wgmma.commit_group.sync.aligned");
}

export function emitWarpgroupWait(emission: Emission, node: OperationNode<"warpgroupWait">): void {
  emission.needs(80);
  emission.effect(`wgmma.wait_group.sync.aligned ${node.attributes.pending}`);
  keepOperands(emission);
}

/**
 * Keeps A's registers alive until here. The hardware reads them for as long as a product runs, but to the assembler (seen
 * with 13.0) they are dead once the last product that names them is issued: loads for the next step were given the same
 * registers and changed A while it was multiplied. A store that never happens, after the wait, is a use that it must honour.
 */
function keepOperands(emission: Emission): void {
  for (const fragment of operandFragments(emission.kernel)) {
    const registers = group(emission.range(fragment));
    emission.raw(`@${neverTrue(emission)} st.shared.v4.b32 [${arena}], ${registers}`);
  }
}

/** False, which the assembler cannot know: no block has four gigabytes of shared memory. */
function neverTrue(emission: Emission): string {
  const bytes = emission.atEntry("dynamicSharedBytes", "b32", (r) => [`mov.u32 ${r}, %dynamic_smem_size`]);
  return emission.atEntry("never", "pred", (p) => [`setp.eq.u32 ${p}, ${bytes}, 0xFFFFFFFF`]);
}

const fragmentsOf = new WeakMap<KernelIr, readonly RegisterRange[]>();

/** The registers that products read A from, each range once. */
function operandFragments(kernel: KernelIr): readonly RegisterRange[] {
  const known = fragmentsOf.get(kernel);
  if (known !== undefined) return known;
  const found = new Map<string, RegisterRange>();
  visitStatements(kernel.body, (statement) => {
    if (statement.kind !== "operation" || statement.name !== "warpgroupMma") return;
    const range = statement.registers[1];
    if (range !== undefined) found.set(`${range.variable.id}:${range.offset}:${range.count}`, range);
  });
  const fragments = [...found.values()];
  fragmentsOf.set(kernel, fragments);
  return fragments;
}

const swizzleCodes = { 0: 0, 128: 1, 64: 2, 32: 3 } as const;

/**
 * Descriptor of a matrix in shared memory (PTX ISA, "Matrix descriptor format"). The low word holds the start address
 * and the leading distance, the high word, a constant, the stride distance and the swizzle; all in units of 16 bytes.
 * The start address of the block's arena is below 2^18, so that constant distances can be added to the low word.
 */
function descriptor(emission: Emission, matrix: SharedMatrix, index: Operand, site: number): string {
  const size = byteSize(matrix.array.element);
  const constant =
    matrix.array.byteOffset +
    matrix.offset * size +
    (index.kind === "constant" ? Number(index.value) * size : 0);
  if (constant % 16 !== 0) {
    throw emission.error(
      `a warpgroup matrix starts ${constant} bytes into shared memory; it must start at a multiple of 16 bytes`,
      site,
    );
  }
  const low = lowWord(emission, matrix, index, size);
  const high = ((matrix.strideBytes >> 4) | (swizzleCodes[matrix.swizzle] << 30)) >>> 0;
  return emission.onceRegister(`descriptor:${low}:${constant}:${high}`, () => {
    const moved = constant === 0 ? low : emission.compute("b32", "add.s32", low, constant >> 4);
    return emission.compute("b64", "mov.b64", `{${moved}, ${high}}`);
  });
}

function lowWord(emission: Emission, matrix: SharedMatrix, index: Operand, size: number): string {
  const leading = (matrix.leadingBytes >> 4) << 16;
  const key = index.kind === "constant" ? "start" : `${size}:${index.id}`;
  return emission.onceRegister(`descriptor:${key}:${leading}`, () => {
    const zero: Operand = index.kind === "constant" ? { ...index, value: 0 } : index;
    const start = sharedAddress(emission, { ...matrix.array, byteOffset: 0 }, zero, 0);
    const units = emission.compute("b32", "shr.u32", addressRegister(emission, start), 4);
    return leading === 0 ? units : emission.compute("b32", "or.b32", units, leading >>> 0);
  });
}

export function emitWarpgroupMma(emission: Emission, node: OperationNode<"warpgroupMma">): void {
  const { shape, a, b, accumulator, sharedA, sharedB } = node.attributes;
  emission.needs(a.name === "u8" || b.name === "u8" ? 84 : 80);
  const operands = [...node.operands];
  const left =
    sharedA === undefined
      ? group(emission.range(node.registers[1]!))
      : descriptor(emission, sharedA, operands.shift()!, node.site);
  const right = descriptor(emission, sharedB, operands.shift()!, node.site);
  const accumulate = emission.word(operands[0]!);
  const types = `${matrixType(accumulator)}.${matrixType(a)}.${matrixType(b)}${a.name === "b1" ? ".and.popc" : ""}`;
  const opcode = `wgmma.mma_async.sync.aligned.m${shape.m}n${shape.n}k${shape.k}.${types}`;
  const tail = [accumulate, ...signsAndLayouts(node)].join(", ");
  emission.effect(`${opcode} ${group(emission.range(node.registers[0]!))}, ${left}, ${right}, ${tail}`);
}

/** Float types take signs; only 16-bit types have a choice of major dimension. */
function signsAndLayouts(node: OperationNode<"warpgroupMma">): readonly number[] {
  const { a, sharedA, sharedB, negateA, negateB } = node.attributes;
  if (a.class !== "float") return [];
  const signs = [negateA ? -1 : 1, negateB ? -1 : 1];
  if (a.bits !== 16) return signs;
  const layouts = [sharedA, sharedB].filter((matrix) => matrix !== undefined);
  return [...signs, ...layouts.map((matrix) => (matrix.major === "mn" ? 1 : 0))];
}
