/**
 * @file `reduce`: sums, extremes and any associative function, over all of an array or some of its dimensions.
 *
 * The order of the operations depends on the array's shape and strides alone, so that a repeated reduction gives the
 * same bits: each task reduces a stretch of elements, a second pass reduces the tasks' results.
 */
import { ArgumentError, ShapeError, TypeMismatchError } from "../errors.ts";
import {
  block,
  grid,
  input,
  type Kernel,
  kernel,
  loop,
  output,
  shared,
  thread,
  u32,
  type Value,
  type Variable,
  variable,
  when,
} from "../lang/index.ts";
import { collapse, type DeviceArray } from "../runtime/array.ts";
import type { Device } from "../runtime/device.ts";
import { integerRange } from "../types/integer-range.ts";
import type { ElementType, F32, StorageType, U32 } from "../types/types.ts";
import { type Accumulated, accumulatedType } from "./element-types.ts";
import { coordinates } from "./elementwise.ts";
import { blockThreads, taskBlocks, threadBlocks } from "./grid.ts";

/** Reductions that have a name. */
export type ReductionName = "sum" | "product" | "min" | "max";

/** A reduction of one's own. Keep its functions in constants: they are traced once for each identity. */
export interface Reducer<T extends StorageType, A extends StorageType> {
  /** Type that results are kept in between. */
  readonly accumulator: A;
  /** What an element enters as; a conversion to the accumulator's type unless given. */
  readonly map?: (element: Value<T>) => Value<A>;
  /** Associative and commutative. */
  readonly combine: (a: Value<A>, b: Value<A>) => Value<A>;
  /** What leaves the other operand as it is. */
  readonly identity: number | bigint;
}

/** Options of {@link reduce}. */
export interface ReduceOptions<V extends StorageType> {
  /** Dimension or dimensions to reduce; they vanish from the shape. All unless given. Negative ones count from the last. */
  readonly axis?: number | readonly number[];
  /** Element type of the result. Unless given: the accumulator's, and the array's own for min and max. */
  readonly type?: V;
}

/** Type of a named reduction's result. */
export type Reduced<T extends StorageType, N extends ReductionName> = N extends "min" | "max"
  ? T
  : Accumulated<T>;

/**
 * Reduces an array. Sums and products of floats of at most 16 bits are kept in f32, of integers of at most 16 bits in
 * i32 or u32 and wrap. min and max give the number where one side is NaN. Without elements the result is the identity:
 * 0, 1, or the type's largest or smallest value.
 *
 *     await reduce(a, "sum");                 // rank 0
 *     await reduce(a, "max", { axis: -1 });   // one for each row
 *
 * @throws ShapeError for an axis that the array does not have
 */
export function reduce<T extends StorageType, N extends ReductionName, V extends StorageType = Reduced<T, N>>(
  array: DeviceArray<T>,
  reduction: N,
  options?: ReduceOptions<V>,
): Promise<DeviceArray<V>>;
export function reduce<T extends StorageType, A extends StorageType, V extends StorageType = A>(
  array: DeviceArray<T>,
  reduction: Reducer<T, A>,
  options?: ReduceOptions<V>,
): Promise<DeviceArray<V>>;
export async function reduce(
  array: DeviceArray,
  reduction: ReductionName | object,
  { axis, type }: ReduceOptions<StorageType> = {},
): Promise<DeviceArray<never>> {
  array.check("reduce()");
  const reducer = typeof reduction === "string" ? namedReducer(reduction, array.type) : anyReducer(reduction);
  const keepsType = reduction === "min" || reduction === "max";
  const axes = axesOf(array, axis);
  const kept = array.shape.map((_, dimension) => dimension).filter((dimension) => !axes.includes(dimension));
  const target = array.device.empty(
    type ?? (keepsType ? array.type : reducer.accumulator),
    kept.map((dimension) => array.shape[dimension]!),
  );
  if (target.size > 0) await runReduction(array, kept, axes, reducer, target);
  return target as DeviceArray<never>;
}

