/**
 * @file Matrix instructions of one warp: ldmatrix, stmatrix, mma.sync, wmma. Fragments are ranges of register variables;
 * their registers appear in the instructions themselves and nothing is copied.
 */
import type { Operand, OperationNode, RegisterRange } from "../../ir/nodes.ts";
import type { MatrixShape } from "../../ir/operations.ts";
import type { ElementType } from "../../types/types.ts";
import { bracketed, place, sharedAddress } from "./addresses.ts";
import type { Emission } from "./emission.ts";

export function group(registers: readonly string[]): string {
  return `{${registers.join(", ")}}`;
}

/** Type of a matrix operand in the spelling of the instructions. */
export function matrixType(element: ElementType): string {
  switch (element.name) {
    case "i8":
      return "s8";
    case "i32":
      return "s32";
    default:
      return element.name;
  }
}

function shapeName({ m, n, k }: MatrixShape): string {
  return `m${m}n${n}k${k}`;
}

function rangeOf(
  emission: Emission,
  node: { readonly registers: readonly RegisterRange[] },
  index: number,
): readonly string[] {
  return emission.range(node.registers[index]!);
}

export function emitLoadMatrix(emission: Emission, node: OperationNode<"loadMatrix">): void {
  emission.needs(65);
  const { array, offset, count, transpose } = node.attributes;
  const address = bracketed(sharedAddress(emission, array, node.operands[0]!, offset));
  const form = `m8n8.x${count}${transpose ? ".trans" : ""}`;
  emission.effect(
    `ldmatrix.sync.aligned.${form}.shared.b16 ${group(rangeOf(emission, node, 0))}, ${address}`,
  );
}

export function emitStoreMatrix(emission: Emission, node: OperationNode<"storeMatrix">): void {
  emission.needs(78);
  const { array, offset, count, transpose } = node.attributes;
  const address = bracketed(sharedAddress(emission, array, node.operands[0]!, offset));
  const form = `m8n8.x${count}${transpose ? ".trans" : ""}`;
  emission.effect(
    `stmatrix.sync.aligned.${form}.shared.b16 ${address}, ${group(rangeOf(emission, node, 0))}`,
  );
}

export function emitMma(emission: Emission, node: OperationNode<"mma">): void {
  const { shape, a, b, accumulator } = node.attributes;
  emission.needs(mmaVersion(shape, a));
  const [c, left, right] = [0, 1, 2].map((index) => group(rangeOf(emission, node, index))) as [
    string,
    string,
    string,
  ];
  const d = matrixType(accumulator);
  const types = `${d}.${matrixType(a)}.${matrixType(b)}.${d}${a.name === "b1" ? ".and.popc" : ""}`;
  emission.effect(`mma.sync.aligned.${shapeName(shape)}.row.col.${types} ${c}, ${left}, ${right}, ${c}`);
}

function mmaVersion(shape: MatrixShape, a: ElementType): number {
  switch (a.name) {
    case "e4m3":
    case "e5m2":
      return 84;
    case "f64":
      return shape.m === 16 ? 78 : 70;
    case "b1":
      return 71;
    case "f16":
      return shape.k === 8 ? 65 : 70;
    case "i8":
    case "u8":
      return shape.m === 8 ? 65 : 70;
    default:
      return 70;
  }
}

function wmmaVersion(element: ElementType): number {
  return element.name === "bf16" || element.name === "tf32" || element.name === "f64" ? 70 : 63;
}

/** Layout names of wmma: "column" is spelled "col". */
const layouts = { row: "row", column: "col" } as const;

function wmmaPlace(
  emission: Emission,
  node: OperationNode<"wmmaLoad"> | OperationNode<"wmmaStore">,
): { readonly space: string; readonly address: string; readonly stride: string } {
  const [index, stride] = node.operands as [Operand, Operand];
  const { space, address } = place(emission, node.attributes.array, index, node.attributes.offset);
  return { space, address: bracketed(address), stride: emission.word(stride) };
}

const uses = { a: "a", b: "b", accumulator: "c" } as const;

export function emitWmmaLoad(emission: Emission, node: OperationNode<"wmmaLoad">): void {
  const { use, shape, element, major } = node.attributes;
  emission.needs(wmmaShapeVersion(shape, element));
  const { space, address, stride } = wmmaPlace(emission, node);
  const opcode = `wmma.load.${uses[use]}.sync.aligned.${layouts[major]}.${shapeName(shape)}.${space}.${matrixType(element)}`;
  emission.effect(`${opcode} ${group(rangeOf(emission, node, 0))}, ${address}, ${stride}`);
}

export function emitWmmaStore(emission: Emission, node: OperationNode<"wmmaStore">): void {
  const { shape, element, major } = node.attributes;
  emission.needs(wmmaShapeVersion(shape, element));
  const { space, address, stride } = wmmaPlace(emission, node);
  const opcode = `wmma.store.d.sync.aligned.${layouts[major]}.${shapeName(shape)}.${space}.${matrixType(element)}`;
  emission.effect(`${opcode} ${address}, ${group(rangeOf(emission, node, 0))}, ${stride}`);
}

/** The tf32 and f64 shapes, loads of their accumulators included, came later than the others. */
function wmmaShapeVersion(shape: MatrixShape, element: ElementType): number {
  return shape.k < 16 ? 70 : wmmaVersion(element);
}

export function emitWmmaMma(emission: Emission, node: OperationNode<"wmmaMma">): void {
  const { shape, a, b, accumulator, majorA, majorB } = node.attributes;
  emission.needs(wmmaVersion(a));
  const [c, left, right] = [0, 1, 2].map((index) => group(rangeOf(emission, node, index))) as [
    string,
    string,
    string,
  ];
  const d = matrixType(accumulator);
  const types = a.name === "f16" ? `${d}.${d}` : `${d}.${matrixType(a)}.${matrixType(b)}.${d}`;
  const opcode = `wmma.mma.sync.aligned.${layouts[majorA]}.${layouts[majorB]}.${shapeName(shape)}.${types}`;
  emission.effect(`${opcode} ${c}, ${left}, ${right}, ${c}`);
}
