/**
 * @file The register-staged schedule: two stages in shared memory, the next K step on its way through registers while
 * the present one is multiplied, one barrier a step. Works on every target; it asks for no asynchronous copies.
 *
 * ```
 * fetch(0); store(0); barrier
 * for each step that counts:
 *   fetch(next)                 global → registers, in flight during the arithmetic
 *   multiply(step)              shared → fragments → accumulators
 *   store(next)                 registers → the other stage
 *   barrier
 * epilogue
 * ```
 */
import {
  block,
  byteSize,
  type Condition,
  type I32,
  i32,
  type Kernel,
  kernel,
  loopWhile,
  type StorageType,
  sharedArena,
  subgroup,
  type Value,
  variable,
  when,
} from "../../lang/index.ts";
import type { TargetFacts } from "../../target/facts.ts";
import { subdivide, tile } from "../../tile/index.ts";
import { Collectors, type PartExtents } from "../epilogues/collector.ts";
import { stepOperands } from "../epilogues/step.ts";
import { allExtraValues } from "../extras.ts";
import { chooseParams } from "../heuristics.ts";
import { accessWidth, type GemmKind, scaleTypeOf } from "../kind.ts";
import type { SharedTile } from "../operators/operator.ts";
import { checkParams } from "../params.ts";
import { intersection, sequenceOf } from "../predicate.ts";
import { closedTransforms } from "../transforms.ts";
import { tunedParams } from "../tuned-params.ts";
import { type GemmArguments, gemmArguments, gemmParameters } from "./kernel-interface.ts";
import { type Schedule, tilesOf } from "./schedule.ts";
import { planShared, sharedBytesOf, stageTile, stagingOf } from "./shared-plan.ts";
import { StagedCopy } from "./staged-copy.ts";
import { tilePlace } from "./tile-order.ts";
import { WarpProduct } from "./warp-product.ts";

/** The kernel of a kind. */
export function registerStagedKernel(kind: GemmKind): Kernel {
  const { params } = kind;
  return kernel("gemm", {
    params: gemmParameters(kind),
    block: (facts) => params.warps.m * params.warps.n * facts.subgroup.width,
    ...(params.residentBlocks === undefined ? {} : { blocksPerMultiprocessor: params.residentBlocks }),
    body: (args, facts) => gemmBody(kind, args as unknown as GemmArguments, facts),
  });
}

