/**
 * @file From what the caller says to a problem and its kind: every choice that is made before compiling.
 */
import { ArgumentError, UnsupportedError } from "../errors.ts";
import type { ElementType, StorageType } from "../lang/index.ts";
import { DeviceArray } from "../runtime/array.ts";
import type { TargetFacts } from "../target/facts.ts";
import { integerRange } from "../types/integer-range.ts";
import { algebraEpilogue, checkElementwise } from "./algebras/epilogue.ts";
import { algebraOperator } from "./algebras/operator.ts";
import { batchOf } from "./batch.ts";
import { defaultEpilogue, type Epilogue } from "./epilogues/epilogue.ts";
import { type EpilogueStep, stepKind, stepOf } from "./epilogues/step.ts";
import {
  type Bound,
  checkExtras,
  type ExtraArgument,
  type ExtrasOf,
  extraKind,
  mapExtras,
} from "./extras.ts";
import { factorOf } from "./factors.ts";
import { resultColumns } from "./gate.ts";
import { type GemmKind, scaleTypeOf } from "./kind.ts";
import { factsOf } from "./layouts/layout.ts";
import { dot4Packed, hasDot4 } from "./operators/dot4.ts";
import { fma } from "./operators/fma.ts";
import { hasMma, mmaSync } from "./operators/mma.ts";
import type { OperatorFactory } from "./operators/operator.ts";
import { hasWmma, wmmaSync } from "./operators/wmma.ts";
import type { GemmParams } from "./params.ts";
import { everyStep, type Predicate } from "./predicate.ts";
import {
  identical,
  type MatrixOperand,
  overlap,
  type Problem,
  problemOf,
  resultExtents,
  resultOperand,
} from "./problem.ts";
import { matrixVectorSchedule } from "./schedules/matrix-vector.ts";
import { multistageSchedule } from "./schedules/multistage.ts";
import { registerStagedSchedule } from "./schedules/register-staged.ts";
import type { GemmLaunch, Schedule, UnscheduledKind } from "./schedules/schedule.ts";
import { warpgroupSchedule } from "./schedules/warpgroup.ts";
import type { InputOperand, MatrixSource } from "./source.ts";
import {
  type GivenTransform,
  type GivenTransforms,
  type Transform,
  type Transforms,
  unboundTransforms,
} from "./transforms.ts";
import { tunedParams } from "./tuned-params.ts";

/** What `gemm` can be told beside its two matrices. */
export interface GemmOptions {
  /** Added to the product, times beta. m x n. */
  readonly c?: DeviceArray | MatrixSource;
  /**
   * Where the result goes; a new row-major array unless given. May be `c` itself; must not overlap A or B. A structured
   * matrix serves if all its elements are stored.
   */
  readonly d?: DeviceArray | MatrixSource;
  /** Factor of the product; 1 unless given. With 0, A and B are not read. Over an algebra also an element: its components. */
  readonly alpha?: number | bigint | readonly number[];
  /** Factor of C; 1 if C is given. With 0, C is not read. Over an algebra also an element, which multiplies from the left. */
  readonly beta?: number | bigint | readonly number[];
  /** Storage type of a new D: A's and B's own type for floats, the accumulator's for integers, unless given. */
  readonly type?: StorageType;
  /** Type of the sums: f32 for 16-bit floats (f16 may sum in f16), i32 for 8-bit integers. */
  readonly accumulate?: ElementType;
  /**
   * Float operands are rounded to this type on their way to shared memory and multiplied in it: f16, bf16, f32, f64; tf32
   * multiplies f32 operands on tensor cores with 10-bit significands. Their own common type unless given.
   */
  readonly compute?: ElementType;
  /**
   * 8-bit floats where tensor cores multiply them as they are (Hopper's wgmma), whose own sums keep about 14 bits: true
   * leaves all of K to them, which is faster; unless given, what they sum of 128 elements of K is added up in f32. No
   * effect on other products. cuBLASLt has the same choice (CUBLASLT_MATMUL_DESC_FAST_ACCUM).
   */
  readonly fastAccumulation?: boolean;
  /** The inner product; tensor cores where there are any, unless given. */
  readonly operator?: OperatorFactory;
  /** How data moves; the fastest that everything else permits, unless given. */
  readonly schedule?: "matrix-vector" | "warpgroup" | "multistage" | "register-staged";
  readonly params?: GemmParams;
  /**
   * Whether dense operands are copied before the product, each time it runs, where aligned lines, K contiguous or planes of
   * components let a faster schedule serve. Large products are, unless false; true wants it for any size.
   */
  readonly pack?: boolean;
  /** Functions of elements and coordinates on the eight streams; {@link bound} gives one arrays and numbers of its own. */
  readonly transforms?: GivenTransforms;
  /** Steps between the combination with C and D: arrays' steps such as {@link bias}, functions of an element; or another way for D to leave. */
  readonly epilogue?: Epilogue | readonly (EpilogueStep | Transform)[];
  /** Which K steps count, beside what A's and B's structure says: the steps that count for all of them are taken. */
  readonly predicate?: Predicate | Bound<Predicate>;
  /**
   * Makes the product a gated one: D = epilogue(gate(alpha · A · B₁) ⊙ (alpha · A · B₂) + beta · C), where B holds columns of
   * B₁ and B₂ in turn, 16 at a time, as {@link interleaveColumns} makes it. D has half as many columns as B (or up to 15
   * fewer, if `d` says so), and everything else counts in D's.
   */
  readonly gate?: Transform;
  readonly signal?: AbortSignal;
}

