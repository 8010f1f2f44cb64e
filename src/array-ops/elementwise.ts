/**
 * @file Element by element: the kernels under map, copy, fill and convert.
 *
 * Every thread takes elements a grid apart. Where all arrays are dense in the same order, positions are linear and
 * several elements go in one access; otherwise each position is taken apart into coordinates.
 */
import { ArgumentError, TypeMismatchError } from "../errors.ts";
import {
  block,
  constant,
  type GlobalArray,
  grid,
  index,
  inout,
  input,
  type Kernel,
  kernel,
  loop,
  output,
  type ParameterDescriptors,
  select,
  thread,
  u32,
  type Value,
  type VectorLanes,
  vector,
  when,
} from "../lang/index.ts";
import { collapse, type DeviceArray } from "../runtime/array.ts";
import type { Device } from "../runtime/device.ts";
import type { Bool, ElementType, I32, Index, StorageType, U32 } from "../types/types.ts";
import { storedType } from "./element-types.ts";
import { blockThreads, threadBlocks } from "./grid.ts";

/** A function of one element of each input. */
export type ElementFunction = (...elements: Value<ElementType>[]) => Value<ElementType>;

/** A number that the function takes after the elements, the same for all of them. */
export interface ScalarInput {
  readonly type: StorageType;
  readonly value: number | bigint;
}

/** What to compute: `target` = `compute` of `inputs`, all of one shape. */
export interface Elementwise {
  readonly compute: ElementFunction;
  readonly inputs: readonly DeviceArray[];
  readonly scalars?: readonly ScalarInput[];
  readonly target: DeviceArray;
}

/** How the arrays of a call lie, as far as the kernel's text depends on it. */
interface Form {
  /** Elements in one access, 0 for arrays that are not dense in the same order. */
  readonly lanes: number;
  /** Dimensions, for `lanes` 0; at least 2. */
  readonly rank: number;
  /** Whether positions need more than 32 bits. */
  readonly wide: boolean;
}

type Kernels = Map<string, Kernel>;
const known: WeakMap<ElementFunction, Kernels> = new WeakMap();

/** Enqueues the computation, compiling its kernel if it is new. */
export async function runElementwise(device: Device, work: Elementwise): Promise<void> {
  const { compute, inputs, scalars = [], target } = work;
  if (target.size === 0) return;
  const arrays = [target, ...inputs];
  const { shape, strides } = collapse(
    target.shape,
    arrays.map((array) => array.strides),
  );
  const wide = target.size > 2 ** 31 - 2 ** 24;
  const isLinear = shape.length === 0 || (shape.length === 1 && strides.every(([stride]) => stride === 1));
  const form: Form = {
    wide,
    lanes: isLinear ? lanesFor(arrays) : 0,
    rank: isLinear ? 0 : Math.max(2, shape.length),
  };
  const types = [target, ...inputs, ...scalars].map(({ type }) => type);
  const program = kernelFor(compute, form, types, inputs.length);
  const named = (list: readonly DeviceArray[]): readonly DeviceArray[] =>
    isLinear ? list : list.map((array, which) => arranged(array, shape, strides[which]!));
  const [to, ...from] = named(arrays);
  const args: Record<string, unknown> = { target: to };
  if (isLinear) args.count = target.size;
  for (const [position, array] of from.entries()) args[`x${position}`] = array;
  for (const [position, { value }] of scalars.entries()) args[`s${position}`] = value;
  const blocks = threadBlocks(device, target.size / Math.max(1, form.lanes));
  await device.run(program, { blocks, args: args as never });
}

/** The array in its collapsed arrangement, of rank 2 at least. */
function arranged(array: DeviceArray, shape: readonly number[], strides: readonly number[]): DeviceArray {
  const missing = Math.max(0, 2 - shape.length);
  const ones = Array.from({ length: missing }, () => 1);
  return array.strided([...shape, ...ones], [...strides, ...ones]);
}

