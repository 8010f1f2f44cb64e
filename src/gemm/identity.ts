/**
 * @file Kinds by identity: two problems whose components are the same objects share a kernel, found without tracing.
 */
import type { Kernel } from "../lang/index.ts";
import type { StepKind } from "./epilogues/step.ts";
import { extrasKey } from "./extras.ts";
import type { GemmKind, OperandKind } from "./kind.ts";
import type { Schedule } from "./schedules/schedule.ts";

const numbers: WeakMap<object, number> = new WeakMap();
let last = 0;

/** A number for an object: the same for the same object. */
function identityOf(thing: object | undefined): number {
  if (thing === undefined) return 0;
  const known = numbers.get(thing);
  if (known !== undefined) return known;
  numbers.set(thing, ++last);
  return last;
}

/** A text that is equal exactly for kinds that compile to the same kernel. */
export function kindKey(kind: GemmKind): string {
  const operand = (o: OperandKind | undefined): string =>
    o === undefined ? "-" : `${o.type.name}/${identityOf(o.layout)}/${o.alignment}`;
  const { params, transforms, types, schedule } = kind;
  const { block, warps, groupRows, copies } = params;
  const streams = [
    transforms.a?.globalToShared,
    transforms.a?.sharedToRegister,
    transforms.b?.globalToShared,
    transforms.b?.sharedToRegister,
    transforms.c?.globalToShared,
    transforms.c?.sharedToRegister,
    transforms.d?.registerToShared,
    transforms.d?.sharedToGlobal,
  ];
  return [
    schedule,
    operand(kind.a),
    operand(kind.b),
    operand(kind.c),
    operand(kind.d),
    types.a.name,
    types.b.name,
    types.accumulator.name,
    types.promotionInterval,
    kind.batch,
    kind.places,
    (params.splitK ?? 1) > 1,
    identityOf(kind.operator),
    identityOf(kind.epilogue),
    identityOf(kind.predicate),
    identityOf(kind.gate),
    block.m,
    block.n,
    block.k,
    warps.m,
    warps.n,
    warps.k,
    groupRows,
    params.stages,
    params.residentBlocks,
    copies?.a,
    copies?.b,
    copies?.c,
    copies?.d,
    ...streams.map(identityOf),
    ...Object.entries(kind.extras).map(([owner, kinds]) => `${owner}=${extrasKey(kinds)}`),
    ...kind.steps.map(stepKey),
  ].join(" ");
}

/** A text that is equal for steps that compile alike. */
export function stepKey({ behaviour, operands }: StepKind): string {
  return [
    identityOf(behaviour),
    ...operands.map((o) => `${o.shape}/${o.access}/${o.type.name}/${o.alignment}`),
  ].join(":");
}

/** Kernels by key; the oldest leave when there are too many. */
const kernels: Map<string, Kernel> = new Map();
const mostKernels = 512;

/** The kernel of a kind: the same object for the same key. */
export function kernelOf(
  kind: GemmKind,
  schedule: Pick<Schedule, "kernel">,
): { readonly kernel: Kernel; readonly fresh: boolean } {
  const key = kindKey(kind);
  const known = kernels.get(key);
  if (known !== undefined) {
    kernels.delete(key);
    kernels.set(key, known);
    return { kernel: known, fresh: false };
  }
  const kernel = schedule.kernel(kind);
  kernels.set(key, kernel);
  if (kernels.size > mostKernels) kernels.delete(kernels.keys().next().value as string);
  return { kernel, fresh: true };
}