/** A problem with everything chosen that is compiled in. */
export interface Resolved extends GemmLaunch {
  readonly kind: GemmKind;
  readonly schedule: Schedule;
  /** Faster schedules that could not serve, and why. */
  readonly refused: readonly { readonly schedule: string; readonly reason: string }[];
  /** D as the caller sees it: without the dimensions of vectors. */
  readonly result: DeviceArray;
  readonly ownD: boolean;
}

/** Fastest first. */
export const schedules: readonly Schedule[] = [
  matrixVectorSchedule,
  warpgroupSchedule,
  multistageSchedule,
  registerStagedSchedule,
];

/** The fastest operator that the target has for these types and that takes operands and transforms. */
function defaultOperator({ types, device, elements }: Problem, transforms: Transforms = {}): OperatorFactory {
  const { facts } = device;
  if (hasMma(types, facts)) return mmaSync;
  const inRegisters = transforms.a?.sharedToRegister ?? transforms.b?.sharedToRegister;
  // Components are combined in registers, and no lane of WebGPU sees those of subgroup matrices.
  const sealed = elements !== undefined && facts.language === "wgsl";
  if (hasWmma(types, facts) && inRegisters === undefined && !sealed) return wmmaSync;
  return hasDot4(types, device.facts) ? dot4Packed : fma;
}

/** Small integers are multiplied in the type of their sums where they cannot hold what stands for nothing. */
function widened(problem: Problem, operator: OperatorFactory | undefined): Problem {
  const { a, b, accumulator } = problem.types;
  const zero = operator?.zero?.(accumulator) ?? 0;
  const holdsZero = (type: ElementType): boolean => {
    const range = integerRange(type);
    return range === undefined || (zero >= range.least && zero <= range.greatest);
  };
  if (accumulator.class === "float" || (holdsZero(a) && holdsZero(b))) return problem;
  return { ...problem, types: { ...problem.types, a: accumulator, b: accumulator } };
}

