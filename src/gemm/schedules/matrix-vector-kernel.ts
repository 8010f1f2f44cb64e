/**
 * @file The kernel of a matrix-vector product: the matrix streams by once, through registers alone; lanes, then warps
 * join their sums in a fixed order, and lanes that have taken a line each run the epilogue.
 */
import { block, type Kernel, kernel, loop, loopWhile, subgroup, variable, when } from "../../lang/index.ts";
import type { TargetFacts } from "../../target/facts.ts";
import { stepOperands } from "../epilogues/step.ts";
import { allExtraValues } from "../extras.ts";
import type { GemmKind } from "../kind.ts";
import { closedTransforms } from "../transforms.ts";
import { countedSteps, everyStepCounts } from "./counted-steps.ts";
import { type GemmArguments, gemmParameters, matricesOf } from "./kernel-interface.ts";
import { MatrixVectorFinish } from "./matrix-vector-finish.ts";
import { shapeOf } from "./matrix-vector-shape.ts";
import { MatrixStream, type MatrixVectorContext } from "./matrix-vector-stream.ts";
import { tileCount, tilePlace } from "./tile-order.ts";
import { workOf } from "./work.ts";

/** The kernel of a kind. */
export function matrixVectorKernel(kind: GemmKind): Kernel {
  const { warps } = kind.params;
  return kernel("gemm_matrix_vector", {
    params: gemmParameters(kind),
    block: (facts) => warps.m * warps.n * (warps.k ?? 1) * facts.subgroup.width,
    body: (args, facts) => body(kind, args as unknown as GemmArguments, facts),
  });
}

function body(kind: GemmKind, all: GemmArguments, facts: TargetFacts): void {
  const shape = shapeOf(kind, facts);
  const { m, n, k } = all;
  const work = workOf(kind, all, block.id.x, () => tileCount(kind.params, m, n));
  const args = matricesOf(all, work);
  const given = args as unknown as Readonly<Record<string, unknown>>;
  const extras = allExtraValues(kind.extras, given);
  const transforms = closedTransforms(kind.transforms, extras, args, work.batch);
  const place = tilePlace(kind, m, n, work.tile);
  const firstLine = shape.streamed === "a" ? place.row : place.column;
  const context: MatrixVectorContext = { kind, shape, args, extras, transforms, firstLine };

  const steps = k.ceilDiv(shape.depth);
  const range = work.range(steps);
  const share = range.end.sub(range.first).ceilDiv(shape.warps.depth);
  const number = subgroup.index.rem(shape.warps.depth);
  const first = number.mul(share).add(range.first);
  const end = first.add(share).min(range.end);
  const stream = new MatrixStream(context);
  if (everyStepCounts(kind)) {
    const whole = k.div(shape.depth);
    loop({ from: first, to: end.min(whole) }, (step) => stream.whole(step.mul(shape.depth)));
    when(whole.ge(first).and(whole.lt(end)), () => stream.rest(whole.mul(shape.depth)));
  } else {
    const counted = countedSteps(kind, extras);
    const { block: extents } = kind.params;
    const output = { ...place, rows: extents.m, columns: extents.n, depth: extents.k, steps };
    const at = variable(first.type, counted.next(output, first));
    loopWhile(
      () => at.value.lt(end),
      () => {
        const step = at.value;
        const depth = step.mul(shape.depth);
        when(depth.add(shape.depth).le(k), () => stream.whole(depth)).otherwise(() => stream.rest(depth));
        at.value = counted.next(output, step.add(1));
      },
    );
  }
  const sums = stream.join();
  block.barrier();
  new MatrixVectorFinish(context, stepOperands(kind.steps, given), sums).run();
}
