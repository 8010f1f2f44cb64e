/** @file Asynchronous copies, as a lane starts them. The scheduler carries them out. */
import type { Operand, OperationNode, SharedArray } from "../../ir/nodes.ts";
import { byteSize } from "../../types/types.ts";
import { binding, position } from "./memory.ts";
import type { Region } from "./region.ts";

/** Number of a barrier word in the arena. */
export function wordPosition(
  region: Region,
  operand: Operand,
  { array, offset }: { readonly array: SharedArray; readonly offset: number },
): string {
  return position(region, operand, array.byteOffset / 8 + offset);
}

export function emitCopyAsync(region: Region, node: OperationNode<"copyAsync">): void {
  const { target, targetOffset, source, sourceOffset, bytes } = node.attributes;
  if (source.kind !== "buffer") throw new RangeError("copyAsync copies from global memory");
  const [to, from, valid] = node.operands as [Operand, Operand, Operand | undefined];
  const texts = [
    "W",
    "lane",
    node.site,
    `a${target.id}`,
    position(region, to, targetOffset),
    binding(region, source.parameter.id),
    position(region, from, sourceOffset),
    bytes,
    valid === undefined ? bytes : region.operand(valid),
  ];
  region.line(`copyAsync(${texts.join(", ")});`);
}

export function emitTensorLoad(region: Region, node: OperationNode<"tensorLoad">): void {
  const { map, target, targetOffset, barrier, barrierOffset, multicast } = node.attributes;
  const [to, word, ...rest] = node.operands as [Operand, Operand, ...Operand[]];
  const coordinates = (multicast ? rest.slice(0, -1) : rest).map((coordinate) => region.operand(coordinate));
  const texts = [
    "W",
    "lane",
    node.site,
    binding(region, map.id),
    `a${target.id}`,
    position(region, to, targetOffset),
    position(region, word, barrier.byteOffset / byteSize(barrier.element) + barrierOffset),
    `[${coordinates.join(", ")}]`,
    multicast ? region.operand(rest.at(-1)!) : "-1",
  ];
  region.line(`tensorLoad(${texts.join(", ")});`);
}

export function emitTensorStore(region: Region, node: OperationNode<"tensorStore">): void {
  const { map, source, sourceOffset } = node.attributes;
  const [from, ...rest] = node.operands as [Operand, ...Operand[]];
  const coordinates = rest.map((coordinate) => region.operand(coordinate));
  const texts = [
    "W",
    "lane",
    node.site,
    binding(region, map.id),
    `a${source.id}`,
    position(region, from, sourceOffset),
    `[${coordinates.join(", ")}]`,
  ];
  region.line(`tensorStore(${texts.join(", ")});`);
}
