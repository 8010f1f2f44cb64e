/**
 * @file Products with 4-bit weights: D = epilogue(alpha · X · W), X of activations in f16 or bf16, W an {@link Int4Weights}.
 */
import {
  ArgumentError,
  DisposedError,
  ShapeError,
  TypeMismatchError,
  UnsupportedError,
} from "../../errors.ts";
import { byteSize, isFloat, type Kernel, type StorageType } from "../../lang/index.ts";
import { DeviceArray } from "../../runtime/array.ts";
import type { CompiledKernel } from "../../runtime/device.ts";
import type { TargetFacts } from "../../target/facts.ts";
import { type EpilogueStep, stepArguments, stepKind, stepOf } from "../epilogues/step.ts";
import { commonAlignment } from "../extras.ts";
import { stepKey } from "../identity.ts";
import { bindStages } from "../stages.ts";
import type { Transform } from "../transforms.ts";
import { type Int4Kind, int4Instruction, int4Kernel, int4Shape, rowsAtOnce } from "./int4-kernel.ts";
import { blockColumns, Int4Weights } from "./int4-weights.ts";

/** What {@link gemmInt4} can be told. */
export interface Int4GemmOptions {
  /** Factor of the product; 1 unless given. */
  readonly alpha?: number;
  /** Where the result goes, [M, N] with neighbouring columns; a new contiguous array unless given. */
  readonly d?: DeviceArray;
  /** Type of a new D; X's unless given. */
  readonly type?: StorageType;
  /** What happens to each result before it is converted: steps that read, such as `bias`, and functions of an element. */
  readonly epilogue?: readonly (EpilogueStep | Transform)[];
  /** Stops waiting for the compiler. */
  readonly signal?: AbortSignal;
}

/** A product with 4-bit weights, ready to be enqueued. */
export interface Int4GemmPlan {
  readonly d: DeviceArray;
  readonly compiled: CompiledKernel | undefined;
  run(): void;
  explain(): string;
  /** Gives back what the plan holds; D stays. */
  dispose(): void;
  [Symbol.dispose](): void;
}

/**
 * D = epilogue(alpha · X · W). X is [M, K], or [K] for one row, in f16 or bf16 like the scales of the weights; a few rows
 * stream the weights once at the memory's speed, and many are computed 32 at a time. Sums are made in f32: of each group's
 * products with the integers, which are exact in X's type, and then of the scaled groups. Resolves when the work is enqueued.
 * @throws ShapeError, TypeMismatchError, ArgumentError, UnsupportedError before anything reaches the device
 */
export async function gemmInt4(
  x: DeviceArray,
  weights: Int4Weights,
  options: Int4GemmOptions = {},
): Promise<DeviceArray> {
  using plan = await planGemmInt4(x, weights, options);
  plan.run();
  return plan.d;
}

