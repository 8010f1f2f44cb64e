/**
 * @file Products whose K is divided among blocks: partial sums in a workspace of the plan, and the kernel that adds them.
 *
 * Tiles that are few leave a machine idle while each walks a long K. Divided, every part of K has blocks of its own, which
 * leave bare sums; then one kernel adds the parts of each element in their order and runs the epilogue, once. Nothing
 * depends on which block comes first: the result has the same bits each time. The order of summation is another one than
 * without parts, and so may be the last bits.
 */
import { ArgumentError } from "../errors.ts";
import {
  type AnyValue,
  binary,
  block,
  byteSize,
  type GlobalArray,
  type I32,
  i32,
  index,
  inout,
  input,
  type Kernel,
  kernel,
  loop,
  output,
  type StorageType,
  thread,
  type Value,
  type VectorLanes,
  variables,
  vector,
  when,
} from "../lang/index.ts";
import type { TargetFacts } from "../target/facts.ts";
import { combine } from "./epilogues/combination.ts";
import { defaultEpilogue } from "./epilogues/epilogue.ts";
import { stepArguments, stepOperands, stepParameters } from "./epilogues/step.ts";
import { allExtraArguments, allExtraParameters, allExtraValues, type ExtrasOf } from "./extras.ts";
import { kernelOf } from "./identity.ts";
import { accessWidth, type GemmKind, scaleTypeOf } from "./kind.ts";
import { factsOf } from "./layouts/layout.ts";
import type { GemmParams } from "./params.ts";
import { everyStep } from "./predicate.ts";
import { matrixOperand } from "./problem.ts";
import type { GemmLaunch, UnscheduledKind } from "./schedules/schedule.ts";
import { tilesOf } from "./schedules/schedule.ts";
import { matrixStart } from "./schedules/work.ts";
import { noSurroundings, type PlanSurroundings } from "./stages.ts";
import { closedTransforms } from "./transforms.ts";

/** Threads of a block of the kernel that adds. */
const threads = 256;
/** Parts that a thread of it loads before it adds the first. */
const loadsUnderWay = 4;
/** Elements of K that are worth a part: below, the second kernel costs more than it saves. */
const shortestPart = 512;

/** Why a kind's K cannot be divided; undefined when it can. */
export function undividable(
  kind: Pick<GemmKind, "operator" | "epilogue" | "steps" | "c" | "d" | "gate" | "batch">,
): string | undefined {
  for (const { layout } of kind.c === undefined ? [kind.d] : [kind.c, kind.d]) {
    if (factsOf(layout).movement !== "box") return `${layout.name} results are not lines at one distance`;
  }
  if (kind.batch === "grouped") return "products of several sizes have K of several lengths";
  if (kind.gate !== undefined) return "a gate joins whole sums, two columns at a time";
  if (kind.operator.ring === false) return `the ${kind.operator.name} operator's sums are no sums`;
  if (kind.epilogue !== defaultEpilogue) return `the ${kind.epilogue.name} epilogue wants accumulators`;
  for (const { behaviour } of kind.steps) {
    const gathers = behaviour.collects !== undefined || behaviour.operands.some(({ cleared }) => cleared);
    if (gathers) return `${behaviour.name} gathers what the product's own blocks hold`;
  }
  return undefined;
}

/** @throws ArgumentError for parts that a kind cannot have */
export function checkSplit(kind: GemmKind): void {
  const { splitK = 1 } = kind.params;
  if (splitK === 1) return;
  const reason = undividable(kind);
  if (reason !== undefined) throw new ArgumentError(`params.splitK = ${splitK}: ${reason}; leave splitK out`);
}

/** How many blocks may share a tile's place in D: the matrices of a batch, and as many parts as K is long enough for. */
export function repeatsOf(kind: UnscheduledKind, { batch, k }: GemmLaunch): number {
  return batch.count * (mayDivide(kind) ? Math.max(1, Math.floor(k / shortestPart)) : 1);
}

/** Whether parts of K would be equal work. */
export function mayDivide(kind: UnscheduledKind): boolean {
  const whole = [kind.a.layout, kind.b.layout].every(({ steps }) => steps === undefined);
  return undividable(kind) === undefined && kind.predicate === everyStep && whole;
}

/** The params with K divided where the tiles occupy less than half of the machine and K is long. */
export function withSplit(
  kind: UnscheduledKind,
  launch: GemmLaunch,
  params: GemmParams,
  facts: TargetFacts,
): GemmParams {
  if (!mayDivide(kind)) return params;
  const tiles = tilesOf(launch, params);
  const room = Math.floor(facts.machine.multiprocessors / Math.max(1, tiles));
  const parts = Math.min(room, Math.floor(launch.k / shortestPart));
  return tiles > 0 && parts > 1 ? { ...params, splitK: parts } : params;
}

/** Rounds of tiles from which on parts of K have nothing left to fill. */
const mostRounds = 4;

