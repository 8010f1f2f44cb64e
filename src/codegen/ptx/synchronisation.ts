/** @file Barriers of blocks, warps and clusters, fences, and mbarriers. */
import type { Operand, OperationNode } from "../../ir/nodes.ts";
import type { MemoryScope } from "../../ir/operations.ts";
import { addressRegister, bracketed, sharedAddress } from "./addresses.ts";
import type { Emission } from "./emission.ts";
import { scopeNames } from "./memory.ts";

export function emitBlockBarrier(emission: Emission): void {
  emission.effect("bar.sync 0");
}

export function emitNamedBarrier(emission: Emission, node: OperationNode<"namedBarrier">): void {
  const { action, threads } = node.attributes;
  emission.effect(`bar.${action} ${emission.word(node.operands[0]!)}, ${threads}`);
}

export function emitSubgroupBarrier(emission: Emission): void {
  emission.effect("bar.warp.sync 0xFFFFFFFF");
}

export function emitFence(emission: Emission, node: OperationNode<"fence">): void {
  const { scope } = node.attributes;
  if (scope === "cluster") emission.needs(78);
  emission.effect(`fence.acq_rel.${scopeNames[scope satisfies MemoryScope]}`);
}

export function emitProxyFence(emission: Emission): void {
  emission.needs(80);
  emission.effect("fence.proxy.async.shared::cta");
}

export function emitBarrierInitFence(emission: Emission): void {
  emission.needs(80);
  emission.effect("fence.mbarrier_init.release.cluster");
}

export function emitClusterBarrier(emission: Emission, node: OperationNode<"clusterBarrier">): void {
  emission.needs(80);
  emission.effect(
    node.attributes.action === "arrive"
      ? "barrier.cluster.arrive.release.aligned"
      : "barrier.cluster.wait.acquire.aligned",
  );
}

type BarrierName =
  | "barrierInit"
  | "barrierArrive"
  | "barrierArriveExpect"
  | "barrierWait"
  | "copyAsyncArrive";

/** `[address]` of the mbarrier that operand 0 indexes. */
export function barrierAddress(emission: Emission, node: OperationNode<BarrierName>): string {
  return bracketed(sharedAddress(emission, node.attributes.array, node.operands[0]!, node.attributes.offset));
}

export function emitBarrierInit(emission: Emission, node: OperationNode<"barrierInit">): void {
  emission.needs(70);
  emission.effect(`mbarrier.init.shared.b64 ${barrierAddress(emission, node)}, ${node.attributes.count}`);
}

export function emitBarrierArrive(emission: Emission, node: OperationNode<"barrierArrive">): void {
  const rank = node.operands[1];
  if (rank !== undefined) {
    arriveRemotely(emission, node, rank);
    return;
  }
  emission.needs(71);
  emission.effect(`mbarrier.arrive.shared.b64 _, ${barrierAddress(emission, node)}`);
}

function arriveRemotely(emission: Emission, node: OperationNode<"barrierArrive">, rank: Operand): void {
  emission.needs(80);
  const { array, offset } = node.attributes;
  const own = addressRegister(emission, sharedAddress(emission, array, node.operands[0]!, offset));
  const remote = emission.compute("b32", "mapa.shared::cluster.u32", own, emission.word(rank));
  emission.effect(`mbarrier.arrive.release.cluster.shared::cluster.b64 _, [${remote}]`);
}

export function emitBarrierArriveExpect(
  emission: Emission,
  node: OperationNode<"barrierArriveExpect">,
): void {
  emission.needs(80);
  const bytes = emission.word(node.operands[1]!);
  emission.effect(`mbarrier.arrive.expect_tx.shared.b64 _, ${barrierAddress(emission, node)}, ${bytes}`);
}

/** A loop, because `try_wait` gives up after a while and `test_wait` at once. */
export function emitBarrierWait(emission: Emission, node: OperationNode<"barrierWait">): void {
  const sleeps = emission.facts.bulkCopy;
  emission.needs(sleeps ? 78 : 71);
  const address = barrierAddress(emission, node);
  const parity = emission.word(node.operands[1]!);
  const [again, done] = [emission.newLabel(), emission.registers.allocate("pred")];
  emission.label(again);
  emission.effect(
    `mbarrier.${sleeps ? "try" : "test"}_wait.parity.shared.b64 ${done}, ${address}, ${parity}`,
  );
  emission.effect(`@!${done} bra ${again}`);
}
