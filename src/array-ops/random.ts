/**
 * @file `random`: arrays of random numbers, the same on every device for the same seed.
 *
 * Element i takes word i mod 4 of the Philox block with counter i div 4 and the seed as key.
 */
import { ArgumentError } from "../errors.ts";
import {
  block,
  grid,
  index,
  type Kernel,
  kernel,
  loop,
  mulHigh,
  normalPair,
  output,
  type ParameterDescriptors,
  philox,
  type RandomWords,
  select,
  thread,
  u32,
  u64,
  uniform,
  type Value,
  vector,
  when,
} from "../lang/index.ts";
import type { DeviceArray } from "../runtime/array.ts";
import type { Device } from "../runtime/device.ts";
import { fits } from "../types/convert.ts";
import {
  type ElementType,
  type F32,
  type F64,
  f32,
  f64,
  type StorageType,
  type U32,
  type U64,
} from "../types/types.ts";
import { blockThreads, threadBlocks } from "./grid.ts";

/** Options of {@link random}. */
export interface RandomOptions {
  /** A whole number below 2^64. Default 0. */
  readonly seed?: number | bigint;
  /** Default "uniform". */
  readonly distribution?: "uniform" | "normal";
  /** Least value of a uniform distribution. Default 0. */
  readonly low?: number;
  /** Bound, never reached, of a uniform distribution. Default 1; 2 for integers. */
  readonly high?: number;
  /** Mean of a normal distribution. Default 0. */
  readonly mean?: number;
  /** Standard deviation of a normal distribution. Default 1. */
  readonly deviation?: number;
}

/**
 * An array of random numbers. Uniform floats are multiples of 2^-24 of the range (of 2^-53 for f64) and round into
 * their type; uniform integers are at most 2^32 apart and favour none by more than 2^-32 of their number. Normal
 * numbers are made in f32.
 * @throws ArgumentError
 */
export async function random<T extends StorageType>(
  device: Device,
  type: T,
  shape: readonly number[],
  options: RandomOptions = {},
): Promise<DeviceArray<T>> {
  const { seed = 0, distribution = "uniform" } = options;
  const isSeed = typeof seed === "bigint" || Number.isSafeInteger(seed);
  if (!isSeed || seed < 0 || seed >= 2 ** 64) {
    throw new ArgumentError(`a seed is a whole number from 0 to 2^64 - 1, not ${String(seed)}`);
  }
  const scaling = scalingOf(type, distribution, options);
  const target = device.empty(type, shape);
  const groups = Math.ceil(target.size / 4);
  const [key0, key1] = [Number(BigInt(seed) & 0xffffffffn), Number(BigInt(seed) >> 32n)];
  await device.run(kernelFor(type, distribution), {
    blocks: threadBlocks(device, groups),
    args: { target, count: target.size, key0, key1, ...scaling } as never,
  });
  return target;
}

interface Scaling {
  readonly base: number | bigint;
  readonly scale: number;
}

function scalingOf(type: StorageType, distribution: "uniform" | "normal", options: RandomOptions): Scaling {
  if (distribution === "normal") {
    const { mean = 0, deviation = 1 } = options;
    if (!Number.isFinite(mean) || !(deviation >= 0) || !Number.isFinite(deviation)) {
      throw new ArgumentError(
        `a normal distribution has a finite mean and deviation, not ${mean} and ${deviation}`,
      );
    }
    return { base: mean, scale: deviation };
  }
  if (distribution !== "uniform") {
    throw new ArgumentError(
      `random() knows the distributions "uniform" and "normal", not ${String(distribution)}`,
    );
  }
  const isInteger = type.class !== "float";
  const { low = 0, high = isInteger ? 2 : 1 } = options;
  if (isInteger) {
    if (!fits(low, type) || !fits(high - 1, type) || !(low < high) || high - low > 2 ** 32) {
      throw new ArgumentError(
        `${type.name} from ${low} to below ${high}: whole numbers that it holds, at most 2^32 of them`,
      );
    }
    // The whole range of 32 bits is said by 0.
    const base = BigInt(low);
    return {
      base: type.bits === 64 ? BigInt.asUintN(64, base) : Number(BigInt.asUintN(32, base)),
      scale: (high - low) % 2 ** 32,
    };
  }
  if (!Number.isFinite(low) || !Number.isFinite(high) || !(low <= high)) {
    throw new ArgumentError(
      `a uniform distribution goes from a finite low to a finite high, not ${low} to ${high}`,
    );
  }
  return { base: low, scale: high - low };
}

const kernels: Map<string, Kernel> = new Map();