function gemmBody(kind: GemmKind, args: GemmArguments, facts: TargetFacts): void {
  const operator = kind.operator.create(kind.types, facts);
  checkParams(kind.params, operator, facts.subgroup.width);
  const { block: extents, warps } = kind.params;
  const { m, n, k } = args;
  const given = args as unknown as Readonly<Record<string, unknown>>;
  const output = tilePlace(kind.params, m, n, block.id.x);
  const whole = output.row.add(extents.m).le(m).and(output.column.add(extents.n).le(n));

  const plan = planShared(kind, operator);
  const staging = stagingOf(kind, operator, facts);
  const arena = sharedArena(Math.max(2 * (plan.stageBytes.a + plan.stageBytes.b), staging.bytes), 128);
  const sharedA = arena.view(operator.shared.a, (2 * plan.stageBytes.a) / byteSize(operator.shared.a));
  const sharedB = arena.view(
    operator.shared.b,
    (2 * plan.stageBytes.b) / byteSize(operator.shared.b),
    2 * plan.stageBytes.a,
  );
  const stageA = (stage: Value<I32> | number): SharedTile =>
    stageTile(sharedA, plan.a, stage, plan.stageBytes.a / byteSize(operator.shared.a));
  const stageB = (stage: Value<I32> | number): SharedTile =>
    stageTile(sharedB, plan.b, stage, plan.stageBytes.b / byteSize(operator.shared.b));

  const extras = allExtraValues(kind.extras, given);
  const transforms = closedTransforms(kind.transforms, extras, args);
  const threads = block.size;
  const copyA = new StagedCopy({
    source: args.a,
    type: kind.a.type,
    layout: kind.a.layout,
    leading: args.leadingA,
    extras: extras.a ?? [],
    rows: m,
    columns: k,
    tile: { rows: extents.m, columns: extents.k },
    threads,
    width: accessWidth(kind.a, kind.a.layout.major === "row" ? extents.k : extents.m, kind.params.copies?.a),
    transform: transforms.a?.globalToShared,
    outside: operator.outside ?? 0,
    depth: "C",
  });
  const copyB = new StagedCopy({
    source: args.b,
    type: kind.b.type,
    layout: kind.b.layout,
    leading: args.leadingB,
    extras: extras.b ?? [],
    rows: k,
    columns: n,
    tile: { rows: extents.k, columns: extents.n },
    threads,
    width: accessWidth(kind.b, kind.b.layout.major === "row" ? extents.n : extents.k, kind.params.copies?.b),
    transform: transforms.b?.globalToShared,
    outside: operator.outside ?? 0,
    depth: "R",
  });
  const fetch = (step: Value<I32>): void => {
    const depth = step.mul(extents.k);
    const inside = whole.and(depth.add(extents.k).le(k));
    copyA.fetch(output.row, depth, inside);
    copyB.fetch(depth, output.column, inside);
  };
  const store = (step: Value<I32>, stage: Value<I32> | number): void => {
    const depth = step.mul(extents.k);
    copyA.store(stageA(stage), output.row, depth);
    copyB.store(stageB(stage), depth, output.column);
  };

  const warp = subdivide(
    tile({ R: extents.m, C: extents.n }),
    { R: extents.m / warps.m, C: extents.n / warps.n },
    subgroup.index,
    warps.m * warps.n,
  );
  const product = new WarpProduct(kind, operator, warp.base as never, args, output, transforms, extras);

  const steps = k.ceilDiv(extents.k);
  const tileOfBlock = { ...output, rows: extents.m, columns: extents.n, depth: extents.k, steps };
  const counted = intersection([
    ...sequenceOf(kind.a.layout.steps?.a, extras.a ?? []),
    ...sequenceOf(kind.b.layout.steps?.b, extras.b ?? []),
    ...sequenceOf(kind.predicate, extras.predicate ?? []),
  ]);
  const step = variable(i32, counted.next(tileOfBlock, k.mul(0)));
  const stage = variable(i32, 0);
  when(step.value.lt(steps), () => {
    const first = step.value;
    fetch(first);
    store(first, 0);
  });
  block.barrier();
  loopWhile(
    () => step.value.lt(steps),
    () => {
      const present = step.value;
      const next = counted.next(tileOfBlock, present.add(1));
      const more: Condition = next.lt(steps);
      const here = stage.value;
      const there = here.xor(1);
      when(more, () => fetch(next));
      product.run(stageA(here), stageB(here), present);
      when(more, () => store(next, there));
      stage.value = there;
      step.value = next;
      block.barrier();
    },
  );

  const type = operator.types.accumulator as StorageType;
  const stagingMemory = arena.view(type, staging.bytes / byteSize(type));
  const perWarp = staging.bytes / byteSize(type) / (warps.m * warps.n);
  const d = { memory: args.d, layout: kind.d.layout, leading: args.leadingD };
  const lines = kind.d.layout.major === "row" ? operator.shape.n : operator.shape.m;
  const widths = [accessWidth(kind.d, lines, kind.params.copies?.d)];
  if (kind.c !== undefined)
    widths.push(
      kind.c.layout.major === kind.d.layout.major ? accessWidth(kind.c, lines, kind.params.copies?.c) : 1,
    );
  kind.epilogue.run({
    operator,
    accumulators: product.accumulators,
    row: output.row.add(warp.base.R as Value<I32>),
    column: output.column.add(warp.base.C as Value<I32>),
    rows: m,
    columns: n,
    whole,
    staging: {
      memory: stagingMemory,
      layout: staging.layout,
      leading: staging.leading,
      origin: subgroup.index.mul(perWarp),
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
        : { matrix: { memory: args.c, layout: kind.c.layout, leading: args.leadingC }, beta: args.beta },
    target: d,
    width: Math.min(...widths),
    transforms,
    steps: kind.steps,
    stepOperands: stepOperands(kind.steps, given),
    collectors: kind.steps.some(({ behaviour }) => behaviour.collects !== undefined)
      ? (grid) =>
          new Collectors({
            steps: kind.steps,
            args: given,
            rows: m,
            columns: n,
            parts: warpParts(kind),
            grid,
          })
      : undefined,
  });
}

/** What of D one warp computes. */
function warpParts({ params: { block: extents, warps } }: Pick<GemmKind, "params">): PartExtents {
  return { rows: extents.m / warps.m, columns: extents.n / warps.n };
}

/** Two stages, through registers: serves every kind on every target. */
export const registerStagedSchedule: Schedule = {
  name: "register-staged",
  refusal: () => undefined,
  params: (kind, { problem }, facts) =>
    tunedParams(kind, problem, facts) ?? chooseParams(kind, problem, facts),
  check(kind, facts) {
    checkParams(kind.params, kind.operator.create(kind.types, facts), facts.subgroup.width);
  },
  kernel: registerStagedKernel,
  arguments: gemmArguments,
  blocks: (kind, launch) => tilesOf(launch, kind.params),
  parts: warpParts,
  operatorName: (kind, facts) => kind.operator.create(kind.types, facts).name,
  describe(kind, facts) {
    const { block: extents, warps } = kind.params;
    const operator = kind.operator.create(kind.types, facts);
    const { m, n, k } = operator.shape;
    return [
      "schedule   register-staged, 2 stages in shared memory",
      `tiles      block ${extents.m} x ${extents.n} x ${extents.k}, ${warps.m} x ${warps.n} warps, operator ${m} x ${n} x ${k}`,
      `shared     ${sharedBytesOf(kind, facts)} bytes a block`,
    ];
  },
};