/** How many elements can go in one access: at most 16 bytes of the widest type, and every array must begin at a multiple. */
function lanesFor(arrays: readonly DeviceArray[]): number {
  const widest = Math.max(...arrays.map((array) => array.type.bits / 8));
  let lanes = Math.min(8, 16 / widest);
  while (lanes > 1 && !arrays.every((array) => array.offset % lanes === 0)) lanes /= 2;
  return lanes;
}

function kernelFor(
  compute: ElementFunction,
  form: Form,
  types: readonly StorageType[],
  inputs: number,
): Kernel {
  const kernels = known.get(compute) ?? new Map<string, Kernel>();
  known.set(compute, kernels);
  const key = `${form.lanes}.${form.rank}.${form.wide}.${inputs}.${types.map(({ name }) => name).join(".")}`;
  let found = kernels.get(key);
  if (found === undefined) {
    found =
      form.lanes > 0
        ? linearKernel(compute, form, types, inputs)
        : stridedKernel(compute, form, types, inputs);
    kernels.set(key, found);
  }
  return found;
}

interface Declared {
  readonly params: ParameterDescriptors;
  readonly arrays: readonly string[];
  readonly scalars: readonly string[];
}

function declare([target, ...rest]: readonly StorageType[], inputs: number, rank: number): Declared {
  const arrays = rest.slice(0, inputs).map((_, position) => `x${position}`);
  const scalars = rest.slice(inputs).map((_, position) => `s${position}`);
  const params: Record<string, ParameterDescriptors[string]> = { target: output(target!, rank) };
  for (const [position, name] of arrays.entries()) params[name] = input(rest[position]!, rank);
  for (const [position, name] of scalars.entries())
    params[name] = rest[inputs + position]! as ParameterDescriptors[string];
  return { params, arrays, scalars };
}

/** The names of a traced kernel's arguments lead to arrays and values of types that only run time knows. */
interface Bound {
  readonly target: GlobalArray<StorageType>;
  readonly inputs: readonly GlobalArray<StorageType>[];
  readonly scalars: readonly Value<ElementType>[];
}

function bound(args: Readonly<Record<string, unknown>>, { arrays, scalars }: Declared): Bound {
  return {
    target: args.target as GlobalArray<StorageType>,
    inputs: arrays.map((name) => args[name] as GlobalArray<StorageType>),
    scalars: scalars.map((name) => args[name] as Value<ElementType>),
  };
}

function linearKernel(
  compute: ElementFunction,
  form: Form,
  types: readonly StorageType[],
  inputs: number,
): Kernel {
  const { lanes, wide } = form;
  const declared = declare(types, inputs, 0);
  const counter = wide ? index : u32;
  return kernel("elementwise", {
    params: { ...declared.params, count: counter },
    block: blockThreads,
    body(args) {
      const { target, inputs: from, scalars } = bound(args, declared);
      const count = args.count as unknown as Value<U32>;
      const element = (position: Value<U32>): void => {
        const elements = from.map((array) => array.loadAt(position) as Value<ElementType>);
        target.storeAt(position, stored(compute(...elements, ...scalars), target.type));
      };
      const first = toCounter(block.id.x, counter).mul(blockThreads).add(toCounter(thread.index, counter));
      const step = toCounter(grid.size.x, counter).mul(blockThreads);
      if (lanes === 1) {
        loop({ from: first, to: count, step }, element);
        return;
      }
      const width = lanes as VectorLanes;
      const groups = count.div(lanes);
      loop({ from: first, to: groups, step }, (group) => {
        const position = group.mul(lanes);
        const loaded = from.map((array) => array.loadVectorAt(width, position).elements());
        const results = Array.from({ length: lanes }, (_, lane) =>
          stored(compute(...loaded.map((list) => list[lane] as Value<ElementType>), ...scalars), target.type),
        );
        target.storeVectorAt(position, vector(...results));
      });
      const rest = groups.mul(lanes).add(first);
      when(rest.lt(count), () => element(rest));
    },
  }) as unknown as Kernel;
}

