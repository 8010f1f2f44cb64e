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

/** With A in registers all products are waited for: what keeps their registers alive must not run before they are done. */
export function emitWarpgroupWait(emission: Emission, node: OperationNode<"warpgroupWait">): void {
  emission.needs(80);
  const products = registerProducts(emission.kernel);
  emission.effect(`wgmma.wait_group.sync.aligned ${products.length > 0 ? 0 : node.attributes.pending}`);
  if (products.length > 0) keepOperands(emission, products);
}

/**
 * Keeps A's registers alive until here. The hardware reads them for as long as a product runs, but to the assembler (seen
 * with 13.0) they are dead once the last product that names them is issued: what is computed for the next step was given
 * the same registers and changed A while it was multiplied. A store that never happens is a use that it must honour; that
 * its condition reads an accumulator, which nobody may before the wait, holds the store here.
 */
function keepOperands(emission: Emission, products: readonly RegisterProduct[]): void {
  const sums = emission.range(products[0]!.accumulator)[0]!;
  const never = emission.compute("pred", "setp.eq.and.b32", sums, 0, neverTrue(emission));
  for (const { a } of products)
    emission.raw(`@${never} st.shared.v4.b32 [${arena}], ${group(emission.range(a))}`);
}

/** False, which the assembler cannot know: no block has four gigabytes of shared memory. */
function neverTrue(emission: Emission): string {
  const bytes = emission.atEntry("dynamicSharedBytes", "b32", (r) => [`mov.u32 ${r}, %dynamic_smem_size`]);
  return emission.atEntry("never", "pred", (p) => [`setp.eq.u32 ${p}, ${bytes}, 0xFFFFFFFF`]);
}

/** The registers of a product whose A is not in shared memory. */
interface RegisterProduct {
  readonly accumulator: RegisterRange;
  readonly a: RegisterRange;
}

const productsOf = new WeakMap<KernelIr, readonly RegisterProduct[]>();

/** Products that read A from registers, one for each range of them. */
function registerProducts(kernel: KernelIr): readonly RegisterProduct[] {
  const known = productsOf.get(kernel);
  if (known !== undefined) return known;
  const found = new Map<string, RegisterProduct>();
  visitStatements(kernel.body, (statement) => {
    if (statement.kind !== "operation" || statement.name !== "warpgroupMma") return;
    const [accumulator, a] = statement.registers;
    if (accumulator !== undefined && a !== undefined)
      found.set(`${a.variable.id}:${a.offset}:${a.count}`, { accumulator, a });
  });
  const products = [...found.values()];
  productsOf.set(kernel, products);
  return products;
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