/** The reduced dimensions in rising order. */
function axesOf(array: DeviceArray, axis: number | readonly number[] | undefined): readonly number[] {
  if (axis === undefined) return array.shape.map((_, dimension) => dimension);
  const given = typeof axis === "number" ? [axis] : axis;
  const axes = given.map((dimension) => (dimension < 0 ? dimension + array.rank : dimension));
  for (const [position, dimension] of axes.entries()) {
    if (!Number.isInteger(dimension) || dimension < 0 || dimension >= array.rank) {
      throw new ShapeError(`${array.label} has no dimension ${given[position]} to reduce`);
    }
  }
  if (new Set(axes).size !== axes.length)
    throw new ShapeError(`reduce() got one dimension twice: [${given.join(", ")}]`);
  return [...axes].sort((a, b) => a - b);
}

// Reducers ----------------------------------------------------------------------------------------------------------------

/** A reducer whose types TypeScript has checked already. */
interface AnyReducer {
  readonly accumulator: StorageType;
  readonly map: (element: Value<ElementType>) => Value<ElementType>;
  readonly combine: (a: Value<StorageType>, b: Value<StorageType>) => Value<StorageType>;
  readonly identity: number | bigint;
}

const same = (element: Value<ElementType>): Value<ElementType> => element;

function anyReducer(given: object): AnyReducer {
  const reducer = given as Partial<AnyReducer>;
  if (
    typeof reducer !== "object" ||
    typeof reducer.combine !== "function" ||
    typeof reducer.accumulator !== "object"
  ) {
    throw new ArgumentError(
      'reduce() takes "sum", "product", "min", "max", or { accumulator, identity, combine, map }',
    );
  }
  return { ...reducer, map: reducer.map ?? same } as unknown as AnyReducer;
}

/** Stands for any arithmetic type: the operators check the real one while tracing. */
type Arithmetic = Value<F32>;

const combinations: { readonly [N in ReductionName]: (a: Arithmetic, b: Arithmetic) => Arithmetic } = {
  sum: (a, b) => a.add(b),
  product: (a, b) => a.mul(b),
  min: (a, b) => a.min(b),
  max: (a, b) => a.max(b),
};

function namedReducer(name: ReductionName, type: StorageType): AnyReducer {
  if (!(name in combinations))
    throw new ArgumentError(`reduce() knows sum, product, min and max, not ${name}`);
  const accumulator = accumulatedType(type);
  const combine = combinations[name] as unknown as AnyReducer["combine"];
  return { accumulator, map: same, combine, identity: identityOf(name, accumulator) };
}

function identityOf(name: ReductionName, type: StorageType): number | bigint {
  if (name === "sum") return 0;
  if (name === "product") return 1;
  const range = integerRange(type);
  if (range === undefined) return name === "min" ? Infinity : -Infinity;
  const extreme = name === "min" ? range.greatest : range.least;
  return type.bits === 64 ? extreme : Number(extreme);
}

// Passes ------------------------------------------------------------------------------------------------------------------

/** How one pass goes about its outputs. */
interface Pass {
  /** A task is an output's stretch: done by one thread, or by a block. */
  readonly by: "thread" | "block";
  /** Stretches of each output. */
  readonly stretches: number;
  /** Elements of a stretch. */
  readonly length: number;
}

/**
 * A thread reduces an output's stretch where neighbouring outputs lie together or there is little to reduce; a block
 * where the elements of one output lie together. Enough stretches to keep a device busy; the numbers are the same for
 * every device, since the order of operations follows from them.
 */
function passFor(outputs: number, count: number, areOutputsDense: boolean): Pass {
  const by = count <= 64 || (areOutputsDense && outputs >= 32) ? "thread" : "block";
  const [tasks, shortest] = by === "thread" ? [2 ** 16, 64] : [2 ** 10, 2 ** 11];
  const wanted = Math.max(1, Math.min(Math.ceil(tasks / outputs), Math.ceil(count / shortest)));
  const length = Math.max(1, Math.ceil(count / wanted));
  return { by, length, stretches: Math.max(1, Math.ceil(count / length)) };
}

