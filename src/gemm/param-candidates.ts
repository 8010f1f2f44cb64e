/**
 * @file Params worth trying: all tile shapes in powers of two that the operator and the device take, the promising first.
 */
import type { TargetFacts } from "../target/facts.ts";
import { chooseParams, fits } from "./heuristics.ts";
import type { GemmKind } from "./kind.ts";
import type { Operator } from "./operators/operator.ts";
import type { GemmParams } from "./params.ts";
import { registerStaged } from "./schedules/assembly.ts";

type PlannedKind = Omit<GemmKind, "params" | "schedule">;
type Size = { readonly m: number; readonly n: number };

/** Accumulators that a lane can hold beside everything else. */
const mostAccumulators = 128;
/** Operator calls in a K step's text: more take long to compile and gain nothing. */
const mostCalls = 512;

/** The heuristics' choice, then others by how well they promise to do. At most `most`. */
export function paramCandidates(
  kind: PlannedKind,
  size: Size,
  facts: TargetFacts,
  most: number,
): readonly GemmParams[] {
  const operator = kind.operator.create(kind.types, facts);
  const usual = chooseParams(kind, size, facts, registerStaged);
  const others = shapesOf(operator, facts)
    .filter(
      (params) =>
        !same(params, usual) &&
        fits({ ...kind, schedule: registerStaged.name, params }, facts, registerStaged),
    )
    .map((params) => ({ params, cost: costOf(params, size, facts) }))
    .sort((x, y) => x.cost - y.cost);
  return [usual, ...others.slice(0, Math.max(0, most - 1)).map(({ params }) => params)];
}

function same(x: GemmParams, y: GemmParams): boolean {
  return (
    x.block.m === y.block.m &&
    x.block.n === y.block.n &&
    x.block.k === y.block.k &&
    x.warps.m === y.warps.m &&
    x.warps.n === y.warps.n
  );
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

/**
 * A rough order, nothing more: the work of the busiest multiprocessor, made longer by what a tile loads for what it
 * computes, by barriers between shallow steps and by too few threads to hide them.
 */
function costOf({ block, warps }: GemmParams, { m, n }: Size, facts: TargetFacts): number {
  const tiles = Math.ceil(m / block.m) * Math.ceil(n / block.n);
  const waves = Math.ceil(tiles / facts.machine.multiprocessors);
  const loads = 24 * (1 / block.m + 1 / block.n);
  const barriers = 4 / block.k;
  const threads = warps.m * warps.n * facts.subgroup.width;
  const idle = threads < 128 ? 0.25 * (128 / threads - 1) : 0;
  return waves * block.m * block.n * (1 + loads + barriers + idle);
}