/** The numbers of parts of K that tuning tries: 1, and powers of two while tiles are few and a part is long enough. */
export function splitCandidates(
  kind: UnscheduledKind,
  launch: GemmLaunch,
  params: GemmParams,
  facts: TargetFacts,
): readonly number[] {
  const rounds = tilesOf(launch, params) / facts.machine.multiprocessors;
  if (rounds >= mostRounds || !mayDivide(kind)) return [1];
  return [1, ...[2, 4, 8, 16].filter((parts) => launch.k / parts >= shortestPart)];
}

/** Extras of A's and B's side, or of C's and D's. */
function ofSide<E>(extras: ExtrasOf<E>, result: boolean): ExtrasOf<E> {
  return Object.fromEntries(
    Object.entries(extras).filter(([owner]) => (owner.startsWith("c_") || owner.startsWith("d_")) === result),
  );
}

/** The product that leaves partial sums, and what surrounds it. */
export interface SplitProduct {
  readonly kind: GemmKind;
  readonly launch: GemmLaunch;
  readonly around: PlanSurroundings;
}

/** Divides a launch: sums to a new workspace, and the stage that makes D of them. */
export function splitProduct(kind: GemmKind, launch: GemmLaunch): SplitProduct {
  const { problem, batch, d } = launch;
  const { m, n, device } = problem;
  const parts = kind.params.splitK ?? 1;
  const type = kind.types.accumulator as StorageType;
  const row = kind.d.layout.major === "row";
  const [lines, length] = row ? [m, n] : [n, m];
  const unit = 16 / byteSize(type);
  const leading = Math.max(1, Math.ceil(length / unit)) * unit;
  const matrices = parts * batch.count;
  const workspace = device.empty(type, [Math.max(1, matrices * lines * leading)]);
  const apart = lines * leading;
  const sums = matrixOperand(
    workspace.strided([matrices, m, n], [apart, ...(row ? [leading, 1] : [1, leading])], 0),
    "the partial sums",
    row ? "row" : "column",
  );
  const { c: _c, d: _d, ...inputs } = kind.transforms;
  const partial: GemmKind = {
    ...kind,
    c: undefined,
    d: { type, layout: kind.d.layout, alignment: 16 },
    transforms: inputs,
    steps: [],
    extras: ofSide(kind.extras, false),
  };
  const width = sumWidth(kind);
  const vectors = batch.count * lines * Math.ceil(length / width);
  const adding = { ...kind, schedule: "partial sums" };
  const beta = kind.c === undefined || launch.c === undefined ? undefined : launch.c;
  const after =
    vectors === 0
      ? []
      : [
          {
            purpose: `adds ${parts} parts of K`,
            kernel: kernelOf(adding, { kernel: addingKernel }).kernel,
            arguments: {
              sums: workspace,
              d: d.array,
              m,
              n,
              parts,
              batches: batch.count,
              leadingSums: leading,
              strideSums: apart,
              leadingD: d.leading,
              strideD: batch.strides.d,
              alpha: launch.alpha,
              ...(beta === undefined
                ? {}
                : { c: beta.array, leadingC: beta.leading, strideC: batch.strides.c, beta: launch.beta }),
              ...stepArguments(launch.steps),
              ...allExtraArguments(ofSide(launch.extras, true)),
            },
            blocks: Math.ceil(vectors / threads),
          },
        ];
  return {
    kind: partial,
    launch: {
      ...launch,
      batch: { ...batch, strides: { ...batch.strides, d: apart } },
      c: undefined,
      d: { ...sums, array: workspace, leading, layout: kind.d.layout },
      alpha: 1,
      beta: 0,
      steps: [],
      extras: ofSide(launch.extras, false),
    },
    around: { ...noSurroundings, workspaces: [workspace], after },
  };
}

/** Elements that one thread adds: one access to the sums, to D and to C. */
function sumWidth(kind: GemmKind): number {
  const sums = 16 / byteSize(kind.types.accumulator as StorageType);
  const same = kind.c === undefined || kind.c.layout.major === kind.d.layout.major;
  return Math.min(
    sums,
    accessWidth(kind.d, 16, undefined),
    kind.c === undefined ? 16 : same ? accessWidth(kind.c, 16, undefined) : 1,
  );
}

/** Adds the parts of each element of D and finishes it. */
function addingKernel(kind: GemmKind): Kernel {
  const scale = scaleTypeOf(kind.types.accumulator) as typeof i32;
  return kernel("gemm_add_parts", {
    params: {
      sums: input(kind.types.accumulator as StorageType, 0),
      ...(kind.c === undefined ? {} : { c: inout(kind.c.type, 0) }),
      d: output(kind.d.type, 0),
      m: i32,
      n: i32,
      parts: i32,
      batches: i32,
      leadingSums: index,
      strideSums: index,
      leadingD: index,
      strideD: index,
      alpha: scale,
      ...(kind.c === undefined ? {} : { leadingC: index, strideC: index, beta: scale }),
      ...stepParameters(kind.steps),
      ...allExtraParameters(ofSide(kind.extras, true)),
    },
    block: threads,
    body: (args) => addParts(kind, args as unknown as AddingArguments),
  });
}

