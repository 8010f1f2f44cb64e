/**
 * @file Schedules out of a ring of stages in shared memory, a copy engine for each operand and an operator that a warp
 * feeds from a stage. Register-staged is the plainest: two stages, the next K step on its way through registers while the
 * present one is multiplied. It works on every target and asks for no asynchronous copies.
 */

import { ArgumentError } from "../../errors.ts";
import {
  block,
  byteSize,
  type I32,
  type Kernel,
  kernel,
  type StorageType,
  sharedArena,
  subgroup,
  type Value,
} from "../../lang/index.ts";
import type { TargetFacts } from "../../target/facts.ts";
import { subdivide, tile } from "../../tile/index.ts";
import { Collectors, type PartExtents } from "../epilogues/collector.ts";
import { stepOperands } from "../epilogues/step.ts";
import { allExtraValues } from "../extras.ts";
import { checkGate } from "../gate.ts";
import { columnsPerResult, gateGroup } from "../gate-columns.ts";
import { chooseParams } from "../heuristics.ts";
import { accessWidth, type GemmKind, scaleTypeOf } from "../kind.ts";
import type { Operator } from "../operators/operator.ts";
import { stagedCandidates } from "../param-candidates.ts";
import { checkParams } from "../params.ts";
import { intersection, sequenceOf } from "../predicate.ts";
import { checkSplit, repeatsOf, withSplit } from "../split.ts";
import { closedTransforms } from "../transforms.ts";

import { type Assembly, registerStaged, stagesOf } from "./assembly.ts";
import type { CopyStep } from "./copy-engine.ts";
import { groupedWork } from "./grouped-work.ts";
import { heldRegisters } from "./held-registers.ts";
import {
  columnsOf,
  type GemmArguments,
  gemmArguments,
  gemmParameters,
  matricesOf,
} from "./kernel-interface.ts";
import { copyEngines, describeCopy, operandCopy } from "./operand-copies.ts";
import { type RingOperand, runRing } from "./ring.ts";
import { type GemmLaunch, type Schedule, tilesOf, type UnscheduledKind } from "./schedule.ts";
import { planShared, sharedBytesOf, stageTile, stagingOf } from "./shared-plan.ts";
import { tileCount, tilePlace } from "./tile-order.ts";
import { WarpProduct } from "./warp-product.ts";
import { type Work, workOf } from "./work.ts";

/** The kernel of a kind and an assembly. */
export function stagedKernel(kind: GemmKind, assembly: Assembly): Kernel {
  const { params } = kind;
  return kernel("gemm", {
    params: gemmParameters(kind),
    block: (facts) => params.warps.m * params.warps.n * facts.subgroup.width,
    ...(params.residentBlocks === undefined ? {} : { blocksPerMultiprocessor: params.residentBlocks }),
    body: (args, facts) => gemmBody(kind, args as unknown as GemmArguments, facts, assembly),
  });
}