/** Checks a problem and chooses its kind. D is allocated if none is given. `grouped` promises transforms a product's number. */
export function resolve(
  a: DeviceArray | MatrixSource,
  b: DeviceArray | MatrixSource,
  options: GemmOptions,
  grouped = false,
): Resolved {
  const problem = widened(problemOf(a, b, { ...options, grouped }), options.operator);
  const { device, types, m } = problem;
  const scale = scaleTypeOf(types.accumulator);
  const { elements } = problem;
  const product = factorOf(options.alpha ?? 1, "alpha", scale, elements);
  const added = factorOf(options.beta ?? (options.c === undefined ? 0 : 1), "beta", scale, elements);
  const [alpha, beta] = [product.number, added.number];
  if (options.beta !== undefined && options.c === undefined && Number(beta) !== 0) {
    throw new ArgumentError(
      `gemm: beta = ${String(options.beta)} needs a C to multiply; give c, or leave beta out`,
    );
  }
  const columns = resultColumns(problem, options.gate, options.d);
  const of: Problem = { ...problem, n: columns };
  const addend = options.c === undefined ? undefined : resultOperand(options.c, "C", of);
  const c = Number(beta) === 0 ? undefined : addend;
  if (options.d !== undefined && options.type !== undefined && options.d.type !== options.type) {
    throw new ArgumentError(
      `gemm: D is ${options.d.label} and type is ${options.type.name}; give one of them`,
    );
  }
  const given = options.d === undefined ? undefined : resultOperand(options.d, "D", of);
  if (given !== undefined) checkOverlap(given, problem, addend);
  if (options.operator?.ring === false && (Number(alpha) !== 1 || addend !== undefined)) {
    throw new ArgumentError(
      `gemm: alpha and C multiply and add, which the ${options.operator.name} operator does not; leave alpha at 1 and C out`,
    );
  }
  const withOnes = [problem.a, problem.b].find(({ layout }) => factsOf(layout).ones === true);
  if (options.operator?.ring === false && withOnes !== undefined) {
    throw new UnsupportedError(
      `gemm: ${withOnes.label} has the number 1 on its diagonal, which is not what the ${options.operator.name} operator multiplies by to change nothing; store the diagonal in the matrix`,
    );
  }
  const factors = { alpha: product.element, beta: c === undefined ? [] : added.element };
  const { transforms, predicate, extras: streams } = components(problem, columns, options, factors);
  const inner = options.operator ?? defaultOperator(problem, transforms);
  const operator =
    elements === undefined ? inner : algebraOperator(elements.algebra, inner, elements.conjugated);
  const custom = options.epilogue !== undefined && "run" in options.epilogue ? options.epilogue : undefined;
  const steps = (
    custom === undefined ? ((options.epilogue ?? []) as readonly (EpilogueStep | Transform)[]) : []
  ).map(stepOf);
  if (custom !== undefined && options.gate !== undefined) {
    throw new UnsupportedError(
      `gemm: gate joins columns before the epilogue's steps, and the ${custom.name} epilogue has none; do what the gate does in it`,
    );
  }
  checkSteps(steps, problem, given);
  if (elements !== undefined) checkElementwise(elements.algebra, { custom, steps, gate: options.gate });
  const base = {
    a: kindOf(problem.a),
    b: kindOf(problem.b),
    c: c === undefined ? undefined : kindOf(c),
    types,
    operator,
    transforms,
    epilogue: custom ?? (elements === undefined ? defaultEpilogue : algebraEpilogue(elements.algebra)),
    gate: options.gate,
    steps: steps.map((step) => stepKind(step, { m, n: columns })),
    predicate,
  };
  const outputType = options.type ?? problem.outputType;
  const own = options.d instanceof DeviceArray ? options.d : given?.array;
  const result = own ?? device.empty(outputType, resultExtents(of));
  const d = given ?? resultOperand(result, "D", of);
  try {
    const batch = batchOf(problem.outer, { a: problem.a, b: problem.b, c, d });
    const extras = withResultExtras(streams, c, d);
    const partial = { ...base, batch: batch.scheme, d: kindOf(d), extras: mapExtras(extras, extraKind) };
    // With alpha = 0 there are no K steps, and A and B are not read.
    const k = Number(alpha) === 0 ? 0 : problem.k;
    const launch = { problem, columns, batch, k, c, d, alpha, beta, steps, extras };
    const { schedule, refused, fitting } = chooseSchedule(partial, launch, options, device.facts);
    const params =
      options.params ??
      tunedParams(schedule, fitting, launch) ??
      schedule.params(fitting, launch, device.facts);
    const kind = { ...fitting, schedule: schedule.name, params };
    schedule.check(kind, device.facts, launch);
    return { ...launch, kind, schedule, refused, result, ownD: given === undefined };
  } catch (error) {
    if (given === undefined) result.dispose();
    throw error;
  }
}