/** Plans {@link gemmInt4}: checks, chooses, compiles and binds. */
export async function planGemmInt4(
  x: DeviceArray,
  weights: Int4Weights,
  options: Int4GemmOptions = {},
): Promise<Int4GemmPlan> {
  checkOperands(x, weights);
  const { facts } = x.device;
  if (int4Instruction(x.type, facts) === undefined) {
    throw new UnsupportedError(
      `gemmInt4: ${facts.name} has no mma instruction of ${x.type.name}; weights.read() gives the numbers for a product of another type`,
    );
  }
  const { k, n } = weights;
  const m = x.rank === 1 ? 1 : x.shape[0]!;
  const shape = x.rank === 1 ? [n] : [m, n];
  const steps = (options.epilogue ?? []).map(stepOf);
  const kinds = steps.map((step) => stepKind(step, { m, n }));
  for (const { behaviour, operands } of kinds) {
    if (behaviour.collects === undefined && operands.every(({ access }) => access === "read")) continue;
    throw new UnsupportedError(
      `gemmInt4: ${behaviour.name} writes beside D, which this product's epilogue cannot; reduce or copy D afterwards`,
    );
  }
  checkArrays(steps, x);
  const { alpha = 1 } = options;
  if (typeof alpha !== "number" || Number.isNaN(alpha))
    throw new ArgumentError(`gemmInt4: alpha is a number, not ${String(alpha)}`);
  const type = options.d?.type ?? options.type ?? x.type;
  if (!isFloat(type)) throw new TypeMismatchError(`gemmInt4: D has a float type, not ${type.name}`);
  if (options.d !== undefined) checkResult(options.d, shape, x, weights);
  const d = options.d ?? x.device.empty(type, shape);
  try {
    const kind = kindOf(x, weights, { m, d: type, steps: kinds }, facts);
    const blocks = [
      Math.ceil(Math.ceil(n / blockColumns) / kind.columns),
      Math.ceil(m / (kind.rows * rowsAtOnce)),
    ] as const;
    const stage = {
      purpose: "product with 4-bit weights",
      kernel: kernelFor(kind),
      arguments: {
        x,
        words: weights.words,
        scales: weights.scales,
        d,
        m,
        n,
        k,
        leadingX: x.rank === 1 ? k : x.strides[0]!,
        leadingD: d.rank === 1 ? n : d.strides[0]!,
        alpha,
        ...stepArguments(steps),
      },
      blocks,
    };
    const bound = await bindStages(x.device, m === 0 ? [] : [stage], options.signal);
    const [compiled] = bound.compiled;
    return planOf(d, compiled, bound, () => explain(x, weights, kind, blocks, compiled));
  } catch (error) {
    if (options.d === undefined) d.dispose();
    throw error;
  }
}

function planOf(
  d: DeviceArray,
  compiled: CompiledKernel | undefined,
  bound: { launch(): void; dispose(): void },
  explained: () => string,
): Int4GemmPlan {
  let disposed = false;
  const dispose = (): void => {
    if (!disposed) bound.dispose();
    disposed = true;
  };
  return {
    d,
    compiled,
    run() {
      if (disposed) throw new DisposedError("this plan of gemmInt4 was disposed");
      bound.launch();
    },
    explain: explained,
    dispose,
    [Symbol.dispose]: dispose,
  };
}

/** Eights of rows that a block computes at most, and blocks of columns by them: a lane has registers for so many sums. */
const mostRows = 4;
const columnsFor = (rows: number): readonly number[] => (rows <= 2 ? [4, 2, 1] : [2, 1]);

/** The widest blocks that still give most multiprocessors one. */
function kindOf(
  x: DeviceArray,
  { n, group }: Int4Weights,
  { m, d, steps }: { readonly m: number } & Pick<Int4Kind, "d" | "steps">,
  facts: TargetFacts,
): Int4Kind {
  const rows = Math.min(mostRows, Math.max(1, Math.ceil(m / rowsAtOnce)));
  const across = Math.ceil(n / blockColumns);
  const down = Math.ceil(m / (rows * rowsAtOnce));
  const choices = columnsFor(rows).filter((columns) => across % columns === 0);
  const busy = choices.find((columns) => (across / columns) * down * 1.25 >= facts.machine.multiprocessors);
  const lines = [x.offset, ...(x.rank === 1 ? [] : [x.strides[0]!])].map((step) => step * byteSize(x.type));
  return {
    x: x.type,
    d,
    group,
    aligned: commonAlignment(lines) >= 16,
    columns: busy ?? choices.at(-1) ?? 1,
    rows,
    steps,
  };
}

const kernels = new Map<string, Kernel>();

/** The same kernel for the same kind, so that it is compiled once. */
function kernelFor(kind: Int4Kind): Kernel {
  const { x, d, group, aligned, columns, rows, steps } = kind;
  const key = [x.name, d.name, group, aligned, columns, rows, ...steps.map(stepKey)].join(" ");
  let found = kernels.get(key);
  if (found === undefined) {
    found = int4Kernel(kind);
    kernels.set(key, found);
  }
  return found;
}