/** Dimensions as a kernel sees them: those of the outputs, then those reduced, at least one of each. */
interface Arrangement {
  readonly array: DeviceArray;
  readonly outputRank: number;
  readonly outputs: number;
  readonly count: number;
  readonly areOutputsDense: boolean;
}

function arrange(array: DeviceArray, kept: readonly number[], axes: readonly number[]): Arrangement {
  const pick = (
    dimensions: readonly number[],
  ): { readonly shape: readonly number[]; readonly strides: readonly number[] } => {
    const { shape, strides } = collapse(
      dimensions.map((dimension) => array.shape[dimension]!),
      [dimensions.map((dimension) => array.strides[dimension]!)],
    );
    return shape.length > 0 ? { shape, strides: strides[0]! } : { shape: [1], strides: [1] };
  };
  const [outer, inner] = [pick(kept), pick(axes)];
  const product = (shape: readonly number[]): number => shape.reduce((size, extent) => size * extent, 1);
  return {
    array: array.strided([...outer.shape, ...inner.shape], [...outer.strides, ...inner.strides]),
    outputRank: outer.shape.length,
    outputs: product(outer.shape),
    count: product(inner.shape),
    areOutputsDense: outer.strides.at(-1) === 1 && outer.shape.at(-1)! > 1 && inner.strides.at(-1) !== 1,
  };
}

async function runReduction(
  array: DeviceArray,
  kept: readonly number[],
  axes: readonly number[],
  reducer: AnyReducer,
  target: DeviceArray,
): Promise<void> {
  const { device } = array;
  const arranged = arrange(array, kept, axes);
  const pass = passFor(arranged.outputs, arranged.count, arranged.areOutputsDense);
  if (pass.stretches * arranged.outputs >= 2 ** 31 || arranged.count >= 2 ** 31) {
    throw new ShapeError(
      `reduce() of ${array.label}: more than 2^31 elements for one result, or results; reduce in parts`,
    );
  }
  if (pass.stretches === 1) {
    await runPass(device, arranged, pass, reducer, target);
    return;
  }
  const { outputs } = arranged;
  using partial = device.empty(reducer.accumulator, [outputs, pass.stretches]);
  await runPass(device, arranged, pass, reducer, partial);
  const second = {
    by: pass.stretches <= 64 ? "thread" : "block",
    stretches: 1,
    length: pass.stretches,
  } as const;
  await runPass(device, arrange(partial, [0], [1]), second, { ...reducer, map: same }, target);
}

async function runPass(
  device: Device,
  { array, outputRank, outputs, count }: Arrangement,
  { by, stretches, length }: Pass,
  reducer: AnyReducer,
  target: DeviceArray,
): Promise<void> {
  const program = kernelFor(reducer, by, array, outputRank, target.type);
  const tasks = outputs * stretches;
  await device.run(program, {
    blocks: by === "thread" ? threadBlocks(device, tasks) : taskBlocks(device, tasks),
    args: { source: array, target, stretches, length, count, tasks } as never,
  });
}

/** Loads in flight in each thread. */
const together = 8;

// Kernels -----------------------------------------------------------------------------------------------------------------

const known: WeakMap<AnyReducer["combine"], WeakMap<AnyReducer["map"], Map<string, Kernel>>> = new WeakMap();

function kernelFor(
  reducer: AnyReducer,
  by: Pass["by"],
  source: DeviceArray,
  outputRank: number,
  type: StorageType,
): Kernel {
  const byMap = known.get(reducer.combine) ?? new WeakMap<AnyReducer["map"], Map<string, Kernel>>();
  known.set(reducer.combine, byMap);
  const kernels = byMap.get(reducer.map) ?? new Map<string, Kernel>();
  byMap.set(reducer.map, kernels);
  const types = [source.type, reducer.accumulator, type].map(({ name }) => name).join(".");
  const key = `${by}.${source.rank}.${outputRank}.${types}.${reducer.identity}`;
  let found = kernels.get(key);
  if (found === undefined) {
    found = makeKernel(reducer, by, source.type, source.rank, outputRank, type);
    kernels.set(key, found);
  }
  return found;
}