function stridedKernel(
  compute: ElementFunction,
  form: Form,
  types: readonly StorageType[],
  inputs: number,
): Kernel {
  const { rank, wide } = form;
  const declared = declare(types, inputs, rank);
  const counter = wide ? index : u32;
  return kernel("elementwise_strided", {
    params: declared.params,
    block: blockThreads,
    body(args) {
      const { target, inputs: from, scalars } = bound(args, declared);
      const extents = Array.from({ length: rank }, (_, dimension) =>
        toCounter(target.size(dimension), counter),
      );
      const count = extents.reduce((product, extent) => product.mul(extent));
      const first = toCounter(block.id.x, counter).mul(blockThreads).add(toCounter(thread.index, counter));
      const step = toCounter(grid.size.x, counter).mul(blockThreads);
      loop({ from: first, to: count, step }, (position) => {
        const at = coordinates(position, extents);
        const elements = from.map((array) => array.load(...at) as Value<ElementType>);
        target.store(...at, stored(compute(...elements, ...scalars), target.type));
      });
    },
  }) as unknown as Kernel;
}

/** i32 counts as u32, or as index where positions are wide; the two are typed alike to spare every caller the choice. */
function toCounter(value: Value<I32>, type: U32 | Index): Value<U32> {
  return value.to(type) as unknown as Value<U32>;
}

/** Coordinates of a row-major position. */
export function coordinates(position: Value<U32>, extents: readonly Value<U32>[]): Value<U32>[] {
  const result: Value<U32>[] = [];
  let rest = position;
  for (let dimension = extents.length - 1; dimension > 0; dimension--) {
    const quotient = rest.div(extents[dimension]!);
    result.unshift(rest.sub(quotient.mul(extents[dimension]!)));
    rest = quotient;
  }
  return [rest, ...result];
}

/** A result as an element of the target. */
export function stored<T extends StorageType>(result: Value<ElementType>, type: T): Value<T> {
  const value =
    result.type.name === "bool" ? select(result as unknown as Value<Bool>, constant(u32, 1), 0) : result;
  return (value as Value<ElementType>).to(type);
}

const resultTypes: WeakMap<ElementFunction, Map<string, StorageType>> = new WeakMap();

/**
 * The type of array that holds a function's results, found by tracing it once.
 * @throws TypeMismatchError when it returns no value, or one that memory has no form of
 */
export function resultType(
  device: Device,
  compute: ElementFunction,
  types: readonly StorageType[],
): StorageType {
  const key = types.map(({ name }) => name).join(".");
  const byTypes = resultTypes.get(compute) ?? new Map<string, StorageType>();
  resultTypes.set(compute, byTypes);
  const found = byTypes.get(key) ?? probe(device, compute, types);
  byTypes.set(key, found);
  return found;
}

function probe(device: Device, compute: ElementFunction, types: readonly StorageType[]): StorageType {
  let found: StorageType | undefined;
  const params = Object.fromEntries(types.map((type, position) => [`x${position}`, inout(type, 0)]));
  const trial = kernel("elementwise_trial", {
    params,
    block: 1,
    body(args) {
      const elements = Object.values(args).map(
        (array) => (array as GlobalArray<StorageType>).loadAt(0) as Value<ElementType>,
      );
      const result: unknown = compute(...elements);
      const type = (result as Value<ElementType> | undefined)?.type;
      if (typeof type !== "object") {
        throw new ArgumentError(
          `the function must return a value of the kernel language, such as x.add(1), not ${String(result)}`,
        );
      }
      found = storedType(type);
      if (found === undefined) {
        throw new TypeMismatchError(
          `the function returns ${type.name}, which arrays cannot hold; convert it, for example with .to(i32)`,
        );
      }
      // A comparison that nothing used would be taken for a mistake.
      if (type.name === "bool") stored(result as Value<ElementType>, found);
    },
  });
  trial.trace(device.facts);
  return found!;
}