interface AddingArguments {
  readonly sums: GlobalArray<StorageType>;
  readonly c: GlobalArray<StorageType>;
  readonly d: GlobalArray<StorageType>;
  readonly m: Value<I32>;
  readonly n: Value<I32>;
  readonly parts: Value<I32>;
  readonly batches: Value<I32>;
  readonly leadingSums: Value<typeof index>;
  readonly strideSums: Value<typeof index>;
  readonly leadingC: Value<typeof index>;
  readonly strideC: Value<typeof index>;
  readonly leadingD: Value<typeof index>;
  readonly strideD: Value<typeof index>;
  readonly alpha: AnyValue;
  readonly beta: AnyValue;
}

function addParts(kind: GemmKind, args: AddingArguments): void {
  const { m, n, batches } = args;
  const width = sumWidth(kind);
  const row = kind.d.layout.major === "row";
  const [lines, length] = row ? [m, n] : [n, m];
  const perLine = length.ceilDiv(width);
  const perMatrix = lines.mul(perLine);
  const id = block.id.x.mul(threads).add(thread.index);
  when(id.lt(batches.mul(perMatrix)), () => {
    const batch = id.div(perMatrix);
    const within = id.sub(batch.mul(perMatrix));
    const line = within.div(perLine);
    const first = within.sub(line.mul(perLine)).mul(width);
    const run = new AddedRun(kind, args, batch, line);
    const whole = when(first.add(width).le(length), () => run.finish(first, width));
    if (width === 1) return;
    whole.otherwise(() => {
      for (let e = 0; e < width; e++) when(first.add(e).lt(length), () => run.finish(first.add(e), 1));
    });
  });
}

/** Neighbouring elements of one line of D. */
class AddedRun {
  constructor(
    private readonly kind: GemmKind,
    private readonly args: AddingArguments,
    private readonly batch: Value<I32>,
    private readonly line: Value<I32>,
  ) {}

  finish(first: Value<I32>, count: number): void {
    const { kind, args, batch, line } = this;
    const given = args as unknown as Readonly<Record<string, unknown>>;
    const extras = allExtraValues(ofSide(kind.extras, true), given);
    const { a: _a, b: _b, ...results } = kind.transforms;
    const told = kind.batch === "single" ? undefined : batch;
    const extents = { m: args.m, n: args.n, k: args.m };
    const row = kind.d.layout.major === "row";
    const at = (e: number) => {
      const moved = first.add(e);
      return row ? { row: line, column: moved } : { row: moved, column: line };
    };
    const values = combine(
      {
        scaleType: scaleTypeOf(kind.types.accumulator),
        alpha: args.alpha,
        beta: args.beta,
        transforms: closedTransforms(results, extras, extents, told),
        steps: kind.steps,
        stepOperands: stepOperands(kind.steps, given),
        collectors: undefined,
        target: kind.d.type,
        source: kind.c === undefined ? undefined : () => this.#addend(at(0), count),
      },
      this.#added(first, count),
      { count, along: row ? "C" : "R", aligned: true, offset: { row: 0, column: 0 }, at },
    );
    const position = matrixStart(batch, args.strideD)
      .add(matrixStart(line, args.leadingD))
      .add(first.to(index));
    if (count === 1) args.d.storeAt(position, values[0]);
    else args.d.storeVectorAt(position, vector(...values));
  }

  /** The parts' sums, in their order. */
  #added(first: Value<I32>, count: number): readonly AnyValue[] {
    const { kind, args, batch, line } = this;
    const scale = scaleTypeOf(kind.types.accumulator);
    const held = variables(scale, count, 0);
    const within = matrixStart(line, args.leadingSums).add(first.to(index));
    const part = (number: Value<I32>): readonly AnyValue[] => {
      const matrix = number.mul(args.batches).add(batch);
      return load(args.sums, matrixStart(matrix, args.strideSums).add(within), count);
    };
    const add = (loaded: readonly AnyValue[]): void =>
      held.forEach((sum, e) => {
        sum.value = binary("add", sum.value, loaded[e].to(scale));
      });
    // Few threads wait long for each load: several are under way before the first is added.
    const whole = args.parts.sub(args.parts.rem(loadsUnderWay));
    loop({ to: whole, step: loadsUnderWay }, (first) => {
      const loaded = Array.from({ length: loadsUnderWay }, (_, i) => part(first.add(i)));
      loaded.forEach(add);
    });
    loop({ from: whole, to: args.parts }, (number) => add(part(number)));
    return held.map(({ value }) => value);
  }

  #addend({ row, column }: { row: Value<I32>; column: Value<I32> }, count: number): readonly AnyValue[] {
    const { kind, args, batch } = this;
    const [line, first] = kind.c?.layout.major === "row" ? [row, column] : [column, row];
    const position = matrixStart(batch, args.strideC).add(matrixStart(line, args.leadingC));
    return load(args.c, position.add(first.to(index)), count);
  }
}

function load(
  source: GlobalArray<StorageType>,
  position: Value<typeof index>,
  count: number,
): readonly AnyValue[] {
  return count === 1
    ? [source.loadAt(position)]
    : source.loadVectorAt(count as VectorLanes, position).elements();
}