/** Transforms and predicate as they are compiled in, and what they and the layouts take at run time. */
function components(
  { a, b, device, m, n, k }: Problem,
  columns: number,
  options: GemmOptions,
  factors: ExtrasOf<ExtraArgument>,
): Pick<GemmKind, "transforms" | "predicate"> & Pick<GemmLaunch, "extras"> {
  checkTransforms(options.transforms ?? {}, { a: [m, k], b: [k, n], c: [m, columns], d: [m, columns] });
  const { transforms, extras } = unboundTransforms(options.transforms ?? {});
  const given = options.predicate ?? everyStep;
  const predicate = "component" in given ? given : { component: given, extras: [] };
  const all = { ...extras, ...factors, a: a.extras, b: b.extras, predicate: predicate.extras };
  for (const [owner, list] of Object.entries(all)) checkExtras(owner, list, device);
  const taken = Object.entries(all).filter(([, list]) => list.length > 0);
  return { transforms, predicate: predicate.component, extras: Object.fromEntries(taken) };
}

/** Streams that a transform can be on. */
const streams: Readonly<Record<"a" | "b" | "c" | "d", readonly string[]>> = {
  a: ["globalToShared", "sharedToRegister"],
  b: ["globalToShared", "sharedToRegister"],
  c: ["globalToShared", "sharedToRegister"],
  d: ["registerToShared", "sharedToGlobal"],
};

/** Streams are known by name, and what transforms are bound to goes with the matrix of their stream. */
function checkTransforms(
  transforms: GivenTransforms,
  extents: Readonly<Record<string, readonly [rows: number, columns: number]>>,
): void {
  for (const [operand, stages] of Object.entries(transforms)) {
    const known = streams[operand as keyof typeof streams];
    if (known === undefined || (typeof stages !== "object" && stages !== undefined)) {
      throw new ArgumentError(
        `gemm: transforms are given for each stream, such as { a: { globalToShared: (x) => x.mul(2) } }; transforms.${operand} is ${known === undefined ? "no operand" : `a ${typeof stages}`}`,
      );
    }
    const unknown = Object.keys(stages ?? {}).find((stage) => !known.includes(stage));
    if (unknown !== undefined) {
      throw new ArgumentError(
        `gemm: transforms.${operand} has no stream ${unknown}; there are ${known.join(" and ")}`,
      );
    }
    const [rows, columns] = extents[operand];
    for (const [stage, transform] of Object.entries(stages ?? {}) as [string, GivenTransform | undefined][]) {
      if (typeof transform === "object") transform.check?.(`transforms.${operand}.${stage}`, rows, columns);
    }
  }
}

/** Extras with those of C's and D's layouts. */
function withResultExtras(
  extras: ExtrasOf<ExtraArgument>,
  c: MatrixOperand | undefined,
  d: MatrixOperand,
): ExtrasOf<ExtraArgument> {
  const own = { c: c?.extras ?? [], d: d.extras };
  return { ...extras, ...Object.fromEntries(Object.entries(own).filter(([, list]) => list.length > 0)) };
}

/** A step's arrays live on the problem's device; what a step writes is nobody else's. */
function checkSteps(steps: readonly EpilogueStep[], problem: Problem, d: MatrixOperand | undefined): void {
  for (const { behaviour, arrays } of steps) {
    arrays.forEach((array, j) => {
      if (typeof array === "number") return;
      if (array.device !== problem.device) {
        throw new ArgumentError(
          `gemm: ${behaviour.name} uses an array on ${array.device.name}; A and B are on ${problem.device.name}`,
        );
      }
      if (behaviour.operands[j].access === "read") return;
      if (problem.outer.length > 0) {
        throw new UnsupportedError(
          `gemm: ${behaviour.name} writes one array, and every matrix of the batch [${problem.outer.join(", ")}] would; multiply slice by slice`,
        );
      }
      const others = [problem.a.array, problem.b.array, ...(d === undefined ? [] : [d.array])];
      if (others.some((other) => other?.allocation === array.allocation)) {
        throw new ArgumentError(
          `gemm: ${behaviour.name} writes to the memory of A, B or D; give it an array of its own`,
        );
      }
    });
  }
}