function kernelFor(type: StorageType, distribution: "uniform" | "normal"): Kernel {
  const key = `${type.name}.${distribution}`;
  let found = kernels.get(key);
  if (found === undefined) {
    found = makeKernel(type, distribution);
    kernels.set(key, found);
  }
  return found;
}

type Draw = (
  words: RandomWords,
  more: () => RandomWords,
  base: Value<never>,
  scale: Value<never>,
) => readonly Value<ElementType>[];

/** Four numbers of a group; `more` draws another 128 bits. */
const draws: {
  readonly [name: string]: { readonly base: StorageType; readonly scale: StorageType; readonly draw: Draw };
} = {
  normal: {
    base: f32,
    scale: f32,
    draw: ([a, b, c, d], _more, base, scale) =>
      scaled([...normalPair(a, b), ...normalPair(c, d)], base, scale),
  },
  float: {
    base: f32,
    scale: f32,
    draw: (words, _more, base, scale) => scaled(words.map(uniform), base, scale),
  },
  double: {
    base: f64,
    scale: f64,
    draw: (words, more, base, scale) => {
      const low = more();
      return scaled(
        words.map((high, position) => uniformDouble(high, low[position]!)),
        base,
        scale,
      );
    },
  },
  // Sums wrap like the target's type, so that 32 bits do for types that have no more.
  word: {
    base: u32,
    scale: u32,
    draw: (words, _more, base, scale) =>
      words.map((bits) =>
        offsetBelow(bits, scale as unknown as Value<U32>).add(base as unknown as Value<U32>),
      ) as unknown as readonly Value<ElementType>[],
  },
  integer: {
    base: u64,
    scale: u32,
    draw: (words, _more, base, scale) =>
      words.map((bits) =>
        offsetBelow(bits, scale as unknown as Value<U32>)
          .to(u64)
          .add(base as unknown as Value<U64>),
      ) as unknown as readonly Value<ElementType>[],
  },
};

function scaled<T extends F32 | F64>(
  numbers: readonly Value<T>[],
  base: Value<never>,
  scale: Value<never>,
): readonly Value<ElementType>[] {
  return (numbers as unknown as readonly Value<F32>[]).map(
    (number) =>
      number.fma(
        scale as unknown as Value<F32>,
        base as unknown as Value<F32>,
      ) as unknown as Value<ElementType>,
  );
}

/** A multiple of 2^-53 in [0, 1). */
function uniformDouble(high: Value<U32>, low: Value<U32>): Value<F64> {
  return high
    .shiftRight(5)
    .to(f64)
    .fma(2 ** 26, low.shiftRight(6).to(f64))
    .mul(2 ** -53);
}

/** bits·range / 2^32; a range of 0 stands for 2^32. */
function offsetBelow(bits: Value<U32>, range: Value<U32>): Value<U32> {
  return select(range.eq(0), bits, mulHigh(bits, range));
}

function uniformKindOf(type: StorageType): string {
  if (type.class === "float") return type.name === "f64" ? "double" : "float";
  return type.bits === 64 ? "integer" : "word";
}

function makeKernel(type: StorageType, distribution: "uniform" | "normal"): Kernel {
  const uniformKind = uniformKindOf(type);
  const {
    base: baseType,
    scale: scaleType,
    draw,
  } = draws[distribution === "normal" ? "normal" : uniformKind]!;
  const params = {
    target: output(type, 0),
    count: index,
    key0: u32,
    key1: u32,
    base: baseType as F32,
    scale: scaleType as F32,
  } satisfies ParameterDescriptors;
  const lanes = type.bits === 64 ? 2 : 4;
  return kernel(`random_${distribution}`, {
    params,
    block: blockThreads,
    body({ target, count, key0, key1, base, scale }) {
      const first = block.id.x.to(index).mul(blockThreads).add(thread.index.to(index));
      const step = grid.size.x.to(index).mul(blockThreads);
      loop({ from: first, to: count.add(3).div(4), step }, (group) => {
        const [low, high] = [group.to(u32), group.div(2 ** 32).to(u32)];
        const words = philox([low, high, 0, 0], [key0, key1]);
        const more = (): RandomWords => philox([low, high, 1, 0], [key0, key1]);
        const numbers = draw(words, more, base as unknown as Value<never>, scale as unknown as Value<never>);
        const position = group.mul(4);
        const elements = numbers.map((number) => number.to(type));
        when(position.add(3).lt(count), () => {
          for (let lane = 0; lane < 4; lane += lanes) {
            target.storeVectorAt(position.add(lane), vector(...elements.slice(lane, lane + lanes)));
          }
        }).otherwise(() => {
          for (const [lane, element] of elements.entries()) {
            when(position.add(lane).lt(count), () => target.storeAt(position.add(lane), element));
          }
        });
      });
    },
  }) as unknown as Kernel;
}