function explain(
  x: DeviceArray,
  { k, n, group, bytes }: Int4Weights,
  kind: Int4Kind,
  blocks: readonly [number, number],
  compiled: CompiledKernel | undefined,
): string {
  const { columns, rows, aligned } = kind;
  const { warps, stages } = int4Shape(kind, x.device.facts);
  return [
    `gemmInt4 of ${x.label} with ${k} x ${n} 4-bit weights, a scale for ${group} of K, ${bytes} bytes`,
    `operator   mma m16n8k16, weights unpacked in registers, X ${aligned ? "16 bytes" : "an element"} at a time`,
    `blocks     ${blocks[0]} x ${blocks[1]} of ${columns * blockColumns} columns and ${rows * rowsAtOnce} rows, ${warps} warps share K, ${stages} stages each`,
    ...(compiled?.registersPerThread === undefined
      ? []
      : [`registers  ${compiled.registersPerThread}, ${compiled.spilledBytes ?? 0} bytes spilled`]),
  ].join("\n");
}

// Checks --------------------------------------------------------------------------------------------------------------

function checkOperands(x: DeviceArray, weights: Int4Weights): void {
  if (!(x instanceof DeviceArray)) throw new ArgumentError(`gemmInt4: X is a device array, not ${String(x)}`);
  if (!(weights instanceof Int4Weights))
    throw new ArgumentError(
      `gemmInt4: weights are made by quantiseInt4() or int4Weights(), not ${String(weights)}`,
    );
  x.check("gemmInt4: X");
  weights.words.check("gemmInt4: the weights");
  if (x.device !== weights.device)
    throw new ArgumentError(
      `gemmInt4: X is on ${x.device.name} and the weights on ${weights.device.name}; both must be on one device`,
    );
  if (x.type !== weights.type)
    throw new TypeMismatchError(
      `gemmInt4: X (${x.label}) and the scales (${weights.type.name}) have one type; convert() of tilewright/array-ops converts X`,
    );
  if ((x.rank !== 1 && x.rank !== 2) || x.shape.at(-1) !== weights.k)
    throw new ShapeError(
      `gemmInt4: X is [M, ${weights.k}] or [${weights.k}] for weights of ${weights.k} x ${weights.n}; it is ${x.label}`,
    );
  if (x.strides.at(-1) !== 1)
    throw new ShapeError(
      `gemmInt4: X's rows have neighbouring elements; ${x.label} has stride ${x.strides.at(-1)}, and copy() of tilewright/array-ops makes them so`,
    );
}

function checkArrays(steps: readonly EpilogueStep[], x: DeviceArray): void {
  for (const { behaviour, arrays } of steps) {
    for (const array of arrays) {
      if (typeof array === "number" || array.device === x.device) continue;
      throw new ArgumentError(
        `gemmInt4: ${behaviour.name} uses an array on ${array.device.name}; X is on ${x.device.name}`,
      );
    }
  }
}

function checkResult(d: DeviceArray, shape: readonly number[], x: DeviceArray, weights: Int4Weights): void {
  if (!(d instanceof DeviceArray)) throw new ArgumentError(`gemmInt4: D is a device array, not ${String(d)}`);
  d.check("gemmInt4: D");
  if (d.device !== x.device)
    throw new ArgumentError(`gemmInt4: D is on ${d.device.name}, and X on ${x.device.name}`);
  const fits = d.rank === shape.length && d.shape.every((extent, i) => extent === shape[i]);
  if (!fits || (shape.at(-1)! > 1 && d.strides.at(-1) !== 1))
    throw new ShapeError(`gemmInt4: D is [${shape.join(", ")}] with neighbouring columns; it is ${d.label}`);
  if ([x, weights.words, weights.scales].some((other) => other.allocation === d.allocation))
    throw new ArgumentError(
      "gemmInt4: D lies in the memory of X or the weights; give it an array of its own",
    );
}