export function chooseSchedule(
  kind: UnscheduledKind,
  launch: GemmLaunch,
  options: GemmOptions,
  facts: TargetFacts,
): Pick<Resolved, "schedule" | "refused"> & { readonly fitting: UnscheduledKind } {
  const refused: { readonly schedule: string; readonly reason: string }[] = [];
  const given = options.schedule;
  if (given !== undefined) {
    const schedule = schedules.find(({ name }) => name === given);
    if (schedule === undefined) {
      throw new ArgumentError(
        `gemm: no schedule ${JSON.stringify(given)}; there are ${schedules.map(({ name }) => name).join(", ")}`,
      );
    }
    const fitting = offered(schedule, kind, options, facts);
    const reason = forgone(schedule, options) ?? schedule.refusal(fitting, launch, facts);
    if (reason !== undefined)
      throw new UnsupportedError(`gemm: the ${given} schedule cannot serve: ${reason}`);
    return { schedule, refused, fitting };
  }
  for (const schedule of schedules) {
    const last = schedule === schedules.at(-1);
    const fitting = offered(schedule, kind, options, facts);
    const reason =
      forgone(schedule, options) ??
      schedule.refusal(fitting, launch, facts) ??
      schedule.yields?.(fitting, facts) ??
      (last ? undefined : misfit(schedule, fitting, options.params, facts, launch));
    if (reason === undefined) return { schedule, refused, fitting };
    refused.push({ schedule: schedule.name, reason });
  }
  throw new UnsupportedError(
    `gemm: no schedule serves: ${refused.map(({ schedule, reason }) => `${schedule}: ${reason}`).join("; ")}`,
  );
}

/** A kind as a schedule multiplies it: in types of the schedule's own where it has some and none were asked for. */
function offered(
  schedule: Schedule,
  kind: UnscheduledKind,
  { compute, fastAccumulation = false }: GemmOptions,
  facts: TargetFacts,
): UnscheduledKind {
  const types = compute === undefined ? schedule.typesOf?.(kind, facts, fastAccumulation) : undefined;
  return types === undefined ? kind : { ...kind, types };
}

/** Why a schedule is out because of the operator that was asked for. */
function forgone(schedule: Schedule, { operator }: GemmOptions): string | undefined {
  if (operator === undefined || schedule.forgoes?.(operator) !== true) return undefined;
  return `the ${operator.name} operator was asked for`;
}

/** Why params that were given do not fit a schedule; another may take them. */
function misfit(
  schedule: Schedule,
  kind: UnscheduledKind,
  params: GemmParams | undefined,
  facts: TargetFacts,
  launch: GemmLaunch,
): string | undefined {
  if (params === undefined) return undefined;
  try {
    schedule.check({ ...kind, schedule: schedule.name, params }, facts, launch);
    return undefined;
  } catch (error) {
    if (error instanceof ArgumentError) return error.message;
    throw error;
  }
}

function kindOf({ type, layout, alignment }: InputOperand): GemmKind["a"] {
  return { type, layout, alignment };
}

function checkOverlap(d: MatrixOperand, problem: Problem, c: MatrixOperand | undefined): void {
  for (const [name, operand] of [
    ["A", problem.a],
    ["B", problem.b],
  ] as const) {
    if (overlap(d, operand)) {
      throw new ArgumentError(
        `gemm: D overlaps ${name} in memory; blocks would read what others have written. Give another d, or none`,
      );
    }
  }
  if (c !== undefined && overlap(d, c) && !identical(d, c)) {
    throw new ArgumentError(
      "gemm: D overlaps C without being it; D may be exactly C (same elements, same strides), or elsewhere",
    );
  }
}
