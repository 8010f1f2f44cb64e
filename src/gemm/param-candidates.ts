/**
 * @file Params worth trying: what a schedule's own search space holds, the promising first; and that space for schedules in
 * which warps share a block's tile, all shapes in powers of two that the operator and the device take.
 */
import type { TargetFacts } from "../target/facts.ts";
import { chooseParams, fits } from "./heuristics.ts";
import type { Operator } from "./operators/operator.ts";
import type { GemmParams } from "./params.ts";
import type { Assembly } from "./schedules/assembly.ts";
import { heldRegisters } from "./schedules/held-registers.ts";
import { type GemmLaunch, type Schedule, tilesOf, type UnscheduledKind } from "./schedules/schedule.ts";
import { splitCandidates } from "./split.ts";
import { takes } from "./tuned-params.ts";

/** The heuristics' choice, then a schedule's candidates in their order, as far as they fit. At most `most`. */
export function paramCandidates(
  schedule: Schedule,
  kind: UnscheduledKind,
  launch: GemmLaunch,
  most: number,
): readonly GemmParams[] {
  const { facts } = launch.problem.device;
  const chosen = [schedule.params(kind, launch, facts)];
  const seen = new Set(chosen.map(textOf));
  for (const params of schedule.candidates?.(kind, launch, facts) ?? []) {
    if (chosen.length >= most) break;
    const text = textOf(params);
    if (seen.has(text) || !takes(schedule, kind, launch, params)) continue;
    seen.add(text);
    chosen.push(params);
  }
  return chosen;
}

/** Params as text: equal for equal params. */
export function textOf({ block, warps, groupRows, stages, splitK = 1 }: GemmParams): string {
  const { m, n, k } = block;
  return [m, n, k, warps.m, warps.n, groupRows, stages ?? "", splitK].join(" ");
}

/** Candidates by rising cost; those that the model gives more than `mostCost` times the least are left out. */
export function byCost(
  candidates: readonly GemmParams[],
  cost: (params: GemmParams) => number,
): readonly GemmParams[] {
  const costed = candidates.map((params) => ({ params, cost: cost(params) })).sort((x, y) => x.cost - y.cost);
  return costed.filter((one) => one.cost <= mostCost * costed[0]!.cost).map(({ params }) => params);
}

/** The models are rough: what they think this much slower may still win. */
const mostCost = 2.5;

/** Accumulators that a lane can hold beside everything else. */
const mostAccumulators = 128;
/** Registers of a lane beside what it holds of tiles. */
const otherRegisters = 40;
const mostRegisters = 255;
/** Operator calls in a K step's text: more take long to compile and gain nothing. */
const mostCalls = 512;

/** Shapes, stages and orders of an assembly. */
export function stagedCandidates(
  kind: UnscheduledKind,
  launch: GemmLaunch,
  facts: TargetFacts,
  assembly: Assembly,
): readonly GemmParams[] {
  const operator = kind.operator.create(kind.types, facts);
  const usual = chooseParams(kind, launch.problem, facts, assembly);
  const candidates = shapesOf(operator, facts)
    .flatMap((params) => variantsOf(params, kind, launch, facts, assembly))
    .filter((params) => fits({ ...kind, schedule: assembly.name, params }, facts, assembly))
    .filter((params) => {
      const staged = assembly.asynchronous ? [] : (["a", "b"] as const);
      const held = heldRegisters({ ...kind, params }, operator, { buffers: 1, staged }, facts);
      return fitRegisters(held + otherRegisters, params, facts);
    });
  return byCost(candidates, (params) => costOf(params, launch, facts) * unusual(params, usual));
}

function fitRegisters(needed: number, { warps }: GemmParams, facts: TargetFacts): boolean {
  const threads = warps.m * warps.n * facts.subgroup.width;
  return needed <= Math.min(mostRegisters, facts.machine.registersPerMultiprocessor / threads);
}

const powers = [1, 2, 4, 8, 16] as const;

function shapesOf({ shape, shared, held: together }: Operator, facts: TargetFacts): readonly GemmParams[] {
  const { width } = facts.subgroup;
  const bytes = Math.max(shared.a.bits, shared.b.bits) / 8;
  const shapes: GemmParams[] = [];
  for (const warpsDown of powers) {
    for (const warpsAcross of powers) {
      const threads = warpsDown * warpsAcross * width;
      if (threads > facts.limits.threadsPerBlock || threads > 512) continue;
      for (const down of powers) {
        for (const across of powers) {
          const held = (down * across * shape.m * shape.n * (together?.accumulators ?? 1)) / width;
          if (held > mostAccumulators) continue;
          for (const steps of powers) {
            const k = shape.k === 1 ? 2 * steps : shape.k * steps;
            // Lines of 8 to 128 bytes along K.
            if (k * bytes < 8 || k * bytes > 128 || down * across * (k / shape.k) > mostCalls) continue;
            const block = { m: warpsDown * down * shape.m, n: warpsAcross * across * shape.n, k };
            shapes.push({ block, warps: { m: warpsDown, n: warpsAcross }, groupRows: 8 });
          }
        }
      }
    }
  }
  return shapes;
}

/** Orders of tiles that tuning tries. */
export const ordersTried: readonly number[] = [8, 16, 32];
/** Stages of rings that asynchronous copies fill. */
const stagesTried = [3, 4, 5] as const;

/** A shape with other orders, parts of K and stages. */
function variantsOf(
  params: GemmParams,
  kind: UnscheduledKind,
  launch: GemmLaunch,
  facts: TargetFacts,
  { asynchronous }: Assembly,
): readonly GemmParams[] {
  const stages = asynchronous ? stagesTried.map((count) => ({ stages: count })) : [{}];
  return splitCandidates(kind, launch, params, facts).flatMap((splitK) =>
    ordersTried.flatMap((groupRows) =>
      stages.map((ring) => ({ ...params, groupRows, ...ring, ...(splitK === 1 ? {} : { splitK }) })),
    ),
  );
}

/** Other orders and stages than the usual seldom gain much: among equals they come later. */
function unusual(params: GemmParams, usual: GemmParams): number {
  return (params.groupRows === usual.groupRows ? 1 : 1.06) * (params.stages === usual.stages ? 1 : 1.04);
}

/** Multiplications of one multiprocessor in whose time all of them write and read a sum of one part (H200, f16). */
const multiplicationsOfSum = 6;

/** What adding parts of K costs, in multiplications of one multiprocessor. */
export function costOfParts({ splitK = 1 }: GemmParams, { problem }: GemmLaunch): number {
  return splitK === 1 ? 0 : multiplicationsOfSum * splitK * problem.m * problem.n;
}

/**
 * A rough order, nothing more: the work of the busiest multiprocessor, made longer by what a tile loads for what it
 * computes, by barriers between shallow steps and by too few threads to hide them.
 */
function costOf(params: GemmParams, launch: GemmLaunch, facts: TargetFacts): number {
  const { block, warps, splitK = 1 } = params;
  const waves = Math.ceil(tilesOf(launch, params) / facts.machine.multiprocessors);
  const loads = 24 * (1 / block.m + 1 / block.n);
  const barriers = 4 / block.k;
  const threads = warps.m * warps.n * facts.subgroup.width;
  const idle = threads < 128 ? 0.25 * (128 / threads - 1) : 0;
  const product = waves * block.m * block.n * (launch.k / splitK) * (1 + loads + barriers + idle);
  return product + costOfParts(params, launch);
}