function gemmBody(kind: GemmKind, given: GemmArguments, facts: TargetFacts, assembly: Assembly): void {
  const operator = kind.operator.create(kind.types, facts);
  checkParams(kind.params, operator, facts.subgroup.width);
  const { block: extents, warps } = kind.params;
  const { args, work } = blockWork(kind, given);
  const { m, n, k } = args;
  const output = tilePlace(kind, m, n, work.tile);
  const whole = output.row.add(extents.m).le(m).and(output.column.add(extents.n).le(n));
  const perResult = columnsPerResult(kind);
  const columns = columnsOf(kind, args);

  const plan = planShared(kind, operator, assembly);
  const staging = stagingOf(kind, operator, plan, facts);
  const arena = sharedArena(Math.max(plan.ringBytes, staging.bytes), 128);
  const named = args as unknown as Readonly<Record<string, unknown>>;
  const extras = allExtraValues(kind.extras, named);
  const transforms = closedTransforms(kind.transforms, extras, args, work.batch);
  const engines = copyEngines(kind, { args, operator, transforms, extras }, facts, assembly);
  const place = (row: Value<I32>, column: Value<I32>, depth: Value<I32>): Omit<CopyStep, "target"> => ({
    row,
    column,
    whole: () => whole.and(depth.add(extents.k).le(k)),
  });
  const stages = (operand: "a" | "b", byteOffset: number): RingOperand["stage"] => {
    const type = operator.shared[operand];
    const length = plan.stageBytes[operand] / byteSize(type);
    const memory = arena.view(type, plan.stages * length, byteOffset);
    return (number) => stageTile(memory, plan[operand], number, length);
  };

  const warp = subdivide(
    tile({ R: extents.m, C: extents.n }),
    { R: extents.m / warps.m, C: extents.n / warps.n },
    subgroup.index,
    warps.m * warps.n,
  );
  const overlapped = isOverlapped(kind, operator, facts, assembly);
  const streams = { transforms, extras };
  const product = new WarpProduct(
    kind,
    operator,
    warp.base as never,
    args,
    output,
    streams,
    overlapped ? 2 : 1,
  );
  const steps = k.ceilDiv(extents.k);
  const tileOfBlock = { ...output, rows: extents.m, columns: extents.n, depth: extents.k, steps };
  const counted = intersection([
    ...sequenceOf(kind.a.layout.steps?.a, extras.a ?? []),
    ...sequenceOf(kind.b.layout.steps?.b, extras.b ?? []),
    ...sequenceOf(kind.predicate, extras.predicate ?? []),
  ]);
  const { first, end } = work.range(steps);
  const inner = k.sub(1).floorDiv(extents.k);
  runRing({
    stages: plan.stages,
    a: {
      engine: engines.a,
      stage: stages("a", 0),
      place: (step) => place(output.row, step.mul(extents.k), step.mul(extents.k)),
    },
    b: {
      engine: engines.b,
      stage: stages("b", plan.stages * plan.stageBytes.a),
      place: (step) => place(step.mul(extents.k), output.column, step.mul(extents.k)),
    },
    product,
    overlapped,
    first,
    steps: end,
    innerSteps: first === 0 ? inner : inner.min(end),
    next: (step) => counted.next(tileOfBlock, step),
  });

  const type = operator.types.accumulator as StorageType;
  const stagingMemory = arena.view(type, staging.bytes / byteSize(type));
  const perWarp = staging.bytes / byteSize(type) / (warps.m * warps.n);
  const d = { memory: args.d, layout: kind.d.layout, leading: args.leadingD, extras: extras.d ?? [] };
  const resultTile = perResult === 1 ? operator.shape.n : gateGroup;
  const lines = kind.d.layout.major === "row" ? resultTile : operator.shape.m;
  const widths = [accessWidth(kind.d, lines, kind.params.copies?.d)];
  if (kind.c !== undefined)
    widths.push(
      kind.c.layout.major === kind.d.layout.major ? accessWidth(kind.c, lines, kind.params.copies?.c) : 1,
    );
  kind.epilogue.run({
    operator,
    accumulators: product.accumulators,
    row: output.row.add(warp.base.R as Value<I32>),
    column: resultColumn(kind, output.column.add(warp.base.C as Value<I32>)),
    rows: m,
    columns,
    whole:
      kind.gate === undefined
        ? whole
        : whole.and(resultColumn(kind, output.column.add(extents.n)).le(columns)),
    staging: {
      memory: stagingMemory,
      layout: staging.layout,
      leading: staging.leading,
      origin: subgroup.index.mul(perWarp),
      planeLength: staging.length,
    },
    tilesPerTurn: staging.tiles,
    lane: subgroup.lane,
    lanes: subgroup.size,
    barrier: () => subgroup.barrier(),
    scaleType: scaleTypeOf(operator.types.accumulator),
    alpha: args.alpha,
    source:
      kind.c === undefined
        ? undefined
        : {
            matrix: {
              memory: args.c,
              layout: kind.c.layout,
              leading: args.leadingC,
              extras: extras.c ?? [],
            },
            beta: args.beta,
          },
    target: d,
    width: Math.min(...widths),
    transforms,
    gate: kind.gate,
    extras,
    steps: kind.steps,
    stepOperands: stepOperands(kind.steps, named),
    collectors: kind.steps.some(({ behaviour }) => behaviour.collects !== undefined)
      ? (grid) =>
          new Collectors({
            steps: kind.steps,
            args: named,
            rows: m,
            columns,
            parts: warpParts(kind),
            grid,
          })
      : undefined,
  });
}

/** The matrices that a block works on, and its part of them. */
function blockWork(
  kind: GemmKind,
  given: GemmArguments,
): { readonly args: GemmArguments; readonly work: Work } {
  if (kind.batch === "grouped") return groupedWork(kind, given, block.id.x);
  const work = workOf(kind, given, block.id.x, () => tileCount(kind.params, given.m, given.n));
  return { args: matricesOf(given, work), work };
}

/** What of D one warp computes. */
function warpParts(kind: Pick<GemmKind, "params" | "gate">): PartExtents {
  const { block: extents, warps } = kind.params;
  return { rows: extents.m / warps.m, columns: extents.n / warps.n / columnsPerResult(kind) };
}

