/**
 * @file The kernels around a product whose steps reduce: one that joins partial states and writes the results, one that
 * sets results to begin from, one that clears.
 */
import {
  type AnyValue,
  block,
  constant,
  type GlobalArray,
  type I32,
  i32,
  index,
  inout,
  input,
  isFloat,
  type Kernel,
  kernel,
  loop,
  output,
  type StorageType,
  select,
  shared,
  thread,
  type Value,
  variable,
  when,
} from "../../lang/index.ts";
import { saturated } from "./combination.ts";
import type { Reduction } from "./reduction.ts";

/** Threads of a block, and how they divide lines and the partial states of each. */
const threads = 256;

/** How many lines a block finishes: neighbouring lines lie together, and a single one keeps all threads busy. */
export function linesPerBlock(lines: number): 1 | 32 {
  return lines === 1 ? 1 : 32;
}

/**
 * Joins the partial states of each line, [component][part][line], in a fixed order, and stores what the reduction leaves.
 * The same kernel object for the same reduction and types.
 */
export function finishingKernel(
  reduction: Reduction,
  type: StorageType,
  targets: readonly StorageType[],
  perBlock: 1 | 32,
): Kernel {
  const key = [type, ...targets].map(({ name }) => name).join(" ");
  return remembered(finishing, reduction, `${key} ${perBlock}`, () =>
    makeFinishing(reduction, type, targets, perBlock),
  );
}

/** Sets every element of a target to what no elements reduce to. */
export function beginningKernel(reduction: Reduction, type: StorageType): Kernel {
  return remembered(beginning, reduction, type.name, () => {
    const [identity] = reduction.identity(type);
    return filling("begin_reduction", type, () => constant(type, identity));
  });
}

/** Clears a row-major matrix, line by line. */
export function clearingKernel(type: StorageType): Kernel {
  return remembered(clearing, clearingOf, type.name, () => filling("clear", type, () => constant(type, 0)));
}

/** Blocks of {@link beginningKernel} and {@link clearingKernel}. */
export function fillingBlocks(elements: number): number {
  return Math.ceil(elements / threads);
}

const finishing: WeakMap<object, Map<string, Kernel>> = new WeakMap();
const beginning: WeakMap<object, Map<string, Kernel>> = new WeakMap();
const clearing: WeakMap<object, Map<string, Kernel>> = new WeakMap();
const clearingOf = {};

function remembered(
  table: WeakMap<object, Map<string, Kernel>>,
  owner: object,
  key: string,
  make: () => Kernel,
): Kernel {
  const known = table.get(owner) ?? new Map<string, Kernel>();
  table.set(owner, known);
  const found = known.get(key) ?? make();
  known.set(key, found);
  return found;
}

/** `lines` lines of `length` elements, `leading` apart. */
function filling(name: string, type: StorageType, value: () => AnyValue): Kernel {
  return kernel(name, {
    params: { target: output(type, 0), length: i32, lines: i32, leading: index },
    block: threads,
    body({ target, length, lines, leading }) {
      const element = block.id.x.to(index).mul(threads).add(thread.index.to(index));
      const line = element.div(length.to(index));
      when(line.lt(lines.to(index)), () => {
        const within = element.sub(line.mul(length.to(index)));
        target.storeAt(line.mul(leading).add(within), value() as never);
      });
    },
  }) as unknown as Kernel;
}

/** Partial states that a thread loads at once, since each takes long. */
const together = 4;

function makeFinishing(
  reduction: Reduction,
  type: StorageType,
  targets: readonly StorageType[],
  perBlock: 1 | 32,
): Kernel {
  const names = targets.map((_, t) => `target${t}`);
  return kernel("finish_reduction", {
    params: {
      partials: input(type, 0),
      parts: i32,
      lines: i32,
      ...Object.fromEntries(names.map((name, t) => [name, inout(targets[t], 0)])),
    },
    block: threads,
    body(given) {
      const args = given as unknown as Readonly<Record<string, unknown>>;
      const [parts, lines] = [args.parts, args.lines] as Value<I32>[];
      const line = block.id.x.mul(perBlock).add(thread.index.rem(perBlock));
      const member = thread.index.div(perBlock);
      const inside = line.lt(lines);
      const state = reduction.identity(type).map((x) => variable(type, constant(type, x) as never));
      const join = (other: readonly AnyValue[]): void => {
        const joined = reduction.combine(
          state.map(({ value }) => value),
          other,
        );
        state.forEach((register, c) => {
          register.value = joined[c] as never;
        });
      };
      when(inside, () =>
        joinParts(reduction, type, args.partials as never, { parts, lines, line, member, perBlock }, join),
      );
      joinMembers(type, state.length, state, member, perBlock, join);
      when(inside.and(member.eq(0)), () => {
        const left = state.map(({ value }) => value as AnyValue);
        (reduction.leave?.(left) ?? left).forEach((x, t) => {
          const target = args[`target${t}`] as GlobalArray<StorageType>;
          target.storeAt(line, leaving(x, targets[t]));
        });
      });
    },
  }) as unknown as Kernel;
}

function leaving(x: AnyValue, type: StorageType): AnyValue {
  return isFloat(type) ? x.to(type) : saturated(x, type).to(type);
}

/** Every `threads / perBlock`-th state of a line, from the member's own on. */
function joinParts(
  reduction: Reduction,
  type: StorageType,
  partials: GlobalArray<StorageType>,
  at: {
    readonly parts: Value<I32>;
    readonly lines: Value<I32>;
    readonly line: Value<I32>;
    readonly member: Value<I32>;
    readonly perBlock: number;
  },
  join: (state: readonly AnyValue[]) => void,
): void {
  const { parts, lines, line, member, perBlock } = at;
  const step = threads / perBlock;
  const empty = reduction.identity(type).map((x) => constant(type, x));
  loop({ from: member, to: parts, step: step * together }, (first) => {
    const loaded = Array.from({ length: together }, (_, t) => {
      const part = first.add(t * step);
      const isThere = part.lt(parts);
      const held = part.min(parts.sub(1));
      return empty.map((nothing, c) => {
        const place = parts.mul(c).add(held).to(index).mul(lines.to(index)).add(line.to(index));
        return select(isThere, partials.loadAt(place) as AnyValue, nothing);
      });
    });
    loaded.forEach(join);
  });
}

/** The members' states of each line, halving their number through shared memory. */
function joinMembers(
  type: StorageType,
  components: number,
  state: readonly { readonly value: unknown }[],
  member: Value<I32>,
  perBlock: number,
  join: (state: readonly AnyValue[]) => void,
): void {
  const held = Array.from({ length: components }, () => shared(type, threads));
  const keep = (): void =>
    held.forEach((memory, c) => {
      memory.storeAt(thread.index, state[c].value as never);
    });
  keep();
  for (let half = threads / perBlock / 2; half >= 1; half /= 2) {
    block.barrier();
    when(member.lt(half), () => {
      join(held.map((memory) => memory.loadAt(thread.index.add(half * perBlock)) as AnyValue));
      keep();
    });
  }
}
