/** @file Copies that run on their own: cp.async by threads, and tensor maps (TMA). */
import type { Operand, OperationNode, TensorMapParameter } from "../../ir/nodes.ts";
import { addressRegister, argumentName, bracketed, place, sharedAddress } from "./addresses.ts";
import type { Emission } from "./emission.ts";
import { barrierAddress } from "./synchronisation.ts";

/** 16 bytes bypass the first-level cache (`.cg`) unless asked not to; smaller sizes exist with `.ca` alone. */
export function emitCopyAsync(emission: Emission, node: OperationNode<"copyAsync">): void {
  emission.needs(70);
  const { target, targetOffset, source, sourceOffset, bytes, prefetchBytes } = node.attributes;
  const [targetIndex, sourceIndex, valid] = node.operands as [Operand, Operand, Operand | undefined];
  const to = bracketed(sharedAddress(emission, target, targetIndex, targetOffset));
  const from = bracketed(place(emission, source, sourceIndex, sourceOffset).address);
  const tail = valid === undefined ? "" : `, ${emission.word(valid)}`;
  const cache = bytes === 16 && node.attributes.cache !== "first" ? "cg" : "ca";
  if (prefetchBytes !== undefined) emission.needs(74);
  const prefetch = prefetchBytes === undefined ? "" : `.L2::${prefetchBytes}B`;
  emission.effect(`cp.async.${cache}.shared.global${prefetch} ${to}, ${from}, ${bytes}${tail}`);
}

export function emitCopyAsyncCommit(emission: Emission): void {
  emission.needs(70);
  emission.effect("cp.async.commit_group");
}

export function emitCopyAsyncWait(emission: Emission, node: OperationNode<"copyAsyncWait">): void {
  emission.needs(70);
  emission.effect(`cp.async.wait_group ${node.attributes.pending}`);
}

export function emitCopyAsyncArrive(emission: Emission, node: OperationNode<"copyAsyncArrive">): void {
  emission.needs(70);
  emission.effect(`cp.async.mbarrier.arrive.noinc.shared.b64 ${barrierAddress(emission, node)}`);
}

/** Generic address of a tensor map, which is a kernel parameter itself. */
function mapAddress(emission: Emission, map: TensorMapParameter): string {
  emission.needs(80);
  const slot = emission.slot("tensorMap", map.id);
  return emission.atEntry(`map:${map.id}`, "b64", (register) => [
    `mov.b64 ${register}, ${argumentName(slot)}`,
    `cvta.param.u64 ${register}, ${register}`,
  ]);
}

function box(emission: Emission, map: TensorMapParameter, coordinates: readonly Operand[]): string {
  return `[${mapAddress(emission, map)}, {${coordinates.map((one) => emission.word(one)).join(", ")}}]`;
}

export function emitTensorLoad(emission: Emission, node: OperationNode<"tensorLoad">): void {
  const { map, target, targetOffset, barrier, barrierOffset, multicast } = node.attributes;
  const [targetIndex, barrierIndex, ...rest] = node.operands as [Operand, Operand, ...Operand[]];
  const to = addressRegister(emission, sharedAddress(emission, target, targetIndex, targetOffset));
  const signal = addressRegister(emission, sharedAddress(emission, barrier, barrierIndex, barrierOffset));
  const from = box(emission, map, rest.slice(0, map.rank));
  const short = (operand: Operand): string =>
    emission.compute("b16", "cvt.u16.u32", emission.registerWords(operand)[0]!);
  const offsets = map.windows ? rest.slice(map.rank, 2 * map.rank - 2) : [];
  const mode = map.windows ? "im2col" : "tile";
  const opcode = `cp.async.bulk.tensor.${map.rank}d.shared::cluster.global.${mode}.mbarrier::complete_tx::bytes`;
  const tail = [
    ...(offsets.length > 0 ? [`{${offsets.map(short).join(", ")}}`] : []),
    ...(multicast ? [short(rest.at(-1)!)] : []),
  ];
  const operands = [`[${to}]`, from, `[${signal}]`, ...tail].join(", ");
  emission.effect(`${opcode}${multicast ? ".multicast::cluster" : ""} ${operands}`);
}

export function emitTensorStore(emission: Emission, node: OperationNode<"tensorStore">): void {
  const { map, source, sourceOffset } = node.attributes;
  const [index, ...coordinates] = node.operands as [Operand, ...Operand[]];
  const from = addressRegister(emission, sharedAddress(emission, source, index, sourceOffset));
  const to = box(emission, map, coordinates);
  emission.effect(`cp.async.bulk.tensor.${map.rank}d.global.shared::cta.tile.bulk_group ${to}, [${from}]`);
}

export function emitTensorStoreCommit(emission: Emission): void {
  emission.needs(80);
  emission.effect("cp.async.bulk.commit_group");
}

export function emitTensorStoreWait(emission: Emission, node: OperationNode<"tensorStoreWait">): void {
  emission.needs(80);
  const { pending, read } = node.attributes;
  emission.effect(`cp.async.bulk.wait_group${read ? ".read" : ""} ${pending}`);
}

export function emitPrefetchTensorMap(emission: Emission, node: OperationNode<"prefetchTensorMap">): void {
  emission.effect(`prefetch.tensormap [${mapAddress(emission, node.attributes.map)}]`);
}