/** The column of D that a column of the product belongs to, where groups of columns begin. */
function resultColumn(kind: Pick<GemmKind, "gate">, column: Value<I32>): Value<I32> {
  return kind.gate === undefined ? column : column.div(columnsPerResult(kind));
}

/** Copies of more stages than this have arrived long before they are waited for. */
const mostStages = 8;

/** Registers of accumulators, fragments and staging beyond which a lane has too few for everything else. */
const mostHeld = 200;

/** Whether slices of K are loaded ahead: two buffers of fragments take turns, which must come out even and find room. */
function isOverlapped(kind: GemmKind, operator: Operator, facts: TargetFacts, assembly: Assembly): boolean {
  const matrices = operator.shape.k > 1 && operator.byLanes !== true;
  if (!assembly.asynchronous || !matrices || (kind.params.block.k / operator.shape.k) % 2 !== 0) return false;
  const staged = (["a", "b"] as const).filter(
    (operand) => operandCopy(kind, operand, operator, facts, assembly).throughRegisters !== undefined,
  );
  return heldRegisters(kind, operator, { buffers: 2, staged }, facts) <= mostHeld;
}

/** @throws ArgumentError for stages that an assembly cannot have, or that do not fit */
function checkStages(kind: GemmKind, facts: TargetFacts, assembly: Assembly): void {
  const stages = stagesOf(kind, assembly);
  if (!Number.isInteger(stages) || stages < 2 || stages > mostStages) {
    throw new ArgumentError(`params.stages is 2 to ${mostStages}, not ${String(stages)}`);
  }
  if (!assembly.asynchronous && stages !== assembly.stages) {
    throw new ArgumentError(
      `params.stages is ${assembly.stages} with ${assembly.name}, not ${stages}; multistage takes more`,
    );
  }
  const bytes = sharedBytesOf(kind, facts, assembly);
  if (bytes > facts.limits.sharedBytes) {
    const { ringBytes } = planShared(kind, kind.operator.create(kind.types, facts), assembly);
    const [what, instead] =
      ringBytes < bytes
        ? ["D's tiles on their way out", "an operator with smaller tiles or fewer warps"]
        : [`${stages} stages`, assembly.asynchronous ? "fewer stages or smaller tiles" : "smaller tiles"];
    throw new ArgumentError(
      `params: ${what} take ${bytes} bytes of shared memory, and ${facts.name} has ${facts.limits.sharedBytes} a block; take ${instead}`,
    );
  }
}

/** What of a launch decides its tiles. */
function sizeOf(
  kind: UnscheduledKind,
  launch: GemmLaunch,
): { readonly m: number; readonly n: number; readonly repeats: number } {
  const { m, n } = launch.problem;
  return { m, n, repeats: repeatsOf(kind, launch) };
}

/** A schedule of this family; it serves every kind unless `refusal` says otherwise. */
export function stagedSchedule(assembly: Assembly, refusal: Schedule["refusal"] = () => undefined): Schedule {
  return {
    name: assembly.name,
    refusal,
    params: (kind, launch, facts) =>
      withSplit(kind, launch, chooseParams(kind, sizeOf(kind, launch), facts, assembly), facts),
    candidates: (kind, launch, facts) => stagedCandidates(kind, launch, facts, assembly),
    check(kind, facts) {
      checkParams(kind.params, kind.operator.create(kind.types, facts), facts.subgroup.width);
      checkStages(kind, facts, assembly);
      checkSplit(kind);
      checkGate(kind);
    },
    kernel: (kind) => stagedKernel(kind, assembly),
    arguments: gemmArguments,
    blocks: (kind, launch) => tilesOf(launch, kind.params),
    parts: warpParts,
    operatorName: (kind, facts) => kind.operator.create(kind.types, facts).name,
    describe(kind, facts) {
      const { block: extents, warps } = kind.params;
      const operator = kind.operator.create(kind.types, facts);
      const { m, n, k } = operator.shape;
      return [
        `schedule   ${assembly.name}, ${stagesOf(kind, assembly)} stages in shared memory`,
        `tiles      block ${extents.m} x ${extents.n} x ${extents.k}, ${warps.m} x ${warps.n} warps, operator ${m} x ${n} x ${k}`,
        `shared     ${sharedBytesOf(kind, facts, assembly)} bytes a block`,
        `copies     A ${describeCopy(kind, "a", operator, facts, assembly)}; B ${describeCopy(kind, "b", operator, facts, assembly)}`,
      ];
    },
  };
}

/** Two stages, through registers: serves every kind on every target. */
export const registerStagedSchedule: Schedule = stagedSchedule(registerStaged);