function makeKernel(
  reducer: AnyReducer,
  by: Pass["by"],
  sourceType: StorageType,
  rank: number,
  outputRank: number,
  targetType: StorageType,
): Kernel {
  const { accumulator } = reducer;
  return kernel(`reduce_by_${by}`, {
    params: {
      source: input(sourceType, rank),
      target: output(targetType, 0),
      stretches: u32,
      length: u32,
      count: u32,
      tasks: u32,
    },
    block: blockThreads,
    body({ source, target, stretches, length, count, tasks }) {
      const extents = Array.from({ length: rank }, (_, dimension) => source.size(dimension).to(u32));
      const combine = (into: Variable<StorageType>, value: Value<StorageType>): void => {
        into.value = checked(reducer.combine(into.value, value), accumulator);
      };
      /** Reduces every `step`-th element of a task's stretch, from its `first` one. */
      const reduceStretch = (
        task: Value<U32>,
        first: Value<U32> | number,
        step: number,
      ): Variable<StorageType> => {
        const output = task.div(stretches);
        const begin = task.sub(output.mul(stretches)).mul(length);
        const at = coordinates(output, extents.slice(0, outputRank));
        const sum = variable(accumulator, reducer.identity);
        const elementAt = (position: Value<U32>): Value<StorageType> =>
          entered(reducer, source.load(...at, ...coordinates(position, extents.slice(outputRank))));
        const [from, to] = [begin.add(first), begin.add(length).min(count)];
        // Several loads at once, since each takes long; the order of the operations stays.
        const rounds = to
          .max(from)
          .sub(from)
          .div(together * step);
        loop(rounds, (round) => {
          const position = from.add(round.mul(together * step));
          const elements = Array.from({ length: together }, (_, which) =>
            elementAt(position.add(which * step)),
          );
          for (const element of elements) combine(sum, element);
        });
        loop({ from: from.add(rounds.mul(together * step)), to, step }, (position) => {
          combine(sum, elementAt(position));
        });
        return sum;
      };
      if (by === "thread") {
        const first = block.id.x.mul(blockThreads).add(thread.index).to(u32);
        loop({ from: first, to: tasks, step: grid.size.x.mul(blockThreads).to(u32) }, (task) => {
          target.storeAt(task, reduceStretch(task, 0, 1).value.to(targetType));
        });
        return;
      }
      const held = shared(accumulator, blockThreads);
      loop({ from: block.id.x.to(u32), to: tasks, step: grid.size.x.to(u32) }, (task) => {
        const sum = reduceStretch(task, thread.index.to(u32), blockThreads);
        held.store(thread.index, sum.value);
        block.barrier();
        for (let half = blockThreads / 2; half >= 1; half /= 2) {
          when(thread.index.lt(half), () => {
            combine(sum, held.load(thread.index.add(half)));
            held.store(thread.index, sum.value);
          });
          block.barrier();
        }
        when(thread.index.eq(0), () => target.storeAt(task, sum.value.to(targetType)));
      });
    },
  }) as unknown as Kernel;
}

/** An element as the accumulator's type has it. */
function entered(reducer: AnyReducer, element: Value<StorageType>): Value<StorageType> {
  return reducer.map(element as unknown as Value<ElementType>).to(reducer.accumulator);
}

function checked(result: unknown, accumulator: StorageType): Value<StorageType> {
  const type = (result as Value<StorageType> | undefined)?.type;
  if (type !== accumulator) {
    throw new TypeMismatchError(
      `a reduction's combine() returns a value of its accumulator's type ${accumulator.name}, not ${type?.name ?? String(result)}`,
    );
  }
  return result as Value<StorageType>;
}
